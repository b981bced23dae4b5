/* SPDX-License-Identifier: MIT */
/*
 * selectionfinding.c: what a selection asks that has to be found before blocks can be chosen: which
 * groups (all blocks of one context) were allocated, and held their most, when it says, by a pass
 * over single blocks; and which mappings of the process it is about, with the blocks that lay in
 * one of them. See selection.h.
 */
#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/base/search.h"
#include "analyze/filter/selection.h"
#include "analyze/replay/mappinghistory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Groups ---- */

/* first_ns <= last_ns. A group that held nothing (blocks of no bytes) held its most at once. */
struct group {
    bool is_known; /* it allocated */
    uint64_t first_ns, last_ns;
    uint64_t held, most;
    uint64_t most_ns;
};

static int group_begin(void *context, const struct life *life) {
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

static int group_end(void *context, const struct life *life) {
    if (life->death_ns != LIFE_ALIVE) {
        ((struct group *)context)[life->context].held -= life_bytes(life);
    }
    return 0;
}

static bool group_holds(const struct selection *selection, const struct group *group) {
    return group->is_known &&
           selection_is_within(group->last_ns - group->first_ns, selection->group_interval) &&
           selection->group_maximum.from_ns <= group->most_ns &&
           group->most_ns < selection->group_maximum.to_ns;
}

int selection_find_groups(struct selection *selection, const struct model *whole,
                          struct timeorder_parts parts, const struct replay_options *options,
                          struct error *error) {
    struct group *groups = job_array(whole->node_count + 1, sizeof *groups);
    const struct lives_visitor visitor = {
        .begin = group_begin, .end = group_end, .context = groups};
    int result = lives_visit(parts, whole, &visitor, options, error);
    selection->groups = job_array(whole->node_count + 1, 1);
    for (size_t id = 0; result == 0 && id < whole->node_count; id++) {
        selection->groups[id] = group_holds(selection, &groups[id]);
    }
    job_release(groups);
    return result == 0 ? 0 : -1;
}

/* ---- Mappings ---- */

/* A mapping as far as it ever reached, both ends included, while it was there. */
struct selection_place {
    uint64_t least, most;
    uint64_t furthest; /* the greatest `most` of this one and all before it */
    struct selection_times there;
};

bool selection_asks_mappings(const struct selection_mappings *mappings) {
    return mappings->number != 0 || mappings->permissions != NULL ||
           !selection_is_any(mappings->peak_resident);
}

/* ---- Finding them ---- */

static bool mapping_is_permitted(const char *asked, const char *permissions) {
    bool fits = true;
    for (size_t i = 0; fits && asked[i] != '\0'; i++) {
        fits = asked[i] == '.' || asked[i] == '?' || asked[i] == permissions[i];
    }
    return fits;
}

static bool mapping_is_asked_for(const struct selection_mappings *mappings,
                                 const struct mapping_seen *seen) {
    return (mappings->number == 0 || mappings->number == seen->id) &&
           (mappings->permissions == NULL ||
            mapping_is_permitted(mappings->permissions, mapping_permissions(seen->protection))) &&
           selection_is_within(seen->peak_resident_bytes, mappings->peak_resident);
}

static void mappings_choose(struct selection_mappings *mappings,
                            const struct mappinghistory *history) {
    uint64_t furthest = 0;
    mappings->count = history->count;
    mappings->chosen = job_array(history->count, sizeof *mappings->chosen);
    mappings->places = job_array(history->count, sizeof *mappings->places);
    mappings->smaps = job_array(history->sample_count, sizeof *mappings->smaps);
    for (size_t i = 0; i < history->count; i++) {
        const struct mapping_seen *seen = &history->items[i];
        mappings->chosen[i] = mapping_is_asked_for(mappings, seen);
        if (mappings->chosen[i] && seen->least < seen->most) {
            mappings->places[mappings->place_count++] = (struct selection_place){
                .least = seen->least,
                .most = seen->most - 1,
                .there = {seen->there_from_ns, seen->there_to_ns},
            };
        }
    }
    for (size_t i = 0; i < history->sample_count; i++) {
        const struct mapping_sample *sample = &history->samples[i];
        if (mappings->chosen[sample->mapping]) {
            mappings->smaps[mappings->smaps_count++] =
                (struct selection_smaps){sample->time_ns, sample->start};
        }
    }
    array_sort_by(mappings->places, mappings->place_count, sizeof *mappings->places,
                  offsetof(struct selection_place, least));
    for (size_t i = 0; i < mappings->place_count; i++) {
        struct selection_place *place = &mappings->places[i];
        furthest = place->most > furthest ? place->most : furthest;
        place->furthest = furthest;
    }
}

int selection_find_mappings(struct selection_mappings *mappings, struct timeorder_parts parts,
                            struct error *error) {
    struct mappinghistory history;
    mappinghistory_read(parts, UINT64_MAX, &history);
    if (history.count == 0) {
        return error_set(error, "the recording has no mappings of the process: it was too short");
    }
    if (mappings->number > history.count) {
        return error_set(error, "there is no mapping %" PRIu64 "; their numbers are 1 to %zu",
                         mappings->number, history.count);
    }
    mappings_choose(mappings, &history);
    return 0;
}

/* ---- What is asked then ---- */

bool selection_has_mapping(const struct selection_mappings *mappings, uint64_t number) {
    return mappings == NULL || !selection_asks_mappings(mappings) ||
           (number != 0 && number <= mappings->count && mappings->chosen[number - 1]);
}

static int smaps_by_time(const void *left, const void *right) {
    const struct selection_smaps *a = left;
    const struct selection_smaps *b = right;
    int order = (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
    return order != 0 ? order : (a->start > b->start) - (a->start < b->start);
}

bool selection_has_smaps(const struct selection_mappings *mappings, uint64_t time_ns,
                         uint64_t start) {
    const struct selection_smaps key = {time_ns, start};
    return mappings == NULL || !selection_asks_mappings(mappings) ||
           bsearch(&key, mappings->smaps, mappings->smaps_count, sizeof key, smaps_by_time) != NULL;
}

bool selection_is_in_mappings(const struct selection_mappings *mappings, const struct life *life) {
    uint64_t last = life->address + (life->size != 0 ? life->size - 1 : 0);
    size_t before; /* places that begin no later than the block ends */
    if (!selection_asks_mappings(mappings)) {
        return true;
    }
    before = life->address == 0
                 ? 0
                 : search_to(mappings->places, mappings->place_count, sizeof *mappings->places,
                             offsetof(struct selection_place, least), last);
    for (; before > 0 && mappings->places[before - 1].furthest >= life->address; before--) {
        const struct selection_place *place = &mappings->places[before - 1];
        if (place->most >= life->address && life->birth_ns < place->there.to_ns &&
            life->death_ns > place->there.from_ns) {
            return true;
        }
    }
    return false;
}
