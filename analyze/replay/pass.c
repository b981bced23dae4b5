/* SPDX-License-Identifier: MIT */
/* pass.c: events become sums. See pass.h. */
#include "analyze/replay/pass.h"

#include "analyze/base/hotpath.h"
#include "analyze/base/job.h"
#include "analyze/replay/ahead.h"

enum {
    PROGRESS_EVENTS = 1 << 17, /* some ten milliseconds */
    PREFETCHED = 12,           /* events from now, about as long as memory takes */
    WHEN_SHIFT = 28,           /* in a pairing_block's context: when it began */
};

/* Times before, in and behind [from, to). The later of two is the larger. */
enum when { BEFORE = 0, INSIDE = 1, BEHIND = 2 };

/* Who takes events: the visitor of single blocks, the accounts of a window, or those of all that
 * there is, with nobody who looks on. It is told once a batch, as a constant: see take_batch(). */
enum taker { VISITOR, WINDOW, WHOLE };

HOT_INLINE enum when when_of(const struct pass *pass, uint64_t time_ns, enum taker taker) {
    if (taker == WHOLE) {
        return INSIDE;
    }
    if (time_ns < pass->from_ns) {
        return BEFORE;
    }
    return time_ns <= pass->last_ns ? INSIDE : BEHIND;
}

HOT_INLINE enum when later(enum when left, enum when right) {
    return left > right ? left : right;
}

HOT_INLINE uint32_t context_of(const struct pass *pass, uint32_t context) {
    return context != 0 && context < pass->missing ? context : pass->missing;
}

uint32_t pass_context(const struct pass *pass, uint32_t context) {
    return context_of(pass, context);
}

/* A path that is missing is the node of these. */
static struct context_id freed_by(const struct pass *pass, const struct timeorder_event *by) {
    bool is_known = by != NULL && by->event.kind == EVENT_FREE && by->event.context != 0;
    return (struct context_id){is_known ? context_of(pass, by->event.context) : 0};
}

static uint32_t tick_of(uint64_t time_ns) {
    return (uint32_t)(time_ns >> MEMTRACE_TICK_SHIFT);
}

HOT_INLINE void note_tick(struct pass *pass, uint32_t tick) {
    if (tick < pass->first_tick) {
        pass->first_tick = tick;
    }
    if (tick > pass->last_tick) {
        pass->last_tick = tick;
    }
}

/* ---- Blocks ---- */

HOT_INLINE void change(struct pass *pass, int64_t bytes) {
    if (pass->bound.current != NULL) {
        peakbound_change(&pass->bound, bytes);
    }
}

static enum taker taker_of(const struct pass *pass, const struct pass_visitor *visitor) {
    bool is_all = pass->from_ns == 0 && pass->last_ns == UINT64_MAX;
    if (pass->accounts.cells == NULL) {
        return VISITOR;
    }
    return is_all && visitor->began == NULL && visitor->ended == NULL ? WHOLE : WINDOW;
}

HOT_INLINE enum model_class class_of(struct pass *pass, uint32_t context, enum taker taker) {
    return taker != VISITOR ? accounts_class(&pass->accounts, context)
                            : contexts_class(pass->nodes[context].frame);
}

/* The block's context has its `when`. */
HOT_INLINE void count_end(struct pass *pass, struct pairing_block *block, struct event_block name,
                          const struct pairing_end *end, bool is_temporary, enum taker taker) {
    enum when when = when_of(pass, end->time_ns, taker);
    if (taker != WHOLE) {
        when = later((enum when)(block->context >> WHEN_SHIFT), when);
    }
    block->context &= (1u << WHEN_SHIFT) - 1;
    if (block->tick > end->tick) {
        note_tick(pass, block->tick); /* it cannot end before it began */
    }
    if (when == INSIDE) {
        change(pass, accounts_free(&pass->accounts, block, name.thread, end, is_temporary));
    }
}

/* by: NULL: the end had waited for its block. */
HOT_INLINE void end_block(struct pass *pass, struct pairing_block *block, struct event_block name,
                          struct pairing_end end, const struct timeorder_event *by,
                          bool is_temporary, const struct pass_visitor *visitor, enum taker taker) {
    if (taker != VISITOR) {
        count_end(pass, block, name, &end, is_temporary, taker);
    } else if (pass->stop == 0) {
        const struct pass_end how = {
            .end = end, .by = by, .freed_by = freed_by(pass, by), .is_temporary = is_temporary};
        pass->stop = visitor->end(visitor->context, block, &how);
    }
}

