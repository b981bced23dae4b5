/* SPDX-License-Identifier: MIT */
/* selectionpass.c: every block goes through the filters. See selectionpass.h, and selection_visit()
 * in selection.h. */
#include "analyze/filter/selectionpass.h"

#include "analyze/filter/contextfilter.h"
#include "analyze/replay/chains.h"

#include <stdlib.h>

/* ---- What holds for one block ---- */

static bool is_within(uint64_t value, struct selection_range range) {
    return range.least <= value && value <= range.most;
}

static bool is_during(uint64_t time_ns, struct selection_times times) {
    return times.from_ns <= time_ns && time_ns < times.to_ns;
}

static bool is_any(struct selection_range range) {
    return range.least == 0 && range.most == UINT64_MAX;
}

static bool is_one_of(uint32_t id, const uint32_t *ids, size_t count) {
    bool found = count == 0;
    for (size_t i = 0; !found && i < count; i++) {
        found = ids[i] == id;
    }
    return found;
}

/* Where the recording has no addresses nobody knows, so it does not hold. */
static bool is_at(const struct life *life, struct selection_range range) {
    uint64_t last = life->address + (life->size != 0 ? life->size - 1 : 0);
    return is_any(range) ||
           (life->address != 0 && life->address <= range.most && range.least <= last);
}

static uint64_t duration(uint64_t from_ns, uint64_t to_ns, uint64_t run_ns) {
    uint64_t end = to_ns == LIFE_ALIVE ? run_ns : to_ns;
    return end > from_ns ? end - from_ns : 0;
}

/* As in a view that ends then: what happens at that very time is still to come. */
static bool lived_at(const struct life *life, uint64_t time_ns) {
    return life->birth_ns < time_ns && life->death_ns >= time_ns;
}

static bool birth_holds(const struct selection *selection, const struct scopes *scopes,
                        const struct life *life) {
    return is_within(life->size, selection->size) &&
           is_within(life->chain_first_size, selection->first_size) &&
           is_during(life->birth_ns, selection->born) && is_at(life, selection->address) &&
           is_one_of(life->block.thread, selection->threads, selection->thread_count) &&
           (selection->scope == NULL || scopes_has(scopes, life->scope, selection->scope));
}

/* `died` from 0 to the end of time asks nothing, else it asks for an end. */
static bool died_during(const struct life *life, struct selection_times times) {
    return (times.from_ns == 0 && times.to_ns == UINT64_MAX) ||
           (life->death_ns != LIFE_ALIVE && is_during(life->death_ns, times));
}

static bool freed_by(const struct life *life, const uint32_t *threads, size_t count) {
    return count == 0 ||
           (life->death_ns != LIFE_ALIVE && is_one_of(life->death_thread, threads, count));
}

static bool death_holds(const struct selection *selection, uint64_t run_ns,
                        const struct life *life) {
    bool is_dead = life->death_ns != LIFE_ALIVE;
    for (size_t i = 0; i < selection->live_at_count; i++) {
        if (!lived_at(life, selection->live_at_ns[i])) {
            return false;
        }
    }
    return is_within(duration(life->birth_ns, life->death_ns, run_ns), selection->lifetime) &&
           died_during(life, selection->died) &&
           freed_by(life, selection->death_threads, selection->death_thread_count) &&
           (!selection->only_leaked || !is_dead) &&
           (!selection->only_temporary || life->is_temporary) &&
           (!selection->only_foreign_freed ||
            (is_dead && life->death_thread != life->block.thread));
}

/* Whether all filters of blocks hold but those of chains. A life that goes on (LIFE_ALIVE) is one
 * that never ends. `run_ns`: how long the run was. */
static bool block_holds(const struct selection *selection, const struct scopes *scopes,
                        uint64_t run_ns, const struct life *life) {
    return birth_holds(selection, scopes, life) && death_holds(selection, run_ns, life);
}

