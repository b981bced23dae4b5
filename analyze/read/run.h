/* SPDX-License-Identifier: MIT */
/*
 * run.h: a run: the folder that a command of several processes leaves. run.json in it tells all
 * about them; where there is none (the run goes on, or was killed) the headers of the files do.
 *
 * Called by analyze/report, collect and cli. A run is a value: it does not change once it is open.
 * Opening it reads no profile, so it takes no longer with 1,000 processes than with ten.
 *
 * Invariants, whatever the files say:
 *   processes are sorted by start_ns; parent and first_image are lower than the process itself
 *   file is one of run.files, or NULL
 *   times of the timeline grow strictly; peak.bound_bytes >= peak.seen_bytes
 */
#ifndef ANALYZE_READ_RUN_H
#define ANALYZE_READ_RUN_H

#include "analyze/base/error.h"
#include "analyze/read/arguments.h"
#include "memtrace/format.h"

#include <stdbool.h>
#include <stddef.h>

#define RUN_SUMMARY "run.json"
#define RUN_OTHERS  "others.mtp"
#define RUN_NONE    SIZE_MAX

enum run_end { RUN_ENDED, RUN_EXECED, RUN_KILLED, RUN_RUNNING, RUN_DETACHED };
/* "ended", "execed", "killed", "running" or "detached" */
const char *run_end_word(enum run_end end);

/* One image of a process: what it was from its start, or from an exec, to its end, or the next. */
struct run_process {
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t image; /* 1, 2, ... of one process, in the order of exec */
    char *program;  /* a path, or a short name; "" where unknown */
    struct arguments command;
    char *file;        /* NULL: nothing was kept, or it is gone */
    uint64_t start_ns; /* since the run's start */
    uint64_t end_ns;
    enum run_end end;
    bool light;      /* a forked child whose sums stand in its parent's file */
    bool is_counted; /* the counts below are known, not just the maximum */
    uint64_t allocations;
    uint64_t total_bytes;
    uint64_t frees;
    uint64_t leaked_bytes;
    uint64_t suppressed_bytes; /* of them: not told as leaked; 0: or not known */
    uint64_t leaked_blocks;
    uint64_t peak_bytes;
    uint64_t peak_error_bytes; /* by so much it may have been more; 0 in a summary */
    uint64_t lost;
    size_t parent;      /* place of the process that started it; RUN_NONE */
    size_t first_image; /* place of the first image of this process: itself, if it is that */
};

struct run_point {
    uint64_t time_ns;
    uint64_t live_bytes;
    uint64_t resident_bytes;
    uint64_t processes;
};

struct run_peak {
    uint64_t seen_bytes;  /* the most that all held at once, as sampled */
    uint64_t at_ns;       /* 0: not known */
    uint64_t bound_bytes; /* they cannot have held more */
};

struct run {
    char *path;
    struct arguments command;
    bool has_summary;
    char trouble[256]; /* what is wrong with run.json; "": nothing */
    uint64_t duration_ns;
    bool has_exit;
    int64_t exit_status; /* or, where it was ended by a signal, its number */
    bool was_signalled;
    struct run_process *processes;
    size_t process_count;
    size_t process_room;
    struct run_point *timeline;
    size_t timeline_count;
    size_t timeline_room;
    struct run_peak peak;
    char **files; /* the profiles and recordings in the folder, by name */
    size_t file_count;
    size_t file_room;
    size_t missing_files;      /* that the summary names and that are not in the folder */
    struct job_memory *memory; /* of all this, and of the run itself */
};

/* Whether this is a folder. */
bool run_is(const char *path);

/* NULL on failure: it cannot be read, or there is neither run.json nor a profile in it. A summary
 * that cannot be used is no failure: run.trouble says so, and headers are read instead. */
struct run *run_open(const char *path, struct error *error);
void run_close(struct run *run); /* NULL is allowed */

/* "FOLDER/FILE"; the caller frees it. NULL: out of memory. */
char *run_file_path(const struct run *run, const char *file);

/* The place of the image with a file whose process held most; RUN_NONE: there is none. */
size_t run_largest(const struct run *run);

/* The part of its program's path behind the last slash; "?" where it is not known. */
const char *run_name(const struct run_process *process);

/* Whether the file holds sums of several processes that are no more told apart. */
bool run_is_merged(const char *file);

/* What run.c and runfiles.c share. */
struct run_process *run_add_process(struct run *run);
void run_add_point(struct run *run, struct run_point point);
void runfiles_read(struct run *run);

#endif