HOT_INLINE void take_free(struct pass *pass, const struct timeorder_event *entry,
                          struct event_block name, uint32_t tick,
                          const struct pass_visitor *visitor, enum taker taker) {
    const struct pairing_end end = {
        .thread = entry->thread, .tick = tick, .time_ns = entry->event.time_ns};
    struct pairing_block block;
    bool is_newest = name.thread == entry->thread && name.number == pass->newest[entry->stream];
    if (pass->adjacent) {
        pass->newest[entry->stream] = 0;
    }
    if (pairing_take(pass->pairing, name, &block)) {
        end_block(pass, &block, name, end, entry, is_newest && block.weight == 0, visitor, taker);
        if (taker == WINDOW && visitor->ended != NULL) {
            visitor->ended(visitor->context, name, &block);
        }
    } else {
        pairing_wait(pass->pairing, name, end);
    }
}

/* A block begins in the accounts; its context gets its `when`. */
HOT_INLINE void count_alloc(struct pass *pass, const struct timeorder_event *entry,
                            struct pairing_block *block, enum taker taker) {
    uint64_t time_ns = entry->event.time_ns;
    enum when when = when_of(pass, time_ns, taker);
    if (when == INSIDE) {
        pass->accounts.now_ns = time_ns;
        change(pass, accounts_alloc(&pass->accounts, block, entry->thread,
                                    pass_is_inherited(pass, &entry->event)));
    }
    block->context |= (uint32_t)when << WHEN_SHIFT;
}

/* The end of a block that begins had waited for it. */
RARELY_DONE static void take_waited(struct pass *pass, struct pairing_block block,
                                    struct event_block name, struct pairing_end end,
                                    const struct pass_visitor *visitor) {
    if (visitor->waited != NULL) {
        visitor->waited(visitor->context, name, &end);
    }
    end_block(pass, &block, name, end, NULL, false, visitor, taker_of(pass, visitor));
}

HOT_INLINE void take_alloc(struct pass *pass, const struct timeorder_event *entry,
                           const struct pass_visitor *visitor, enum taker taker) {
    const struct event *event = &entry->event;
    uint32_t tick = tick_of(event->time_ns);
    struct pairing_block block = {.size = event->size,
                                  .weight = event->weight,
                                  .context = context_of(pass, event->context),
                                  .tick = tick};
    struct pairing_end end;
    note_tick(pass, tick);
    if (event->old.number != 0) {
        take_free(pass, entry, event->old, tick, visitor, taker);
    }
    if (class_of(pass, block.context, taker) == MODEL_HEAP) {
        pass->newest[entry->stream] = event->block.number;
    }
    if (taker != VISITOR) {
        count_alloc(pass, entry, &block, taker);
        if (taker == WINDOW && visitor->began != NULL) {
            visitor->began(visitor->context, entry);
        }
    } else if (pass->stop == 0) {
        pass->stop = visitor->begin(visitor->context, entry, &block);
    }
    pass->inherited -= pass->inherited != 0;
    if (pairing_add(pass->pairing, event->block, &block, &end)) {
        take_waited(pass, block, event->block, end, visitor);
    }
}

void pass_know_block(struct pass *pass, struct event_block name, struct pairing_block block,
                     uint64_t born_ns) {
    struct pairing_end end;
    block.context |= (uint32_t)when_of(pass, born_ns, WINDOW) << WHEN_SHIFT;
    pairing_add(pass->pairing, name, &block, &end);
}

/* ---- Mappings ---- */

static bool count_mapped(void *context, struct mapping *mapping) {
    struct pass *pass = context;
    mapping->context = pass_context(pass, mapping->context);
    if (accounts_class(&pass->accounts, mapping->context) != MODEL_MAPPING) {
        pass->has_wrong_mapping = true;
        return false;
    }
    if (when_of(pass, mapping->born_ns, WINDOW) == INSIDE) {
        accounts_map(&pass->accounts, mapping->context, mapping->end - mapping->start);
    }
    return true;
}

static int count_unmapped(void *context, const struct mapping *piece,
                          const struct timeorder_event *by, bool is_last) {
    struct pass *pass = context;
    uint64_t time_ns = mappinglist_end_ns(piece, by);
    note_tick(pass, tick_of(time_ns));
    if (when_of(pass, time_ns, WINDOW) == INSIDE) {
        accounts_unmap(&pass->accounts, piece->context, piece->end - piece->start, is_last);
    }
    return 0;
}

