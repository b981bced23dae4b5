/* SPDX-License-Identifier: MIT */
/* lives.c: a replay that keeps every live block's own life. See lives.h. */
#include "analyze/replay/lives.h"

#include "analyze/profile/load.h"
#include "analyze/replay/accounts.h"
#include "analyze/replay/ahead.h"
#include "analyze/replay/liveblocks.h"

#include <stdlib.h>

enum { PROGRESS_EVENTS = 1 << 20 };

struct pass {
    const struct model *model;
    const struct lives_visitor *visitor;
    struct pairing *pairing;
    struct liveblocks liveblocks; /* a pairing tells a block's place */
    struct event_block *newest;   /* by stream: its newest heap block, temporary if freed next */
    uint64_t order;               /* of the present event, from 1 on */
    uint64_t inherited;
    int result;
    bool out_of_memory;
};

static struct pairing_block weighed(const struct life *life) {
    return (struct pairing_block){.size = life->size, .weight = life->weight};
}

uint64_t life_bytes(const struct life *life) {
    struct pairing_block block = weighed(life);
    return accounts_bytes(&block);
}

uint64_t life_units(const struct life *life) {
    struct pairing_block block = weighed(life);
    return accounts_units(&block);
}

/* ---- Births and deaths ---- */

static void tell(struct pass *pass, int (*visit)(void *, const struct life *),
                 const struct life *life) {
    if (visit != NULL && pass->result == 0) {
        pass->result = visit(pass->visitor->context, life);
    }
}

/* What a free tells of a life's end. */
struct death {
    uint64_t time_ns;
    uint32_t thread;
    uint32_t context;
    bool is_temporary;
    bool is_reallocated;
};

/* The place is still its own afterwards: whoever calls gives it back. */
static void end_life(struct pass *pass, size_t place, struct death death) {
    struct life *life = &pass->liveblocks.lives[place];
    life->death_ns = death.time_ns > life->birth_ns ? death.time_ns : life->birth_ns;
    life->death_order = pass->order;
    life->death_thread = death.thread;
    life->death_context = death.context;
    life->is_temporary = death.is_temporary && life->weight == 0;
    life->is_reallocated = death.is_reallocated;
    tell(pass, pass->visitor->end, life);
}

/* Whether only what ends in the very next event is temporary. */
static bool is_adjacent(const struct pass *pass) {
    return (pass->model->header.flags & MEMTRACE_FLAG_ADJACENT) != 0;
}

/* A free, or the first half of a reallocation. The place of the life that ended, to be given back;
 * NURSERY_NONE: it is not known. */
static size_t take_free(struct pass *pass, const struct timeorder_event *entry,
                        struct event_block name, bool is_reallocated) {
    struct event_block *newest = &pass->newest[entry->stream];
    struct pairing_block block;
    struct death death = {
        .time_ns = entry->event.time_ns,
        .thread = entry->thread,
        .context = entry->event.kind == EVENT_FREE ? entry->event.context : 0,
        .is_temporary = name.thread == entry->thread && name.thread == newest->thread &&
                        name.number == newest->number,
        .is_reallocated = is_reallocated,
    };
    struct pairing_end end = {.thread = entry->thread, .time_ns = entry->event.time_ns};
    if (is_adjacent(pass)) {
        newest->number = 0;
    }
    if (pairing_take(pass->pairing, name, &block)) {
        end_life(pass, block.size, death);
        return block.size;
    }
    pass->out_of_memory |= pairing_wait(pass->pairing, name, end) != 0;
    return NURSERY_NONE;
}

/* What a reallocated block hands on to the next one. */
struct origin {
    uint64_t old_order;
    uint32_t chain_length;
    struct event_block chain;
    uint64_t chain_order;
    uint64_t chain_first_size;
    uint64_t chain_birth_ns;
};

