/* SPDX-License-Identifier: MIT */
/* allocations.c: constraints become a selection, the selection's lives become rows. See
 * allocations.h. */
#include "analyze/query/allocations.h"

#include "analyze/query/bounds.h"

#include <stdlib.h>

struct allocations_pass {
    struct query *query;
    struct allocations_question question;
    struct selection selection; /* the session's, narrowed; its pointers are the session's */
    uint32_t thread;            /* selection.threads, where one is asked for */
    struct rowqueue *queue;     /* NULL: nothing can be found */
    struct rowqueue *out;       /* the same, for the thread inside */
    struct scopes *scopes;
    struct error error;
};

/* ---- The selection ---- */

static void narrow_times(struct selection_times *times, struct selection_range range) {
    times->from_ns = range.least > times->from_ns ? range.least : times->from_ns;
    if (range.most < UINT64_MAX && range.most + 1 < times->to_ns) {
        times->to_ns = range.most + 1;
    }
}

/* Only if one thread is asked for that the session's filters let through. */
static void narrow_thread(struct allocations_pass *pass, struct selection_range range) {
    struct selection *selection = &pass->selection;
    bool is_in = selection->thread_count == 0;
    if (range.least != range.most || range.least > UINT32_MAX) {
        return;
    }
    for (size_t i = 0; i < selection->thread_count; i++) {
        is_in |= selection->threads[i] == range.least;
    }
    if (is_in) {
        pass->thread = (uint32_t)range.least;
        selection->threads = &pass->thread;
        selection->thread_count = 1;
    }
}

/* Whatever the selection can skip by itself. When only births matter, what comes behind the last
 * one is not looked at: the view ends there. */
static void narrow(struct allocations_pass *pass) {
    const struct selection_range *bounds = pass->question.bounds;
    struct selection *selection = &pass->selection;
    const struct model *whole = pass->query->source.whole;
    selection->size = bounds_both(selection->size, bounds[ALLOCATIONS_SIZE]);
    narrow_times(&selection->born, bounds[ALLOCATIONS_BORN]);
    narrow_thread(pass, bounds[ALLOCATIONS_THREAD]);
    if (bounds[ALLOCATIONS_CONTEXT].least == bounds[ALLOCATIONS_CONTEXT].most &&
        bounds[ALLOCATIONS_CONTEXT].least < whole->node_count && selection->path == 0) {
        selection->path = model_hash(whole, (uint32_t)bounds[ALLOCATIONS_CONTEXT].least);
    }
    if (pass->question.only_births && selection->born.to_ns < selection->view.to_ns) {
        selection->view.to_ns = selection->born.to_ns;
    }
}

/* ---- The pass ---- */

static bool is_wanted(const struct allocations_pass *pass, const struct life *life) {
    const struct selection_range *bounds = pass->question.bounds;
    bool has_ended = life->death_ns != LIFE_ALIVE;
    if (!bounds_hold(bounds[ALLOCATIONS_ID], life->birth_order) ||
        !bounds_hold(bounds[ALLOCATIONS_THREAD], life->block.thread) ||
        !bounds_hold(bounds[ALLOCATIONS_ADDRESS], life->address) ||
        !bounds_hold(bounds[ALLOCATIONS_SIZE], life->size) ||
        !bounds_hold(bounds[ALLOCATIONS_CONTEXT], life->context) ||
        !bounds_hold(bounds[ALLOCATIONS_BORN], life->birth_ns)) {
        return false;
    }
    if (!has_ended) { /* these are NULL then */
        return bounds_are_any(bounds[ALLOCATIONS_FREED]) &&
               bounds_are_any(bounds[ALLOCATIONS_LIFETIME]) &&
               bounds_are_any(bounds[ALLOCATIONS_FREED_BY]);
    }
    return bounds_hold(bounds[ALLOCATIONS_FREED], life->death_ns) &&
           bounds_hold(bounds[ALLOCATIONS_LIFETIME], life->death_ns - life->birth_ns) &&
           bounds_hold(bounds[ALLOCATIONS_FREED_BY], life->death_thread);
}

static int take_life(void *context, const struct life *life) {
    struct allocations_pass *pass = context;
    struct rows_allocation row = {.life = *life};
    if (pass->question.only_births &&
        life->birth_order > pass->question.bounds[ALLOCATIONS_ID].most) {
        return 1; /* births come in order */
    }
    if (!is_wanted(pass, life)) {
        return 0;
    }
    if (life->scope != SCOPES_NONE) {
        row.scope = scopes_name(pass->scopes, life->scope);
    }
    atomic_fetch_add_explicit(&pass->query->rows, 1, memory_order_relaxed);
    return rowqueue_put(pass->out, &row);
}

static int produce(struct rowqueue *queue, void *argument) {
    struct allocations_pass *pass = argument;
    const struct query_source *source = &pass->query->source;
    struct lives_visitor visitor = {.context = pass, .scopes = pass->scopes};
    struct replay_options options = {0};
    pass->out = queue;
    if (source->replay != NULL) {
        options = *source->replay;
    }
    options.cancel = rowqueue_cancel(queue);
    if (pass->question.only_births && pass->selection.view.to_ns != UINT64_MAX) {
        options.until_ns = pass->selection.view.to_ns;
    }
    if (pass->question.only_births) {
        visitor.begin = take_life;
    } else {
        visitor.end = take_life;
    }
    atomic_fetch_add(&pass->query->passes, 1);
    return selection_visit(&pass->selection, source->whole, source->parts, source->names, &visitor,
                           &options, &pass->error);
}

static bool can_be_any(const struct allocations_question *question) {
    for (size_t i = 0; i < ALLOCATIONS_BOUNDS; i++) {
        if (bounds_are_empty(question->bounds[i])) {
            return false;
        }
    }
    return true;
}

struct allocations_pass *allocations_start(struct query *query,
                                           const struct allocations_question *question) {
    struct allocations_pass *pass = calloc(1, sizeof *pass);
    struct rowqueue *queue;
    if (pass == NULL) {
        return NULL;
    }
    pass->query = query;
    pass->question = *question;
    pass->selection = *query->source.selection;
    if (!can_be_any(question)) {
        return pass;
    }
    narrow(pass);
    pass->scopes = scopes_new();
    queue =
        pass->scopes != NULL ? rowqueue_start(sizeof(struct rows_allocation), produce, pass) : NULL;
    if (queue == NULL) {
        allocations_close(pass);
        return NULL;
    }
    pass->queue = queue;
    return pass;
}

int allocations_next(struct allocations_pass *pass, const struct rows_allocation **row,
                     struct error *error) {
    const void *next = NULL;
    int result;
    if (pass->queue == NULL) {
        return 0;
    }
    result = rowqueue_next(pass->queue, &pass->query->interrupted, &next);
    *row = next;
    if (result == 0 && rowqueue_result(pass->queue) == -1) {
        *error = pass->error;
        return -2;
    }
    return result;
}

void allocations_close(struct allocations_pass *pass) {
    if (pass != NULL) {
        rowqueue_close(pass->queue);
        scopes_free(pass->scopes);
        free(pass);
    }
}
