/* SPDX-License-Identifier: MIT */
/*
 * runwriter.h: writes a run: all processes that came of one command, and the one entry that it
 * leaves on disk.
 *
 * Called by cli/run, which finds and watches the processes, and by collect/collector, which asks
 * where the files of each one go. Belongs to one thread.
 *
 * One process leaves a plain file at the run's path. As soon as there are more, files lie in a
 * folder beside it, which takes that path at the end (docs/runs.md): one file a process that
 * matters, one for all small ones together, and run.json.
 */
#ifndef COLLECT_RUNWRITER_H
#define COLLECT_RUNWRITER_H

#include "analyze/model/model.h"
#include "analyze/read/arguments.h"
#include "collect/claim.h"
#include "collect/leftout.h"
#include "collect/record.h"

/* A process, or what it was before or after an exec. */
struct runwriter_process {
    pid_t pid;
    pid_t parent_pid;
    unsigned image;   /* 1, 2, ... of the same pid, in the order of exec */
    bool is_followed; /* functions that --alloc named were found in it */
    bool light; /* a forked child that stayed light: its counts stand in its parent's profile */
    char *program;
    struct arguments arguments; /* bytes NULL: not known */
    uint64_t
        pid_namespace; /* where pid is its number; 0: not known. Of light ones: their parent's */
    uint64_t start_ns;
    uint64_t end_ns; /* both monotonic */
    uint32_t state;  /* enum memtrace_state; a killed one's is RUNNING */
    uint64_t allocations;
    uint64_t total_bytes;
    uint64_t frees;
    uint64_t leaked_bytes;     /* never freed */
    uint64_t suppressed_bytes; /* of them: not told as leaked */
    uint64_t leaked_blocks;
    uint64_t peak_bytes;
    uint64_t peak_ns; /* monotonic; of what is not known when, its start */
    uint64_t lost;
    char *uncounted; /* see uncounted_explain(); NULL: all is counted */
    char *file;      /* its name within the run's folder; NULL: nothing is kept */
    bool small;      /* its file will be one of many in others.mtp */
    bool has_path;   /* its recording lies at the run's path, not in the folder yet */
};

struct runwriter_sample {
    uint64_t time_ns; /* since the start of the run */
    uint64_t live_bytes;
    uint64_t resident_bytes;
    uint64_t processes;
};

enum { RUNWRITER_SAMPLES = 1024 };

/* Why programs were not followed: enum memtrace_not_followed, and last what run.not_reached counts.
 */
enum { RUNWRITER_NOT_FOLLOWED = MEMTRACE_NOT_FOLLOWED_KINDS + 1 };

struct runwriter {
    uint64_t id;
    pid_t pid; /* of the command's process */
    char **arguments;
    char path[4096];       /* what the user will find: a file or a folder */
    char folder[4160];     /* where files lie meanwhile, once there are several */
    bool is_recording;     /* the entry is a recording, or a folder of recordings */
    bool keeps_small;      /* also small processes have files of their own */
    bool names_allocators; /* --alloc was given */
    bool discards;         /* the entry is /dev/null, which takes all of them, and has no folder */
    bool has_folder;
    bool has_first; /* the plain path is taken by a recording that is under way */
    struct memtrace_owner owner;
    uint64_t start_ns;
    uint64_t start_realtime_ns;
    struct runwriter_process *processes;
    size_t process_count;
    size_t small_count; /* profiles that were put among the small ones, ever */
    struct runwriter_sample
        *samples; /* RUNWRITER_SAMPLES places; every second one goes when they are full */
    size_t sample_count;
    uint64_t sample_interval_ns;
    uint64_t next_sample_ns;
    uint64_t seen_bytes; /* the highest sum of any sample, also of those that are gone */
    uint64_t seen_ns;
    /* programs that its processes started, and that could not be followed */
    uint64_t not_followed[RUNWRITER_NOT_FOLLOWED];
    bool not_followed_more; /* than these */
};

/* `path`: absolute. Nothing is written yet. 0 or -1 (out of memory). */
int runwriter_begin(struct runwriter *run, uint64_t id, const char *path, bool is_recording,
                    char **arguments);
void runwriter_free(struct runwriter *run);

/* The run ends, this process goes on: its recording gets out of the way of the run's folder. */
void runwriter_leave(const struct runwriter *run, const struct claim *claim);
/* When the run is at its place: the region is told where its recording is now, for who goes on with
 * it. */
void runwriter_note_place(const struct runwriter *run, const struct claim *claim);

/* A process was found: the region is told where its recording goes, before that is begun. */
void runwriter_join(struct runwriter *run, const struct claim *claim);

/* A process is gone: the region is told where its profile goes. `is_last`: no other one is there,
 * and none will come. */
enum runwriter_place {
    RUNWRITER_ALONE, /* the run's only process: its files lie at the run's path */
    RUNWRITER_OWN,   /* files of its own in the folder */
    RUNWRITER_SMALL, /* only a profile, which is merged with others */
};
/* Whether runwriter_place() will say RUNWRITER_ALONE, for which it needs no model. */
bool runwriter_is_alone(const struct runwriter *run, bool is_last);
enum runwriter_place runwriter_place(struct runwriter *run, const struct claim *claim,
                                     const struct model *model, const struct profile *region,
                                     bool is_last);

/* Its files are written: takes down what is to be said of it. left_out: of what is leaked. profile
 * and recording may be NULL. */
void runwriter_add(struct runwriter *run, const struct claim *claim, const struct model *model,
                   const struct leftout *left_out, const struct profile *region,
                   const char *profile, const struct record_result *recording);

/* The same for a profile that was written without us; `file`: its name in the folder. */
void runwriter_add_file(struct runwriter *run, const struct profile *profile,
                        const struct model *model, const char *file);

/* The process with that profile, if it has been added; else NULL. */
struct runwriter_process *runwriter_find(const struct runwriter *run,
                                         const struct memtrace_header *header);

/* A look at all processes that are there now. */
void runwriter_sample(struct runwriter *run, const struct runwriter_sample *sample);

/* What the whole run held at most: what was seen, and what it can have been in between. */
struct runwriter_peak {
    uint64_t seen_bytes;
    uint64_t at_ns;       /* since the start of the run */
    uint64_t bound_bytes; /* the sum of the peaks of all that ran at the same time */
};
struct runwriter_peak runwriter_peak(const struct runwriter *run);

/* No process is left: small ones are merged, run.json is written, the folder takes its place. */
struct runwriter_exit {
    bool signaled;
    int number; /* the status, or the signal */
};
int runwriter_end(struct runwriter *run, const struct runwriter_exit *how, struct error *error);

/* The lines for the user, "memtrace: " before each. Freed by the caller; NULL: out of memory. */
char *runwriter_summary(const struct runwriter *run);

/* Whether the entry is a folder, or would be. */
static inline bool runwriter_has_several(const struct runwriter *run) {
    return run->has_folder || (run->discards && run->process_count > 1);
}

#endif
