/* SPDX-License-Identifier: MIT */
/* pass.c: events become sums. See pass.h. */
#include "analyze/replay/pass.h"

#include "analyze/replay/ahead.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PAGE = 4096,
    PROGRESS_EVENTS = 1 << 20,
    WHEN_SHIFT = 28, /* in a pairing_block's context: when it began */
};

/* Times before, in and behind [from, to). The later of two is the larger. */
enum when { BEFORE = 0, INSIDE = 1, BEHIND = 2 };

static enum when when_of(const struct pass *pass, uint64_t time_ns) {
    if (time_ns < pass->from_ns) {
        return BEFORE;
    }
    return time_ns <= pass->last_ns ? INSIDE : BEHIND;
}

static enum when later(enum when left, enum when right) {
    return left > right ? left : right;
}

uint32_t pass_context(const struct pass *pass, uint32_t context) {
    return context != 0 && context < pass->missing ? context : pass->missing;
}

static uint32_t tick_of(uint64_t time_ns) {
    return (uint32_t)(time_ns >> MEMTRACE_TICK_SHIFT);
}

static void note_tick(struct pass *pass, uint32_t tick) {
    if (tick < pass->first_tick) {
        pass->first_tick = tick;
    }
    if (tick > pass->last_tick) {
        pass->last_tick = tick;
    }
}

/* ---- Blocks ---- */

static void change(struct pass *pass, int64_t bytes) {
    if (pass->bound.current != NULL) {
        peakbound_change(&pass->bound, bytes);
    }
}

/* The block's context has its `when`. */
static void end_block(struct pass *pass, struct pairing_block *block, struct event_block name,
                      const struct pairing_end *end, bool is_temporary) {
    enum when when = later((enum when)(block->context >> WHEN_SHIFT), when_of(pass, end->time_ns));
    block->context &= (1u << WHEN_SHIFT) - 1;
    if (block->tick > end->tick) {
        note_tick(pass, block->tick); /* it cannot end before it began */
    }
    if (when == INSIDE) {
        change(pass, accounts_free(&pass->accounts, block, name.thread, end, is_temporary));
    }
}

static void take_free(struct pass *pass, const struct timeorder_event *entry,
                      struct event_block name, uint32_t tick) {
    struct pairing_end end = {
        .thread = entry->thread, .tick = tick, .time_ns = entry->event.time_ns};
    struct pairing_block block;
    if (pairing_take(pass->pairing, name, &block)) {
        bool is_temporary = block.weight == 0 && name.thread == entry->thread &&
                            name.number == pass->newest[entry->stream];
        end_block(pass, &block, name, &end, is_temporary);
    } else if (pairing_wait(pass->pairing, name, end) != 0) {
        pass->out_of_memory = true;
    }
    if (pass->adjacent) {
        pass->newest[entry->stream] = 0;
    }
}

static void take_alloc(struct pass *pass, const struct timeorder_event *entry,
                       const struct pass_watcher *watcher) {
    const struct event *event = &entry->event;
    uint32_t tick = tick_of(event->time_ns);
    enum when when = when_of(pass, event->time_ns);
    struct pairing_block block = {.size = event->size,
                                  .weight = event->weight,
                                  .context = pass_context(pass, event->context),
                                  .tick = tick};
    struct pairing_end end;
    bool is_inherited = pass->inherited != 0;
    int waited;
    note_tick(pass, tick);
    if (event->old.number != 0) {
        take_free(pass, entry, event->old, tick);
    }
    pass->inherited -= is_inherited;
    if (accounts_class(&pass->accounts, block.context) == MODEL_HEAP) {
        pass->newest[entry->stream] = event->block.number;
    }
    if (when == INSIDE) {
        pass->accounts.now_ns = event->time_ns;
        change(pass, accounts_alloc(&pass->accounts, &block, entry->thread, is_inherited));
    }
    block.context |= (uint32_t)when << WHEN_SHIFT;
    waited = pairing_add(pass->pairing, event->block, &block, &end);
    if (waited == 1) {
        if (watcher->waited != NULL) {
            watcher->waited(watcher->context, event->block, &end);
        }
        end_block(pass, &block, event->block, &end, false);
    }
    pass->out_of_memory |= waited < 0;
}

