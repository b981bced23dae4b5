/* SPDX-License-Identifier: MIT */
/*
 * entry.h: the one entry that a run leaves in the user's folder, where no `memtrace run` sees to
 * it.
 *
 * The first process of a run that ends writes a plain file. The next one finds it there, makes it a
 * folder of the same name, and writes its own profile into that.
 */
#ifndef RUNTIME_RECORD_ENTRY_H
#define RUNTIME_RECORD_ENTRY_H

#include "memtrace/format.h"

/* Before the profile is written to header.output: where another process of the same run has been
 * before, header.output becomes a file in the run's folder. One writer a process; signal-safe. */
void entry_join(struct memtrace_header *header);

/* Moves the whole profile from `file` to header.output, which entry_join() has set from the run's
 * path `run`. It takes the place of no other process's profile of the run: where one came there
 * meanwhile, or has that name, header.output becomes another file. 0 or a negative errno. */
long entry_place(struct memtrace_header *header, const char *run, const char *file);

#endif
