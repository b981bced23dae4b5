/* SPDX-License-Identifier: MIT */
/* lives.c: a pass whose visitor keeps every live block's own life. See lives.h. */
#include "analyze/replay/lives.h"

#include "analyze/base/job.h"
#include "analyze/base/numbermap.h"
#include "analyze/base/sort.h"
#include "analyze/replay/pass.h"

/* Lives have places that are used again; a pairing tells a block's. The address of a place is good
 * only until the next take_life_place(). */
struct following {
    const struct model *model;
    const struct lives_visitor *visitor;
    const struct replay_options *options;
    struct timeorder order;
    struct pass pass;
    struct life *lives; /* birth_order 0: the place is free, death_order is the next free one */
    size_t room;
    size_t used;        /* places ever taken */
    size_t free;        /* NOWHERE: none */
    uint64_t waited;    /* ends that came before their beginnings: each has a place in the order */
    struct life origin; /* what the present reallocation ended; birth_order 0: nothing */
    uint64_t *newest;   /* by stream: number of its last allocation */
    int result;
};
#define NOWHERE SIZE_MAX

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

/* ---- Places ---- */

static size_t take_life_place(struct following *following) {
    size_t place = following->free;
    if (place != NOWHERE) {
        following->free = (size_t)following->lives[place].death_order;
        return place;
    }
    job_grow(&following->lives, &following->room, following->used, sizeof *following->lives);
    return following->used++;
}

/* ---- Births and deaths ---- */

/* The place of the present event in the order, from 1 on. */
static uint64_t order_now(const struct following *following) {
    return following->pass.events + following->waited;
}

static int tell_life(const struct following *following, int (*visit)(void *, const struct life *),
                     const struct life *life) {
    return visit != NULL ? visit(following->visitor->context, life) : 0;
}

static uint32_t allocations_between(const struct following *following, const struct life *life) {
    uint64_t newest = following->newest[life->stream];
    uint64_t between = newest >= life->block.number ? newest - life->block.number : 0;
    return life->death_thread == life->block.thread && between < UINT32_MAX ? (uint32_t)between
                                                                            : UINT32_MAX;
}

static int end_life(void *context, const struct pairing_block *block, const struct pass_end *how) {
    struct following *following = context;
    size_t place = (size_t)block->size;
    struct life *life = &following->lives[place];
    uint64_t time_ns = how->end.time_ns;
    int result;
    following->waited += how->by == NULL;
    life->death_ns = time_ns > life->birth_ns ? time_ns : life->birth_ns;
    life->death_order = order_now(following);
    life->death_thread = how->end.thread;
    life->is_temporary = how->is_temporary;
    life->allocations_between = allocations_between(following, life);
    if (how->by != NULL && how->by->event.kind == EVENT_FREE) {
        life->death_context = how->freed_by;
    } else if (how->by != NULL) {
        life->is_reallocated = true;
        following->origin = *life;
    }
    result = tell_life(following, following->visitor->end, life);
    following->lives[place].birth_order = 0;
    following->lives[place].death_order = following->free;
    following->free = place;
    return result;
}

static void fill_life(struct following *following, struct life *life,
                      const struct timeorder_event *entry, const struct pairing_block *block) {
    const struct event *event = &entry->event;
    uint64_t order = order_now(following);
    *life = (struct life){
        .block = event->block,
        .address = event->address,
        .size = event->size,
        .weight = event->weight,
        .birth_ns = event->time_ns,
        .death_ns = LIFE_ALIVE,
        .birth_order = order,
        .death_order = LIFE_ALIVE,
        .context = block->context,
        .stream = entry->stream,
        .allocations_between = UINT32_MAX,
        .slack = event->slack,
        .flags = event->flags,
        .alignment = event->alignment,
        .is_inherited = pass_is_inherited(&following->pass, event),
        .chain_length = 1,
        .chain = event->block,
        .chain_order = order,
        .chain_first_size = event->size,
        .chain_birth_ns = event->time_ns,
    };
    if (following->origin.birth_order != 0) { /* it goes on with another's chain */
        const struct life *old = &following->origin;
        life->old_order = old->birth_order;
        life->chain_length = old->chain_length + 1;
        life->chain = old->chain;
        life->chain_order = old->chain_order;
        life->chain_first_size = old->chain_first_size;
        life->chain_birth_ns = old->chain_birth_ns;
        following->origin.birth_order = 0;
    }
    if (following->visitor->scopes != NULL) {
        life->scope = scopes_path(following->visitor->scopes, entry->stream);
    }
}

