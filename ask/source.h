/* SPDX-License-Identifier: MIT */
/*
 * source.h: the profile or recording that a command line means, of a run one of its processes or
 * the sum of all. What killed programs left is moved to its place before, as `memtrace list` and
 * `memtrace run` do.
 *
 * Called by the commands that read such files. A source is opened in a job of its own, whose memory
 * it keeps.
 */
#ifndef ASK_SOURCE_H
#define ASK_SOURCE_H

#include "analyze/base/job.h"
#include "analyze/model/model.h"
#include "analyze/model/names.h"
#include "analyze/read/run.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"
#include "analyze/window/wholemodel.h"
#include "collect/transform/merge.h"

/* Which process of a run. Neither: the one that held most. */
struct source_choice {
    const char *process; /* PID or NAME, with :IMAGE behind it; NULL: not said */
    bool all;            /* the sum of all */
};

struct source {
    struct model *model;          /* of all of it */
    struct timeorder_parts parts; /* the recording, open; count 0: a profile */
    char *path;                   /* the file that was read; of the sum of a run: its folder */
    char *symbols; /* a folder with the symbols that a recording carries; NULL: none are needed, its
                      modules are here as they were */
    struct framenames names; /* of frames, where the file carries them itself */
    struct run *run;         /* NULL: the file was named itself */
    size_t process;          /* of the run's processes; RUN_NONE: the sum of all */
    char *merged;            /* recordings as one, a file which goes; NULL: none */
    char *merged_folder;     /* in which it is alone */
    bool is_running;         /* the sum is of processes that run now */
    struct job_memory *memory;
};

/* Loads a profile or replays a recording; options are for the latter. A number is a process,
 * running or killed, unless there is a file of that name; NULL is the newest *.mtp or *.mtr of this
 * folder, which may be a run's folder. choice: of its processes; NULL: a run is an error.
 * debug_folders: NULL, or as for the symbolizer. 0 or -1. */
int source_open(struct source *source, const char *name, const struct source_choice *choice,
                const char *debug_folders, const struct replay_options *options,
                struct error *error);
/* Opens a recording and the parts beside it, without going through its events: there is no model.
 * 0, or -1, also for a profile. */
int source_open_parts(struct source *source, const char *name, struct error *error);
/* Also removes the folders. It must lie where it was opened. */
void source_close(struct source *source);

/* Makes one recording of these and of the parts that lie beside them (merge.h). 0 or -1. */
int source_merge(char *const *paths, size_t count, const char *output,
                 const struct transform_options *options, struct merge_result *result,
                 struct error *error);

/* How large the files of a recording are now; 0: of a profile. */
uint64_t source_bytes(const struct source *source);

/* Where temporary files and folders go, their names but for what makes each one new. The process is
 * in it, so that whoever comes later can tell those that nobody needs. 0, or -1: too long. */
int source_temporary(char *pattern, size_t size, const char *process, const char *rest);

/* The names of the model's frames, also from what came along with the file. debug_folders: NULL, or
 * as for the symbolizer. The caller closes them, before the source. NULL: error is set. */
struct names *source_names(const struct source *source, const char *debug_folders,
                           void (*progress)(void *context, size_t done, size_t total),
                           struct error *error);

#endif
