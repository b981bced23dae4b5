/* SPDX-License-Identifier: MIT */
/*
 * toploop.h: `memtrace top`: looks, draws, minds keys, until its user or a signal ends it.
 *
 * Called by cli/top.
 */
#ifndef TOP_TOPLOOP_H
#define TOP_TOPLOOP_H

#include "top/toprows.h"

#include <stdio.h>

struct toploop_options {
    const char
        *name; /* process id, file, run or folder; NULL: the programs that are profiled now */
    const char *debug_folders;
    const char *filter; /* NULL: none */
    uint64_t interval_ns;
    enum toprows_by by;
    enum toprows_sort sort;
    bool reverse;
    bool color;
    bool unicode;
};

/* On the terminal, in a job: what cannot be opened ends that. 0, or the number of the signal that
 * ended it, when the terminal is as it was before. */
int toploop_run(const struct toploop_options *options);

/* One screen with so many rows, after two looks, as text. Likewise. */
void toploop_once(const struct toploop_options *options, size_t width, size_t rows, FILE *out);

#endif
