/* SPDX-License-Identifier: MIT */
/*
 * pass.h: the replay: goes through events of a recording, all or some that follow each other, pairs
 * frees with their allocations and adds up what happened in [from, to): accounts of blocks, and
 * mappings. A visitor of single blocks (lives.h) takes them in place of the accounts.
 *
 * Called by analyze/window: wholemodel (everything, cut into slices) and part (a slice once more);
 * and by replay/lives. Belongs to one thread; a second one reads ahead inside pass_run().
 *
 * An event is inside if from <= its time < to. A block ends at the time of its free, but not before
 * it began: clocks of threads may differ. Start from pass_start() or pass_start_blocks().
 */
#ifndef ANALYZE_REPLAY_PASS_H
#define ANALYZE_REPLAY_PASS_H

#include "analyze/model/model.h"
#include "analyze/replay/accounts.h"
#include "analyze/replay/mappinglist.h"
#include "analyze/replay/options.h"
#include "analyze/replay/peakbound.h"
#include "analyze/replay/timeorder.h"

struct pass {
    struct accounts accounts; /* of single blocks: none */
    const struct model_node *nodes;
    struct pairing *pairing;
    struct mappinglist mappings;
    struct peakbound bound;
    uint64_t *newest; /* by stream: number of its last heap block, temporary if freed next */
    bool adjacent;    /* that is: in the very next event (MEMTRACE_FLAG_ADJACENT) */
    size_t stream_count;
    size_t stream; /* whose events come now, in which window */
    uint64_t window;
    uint64_t from_ns;
    uint64_t last_ns;    /* to - 1 */
    uint32_t first_tick; /* of the events since these were set */
    uint32_t last_tick;
    uint32_t before;    /* that of the heap from before an attach; 0: there is none */
    uint32_t missing;   /* the context that stands for those that the file lacks */
    uint64_t inherited; /* blocks still to come that a forked child was born with */
    uint64_t events;
    bool has_wrong_mapping; /* one with the context of a block */
    int stop;               /* what a visitor returned: not 0 ends the pass */
};

/* Whether a block that begins was there before: its allocation is not this recording's. */
static inline bool pass_is_inherited(const struct pass *pass, const struct event *event) {
    return pass->inherited != 0 || (event->flags & MEMTRACE_ALLOC_BEFORE) != 0;
}

/* How a block ended: by whom and when, and which event said so. */
struct pass_end {
    struct pairing_end end;
    const struct timeorder_event
        *by;                    /* a free or a reallocation; NULL: it had waited for the block */
    struct context_id freed_by; /* 0: not recorded, or it was reallocated */
    bool is_temporary;
};

/* Who looks on. Functions may be NULL. What one returns that is not 0 ends the pass. */
struct pass_visitor {
    /* Single blocks: one begins (block has the event's size, weight and context, and keeps what
     * this makes of size and tick until its end), one ends. Mappings are the visitor's then, too.
     */
    int (*begin)(void *context, const struct timeorder_event *entry, struct pairing_block *block);
    int (*end)(void *context, const struct pairing_block *block, const struct pass_end *end);
    /* Marks and losses; of single blocks, also mappings, and the heap from before an attach
     * (event_is_of_before). */
    int (*other)(void *context, const struct timeorder_event *entry);
    /* Before the first event of a window, which begins at this time. */
    void (*window)(void *context, uint64_t time_ns);
    /* Of accounts: a block begins; one ended that was `block` (not one whose end had waited). */
    void (*began)(void *context, const struct timeorder_event *entry);
    void (*ended)(void *context, struct event_block name, const struct pairing_block *block);
    /* An end that had waited for its allocation. */
    void (*waited)(void *context, struct event_block name, const struct pairing_end *end);
    void *context;
};

/* model: its nodes, the last of which stands for missing ones. to_ns > from_ns. It belongs to the
 * present job. */
void pass_start(struct pass *pass, const struct model *model, size_t stream_count, uint64_t from_ns,
                uint64_t to_ns);
/* The same for a visitor of single blocks, all of them: no accounts are kept. */
void pass_start_blocks(struct pass *pass, const struct model *model, size_t stream_count);
/* Frees it early. */
void pass_free(struct pass *pass);

/* All that the order has, but for what options->until_ns leaves out. 0, what the visitor returned,
 * or REPLAY_CANCELLED where options said so. A visitor may end the job. */
int pass_run(struct pass *pass, struct timeorder *order, const struct pass_visitor *visitor,
             const struct replay_options *options, uint64_t total);

/* What was inside since the last cut. */
void pass_cut(struct pass *pass, struct slice *slice);

/* A block that began before the pass does. */
void pass_know_block(struct pass *pass, struct event_block name, struct pairing_block block,
                     uint64_t born_ns);

uint32_t pass_context(const struct pass *pass, uint32_t context);

#endif
