/* SPDX-License-Identifier: MIT */
/*
 * apidetail.h: what one pass over the single blocks of a view gathers, for all endpoints that are
 * about single blocks: it is kept with the view, so that blocks, lifetimes, sizes and the heap are
 * one pass together.
 *
 * Called by endpoints. What is handed out lives as long as the view and does not change.
 */
#ifndef WEB_SERVER_APIDETAIL_H
#define WEB_SERVER_APIDETAIL_H

#include "web/server/api.h"
#include "web/server/blockstore.h"

#include "analyze/blocks/detail.h"

enum { APIDETAIL_BINS = 256 /* of time */ };

struct apidetail {
    struct detail *detail;
    struct blockstore blocks; /* those that live at the view's end, or all */
    struct scopes *scopes;    /* of blocks' lives */
    uint64_t from_ns, to_ns;  /* what the bins are of */
    /* Counts in units of 1 / ACCOUNTS_ONE: of what was freed, by when and how old it was; of what
     * was allocated, by when and how large. */
    uint64_t lifetimes[APIDETAIL_BINS][MEMTRACE_LIFETIME_BUCKETS];
    uint64_t sizes[APIDETAIL_BINS][DETAIL_SIZE_BUCKETS];
};

/* Refuses a view of a profile, which has no single blocks: "WHAT needs single blocks ...". */
void apidetail_check(struct api_call *call, const char *what);

/* all: blocks that were freed are kept, too. Tells whether it came by a pass. */
const struct apidetail *apidetail_get(struct api_call *call, bool all);

/* What single blocks of a view tell: those of the selection (most often the view's). Of the job. */
const struct detail *apidetail_gather(const struct answer *view, const struct detail_wish *wish,
                                      const struct selection *selection,
                                      const struct replay_options *replay);

/* The time at which a bin begins; APIDETAIL_BINS: where the last one ends. */
uint64_t apidetail_bin_ns(const struct apidetail *detail, size_t bin);

/* [from, to) of the view in the time of its recording. */
struct selection_times apidetail_window(const struct answer *view);

/* What `report` and `rows` need for cells of single blocks. */
struct report apidetail_report(const struct api_call *call, const struct apidetail *detail);

/* A member: an array of {from_ns, to_ns}, and "count" where counts are given, of the buckets that
 * lifetimes are counted in; the last has no end. */
void apidetail_write_buckets(struct jsonwriter *json, const char *name, const uint64_t *counts);

/* Arrays of {from_ns, to_ns} and of counts, as members. */
void apidetail_write_bins(struct api_call *call, const struct apidetail *detail);

#endif
