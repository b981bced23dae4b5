/* SPDX-License-Identifier: MIT */
/*
 * progress.h: a line on stderr that says how far long work is, where somebody watches.
 *
 * Called by the commands that read large files.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "analyze/replay/options.h"
#include "analyze/window/wholemodel.h"

/* Whether stderr is a terminal. */
bool progress_wanted(void);

/* For replay_options, lives_visit() and the like: options with such a line if it is wanted. */
struct replay_options progress_replay(void);

/* For source_names(): progress_wanted() ? progress_symbols : NULL */
void progress_symbols(void *context, size_t done, size_t total);

/* Debug information may be fetched from servers (debuginfod.h), with such a line. */
void progress_allow_fetching(void);

/* "memtrace: WHAT, 12 of 40 ..."; the line goes when all is done. */
void progress_show(const char *what, uint64_t done, uint64_t total);

#endif