/* Whether those of chains hold for the chain whose last block this is. */
static bool chain_holds(const struct selection *selection, uint64_t run_ns,
                        const struct life *last) {
    return is_within(last->size, selection->last_size) &&
           is_within(last->chain_length, selection->chain_length) &&
           is_within(duration(last->chain_birth_ns, last->death_ns, run_ns),
                     selection->chain_lifetime);
}

/* ---- One pass ---- */

struct sieve {
    const struct selection *selection;
    const struct selectionpass_visitor *visitor;
    const uint32_t *places;
    struct chains *chains; /* NULL: no filter asks for them */
    struct scopes *scopes; /* NULL: nor for scopes */
    struct scopes *own_scopes;
    uint64_t run_ns;
    bool out_of_memory;
};
enum { NO_MEMORY = -1 };

static bool holds(const struct sieve *sieve, const struct life *life) {
    return sieve->places[life->context] != 0 &&
           block_holds(sieve->selection, sieve->scopes, sieve->run_ns, life);
}

static int take(const struct sieve *sieve, const struct life *life) {
    return sieve->visitor->take != NULL ? sieve->visitor->take(sieve->visitor->context, life) : 0;
}

/* ---- Chains ---- */

static int take_kept(struct sieve *sieve, const struct life *last, bool is_selected) {
    size_t count = 0;
    struct life *kept = last->chain_length > 1 ? chains_take(sieve->chains, last, &count) : NULL;
    int result = 0;
    for (size_t i = 0; result == 0 && is_selected && i < count; i++) {
        result = take(sieve, &kept[i]);
    }
    free(kept);
    return result;
}

/* Its last block tells whether a chain is selected. */
static int end_in_chain(struct sieve *sieve, const struct life *life) {
    bool is_selected;
    int result;
    if (life->is_reallocated) {
        if (holds(sieve, life) && chains_keep(sieve->chains, life) != 0) {
            sieve->out_of_memory = true;
            return NO_MEMORY;
        }
        return 0;
    }
    is_selected = chain_holds(sieve->selection, sieve->run_ns, life);
    result = take_kept(sieve, life, is_selected);
    return result == 0 && is_selected && holds(sieve, life) ? take(sieve, life) : result;
}

/* ---- What lives_visit() tells ---- */

static int on_begin(void *context, const struct life *life) {
    struct sieve *sieve = context;
    const struct selectionpass_visitor *visitor = sieve->visitor;
    int result = visitor->begin != NULL ? visitor->begin(visitor->context, life) : 0;
    if (result == 0 && visitor->take_begin != NULL && !selection_asks_ends(sieve->selection) &&
        holds(sieve, life)) {
        result = visitor->take_begin(visitor->context, life);
    }
    return result;
}

static int on_end(void *context, const struct life *life) {
    struct sieve *sieve = context;
    const struct selectionpass_visitor *visitor = sieve->visitor;
    int result = 0;
    if (visitor->end != NULL && life->death_ns != LIFE_ALIVE) {
        result = visitor->end(visitor->context, life);
    }
    if (result == 0 && sieve->chains != NULL) {
        return end_in_chain(sieve, life);
    }
    return result == 0 && holds(sieve, life) ? take(sieve, life) : result;
}

static int on_other(void *context, const struct timeorder_event *event) {
    const struct sieve *sieve = context;
    return sieve->visitor->other(sieve->visitor->context, event);
}

static int start(struct sieve *sieve) {
    if (selection_asks_chains(sieve->selection)) {
        sieve->chains = chains_new();
        sieve->out_of_memory |= sieve->chains == NULL;
    }
    sieve->scopes = sieve->visitor->scopes;
    if (sieve->selection->scope != NULL && sieve->scopes == NULL) {
        sieve->scopes = sieve->own_scopes = scopes_new();
        sieve->out_of_memory |= sieve->scopes == NULL;
    }
    return sieve->out_of_memory ? -1 : 0;
}

