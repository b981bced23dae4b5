/* SPDX-License-Identifier: MIT */
/*
 * procfile.h: what /proc tells of a process (proc(5)): its files, mappings, "stat" and "status".
 * tid: of that thread; 0: of the process.
 *
 * Called by analyze/read/region and all of collect. Any thread; only reads. The process may be
 * hostile, and may change while it is read.
 */
#ifndef ANALYZE_READ_PROCFILE_H
#define ANALYZE_READ_PROCFILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct procmapping {
    uint64_t start, end; /* start < end */
    uint64_t offset, inode;
    bool readable, writable, executable;
    char *path; /* "": none. As the kernel writes it: "\012" for a newline, " (deleted)" behind. It
                 * is the reader's, until the next mapping */
};

/* The reader of /proc/PID/maps; with another file that has such lines it needs no procmaps_open().
 */
struct procmaps {
    FILE *file;
    char *line;
    size_t size;
};

/* 0, or -1 with errno; procmaps_close() in either case. */
int procmaps_open(struct procmaps *maps, pid_t pid);
/* The next one. 1; 0: there is none; -1: the line is none. */
int procmaps_next(struct procmaps *maps, struct procmapping *mapping);
void procmaps_close(struct procmaps *maps);

/* A file or a folder of /proc, which the format names: a descriptor (O_CLOEXEC is added), a file to
 * be read, a folder. -1 or NULL with errno. */
__attribute__((format(printf, 2, 3))) int procfile_open(int flags, const char *format, ...);
__attribute__((format(printf, 1, 2))) FILE *procfile_text(const char *format, ...);
__attribute__((format(printf, 1, 2))) DIR *procfile_folder(const char *format, ...);
/* The start of such a file's text, "" where it cannot be read; *text is `capacity` bytes. */
__attribute__((format(printf, 3, 4))) const char *procfile_read(char *text, size_t capacity,
                                                                const char *format, ...);
/* The numbers of the folder's entries, which are processes or threads, up to 0. */
pid_t procfile_next(DIR *folder);

/* "stat" from this field on, the third or a later one: the name before them may hold anything. It
 * is in `text`. NULL: errno; ESRCH: it is gone. */
enum { PROCFILE_STAT_BYTES = 2048 };
const char *procfile_stat(pid_t pid, pid_t tid, unsigned field, char text[PROCFILE_STAT_BYTES]);

/* A line "NAME:" of "status", without the blanks before its value. 0, or -1: the process or the
 * line is not there. */
int procfile_status(pid_t pid, pid_t tid, const char *name, char *value, size_t capacity);
/* Its number in its own namespace of pids; 0: not told. */
uint32_t procfile_own_number(pid_t pid, pid_t tid);

#endif
