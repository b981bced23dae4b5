/* SPDX-License-Identifier: MIT */
/*
 * budget.h: how much memory a file's tables may take. A few kilobytes that are compressed can say
 * that there are gigabytes; what a program really wrote never says so, since its tables differ from
 * line to line. (Events and call paths of an honest loop may be all alike: for these there is only
 * the limit of the whole process, ask/memorylimit.h.)
 *
 * Called by analyze/read, and by collect, which writes nothing that would be refused.
 */
#ifndef ANALYZE_READ_BUDGET_H
#define ANALYZE_READ_BUDGET_H

#include <stdint.h>
#include <stdnoreturn.h>

/* MiB that small files may have: the counters of a program alone may be 128 MiB of almost nothing
 * but zeros. A recording's tables are what the program did; they stand in memory several times. */
enum budget_of { BUDGET_PROFILE = 192, BUDGET_RECORDING = 32 };

/* Of tables in a file of so many bytes. */
uint64_t budget_honest(enum budget_of of, uint64_t file_bytes);
/* The same, or what the user allows. */
uint64_t budget_allowed(enum budget_of of, uint64_t file_bytes);
/* What the user allows all files from now on. Before files are read. */
void budget_allow(uint64_t bytes);

/* Ends the job: what is so large, and how it is read all the same. */
noreturn void budget_refuse(enum budget_of of, const char *path, uint64_t file_bytes);

#endif