/* Where nobody asks how lives end nothing behind the view needs to be read. */
static struct replay_options limited(const struct selection *selection,
                                     const struct replay_options *options) {
    struct replay_options limits = options != NULL ? *options : (struct replay_options){0};
    if (selection->view.to_ns != UINT64_MAX && !selection_asks_deaths(selection) &&
        !selection_asks_chains(selection) &&
        (limits.until_ns == 0 || limits.until_ns > selection->view.to_ns)) {
        limits.until_ns = selection->view.to_ns;
    }
    return limits;
}

int selectionpass_run(const struct selection *selection, const struct model *whole,
                      struct timeorder_parts parts, const uint32_t *places,
                      const struct selectionpass_visitor *visitor,
                      const struct replay_options *options, struct error *error) {
    struct sieve sieve = {
        .selection = selection, .visitor = visitor, .places = places, .run_ns = whole->now_ns};
    struct lives_visitor lives = {
        .begin = visitor->begin != NULL || visitor->take_begin != NULL ? on_begin : NULL,
        .end = on_end,
        .other = visitor->other != NULL ? on_other : NULL,
        .context = &sieve};
    struct replay_options limits = limited(selection, options);
    int result = start(&sieve);
    lives.scopes = sieve.scopes;
    if (result == 0) {
        result = lives_visit(parts, whole, &lives, &limits, error);
    }
    if (sieve.out_of_memory) {
        error_set(error, "out of memory while reading %s", parts.items[0]->path);
    }
    chains_free(sieve.chains);
    scopes_free(sieve.own_scopes);
    return result;
}

/* ---- As a view shows them ---- */

struct visit {
    struct selection_times view;
    const struct lives_visitor *visitor;
};

static int show_begin(void *context, const struct life *life) {
    const struct visit *visit = context;
    return life->birth_ns < visit->view.to_ns ? visit->visitor->begin(visit->visitor->context, life)
                                              : 0;
}

/* A life that outlives the view has no end that could be seen from there. */
static int show_end(void *context, const struct life *life) {
    const struct visit *visit = context;
    struct life shown = *life;
    if (life->birth_ns >= visit->view.to_ns || life->death_ns < visit->view.from_ns) {
        return 0;
    }
    if (life->death_ns >= visit->view.to_ns) {
        shown.death_ns = LIFE_ALIVE;
        shown.death_order = LIFE_ALIVE;
        shown.death_thread = 0;
        shown.death_context = 0;
        shown.is_temporary = false;
        shown.is_reallocated = false;
    }
    return visit->visitor->end(visit->visitor->context, &shown);
}

static int show_other(void *context, const struct timeorder_event *event) {
    const struct visit *visit = context;
    uint64_t time_ns = event->event.time_ns;
    return visit->view.from_ns <= time_ns && time_ns < visit->view.to_ns
               ? visit->visitor->other(visit->visitor->context, event)
               : 0;
}

int selection_visit(const struct selection *selection, const struct model *whole,
                    struct timeorder_parts parts, const struct names *names,
                    const struct lives_visitor *visitor, const struct replay_options *options,
                    struct error *error) {
    struct visit visit = {selection->view, visitor};
    struct selectionpass_visitor pass = {.take = visitor->end != NULL ? show_end : NULL,
                                         .take_begin = visitor->begin != NULL ? show_begin : NULL,
                                         .other = visitor->other != NULL ? show_other : NULL,
                                         .scopes = visitor->scopes,
                                         .context = &visit};
    uint32_t *places;
    int result;
    if (parts.count == 0) {
        return error_set(error, "a profile has no single blocks; make a recording with "
                                "`memtrace record`");
    }
    places = contextfilter_choose(selection, whole, names);
    if (places == NULL) {
        return error_set(error, "out of memory while selecting");
    }
    result = selectionpass_run(selection, whole, parts, places, &pass, options, error);
    free(places);
    return result;
}