int pass_know_block(struct pass *pass, struct event_block name, struct pairing_block block,
                    uint64_t born_ns) {
    struct pairing_end end;
    block.context |= (uint32_t)when_of(pass, born_ns) << WHEN_SHIFT;
    return pairing_add(pass->pairing, name, &block, &end) < 0 ? -1 : 0;
}

/* ---- Mappings ---- */

static uint64_t page_up(uint64_t size) {
    return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

struct removal {
    struct pass *pass;
    uint64_t time_ns;
};

static void count_removed(void *argument, const struct range *piece, bool is_last) {
    const struct removal *removal = argument;
    struct pass *pass = removal->pass;
    uint64_t time_ns = removal->time_ns > piece->born_ns ? removal->time_ns : piece->born_ns;
    note_tick(pass, tick_of(time_ns));
    if (when_of(pass, time_ns) == INSIDE) {
        accounts_unmap(&pass->accounts, piece->context, piece->end - piece->start, is_last);
    }
}

static void remove_range(struct pass *pass, uint64_t start, uint64_t size, uint64_t time_ns) {
    struct removal removal = {pass, time_ns};
    uint64_t end;
    if (size == 0 || __builtin_add_overflow(start, page_up(size), &end)) {
        return;
    }
    if (ranges_remove(&pass->mappings, start, end, count_removed, &removal) != 0) {
        pass->out_of_memory = true;
    }
}

static void add_range(struct pass *pass, const struct event *event) {
    uint32_t context = pass_context(pass, event->context);
    uint64_t size = page_up(event->size);
    struct range range = {.start = event->address, .born_ns = event->time_ns, .context = context};
    if (size == 0 || __builtin_add_overflow(range.start, size, &range.end)) {
        return;
    }
    if (accounts_class(&pass->accounts, context) != MODEL_MAPPING) {
        pass->has_wrong_mapping = true;
        return;
    }
    if (when_of(pass, event->time_ns) == INSIDE) {
        accounts_map(&pass->accounts, context, size);
    }
    if (ranges_add(&pass->mappings, range) != 0) {
        pass->out_of_memory = true;
    }
}

static void take_map(struct pass *pass, const struct event *event) {
    uint64_t time_ns = event->time_ns;
    note_tick(pass, tick_of(time_ns));
    switch ((enum memtrace_map_operation)event->operation) {
    case MEMTRACE_MAP_UNMAP:
        remove_range(pass, event->address, event->size, time_ns);
        break;
    case MEMTRACE_MAP_MAP:
        if (event->flags & MAP_FIXED) {
            remove_range(pass, event->address, event->size, time_ns);
        }
        add_range(pass, event);
        break;
    case MEMTRACE_MAP_REMAP:
    case MEMTRACE_MAP_BREAK:
        remove_range(pass, event->old_address, event->old_size, time_ns);
        remove_range(pass, event->address, event->size, time_ns); /* MREMAP_FIXED */
        add_range(pass, event);
        break;
    default:
        break;
    }
}

/* ---- All events ---- */

static void take_event(struct pass *pass, const struct timeorder_event *entry,
                       const struct pass_watcher *watcher) {
    const struct event *event = &entry->event;
    uint32_t tick;
    switch (event->kind) {
    case EVENT_ALLOC:
        take_alloc(pass, entry, watcher);
        break;
    case EVENT_FREE:
        tick = tick_of(event->time_ns);
        note_tick(pass, tick);
        take_free(pass, entry, event->block, tick);
        break;
    case EVENT_MAP:
        take_map(pass, event);
        break;
    default:
        if (pass->adjacent || (event->kind == EVENT_LOST && event->lost_allocs != 0)) {
            pass->newest[entry->stream] = 0;
        }
        if (watcher->other != NULL) {
            watcher->other(watcher->context, entry);
        }
        break;
    }
}

/* The next event is of another stream or window than the last one. */
static void turn_to(struct pass *pass, const struct timeorder_event *entry, unsigned window_shift,
                    const struct pass_watcher *watcher) {
    bool is_new = entry->window != pass->window;
    pass->stream = entry->stream;
    pass->window = entry->window;
    if (pass->bound.streams != NULL) {
        peakbound_run(&pass->bound, entry->stream, entry->window);
    }
    if (is_new && watcher->window != NULL) {
        watcher->window(watcher->context, entry->window << window_shift);
    }
}

static void take_batch(struct pass *pass, const struct ahead_batch *batch, unsigned window_shift,
                       const struct pass_watcher *watcher) {
    for (size_t i = 0; i < batch->count; i++) {
        const struct timeorder_event *entry = &batch->events[i];
        if (entry->stream != pass->stream || entry->window != pass->window) {
            turn_to(pass, entry, window_shift, watcher);
        }
        pass->events++;
        take_event(pass, entry, watcher);
    }
}

int pass_run(struct pass *pass, struct timeorder *order, const struct pass_watcher *watcher,
             const struct replay_options *options, uint64_t total) {
    bool tells = options != NULL && options->progress != NULL;
    uint64_t done = 0;
    uint64_t next_progress = PROGRESS_EVENTS;
    const struct ahead_batch *batch;
    struct ahead *ahead = ahead_start(order);
    if (ahead == NULL) {
        return -1;
    }
    while (!pass->out_of_memory && (batch = ahead_next(ahead)) != NULL) {
        take_batch(pass, batch, order->window_shift, watcher);
        done += batch->count;
        if (tells && done >= next_progress) {
            options->progress(options->context, done, total);
            next_progress = done + PROGRESS_EVENTS;
        }
    }
    ahead_stop(ahead);
    if (tells && total >= PROGRESS_EVENTS) {
        options->progress(options->context, total, total);
    }
    return pass->out_of_memory ? -1 : 0;
}

/* ---- Beginning and end ---- */

static void begin_slice(struct pass *pass) {
    pass->first_tick = UINT32_MAX;
    pass->last_tick = 0;
    pass->events = 0;
    pass->bound.widest = 0;
}

int pass_start(struct pass *pass, const struct model *model, size_t stream_count, uint64_t from_ns,
               uint64_t to_ns) {
    *pass = (struct pass){.from_ns = from_ns,
                          .last_ns = to_ns == UINT64_MAX ? to_ns : to_ns - 1,
                          .stream_count = stream_count,
                          .stream = SIZE_MAX,
                          .window = UINT64_MAX,
                          .missing = (uint32_t)model->node_count - 1,
                          .adjacent = (model->header.flags & MEMTRACE_FLAG_ADJACENT) != 0};
    begin_slice(pass);
    pass->pairing = pairing_new();
    pass->newest = calloc(stream_count + 1, sizeof *pass->newest);
    return pass->pairing != NULL && pass->newest != NULL &&
                   accounts_start(&pass->accounts, model->nodes, model->node_count) == 0
               ? 0
               : -1;
}

void pass_end(struct pass *pass) {
    pairing_free(pass->pairing);
    ranges_free(&pass->mappings);
    peakbound_free(&pass->bound);
    accounts_end(&pass->accounts);
    free(pass->newest);
    *pass = (struct pass){0};
}

int pass_cut(struct pass *pass, struct slice *slice) {
    int result = accounts_cut(&pass->accounts, slice);
    slice->first_tick = pass->first_tick;
    slice->last_tick = pass->last_tick;
    slice->events = pass->events;
    slice->error_bytes = pass->bound.is_shared ? (uint64_t)pass->bound.widest : 0;
    begin_slice(pass);
    return result;
}