static void take_map(struct pass *pass, const struct timeorder_event *entry) {
    const struct mappinglist_visitor counting = {
        .made = count_mapped, .ended = count_unmapped, .context = pass};
    note_tick(pass, tick_of(entry->event.time_ns));
    mappinglist_take(&pass->mappings, entry, &counting);
}

/* ---- The heap from before an attach ---- */

RARELY_DONE static void take_before(struct pass *pass, const struct timeorder_event *entry) {
    const struct event *event = &entry->event;
    note_tick(pass, tick_of(event->time_ns));
    if (pass->before == 0 || when_of(pass, event->time_ns, WINDOW) != INSIDE) {
        return;
    }
    pass->accounts.now_ns = event->time_ns;
    change(pass,
           event_is_before_freed(event)
               ? accounts_before_freed(&pass->accounts, pass->before, event->id, entry->thread)
               : accounts_before(&pass->accounts, pass->before, event->id));
}

/* ---- All events ---- */

static void take_other(struct pass *pass, const struct timeorder_event *entry,
                       const struct pass_visitor *visitor) {
    if (visitor->other != NULL) {
        pass->stop = visitor->other(visitor->context, entry);
    }
}

HOT_INLINE void take_event(struct pass *pass, const struct timeorder_event *entry,
                           const struct pass_visitor *visitor, enum taker taker) {
    const struct event *event = &entry->event;
    uint32_t tick;
    switch (event->kind) {
    case EVENT_ALLOC:
        take_alloc(pass, entry, visitor, taker);
        break;
    case EVENT_FREE:
        tick = tick_of(event->time_ns);
        note_tick(pass, tick);
        take_free(pass, entry, event->block, tick, visitor, taker);
        break;
    case EVENT_MAP:
        if (taker != VISITOR) {
            take_map(pass, entry);
        } else {
            take_other(pass, entry, visitor);
        }
        break;
    default:
        if (taker != VISITOR && event_is_of_before(event)) {
            take_before(pass, entry);
            break;
        }
        if (pass->adjacent || (event->kind == EVENT_LOST && event->lost_allocs != 0)) {
            pass->newest[entry->stream] = 0;
        }
        take_other(pass, entry, visitor);
        break;
    }
}

/* The next event is of another stream or window than the last one. */
RARELY_DONE static void turn_to(struct pass *pass, const struct timeorder_event *entry,
                                unsigned window_shift, const struct pass_visitor *visitor) {
    bool is_new = entry->window != pass->window;
    pass->stream = entry->stream;
    pass->window = entry->window;
    if (pass->bound.streams != NULL) {
        peakbound_run(&pass->bound, entry->stream, entry->window);
    }
    if (is_new && visitor->window != NULL) {
        visitor->window(visitor->context, entry->window << window_shift);
    }
}

/* What a free of a batch looks for is fetched a few events before: a block that lived for long is
 * in no cache any more. */
HOT_INLINE void prefetch(const struct pass *pass, const struct ahead_batch *batch, size_t at) {
    const struct event *event = &batch->events[at % AHEAD_EVENTS].event;
    if (event->kind == EVENT_FREE) {
        pairing_prefetch(pass->pairing, event->block);
    }
}

HOT_INLINE void take_events(struct pass *pass, const struct ahead_batch *batch,
                            unsigned window_shift, const struct pass_visitor *visitor,
                            enum taker taker) {
    for (size_t i = 0; i < batch->count && pass->stop == 0; i++) {
        const struct timeorder_event *entry = &batch->events[i];
        prefetch(pass, batch, i + PREFETCHED);
        if (entry->stream != pass->stream || entry->window != pass->window) {
            turn_to(pass, entry, window_shift, visitor);
        }
        pass->events++;
        take_event(pass, entry, visitor, taker);
    }
}

static void take_batch(struct pass *pass, const struct ahead_batch *batch, unsigned window_shift,
                       const struct pass_visitor *visitor) {
    switch (taker_of(pass, visitor)) {
    case VISITOR:
        take_events(pass, batch, window_shift, visitor, VISITOR);
        break;
    case WINDOW:
        take_events(pass, batch, window_shift, visitor, WINDOW);
        break;
    case WHOLE:
        take_events(pass, batch, window_shift, visitor, WHOLE);
        break;
    }
}

