/* SPDX-License-Identifier: MIT */
/*
 * detail.h: what only single blocks tell: how long they lived, how large they were, what lay where,
 * what was freed when all was over. One pass over the selected lives feeds whatever was asked for.
 *
 * Called by cli; analyze/report shows it. Recordings only. Those that a recording culled are in
 * none of this. Memory grows with contexts and, for DETAIL_HEAP, with the blocks that live at the
 * end of the view.
 */
#ifndef ANALYZE_BLOCKS_DETAIL_H
#define ANALYZE_BLOCKS_DETAIL_H

#include "analyze/blocks/sketch.h"
#include "analyze/filter/selection.h"
#include "analyze/model/model.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"

enum detail_part {
    DETAIL_LIFETIMES = 1 << 0,
    DETAIL_SIZES = 1 << 1,
    DETAIL_GROUPS = 1 << 2,
    DETAIL_HEAP = 1 << 3,
    DETAIL_BLOCKS = 1 << 4,
    DETAIL_SHUTDOWN = 1 << 5,
    DETAIL_SHORT = 1 << 6,
};

/* Which single blocks come first. */
enum detail_order { DETAIL_LARGEST, DETAIL_OLDEST, DETAIL_FIRST };

struct detail_wish {
    unsigned parts;   /* enum detail_part; 0: nothing */
    uint32_t classes; /* bits 1 << enum model_class: blocks of these; 0: of the heap */
    /* DETAIL_SHUTDOWN: what is freed from then on; UINT64_MAX: after the last allocation of the
     * view, by any thread, whatever is selected. */
    uint64_t shutdown_ns;
    uint64_t short_ns;       /* DETAIL_SHORT: freed no later than so long after its birth */
    enum detail_order order; /* DETAIL_BLOCKS */
    size_t limit;            /* so many of them; at least 1 */
    /* Also gets each life of these classes at its end: end() and scopes. While it is gathered; what
     * it returns that is not 0 ends that, and why is its own to tell. NULL: nobody. */
    const struct lives_visitor *also;
};

/* What is told of one context. Counts are whole; those of a sampled recording are estimates. */
struct detail_context {
    uint32_t id;
    uint64_t allocations; /* born in the view */
    uint64_t first_ns;    /* birth of its first and its last block */
    uint64_t last_ns;
    /* Their counts are in units of 1 / ACCOUNTS_ONE: see life_units(). */
    struct sketch lifetimes; /* ns, of blocks freed in the view */
    struct sketch sizes;     /* of blocks born in the view */
    double lifetime_sum_ns;
    uint64_t slack_bytes; /* of the blocks that live */
    uint64_t shutdown_bytes;
    uint64_t shutdown_blocks;
    uint64_t short_blocks;
    /* While gathering: what was freed since the `epoch`-th allocation. */
    uint64_t late_bytes;
    uint64_t late_blocks;
    uint64_t epoch;
};

/* A block that lives at the end of the view. */
struct detail_live {
    uint64_t address;
    uint64_t size;
    uint32_t slack;
    uint32_t context;
};

/* Sizes from 2^(i-1) to 2^i - 1, 0 in the first one. */
enum { DETAIL_SIZE_BUCKETS = 65 };
struct detail_sizes {
    uint64_t allocations;
    uint64_t total_bytes;
    uint64_t live_blocks;
    uint64_t live_bytes;
};

struct detail {
    struct detail_wish wish;
    uint64_t end_ns; /* when ages are told: the end of the view or of the recording */
    struct detail_context *contexts; /* by id */
    size_t context_count;
    struct sketch lifetimes; /* of all */
    struct detail_sizes sizes[DETAIL_SIZE_BUCKETS];
    struct detail_live *live; /* by address; those without one are left out */
    size_t live_count;
    uint64_t live_without_address;
    struct life *blocks; /* in the order asked for */
    size_t block_count;
    uint64_t block_total; /* blocks that were to choose from */
    struct job_memory *memory;
};

/* One pass; two for what is freed after the last allocation, if the selection is more than a view:
 * then others may allocate last. See selection_visit() for the arguments. NULL: out of memory,
 * or cancelled (error says which). */
struct detail *detail_gather(const struct detail_wish *wish, const struct selection *selection,
                             const struct model *whole, struct timeorder_parts parts,
                             const struct names *names, const struct replay_options *options,
                             struct error *error);
void detail_free(struct detail *detail); /* NULL is allowed */
/* detail_free() when the present job ends. */
void detail_goes_with_job(struct detail *detail);

/* NULL: nothing of this context was seen. */
const struct detail_context *detail_find(const struct detail *detail, uint32_t id);

/*
 * A model like `model` whose contexts' live bytes and blocks are what was freed only at shutdown or
 * never (DETAIL_SHUTDOWN), or whose temporary allocations are the short-lived ones (DETAIL_SHORT),
 * so that trees and tables show that. Shares all but the contexts with `model`, and belongs to the
 * job.
 */
const struct model *detail_submodel(const struct detail *detail, enum detail_part part,
                                    const struct model *model);

/* ---- blockrank: the few blocks that come first in some order, out of any number. Of detail.c
 * alone, and of its test ---- */

struct blockrank {
    struct life *lives;
    size_t count;
    size_t limit;
    enum detail_order order;
    uint64_t end_ns; /* until when a block that lives has lived */
};

/* limit 0: keeps none. Of the job. */
void blockrank_start(struct blockrank *rank, enum detail_order order, size_t limit,
                     uint64_t end_ns);
void blockrank_add(struct blockrank *rank, const struct life *life);

/* The blocks, sorted. */
struct life *blockrank_take(struct blockrank *rank, size_t *count);

#endif
