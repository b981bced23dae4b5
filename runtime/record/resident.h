/* SPDX-License-Identifier: MIT */
/*
 * resident.h: how much memory of the process is resident, as the kernel counts it. Raw system
 * calls, no allocation; safe in handlers. 0 where there is no /proc.
 *
 * Called by runtime/record and runtime/entry.
 */
#ifndef RUNTIME_RECORD_RESIDENT_H
#define RUNTIME_RECORD_RESIDENT_H

#include "memtrace/format.h"

uint64_t resident_now(void);
/* Notes in the header the most that was ever resident. */
void resident_note_peak(struct memtrace_header *header);

#endif
