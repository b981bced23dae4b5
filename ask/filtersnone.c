/* SPDX-License-Identifier: MIT */
/*
 * filtersnone.c: the table of filters of the build for devices (MEMTRACE_TOOLS=agent), none of
 * whose commands selects call paths: what the help and the completions go through is empty.
 */
#include "ask/filters.h"

const struct option filter_options[] = {OPTION_END};