/* Of a block that begins a chain. */
static struct origin first_origin(const struct pass *pass, const struct event *event) {
    return (struct origin){.chain_length = 1,
                           .chain = event->block,
                           .chain_order = pass->order,
                           .chain_first_size = event->size,
                           .chain_birth_ns = event->time_ns};
}

static struct origin origin_of(struct pass *pass, const struct timeorder_event *entry) {
    const struct event *event = &entry->event;
    size_t old =
        event->old.number != 0 ? take_free(pass, entry, event->old, true) : (size_t)NURSERY_NONE;
    const struct life *life;
    struct origin origin;
    if (old == NURSERY_NONE) {
        return first_origin(pass, event);
    }
    life = &pass->liveblocks.lives[old];
    origin = (struct origin){.old_order = life->birth_order,
                             .chain_length = life->chain_length + 1,
                             .chain = life->chain,
                             .chain_order = life->chain_order,
                             .chain_first_size = life->chain_first_size,
                             .chain_birth_ns = life->chain_birth_ns};
    liveblocks_give_back(&pass->liveblocks, old);
    return origin;
}

static void fill(const struct pass *pass, struct life *life, const struct timeorder_event *entry,
                 const struct origin *origin) {
    const struct event *event = &entry->event;
    bool is_known = event->context != 0 && event->context < pass->model->node_count;
    *life = (struct life){
        .block = event->block,
        .address = event->address,
        .size = event->size,
        .weight = event->weight,
        .birth_ns = event->time_ns,
        .death_ns = LIFE_ALIVE,
        .birth_order = pass->order,
        .death_order = LIFE_ALIVE,
        .context = is_known ? event->context : (uint32_t)pass->model->node_count - 1,
        .stream = entry->stream,
        .slack = event->slack,
        .flags = event->flags,
        .alignment = event->alignment,
        .is_inherited = pass->inherited != 0,
        .old_order = origin->old_order,
        .chain_length = origin->chain_length,
        .chain = origin->chain,
        .chain_order = origin->chain_order,
        .chain_first_size = origin->chain_first_size,
        .chain_birth_ns = origin->chain_birth_ns,
    };
    if (pass->visitor->scopes != NULL) {
        life->scope = scopes_path(pass->visitor->scopes, entry->stream);
    }
}

static void begin_life(struct pass *pass, const struct timeorder_event *entry) {
    struct origin origin = origin_of(pass, entry);
    size_t place = liveblocks_take(&pass->liveblocks);
    struct pairing_block block = {.size = place};
    struct pairing_end end;
    struct life *life;
    int waited;
    if (place == NURSERY_NONE) {
        pass->out_of_memory = true;
        return;
    }
    life = &pass->liveblocks.lives[place];
    fill(pass, life, entry, &origin);
    pass->inherited -= pass->inherited != 0;
    if (contexts_class(pass->model->nodes[life->context].frame) == MODEL_HEAP) {
        pass->newest[entry->stream] = entry->event.block;
    }
    tell(pass, pass->visitor->begin, life);
    waited = pairing_add(pass->pairing, entry->event.block, &block, &end);
    if (waited == 1) {
        pass->order++;
        end_life(pass, place, (struct death){.time_ns = end.time_ns, .thread = end.thread});
        liveblocks_give_back(&pass->liveblocks, place);
    }
    pass->out_of_memory |= waited < 0;
}

/* ---- All events ---- */

static void take_scope(struct pass *pass, const struct timeorder_event *entry) {
    struct scopes *scopes = pass->visitor->scopes;
    const struct event *event = &entry->event;
    if (scopes == NULL || event->kind != EVENT_MARK) {
        return;
    }
    if (event->operation == MEMTRACE_MARK_SCOPE_BEGIN) {
        pass->out_of_memory |=
            scopes_enter(scopes, entry->stream, event->id, event->text, event->text_size) != 0;
    } else if (event->operation == MEMTRACE_MARK_SCOPE_END) {
        pass->out_of_memory |= scopes_leave(scopes, entry->stream, event->id) != 0;
    }
}