/* Windows only grow, and events of a later one happened in it or behind it. */
static bool is_behind(const struct ahead_batch *batch, unsigned window_shift,
                      const struct replay_options *options) {
    return options->until_ns != 0 && batch->events[0].window << window_shift >= options->until_ns;
}

struct pass_running {
    struct pass *pass;
    const struct timeorder *order;
    struct ahead *ahead;
    const struct pass_visitor *visitor;
    const struct replay_options *options;
    uint64_t total;
};

/* What `ahead` reads is in the order of `order`, of which only the constants are looked at here. */
static void take_all(void *what) {
    const struct pass_running *running = what;
    struct pass *pass = running->pass;
    const struct replay_options *options = running->options;
    unsigned window_shift = running->order->window_shift;
    uint64_t done = 0;
    uint64_t next_progress = options->progress != NULL ? PROGRESS_EVENTS : UINT64_MAX;
    const struct ahead_batch *batch;
    while (pass->stop == 0 && (batch = ahead_next(running->ahead)) != NULL &&
           !is_behind(batch, window_shift, options)) {
        take_batch(pass, batch, window_shift, running->visitor);
        done += batch->count;
        if (done >= next_progress) {
            options->progress(options->context, done, running->total);
            next_progress = done + PROGRESS_EVENTS;
        }
        if (pass->stop == 0 && replay_is_cancelled(options)) {
            pass->stop = REPLAY_CANCELLED;
        }
    }
    if (options->progress != NULL && running->total >= PROGRESS_EVENTS) {
        options->progress(options->context, running->total, running->total);
    }
}

static void stop_ahead(void *what) {
    const struct pass_running *running = what;
    ahead_stop(running->ahead);
}

int pass_run(struct pass *pass, struct timeorder *order, const struct pass_visitor *visitor,
             const struct replay_options *options, uint64_t total) {
    const struct replay_options none = {0};
    struct pass_running running = {.pass = pass,
                                   .order = order,
                                   .ahead =
                                       ahead_start(order, options != NULL && options->is_alone),
                                   .visitor = visitor,
                                   .options = options != NULL ? options : &none,
                                   .total = total};
    if (running.ahead == NULL) {
        job_fail_memory();
    }
    job_finally(take_all, stop_ahead, &running);
    if (order->no_memory) {
        job_fail_memory();
    }
    return pass->stop;
}

/* ---- Beginning and end ---- */

static void pass_begin_slice(struct pass *pass) {
    pass->first_tick = UINT32_MAX;
    pass->last_tick = 0;
    pass->events = 0;
    pass->bound.widest = 0;
}

void pass_start_blocks(struct pass *pass, const struct model *model, size_t stream_count) {
    *pass = (struct pass){.last_ns = UINT64_MAX,
                          .nodes = model->nodes,
                          .stream_count = stream_count,
                          .stream = SIZE_MAX,
                          .window = UINT64_MAX,
                          .before = model->before_node,
                          .missing = (uint32_t)model->node_count - 1,
                          .adjacent = (model->header.flags & MEMTRACE_FLAG_ADJACENT) != 0};
    pass_begin_slice(pass);
    pass->pairing = pairing_new();
    pass->newest = job_array(stream_count + 1, sizeof *pass->newest);
}

void pass_start(struct pass *pass, const struct model *model, size_t stream_count, uint64_t from_ns,
                uint64_t to_ns) {
    pass_start_blocks(pass, model, stream_count);
    pass->from_ns = from_ns;
    pass->last_ns = to_ns == UINT64_MAX ? to_ns : to_ns - 1;
    accounts_start(&pass->accounts, model->nodes, model->node_count);
}

void pass_free(struct pass *pass) {
    pairing_free(pass->pairing);
    job_release(pass->mappings.items);
    peakbound_free(&pass->bound);
    accounts_end(&pass->accounts);
    job_release(pass->newest);
    *pass = (struct pass){0};
}

void pass_cut(struct pass *pass, struct slice *slice) {
    accounts_cut(&pass->accounts, slice);
    slice->first_tick = pass->first_tick;
    slice->last_tick = pass->last_tick;
    slice->events = pass->events;
    slice->error_bytes = pass->bound.is_shared ? (uint64_t)pass->bound.widest : 0;
    pass_begin_slice(pass);
}
