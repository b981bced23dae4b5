/* SPDX-License-Identifier: MIT */
/*
 * proc.h: what /proc says of this process. Raw system calls, no allocation; safe in handlers. 0
 * where there is no /proc.
 *
 * Called by runtime/record and runtime/entry.
 */
#ifndef RUNTIME_RECORD_PROC_H
#define RUNTIME_RECORD_PROC_H

#include "memtrace/format.h"

#include <stddef.h>

/* What names the process for good, since a pid is given again, and is a number of its namespace:
 * when it started (field 22 of /proc/self/stat, proc(5)), and the inode of its namespace of pids
 * (pid_namespaces(7)). */
uint64_t proc_start_ticks(void);
uint64_t proc_pid_namespace(void);

/* The program's file: the one that is mapped where its entry is. /proc/self/exe is another where a
 * loader was started as a command (`ld.so PROGRAM`). Returns the length, the 0 at the end left out;
 * 0: it cannot be told. */
size_t proc_program_file(char *path, size_t size);

/* How much memory is resident, as the kernel counts it. */
uint64_t proc_resident_bytes(void);
/* Notes in the header the most that ever was. */
void proc_note_resident_peak(struct memtrace_header *header);
/* Notes in the header how much of what is resident now is the runtime's own. */
void proc_note_own_resident(struct memtrace_header *header);

#endif
