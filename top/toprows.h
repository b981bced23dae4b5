/* SPDX-License-Identifier: MIT */
/*
 * toprows.h: the rows that `memtrace top` shows: what functions, or call paths, cost now, opened to
 * their callers where the user wants it, sorted and filtered.
 *
 * Called by top and its unit test; knows nothing of terminals. One thread. All zero is empty and
 * ready but for `costs` and `names`; toprows_free() at the end.
 */
#ifndef TOP_TOPROWS_H
#define TOP_TOPROWS_H

#include "analyze/profile/livecosts.h"
#include "top/topnames.h"

#include <regex.h>

/* A row at the left edge is a function that allocates, whose callers it opens to, or one call path,
 * which opens to its frames. */
enum toprows_by { TOPROWS_FUNCTIONS, TOPROWS_PATHS };

enum toprows_sort {
    TOPROWS_LIVE,
    TOPROWS_DELTA,
    TOPROWS_TOTAL,
    TOPROWS_RATE,
    TOPROWS_TEMPORARY,
    TOPROWS_BLOCKS,
    TOPROWS_MAXIMUM,
};

struct toprows_costs {
    struct livecosts_counts now;
    uint64_t columns;    /* of threads that allocated, as in livecosts.h */
    int64_t delta_bytes; /* live since the mark */
    uint64_t new_bytes;  /* allocated since the look before */
    uint64_t new_blocks;
};

/* Where a path goes on: an inlined function of a node's frame. node 0: nowhere. */
struct toprows_place {
    uint32_t node;
    uint32_t index; /* from the innermost on */
};

struct toprow {
    uint64_t id;                /* the same at each look, once names are known */
    unsigned depth;             /* 0: the left edge */
    struct toprows_place place; /* whose frame it shows; node 0: of none (where `rest` is not 0: all
                                   others of its depth) */
    struct toprows_costs costs;
    size_t paths; /* call paths in it */
    size_t rest;  /* functions or paths that it stands for: there are too many */
    bool can_open;
    bool is_open;
    uint64_t lifetimes[MEMTRACE_LIFETIME_BUCKETS]; /* of blocks that were freed, once taken in */
};

/* What a path's first function is; kept while names are the same. */
struct toprows_first {
    uint64_t key;
    struct toprows_place place;
};

struct toprows {
    const struct livecosts *costs;
    struct topnames *names;

    enum toprows_by by;
    enum toprows_sort sort;
    bool reverse;
    const regex_t *filter; /* paths that go through a function whose name matches; NULL: all */

    struct toprow *rows;
    size_t count;
    size_t room;
    struct numbermap places; /* of rows, from 1 on, by id; empty until a lifetime was taken in */
    bool has_lifetimes;
    struct toprows_costs totals; /* of all paths that pass the filter */
    size_t paths;

    struct numbermap open;        /* ids of rows that are */
    struct toprows_first *firsts; /* by context's place in costs */
    size_t first_count;
    size_t first_room;
    unsigned char *passes; /* by node: whether the filter lets it pass; 0: not known */
    size_t pass_room;
    struct numbermap matches; /* by frame: whether its names match the filter */
    uint64_t generation;      /* of the names that these were made with */
    struct job_memory *memory;
};

enum { TOPROWS_MOST = 500 }; /* of one depth under one row */

/* Makes the rows anew, after a look or a change of what is wanted. 0, or -1: out of memory. */
int toprows_make(struct toprows *rows);
/* The filter is another one. */
void toprows_refilter(struct toprows *rows, const regex_t *filter);
/* Opens or closes a row; rows are made anew by the next toprows_make(). */
void toprows_open(struct toprows *rows, const struct toprow *row, bool open);
/* The next function outwards, of a language's library only the outermost; node 0: none. */
struct toprows_place toprows_caller(const struct toprows *rows, struct toprows_place place);
/* Whether the costs of a context, by its place in costs, are in those of the row. NULL: in the
 * totals. */
bool toprows_covers(struct toprows *rows, const struct toprow *row, size_t context);
/* Each row has the lifetimes of its paths from now on: between the two, for each context's
 * toprows_take_lifetimes(). false: it has them. */
bool toprows_wants_lifetimes(struct toprows *rows);
livecosts_take_lifetimes toprows_take_lifetimes; /* context: the rows */
/* What is there: in `unknown` as long as names are not known; NULL: no frame. model: of which
 * modules are. */
const struct names_frame *toprows_frame(const struct toprows *rows, struct toprows_place place,
                                        const struct model *model, struct names_frame *unknown);
void toprows_free(struct toprows *rows);

#endif
