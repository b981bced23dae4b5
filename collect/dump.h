/* SPDX-License-Identifier: MIT */
/*
 * dump.h: a profile of a program that goes on, as it is at this moment.
 *
 * Called by collect/collector when a limit is reached, and by top when somebody asks for it.
 */
#ifndef COLLECT_DUMP_H
#define COLLECT_DUMP_H

#include "collect/claim.h"

#include <stddef.h>

/* Copies the region beside the program's output: NAME.limit.mtp for NAME.mtp, which goes to `path`.
 * One that is there already is replaced. 0 or -1. */
int dump_region(const struct claim *claim, char *path, size_t capacity, struct error *error);

/* Copies the first `size` bytes of the region `fd` to `target`; as above. */
int dump_copy(int fd, uint64_t size, const char *target, char *path, size_t capacity,
              struct error *error);

#endif
