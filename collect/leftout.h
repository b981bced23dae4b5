/* SPDX-License-Identifier: MIT */
/*
 * leftout.h: what of a program's memory at its end is no leak: what common libraries keep on
 * purpose, and what its own __lsan_default_suppressions() names, as reports leave it out.
 *
 * Called by collect/collector and collect/runwriter.
 */
#ifndef COLLECT_LEFTOUT_H
#define COLLECT_LEFTOUT_H

#include "analyze/model/model.h"

struct leftout {
    bool is_known; /* false: nobody looked, as in the agent, and all is in the numbers */
    uint64_t bytes;
    uint64_t blocks;
    char note[160]; /* report_left_out() */
};

/* Of a program that only was left, or still runs, it is nothing; without memory it is not known. */
struct leftout leftout_find(const struct model *model);

#endif
