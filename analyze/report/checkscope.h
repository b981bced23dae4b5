/* SPDX-License-Identifier: MIT */
/*
 * checkscope.h: what was allocated within each instance of a scope: between memtrace_scope_begin()
 * and the end, by the thread that began it. Used by check.c. Memory grows with the instances that
 * are open at one time and with contexts.
 */
#ifndef ANALYZE_REPORT_CHECKSCOPE_H
#define ANALYZE_REPORT_CHECKSCOPE_H

#include "analyze/report/check.h"

struct checkscope {
    const char *name;
    enum metric metric; /* METRIC_ALLOCATIONS or METRIC_CUMULATIVE: bytes */
    /* Filled by checkscope_count(): */
    uint64_t instances;
    uint64_t most;  /* of one instance */
    uint64_t sum;   /* of all */
    uint32_t worst; /* the context with most in all of them; 0: nothing was allocated */
    uint64_t worst_share;
};

/* 0, or -1: it is no recording, the filters do not allow it, or no memory. */
int checkscope_count(struct checkscope *scope, const struct check_subject *subject,
                     struct error *error);

#endif
