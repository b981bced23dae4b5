/* SPDX-License-Identifier: MIT */
/*
 * runfolder.h: the folder of a run of several processes, and run.json in it.
 *
 * Called by collect/runwriter, and by whoever writes a file of a run that has ended.
 */
#ifndef COLLECT_RUNFOLDER_H
#define COLLECT_RUNFOLDER_H

#include "analyze/read/run.h"
#include "collect/runwriter.h"

/* Fills run->folder from run->path. */
void runfolder_name(struct runwriter *run);

/* Makes the folder, if it is not there; where its place takes none, in $TMPDIR or /tmp, and
 * run->path with it. 0 or -1. */
int runfolder_make(struct runwriter *run);

/* copy_path_in() the run's folder. */
void runfolder_path(const struct runwriter *run, const struct memtrace_header *header,
                    const char *ending, char *path, size_t capacity);
/* A recording with all its parts gets another path. The number of files that were moved. */
unsigned runfolder_move_recording(const char *from, const char *to);
/* A new name for a profile that is merged with others at the end. */
void runfolder_small_path(struct runwriter *run, char *path, size_t capacity);
bool runfolder_is_small(const struct runwriter *run, const char *path);

/* Whether a process that no collector had has put its profile at run->path by itself. */
bool runfolder_is_joined(const struct runwriter *run);

/* Removes what an earlier run left at the path, if that is a folder. -1 with errno: it holds what
 * is not ours, or cannot be removed. */
int runfolder_clear(const char *path);

/* Merges what is small, writes run.json and moves the folder to run->path, in the place of what an
 * earlier run left there. 0 or -1. */
int runfolder_finish(struct runwriter *run, const struct runwriter_exit *how, struct error *error);

#endif
