/* SPDX-License-Identifier: MIT */
/* series.c: see series.h. */
#include "analyze/window/series.h"

#include "analyze/base/job.h"
#include "analyze/base/search.h"
#include "analyze/replay/lives.h"
#include "analyze/window/index.h"

#include <string.h>

struct series_making {
    struct series *series;
    const struct model *whole;
    uint32_t *rows;   /* by context: row + 1; 0: not wanted */
    uint64_t *change; /* like series.live: what came between a moment and the one before */
};

/* ---- Which moments ---- */

/* The edges of slices inside of the window. */
static size_t series_count_edges(const struct index *index, uint64_t from_ns, uint64_t to_ns) {
    size_t count = 0;
    for (size_t i = 1; i < index->count; i++) {
        uint64_t edge = index->entries[i].start_ns;
        count += edge > from_ns && edge < to_ns;
    }
    return count;
}

static void series_take_edges(struct series *series, const struct index *index, uint64_t from_ns,
                              uint64_t to_ns, size_t edges, size_t most) {
    size_t seen = 0;
    size_t wanted = edges + 2 < most ? edges : most - 2;
    for (size_t i = 1; i < index->count; i++) {
        uint64_t edge = index->entries[i].start_ns;
        if (edge > from_ns && edge < to_ns) {
            size_t place = ++seen * wanted / edges; /* the last one of each group is taken */
            if (place > (seen - 1) * wanted / edges) {
                series->times[series->points++] = edge;
            }
        }
    }
}

static void series_take_even(struct series *series, uint64_t from_ns, uint64_t to_ns, size_t most) {
    for (size_t i = 1; i + 1 < most; i++) {
        uint64_t time =
            from_ns + (uint64_t)((double)(to_ns - from_ns) * (double)i / (double)(most - 1));
        if (time > series->times[series->points - 1] && time < to_ns) {
            series->times[series->points++] = time;
        }
    }
}

static void series_choose_times(struct series *series, const struct model *whole, uint64_t from_ns,
                                uint64_t to_ns, size_t most) {
    size_t edges = series_count_edges(whole->index, from_ns, to_ns);
    series->is_pass = edges < SERIES_EDGES && whole->recording.events <= SERIES_PASS_EVENTS;
    series->times[series->points++] = from_ns;
    if (series->is_pass) {
        series_take_even(series, from_ns, to_ns, most);
    } else {
        series_take_edges(series, whole->index, from_ns, to_ns, edges, most);
    }
    series->times[series->points++] = to_ns;
}

/* ---- What changed between them ---- */

/* The first moment that sees what happened at this time. */
static size_t series_place_of(const struct series *series, uint64_t time_ns) {
    return search_to(series->times, series->points, sizeof *series->times, 0, time_ns);
}

static void series_add(struct series_making *making, uint32_t context, uint64_t time_ns,
                       uint64_t bytes) {
    size_t place = series_place_of(making->series, time_ns);
    uint32_t row = context < making->whole->node_count ? making->rows[context] : 0;
    if (row != 0 && place < making->series->points) {
        making->change[(row - 1) * making->series->points + place] += bytes;
    }
}

static void series_add_slices(struct series_making *making) {
    const struct index *index = making->whole->index;
    for (size_t i = 0; i < index->count; i++) {
        uint64_t end_ns = i + 1 < index->count ? index->entries[i + 1].start_ns : UINT64_MAX;
        uint64_t last_ns = end_ns == UINT64_MAX ? making->whole->now_ns : end_ns - 1;
        struct slice_reader reader;
        struct slice_context context;
        slice_read(&reader, &index->entries[i].slice);
        while (slice_next_context(&reader, &context)) {
            series_add(making, context.id, last_ns, context.alloc_bytes - context.free_bytes);
        }
    }
}

static int series_add_life(void *context, const struct life *life) {
    struct series_making *making = context;
    series_add(making, life->context, life->birth_ns, life_bytes(life));
    if (life->death_ns != LIFE_ALIVE) {
        series_add(making, life->context, life->death_ns, -life_bytes(life));
    }
    return 0;
}

static int series_add_before(void *context, const struct timeorder_event *entry) {
    struct series_making *making = context;
    const struct event *event = &entry->event;
    if (event_is_of_before(event)) {
        series_add(making, making->whole->before_node, event->time_ns,
                   event_is_before_freed(event) ? -event->id : event->id);
    }
    return 0;
}

/* The times are there. */
static int series_fill(struct series_making *making, struct timeorder_parts parts,
                       const uint32_t *ids, const struct replay_options *options,
                       struct error *error) {
    struct series *series = making->series;
    int result = 0;
    making->rows = job_array(making->whole->node_count, sizeof *making->rows);
    making->change = job_array(series->rows * series->points + 1, sizeof *making->change);
    series->live = job_array(series->rows * series->points + 1, sizeof *series->live);
    for (size_t i = 0; i < series->rows; i++) {
        making->rows[ids[i]] = (uint32_t)i + 1;
    }
    if (series->is_pass) {
        const struct lives_visitor visitor = {
            .end = series_add_life, .other = series_add_before, .context = making};
        result = lives_visit(parts, making->whole, &visitor, options, error);
    } else {
        series_add_slices(making);
    }
    for (size_t row = 0; row < series->rows; row++) {
        uint64_t held = 0;
        for (size_t i = 0; i < series->points; i++) {
            held += making->change[row * series->points + i];
            series->live[row * series->points + i] = held <= INT64_MAX ? held : 0;
        }
    }
    job_release(making->rows);
    job_release(making->change);
    return result == 0 ? 0 : -1;
}

int series_make(struct series *series, const struct model *whole, struct timeorder_parts parts,
                uint64_t from_ns, uint64_t to_ns, const uint32_t *ids, size_t count, size_t most,
                const struct replay_options *options, struct error *error) {
    struct series_making making = {.series = series, .whole = whole};
    uint64_t end_ns = to_ns < whole->now_ns ? to_ns : whole->now_ns + 1;
    *series = (struct series){.rows = count};
    if (whole->index == NULL || parts.count == 0 || from_ns >= end_ns) {
        return 0;
    }
    series->times = job_array(most, sizeof *series->times);
    series_choose_times(series, whole, from_ns, end_ns, most);
    return series_fill(&making, parts, ids, options, error);
}

int series_at(struct series *series, const struct model *whole, struct timeorder_parts parts,
              const uint64_t *times, size_t points, const uint32_t *ids, size_t count,
              const struct replay_options *options, struct error *error) {
    struct series_making making = {.series = series, .whole = whole};
    *series = (struct series){.rows = count};
    if (whole->index == NULL || parts.count == 0 || points == 0) {
        return 0;
    }
    series->times = job_array(points, sizeof *series->times);
    memcpy(series->times, times, points * sizeof *times);
    series->points = points;
    series->is_pass = whole->recording.events <= SERIES_PASS_EVENTS;
    return series_fill(&making, parts, ids, options, error);
}
