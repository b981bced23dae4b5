/* SPDX-License-Identifier: MIT */
/*
 * toplist.h: what `memtrace top` can open, to choose from: the programs that are profiled now; or
 * the processes of a run, those that run and those of which there are files; or the recordings in a
 * folder that `memtrace gather` receives into.
 *
 * Called by top. One thread. All zero is that of all programs; toplist_free() at the end. Nothing
 * is kept open between two looks. Files are read anew only if they have another size.
 */
#ifndef TOP_TOPLIST_H
#define TOP_TOPLIST_H

#include "analyze/base/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct toplist_item {
    const char *path; /* of its region, or its file: tells it from others */
    char name[256];   /* the program, and with what arguments */
    pid_t pid;
    uint64_t start_ticks;
    bool is_running; /* it has a region */
    bool grows;      /* a recording that is not finished */
    uint64_t file_bytes;
    uint64_t start_ns; /* monotonic; of what runs */
    uint64_t up_ns;
    uint64_t live_bytes;
    uint64_t resident_bytes; /* 0: not known */
    uint64_t allocations;
    uint64_t seen_ns;   /* when it was looked at, monotonic */
    bool has_rates;     /* it was there at the look before */
    double live_change; /* bytes a second */
    double rate;        /* allocations a second */
};

enum toplist_sort { TOPLIST_LIVE, TOPLIST_CHANGE, TOPLIST_RATE, TOPLIST_RESIDENT };

struct toplist {
    const char *of; /* a folder, or a run, whose folder comes at its end; NULL: all programs of this
                       user */
    enum toplist_sort sort;
    bool reverse;
    struct toplist_item *items; /* sorted */
    size_t count;
    size_t room;
    struct job_memory *memory; /* of the items */
    double looking_seconds;    /* of the processor, that the last look took */
};

/* 0, or -1: error is set, and the list is as it was. */
int toplist_look(struct toplist *list, struct error *error);
/* After another sort was chosen. */
void toplist_sort(struct toplist *list);
void toplist_free(struct toplist *list);

#endif
