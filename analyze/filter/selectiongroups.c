/* SPDX-License-Identifier: MIT */
/* selectiongroups.c: which groups (all blocks of one context) were allocated, and held their most,
 * when a selection asks for: what only a pass over single blocks tells. See selection.h. */
#include "analyze/filter/selection.h"

#include <stdlib.h>

/* first_ns <= last_ns. A group that held nothing (blocks of no bytes) held its most at once. */
struct group {
    bool is_known; /* it allocated */
    uint64_t first_ns, last_ns;
    uint64_t held, most;
    uint64_t most_ns;
};

static int take_begin(void *context, const struct life *life) {
    struct group *group = &((struct group *)context)[life->context];
    if (!group->is_known) {
        *group =
            (struct group){.is_known = true, .first_ns = life->birth_ns, .most_ns = life->birth_ns};
    }
    /* Threads' times are told by ticks: what comes later may bear an earlier one. */
    group->first_ns = life->birth_ns < group->first_ns ? life->birth_ns : group->first_ns;
    group->last_ns = life->birth_ns > group->last_ns ? life->birth_ns : group->last_ns;
    group->held += life_bytes(life);
    if (group->held > group->most) {
        group->most = group->held;
        group->most_ns = life->birth_ns;
    }
    return 0;
}

static int take_end(void *context, const struct life *life) {
    if (life->death_ns != LIFE_ALIVE) {
        ((struct group *)context)[life->context].held -= life_bytes(life);
    }
    return 0;
}

static bool holds(const struct selection *selection, const struct group *group) {
    return group->is_known &&
           selection_is_within(group->last_ns - group->first_ns, selection->group_interval) &&
           selection->group_maximum.from_ns <= group->most_ns &&
           group->most_ns < selection->group_maximum.to_ns;
}

int selection_find_groups(struct selection *selection, const struct model *whole,
                          struct timeorder_parts parts, const struct replay_options *options,
                          struct error *error) {
    struct group *groups = calloc(whole->node_count + 1, sizeof *groups);
    const struct lives_visitor visitor = {.begin = take_begin, .end = take_end, .context = groups};
    int result = -1;
    free(selection->groups);
    selection->groups = calloc(whole->node_count + 1, 1);
    if (groups == NULL || selection->groups == NULL) {
        error_set(error, "out of memory while selecting");
    } else {
        result = lives_visit(parts, whole, &visitor, options, error);
    }
    for (size_t id = 0; result == 0 && id < whole->node_count; id++) {
        selection->groups[id] = holds(selection, &groups[id]);
    }
    free(groups);
    return result == 0 ? 0 : -1;
}
