/* SPDX-License-Identifier: MIT */
/* selectionvisit.c: the selected lives as a view shows them. See selection_visit in selection.h. */
#include "analyze/filter/contextfilter.h"
#include "analyze/filter/selectionpass.h"

#include <stdlib.h>

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
