/* SPDX-License-Identifier: MIT */
/*
 * region.h: finds the profile regions of running and of killed programs.
 *
 * A region is a file <folder>/<pid>.<start_ticks>.mtp; the folder is $MEMTRACE_REGION_DIR, else
 * /dev/shm/memtrace-<uid>, else /tmp/memtrace-<uid>, or <uid>.2, <uid>.3 where a folder of that
 * name is another user's. start_ticks is field 22 of /proc/PID/stat, so that a reused pid is not
 * taken for the program that wrote the region.
 *
 * Called by cli (report PID, list, trace) and collect. Any thread; only reads.
 */
#ifndef ANALYZE_READ_REGION_H
#define ANALYZE_READ_REGION_H

#include "analyze/base/error.h"
#include "memtrace/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct region {
    pid_t pid;
    uint64_t start_ticks;
    bool alive;      /* the program runs; false: it was killed, or ended without finishing */
    bool is_foreign; /* its pid is one of another namespace; alive: some process has it open */
    int64_t modified_ns;
    char path[512];
};

/* Field 22 of /proc/PID/stat; 0 or -1 (no such process). */
int region_start_ticks(pid_t pid, uint64_t *ticks);

/* Whether any process, of whatever namespace, has the file open for writing or mapped from such a
 * descriptor. `fd` is ours, open for writing too. Where the kernel cannot tell: yes. */
bool region_is_open(int fd);

/* Whether any process has the file open for writing; `fd` is ours, open for reading. Where the
 * kernel cannot tell (another user's file, some file systems): no, with *unknown true. */
bool region_is_written(int fd, bool *unknown);

/* Whether the program that this header names still runs; `fd` is its region. One of another
 * namespace of pids does as long as it has that open. */
bool region_runs(int fd, const struct memtrace_header *header);

/* Whether the program is of another namespace of pids, where its number is another one than here.
 */
bool region_is_foreign(const struct memtrace_header *header);
/* Of a process in another namespace of pids, which its header names: its number in this one. 0: it
 * is not seen from here, or gone. */
pid_t region_pid_here(const struct memtrace_header *header);

/* Whether the process that had this pid with these start ticks still runs (a zombie does not). */
bool region_alive(pid_t pid, uint64_t start_ticks);

/* Below what the files lie that the program names: "/proc/PID/root" where it has another root or
 * other mounts. Empty: as ours. */
enum { REGION_ROOT = 32 };
void region_root(const struct region *region, char root[REGION_ROOT]);

/* Splits the name of a region, "<folder>/<pid>.<ticks>.mtp". A program that came by exec finds that
 * taken while the one before is not finished: then ".2", ".3" and so on stand before the ending.
 * Fills everything but alive and modified_ns. 0 or -1. */
int region_parse(const char *path, struct region *region);

/* The folders where regions of this user may lie, existing or not, most likely first. The strings
 * live as long as `folders`. Returns their number, at most REGION_FOLDERS. */
enum { REGION_FOLDERS = 1 + 2 * MEMTRACE_REGION_FOLDERS };
struct region_folders {
    char path[REGION_FOLDERS][256];
};
size_t region_folders(uid_t uid, struct region_folders *folders);

/* Makes the strings of a header that was read end inside their arrays. */
void region_end_strings(struct memtrace_header *header);
/* The header of a profile or a region as it is now: without a lock, which a collector would take
 * for another collector's. */
enum region_header { REGION_HEADER, REGION_NO_HEADER /* yet */, REGION_NO_FILE };
enum region_header region_read_header(const char *path, struct memtrace_header *header);

/* The region of a running program: by its name in the folders of the program's user, else by what
 * the program has mapped. 0, or -1 with one line: gone, someone else's, or not profiled. */
int region_find(pid_t pid, struct region *region, struct error *error);
/* The same, with its header as it is now; false: there is none. */
bool region_find_header(pid_t pid, struct region *region, struct memtrace_header *header);

/* The same of the program that a recording is of: the process that had this number, where it was
 * recorded, and these start ticks, and its program that began at this time. Never another that has
 * the same number by now, or what it became by exec. */
int region_find_recorded(uint32_t pid, uint64_t start_ticks, uint64_t start_realtime_ns,
                         struct region *region, struct error *error);

/* All regions of this user, newest first; the caller frees *list. 0 or -1 (out of memory). */
int region_list(struct region **list, size_t *count, struct error *error);

#endif
