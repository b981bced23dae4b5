/* SPDX-License-Identifier: MIT */
/* activity.c: see activity.h. */
#include "analyze/blocks/activity.h"

#include "analyze/base/job.h"
#include "analyze/base/search.h"
#include "analyze/profile/load.h"
#include "analyze/replay/accounts.h"
#include "analyze/window/index.h"
#include "analyze/window/recordingtables.h"
#include "analyze/window/series.h"
#include "analyze/window/view.h"

#include <stdlib.h>
#include <string.h>

/* ---- What may be shown ---- */

const char *const activity_names[ACTIVITY_SERIES] = {"live", "resident", "swap",  "virtual",
                                                     "rate", "frees",    "leaked"};

int activity_parse(const char *list, unsigned *series) {
    *series = 0;
    while (*list != '\0') {
        size_t size = strcspn(list, ",");
        size_t i = 0;
        while (i < ACTIVITY_SERIES &&
               (strlen(activity_names[i]) != size || memcmp(activity_names[i], list, size) != 0)) {
            i++;
        }
        if (i == ACTIVITY_SERIES) {
            return -1;
        }
        *series |= 1u << i;
        list += size;
        list += *list == ',';
    }
    return 0;
}

unsigned activity_parts(unsigned series) {
    bool counts = (series & (1u << ACTIVITY_RATE | 1u << ACTIVITY_FREES)) != 0;
    bool process = (series & (1u << ACTIVITY_SWAP | 1u << ACTIVITY_VIRTUAL)) != 0;
    return (counts ? ACTIVITY_COUNTS : 0) | (process ? ACTIVITY_PROCESS : 0) |
           ((series & 1u << ACTIVITY_LEAKED) != 0 ? ACTIVITY_LEAKS : 0);
}

/* A program that ended before it was looked at has none. */
static bool activity_has_resident(const struct model *model) {
    for (size_t i = 0; i < model->timeline_count; i++) {
        if (model->timeline[i].resident_bytes != 0) {
            return true;
        }
    }
    return false;
}

bool activity_knows(const struct activity *activity, const struct model *model,
                    enum activity_series series) {
    switch (series) {
    case ACTIVITY_RESIDENT:
        return activity_has_resident(model);
    case ACTIVITY_SWAP:
    case ACTIVITY_VIRTUAL:
        return activity->process_count != 0;
    case ACTIVITY_RATE:
        return activity->count != 0;
    case ACTIVITY_FREES:
        return activity->count != 0 && activity->frees != NULL;
    case ACTIVITY_LEAKED:
        return activity->leaked != NULL;
    default:
        return model->timeline_count != 0;
    }
}

/* ---- Its memory ---- */

/* Room for so many intervals; there are none yet. */
static void activity_make_room(struct activity *activity, size_t most, unsigned parts) {
    activity->edges = job_array(most + 1, sizeof *activity->edges);
    activity->allocations = job_array(most + 1, sizeof *activity->allocations);
    activity->frees = job_array(most + 1, sizeof *activity->frees);
    if ((parts & ACTIVITY_LEAKS) != 0) {
        activity->leaked = job_array(most + 1, sizeof *activity->leaked);
    }
}

size_t activity_place(const struct activity *activity, uint64_t time_ns) {
    if (activity->count == 0 || time_ns < activity->edges[0] ||
        time_ns >= activity->edges[activity->count]) {
        return activity->count;
    }
    return search_to(activity->edges, activity->count, sizeof *activity->edges, 0, time_ns) - 1;
}

double activity_rate(const struct activity *activity, const double *counts, size_t interval) {
    uint64_t length_ns = activity->edges[interval + 1] - activity->edges[interval];
    return counts[interval] * 1e9 / (double)length_ns;
}

/* ---- From slices ---- */

/* Of the edges those that are far enough apart for at most so many intervals, and the last one. */
static void activity_take_edges(struct activity *activity, const uint64_t *edges, size_t count,
                                uint64_t end_ns, size_t most) {
    uint64_t least_ns = end_ns / most + 1;
    size_t taken = 0;
    activity->edges[0] = 0;
    for (size_t i = 1; i < count && edges[i] < end_ns; i++) {
        if (edges[i] - activity->edges[taken] >= least_ns) {
            activity->edges[++taken] = edges[i];
        }
    }
    if (end_ns - activity->edges[taken] < least_ns && taken != 0) {
        taken--; /* the rest is a part of the one before */
    }
    activity->edges[taken + 1] = end_ns;
    activity->count = taken + 1;
}

static void activity_add_slices(struct activity *activity, const struct model *whole) {
    const struct index *index = whole->index;
    for (size_t i = 0; i < index->count; i++) {
        size_t place = activity_place(activity, index->entries[i].start_ns);
        struct slice_reader reader;
        struct slice_context context;
        slice_read(&reader, &index->entries[i].slice);
        while (place < activity->count && slice_next_context(&reader, &context)) {
            if (context.id < whole->node_count &&
                contexts_class(whole->nodes[context.id].frame) == MODEL_HEAP) {
                activity->allocations[place] += (double)context.alloc_units / ACCOUNTS_ONE;
                activity->frees[place] += (double)context.free_units / ACCOUNTS_ONE;
            }
        }
    }
}

/* ---- From blocks ---- */

struct counting {
    struct activity *activity;
    const struct activity_wish *wish;
    const struct replay_options *options;
};