static int begin_life(void *context, const struct timeorder_event *entry,
                      struct pairing_block *block) {
    struct following *following = context;
    size_t place = take_life_place(following);
    fill_life(following, &following->lives[place], entry, block);
    block->size = place;
    following->newest[entry->stream] = entry->event.block.number;
    return tell_life(following, following->visitor->begin, &following->lives[place]);
}

/* ---- Everything else ---- */

static int take_other_life(void *context, const struct timeorder_event *entry) {
    struct following *following = context;
    const struct lives_visitor *visitor = following->visitor;
    const struct event *event = &entry->event;
    if (visitor->scopes != NULL && event->kind == EVENT_MARK) {
        if (event->operation == MEMTRACE_MARK_SCOPE_BEGIN) {
            scopes_enter(visitor->scopes, entry->stream, event->id, event->text, event->text_size);
        } else if (event->operation == MEMTRACE_MARK_SCOPE_END) {
            scopes_leave(visitor->scopes, entry->stream, event->id);
        }
    }
    return visitor->other != NULL ? visitor->other(visitor->context, entry) : 0;
}

/* Those that live still, by birth. */
static int tell_living(struct following *following) {
    const struct replay_options *options = following->options;
    const atomic_bool *cancel = options != NULL ? options->cancel : NULL;
    struct sort_key *keys = job_array(following->used + 1, sizeof *keys);
    size_t living = 0;
    enum sort_status status;
    int result;
    for (size_t i = 0; i < following->used; i++) {
        if (following->lives[i].birth_order != 0) {
            keys[living++] = (struct sort_key){following->lives[i].birth_order, i};
        }
    }
    status = sort_keys(keys, living, cancel);
    if (status == SORT_NO_MEMORY) {
        job_fail_memory();
    }
    result = status == SORT_DONE ? 0 : REPLAY_CANCELLED;
    for (size_t i = 0; result == 0 && i < living; i++) {
        bool is_cancelled = cancel != NULL && atomic_load(cancel);
        result = is_cancelled ? REPLAY_CANCELLED
                              : tell_life(following, following->visitor->end,
                                          &following->lives[keys[i].place]);
    }
    job_release(keys);
    return result;
}

static void follow_lives(void *what) {
    struct following *following = what;
    const struct model *model = following->model;
    const struct pass_visitor visitor = {
        .begin = begin_life, .end = end_life, .other = take_other_life, .context = following};
    pass_start_blocks(&following->pass, model, following->order.stream_count);
    following->newest = job_array(following->order.stream_count + 1, sizeof *following->newest);
    following->pass.inherited = model->header.inherited_blocks;
    following->result = pass_run(&following->pass, &following->order, &visitor, following->options,
                                 model->recording.events);
    if (following->result == 0 && following->visitor->end != NULL) {
        following->result = tell_living(following);
    }
    pass_free(&following->pass);
    job_release(following->lives);
    job_release(following->newest);
}

static void end_order(void *what) {
    struct following *following = what;
    timeorder_end(&following->order);
}

int lives_visit(struct timeorder_parts parts, const struct model *model,
                const struct lives_visitor *visitor, const struct replay_options *options,
                struct error *error) {
    struct following following = {
        .model = model, .visitor = visitor, .options = options, .free = NOWHERE};
    timeorder_begin(&following.order, parts);
    job_finally(follow_lives, end_order, &following);
    if (following.result == REPLAY_CANCELLED) {
        error_set(error, "cancelled");
    }
    return following.result;
}

/* ---- Chains: kept lives by the order of their first birth, which names them ---- */

struct chain {
    struct life *lives;
    size_t count;
    size_t room;
};

struct chains {
    struct numbermap by_order;
};

struct chains *chains_new(void) {
    return job_alloc(sizeof(struct chains));
}

void chains_free(struct chains *chains) {
    for (size_t i = 0; chains != NULL && i < chains->by_order.places; i++) {
        struct chain *chain = chains->by_order.entries[i].value;
        if (chain != NULL) {
            job_release(chain->lives);
            job_release(chain);
        }
    }
    if (chains != NULL) {
        job_release(chains->by_order.entries);
    }
}

void chains_keep(struct chains *chains, const struct life *life) {
    struct chain *chain = numbermap_get(&chains->by_order, life->chain_order);
    if (chain == NULL) {
        chain = job_array(1, sizeof *chain);
        numbermap_set(&chains->by_order, life->chain_order, chain);
    }
    job_grow(&chain->lives, &chain->room, chain->count, sizeof *life);
    chain->lives[chain->count++] = *life;
}

struct life *chains_take(struct chains *chains, const struct life *life, size_t *count) {
    struct chain *chain = numbermap_take(&chains->by_order, life->chain_order);
    struct life *lives = chain != NULL ? chain->lives : NULL;
    *count = chain != NULL ? chain->count : 0;
    job_release(chain);
    return lives;
}