static void take_event(struct pass *pass, const struct timeorder_event *entry) {
    size_t place;
    pass->order++;
    switch (entry->event.kind) {
    case EVENT_ALLOC:
        begin_life(pass, entry);
        break;
    case EVENT_FREE:
        place = take_free(pass, entry, entry->event.block, false);
        if (place != NURSERY_NONE) {
            liveblocks_give_back(&pass->liveblocks, place);
        }
        break;
    default:
        if (is_adjacent(pass) ||
            (entry->event.kind == EVENT_LOST && entry->event.lost_allocs != 0)) {
            pass->newest[entry->stream].number = 0;
        }
        take_scope(pass, entry);
        if (pass->visitor->other != NULL && pass->result == 0) {
            pass->result = pass->visitor->other(pass->visitor->context, entry);
        }
        break;
    }
}

/* Windows only grow, and events of a later one happened in it or behind it. */
static bool is_behind(const struct ahead_batch *batch, const struct timeorder *order,
                      const struct replay_options *options) {
    return options != NULL && options->until_ns != 0 &&
           batch->events[0].window << order->window_shift >= options->until_ns;
}

/* What `ahead` reads is in the order of `order`, of which only the constants are looked at here. */
static void take_all(struct pass *pass, struct ahead *ahead, const struct timeorder *order,
                     const struct replay_options *options) {
    uint64_t total = pass->model->recording.events;
    uint64_t done = 0;
    uint64_t next_progress = PROGRESS_EVENTS;
    const struct ahead_batch *batch;
    while (!pass->out_of_memory && pass->result == 0 && (batch = ahead_next(ahead)) != NULL &&
           !is_behind(batch, order, options)) {
        for (size_t i = 0; i < batch->count; i++) {
            take_event(pass, &batch->events[i]);
        }
        done += batch->count;
        if (options != NULL && options->progress != NULL && done >= next_progress) {
            options->progress(options->context, done, total);
            next_progress = done + PROGRESS_EVENTS;
        }
        if (options != NULL && options->cancel != NULL && atomic_load(options->cancel)) {
            pass->result = LIVES_CANCELLED;
        }
    }
    if (options != NULL && options->progress != NULL && total >= PROGRESS_EVENTS) {
        options->progress(options->context, total, total);
    }
}

static void tell_living(struct pass *pass) {
    size_t count;
    const struct life *living = liveblocks_sort(&pass->liveblocks, &count);
    for (size_t i = 0; i < count && pass->result == 0; i++) {
        tell(pass, pass->visitor->end, &living[i]);
    }
}

static int visit_in_order(struct pass *pass, struct timeorder *order,
                          const struct replay_options *options) {
    struct ahead *ahead = ahead_start(order);
    if (ahead == NULL) {
        return -1;
    }
    take_all(pass, ahead, order, options);
    ahead_stop(ahead);
    if (!pass->out_of_memory && pass->result == 0) {
        tell_living(pass);
    }
    return pass->out_of_memory ? -1 : 0;
}

int lives_visit(struct timeorder_parts parts, const struct model *model,
                const struct lives_visitor *visitor, const struct replay_options *options,
                struct error *error) {
    struct pass pass = {.model = model,
                        .visitor = visitor,
                        .pairing = pairing_new(),
                        .liveblocks = {.free = NURSERY_NONE},
                        .inherited = model->header.inherited_blocks};
    struct timeorder order = {0};
    int result = -1;
    if (pass.pairing != NULL && timeorder_start(&order, parts) == 0) {
        pass.newest = calloc(order.stream_count + 1, sizeof *pass.newest);
        result = pass.newest != NULL ? visit_in_order(&pass, &order, options) : -1;
    }
    timeorder_end(&order);
    pairing_free(pass.pairing);
    liveblocks_end(&pass.liveblocks);
    free(pass.newest);
    if (result != 0) {
        return error_set(error, "out of memory while reading %s", parts.items[0]->path);
    }
    return pass.result;
}
