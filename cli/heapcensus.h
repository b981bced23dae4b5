/* SPDX-License-Identifier: MIT */
/* heapcensus.h: `memtrace attach PID --census`. Called by cli/attach. */
#ifndef CLI_HEAPCENSUS_H
#define CLI_HEAPCENSUS_H

#include "collect/attach/preflight.h"

#include <stdbool.h>

/* Prints what the heap of the process holds. The command's status. */
int heapcensus_run(const struct attachimage *image, const char *library,
                   const struct preflight *found, bool as_json);

#endif
