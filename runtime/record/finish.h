/* SPDX-License-Identifier: MIT */
/* finish.h: the profile goes to its file, where no collector does it; the companion is started. */
#ifndef RUNTIME_RECORD_FINISH_H
#define RUNTIME_RECORD_FINISH_H

#include "runtime/record/region.h"
#include "runtime/record/survey.h"

/* Copies the region to header.output, by a temporary file and a rename. 0, or -1 after one line. */
int finish_write_profile(struct space *space);
void finish_print_summary(const struct memtrace_header *header, const struct survey *survey,
                          int written);

/* The log, begun anew where it has outgrown its size: what was before is FILE.1. A descriptor or a
 * negative errno. */
long finish_open_log(const struct memtrace_header *header);

/* Starts `memtrace companion REGION`. 0, or -1 after one line: none can be had. */
int companion_start(struct region *region, char *const environment[]);

/* Runs the command with these arguments, without being seen by the program, and waits. Its exit
 * status, or -1. One thread at a time. */
int companion_ask(const struct settings *settings, char *const argv[], char *const environment[]);

#endif