static int activity_count_life(void *context, const struct life *life) {
    const struct counting *counting = context;
    struct activity *activity = counting->activity;
    double blocks = (double)life_units(life) / ACCOUNTS_ONE;
    size_t birth = activity_place(activity, life->birth_ns);
    size_t death =
        life->death_ns != LIFE_ALIVE ? activity_place(activity, life->death_ns) : activity->count;
    if (contexts_class(counting->wish->whole->nodes[life->context].frame) != MODEL_HEAP) {
        return 0;
    }
    activity->allocations[birth] += blocks; /* those before the window behind all others */
    activity->frees[death] += blocks;
    if (activity->leaked != NULL && life->death_ns == LIFE_ALIVE) {
        activity->leaked[birth < activity->count ? birth : 0] += life_bytes(life);
    }
    return 0;
}

/* Parts as long as each other, at multiples of their length: where times are those of the clock's
 * ticks, of whole ticks, since a part of one has all of its events or none. */
static void activity_take_even(struct activity *activity, uint64_t from_ns, uint64_t to_ns,
                               size_t most, uint64_t tick_ns) {
    uint64_t least_ns = (to_ns - from_ns) / most + 1;
    uint64_t width_ns = (least_ns + tick_ns - 1) / tick_ns * tick_ns;
    uint64_t edge = (from_ns / width_ns + 1) * width_ns;
    activity->edges[0] = from_ns;
    /* What is left at the end is a part of the last one. */
    for (; edge < to_ns && to_ns - edge >= width_ns / 2 && activity->count + 1 < most;
         edge += width_ns) {
        activity->edges[++activity->count] = edge;
    }
    activity->edges[++activity->count] = to_ns;
}

static void activity_count_lives(struct counting *counting) {
    struct activity *activity = counting->activity;
    const struct activity_wish *wish = counting->wish;
    const struct lives_visitor visitor = {.end = activity_count_life, .context = counting};
    const struct selection_times *view = &wish->selection->view;
    uint64_t end_ns = wish->whole->now_ns + 1;
    uint64_t to_ns = view->to_ns < end_ns ? view->to_ns : end_ns;
    struct error error = {""};
    if (view->from_ns >= to_ns) {
        return;
    }
    activity_take_even(activity, view->from_ns, to_ns, wish->most,
                       wish->whole->recording.precise ? 1 : UINT64_C(1) << MEMTRACE_TICK_SHIFT);
    activity->is_pass = true;
    job_check(selection_visit(wish->selection, wish->whole, wish->recording, wish->names, &visitor,
                              counting->options, &error),
              &error);
    for (size_t i = 1; activity->leaked != NULL && i < activity->count; i++) {
        activity->leaked[i] += activity->leaked[i - 1];
    }
}

static void activity_count_recorded(struct counting *counting) {
    struct activity *activity = counting->activity;
    const struct activity_wish *wish = counting->wish;
    bool is_long = wish->whole->recording.events > SERIES_PASS_EVENTS;
    activity_make_room(activity, wish->most, wish->parts);
    if (is_long && wish->whole->index != NULL && activity->leaked == NULL &&
        selection_is_all(wish->selection)) {
        size_t count = 0;
        uint64_t *edges = model_view_edges(wish->whole, &count);
        activity_take_edges(activity, edges, count, wish->whole->now_ns + 1, wish->most);
        activity_add_slices(activity, wish->whole);
    } else {
        activity_count_lives(counting);
    }
}

/* ---- From a profile's counters ---- */

static void activity_count_sampled(struct activity *activity, const struct activity_wish *wish) {
    const struct model *model = wish->model;
    uint64_t least_ns = model->now_ns / wish->most + 1;
    const struct memtrace_point *last = NULL;
    if (model->timeline_count < 2) {
        return;
    }
    activity_make_room(activity, wish->most + 1, 0);
    last = &model->timeline[0];
    activity->edges[0] = last->time_ns;
    for (size_t i = 1; i < model->timeline_count && activity->count < wish->most; i++) {
        const struct memtrace_point *point = &model->timeline[i];
        if (point->time_ns - last->time_ns >= least_ns && point->alloc_count >= last->alloc_count) {
            activity->allocations[activity->count++] =
                (double)(point->alloc_count - last->alloc_count);
            activity->edges[activity->count] = point->time_ns;
            last = point;
        }
    }
    activity->frees = NULL;
}

/* ---- All of it ---- */

static void activity_look(void *what) {
    struct counting *counting = what;
    struct activity *activity = counting->activity;
    const struct activity_wish *wish = counting->wish;
    bool is_recorded = wish->recording.count != 0;
    if ((wish->parts & (ACTIVITY_COUNTS | ACTIVITY_LEAKS)) != 0 && is_recorded) {
        activity_count_recorded(counting);
    } else if ((wish->parts & (ACTIVITY_COUNTS | ACTIVITY_LEAKS)) != 0) {
        activity_count_sampled(activity, wish);
    }
    if (is_recorded && (wish->parts & ACTIVITY_PROCESS) != 0) {
        activity->process = recorded_process(wish->recording, &activity->process_count);
    }
}

int activity_make(struct activity *activity, const struct activity_wish *wish,
                  const struct replay_options *options, struct error *error) {
    struct counting counting = {activity, wish, options};
    struct job_memory *memory = NULL;
    int result;
    *activity = (struct activity){0};
    result = job_run(activity_look, &counting, &memory, error);
    if (result != 0) {
        *activity = (struct activity){0};
    }
    activity->memory = memory;
    return result;
}

void activity_free(struct activity *activity) {
    job_free(&activity->memory);
    *activity = (struct activity){0};
}

const struct memtrace_sample *activity_process(const struct activity *activity, uint64_t time_ns) {
    size_t after = search_to(activity->process, activity->process_count, sizeof *activity->process,
                             offsetof(struct memtrace_sample, time_ns), time_ns);
    return activity->process_count == 0 ? NULL : &activity->process[after != 0 ? after - 1 : 0];
}
