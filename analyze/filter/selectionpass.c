/* SPDX-License-Identifier: MIT */
/* selectionpass.c: every life goes through the filters. See selectionpass.h. */
#include "analyze/filter/selectionpass.h"

#include "analyze/filter/lifefilter.h"
#include "analyze/replay/chains.h"

#include <stdlib.h>

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
           lifefilter_holds(sieve->selection, sieve->scopes, sieve->run_ns, life);
}

static int take(const struct sieve *sieve, const struct life *life) {
    return sieve->visitor->take != NULL ? sieve->visitor->take(sieve->visitor->context, life) : 0;
}

/* ---- Chains ---- */

static int take_kept(struct sieve *sieve, const struct life *last, bool is_chosen) {
    size_t count = 0;
    struct life *kept = last->chain_length > 1 ? chains_take(sieve->chains, last, &count) : NULL;
    int result = 0;
    for (size_t i = 0; result == 0 && is_chosen && i < count; i++) {
        result = take(sieve, &kept[i]);
    }
    free(kept);
    return result;
}

/* Its last block tells whether a chain is chosen. */
static int end_in_chain(struct sieve *sieve, const struct life *life) {
    bool is_chosen;
    int result;
    if (life->is_reallocated) {
        if (holds(sieve, life) && chains_keep(sieve->chains, life) != 0) {
            sieve->out_of_memory = true;
            return NO_MEMORY;
        }
        return 0;
    }
    is_chosen = lifefilter_chain_holds(sieve->selection, sieve->run_ns, life);
    result = take_kept(sieve, life, is_chosen);
    return result == 0 && is_chosen && holds(sieve, life) ? take(sieve, life) : result;
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
