/* SPDX-License-Identifier: MIT */
/* series.c: see series.h. */
#include "analyze/window/series.h"

#include "analyze/base/search.h"
#include "analyze/replay/lives.h"
#include "analyze/window/index.h"

#include <stdlib.h>
#include <string.h>

struct making {
    struct series *series;
    const struct model *whole;
    uint32_t *rows;   /* by context: row + 1; 0: not wanted */
    uint64_t *change; /* like series.live: what came between a moment and the one before */
};

static int out_of_memory(struct error *error) {
    return error_set(error, "out of memory");
}

/* ---- Which moments ---- */

/* The edges of slices inside of the window. */
static size_t count_edges(const struct index *index, uint64_t from_ns, uint64_t to_ns) {
    size_t count = 0;
    for (size_t i = 1; i < index->count; i++) {
        uint64_t edge = index->entries[i].start_ns;
        count += edge > from_ns && edge < to_ns;
    }
    return count;
}

static void take_edges(struct series *series, const struct index *index, uint64_t from_ns,
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

static void take_even(struct series *series, uint64_t from_ns, uint64_t to_ns, size_t most) {
    for (size_t i = 1; i + 1 < most; i++) {
        uint64_t time =
            from_ns + (uint64_t)((double)(to_ns - from_ns) * (double)i / (double)(most - 1));
        if (time > series->times[series->points - 1] && time < to_ns) {
            series->times[series->points++] = time;
        }
    }
}

static void choose_times(struct series *series, const struct model *whole, uint64_t from_ns,
                         uint64_t to_ns, size_t most) {
    size_t edges = count_edges(whole->index, from_ns, to_ns);
    series->is_pass = edges < SERIES_EDGES && whole->recording.events <= SERIES_PASS_EVENTS;
    series->times[series->points++] = from_ns;
    if (series->is_pass) {
        take_even(series, from_ns, to_ns, most);
    } else {
        take_edges(series, whole->index, from_ns, to_ns, edges, most);
    }
    series->times[series->points++] = to_ns;
}

/* ---- What changed between them ---- */

/* The first moment that sees what happened at this time. */
static size_t place_of(const struct series *series, uint64_t time_ns) {
    return search_to(series->times, series->points, sizeof *series->times, 0, time_ns);
}

static void add(struct making *making, uint32_t context, uint64_t time_ns, uint64_t bytes) {
    size_t place = place_of(making->series, time_ns);
    uint32_t row = context < making->whole->node_count ? making->rows[context] : 0;
    if (row != 0 && place < making->series->points) {
        making->change[(row - 1) * making->series->points + place] += bytes;
    }
}

static void add_slices(struct making *making) {
    const struct index *index = making->whole->index;
    for (size_t i = 0; i < index->count; i++) {
        uint64_t end_ns = i + 1 < index->count ? index->entries[i + 1].start_ns : UINT64_MAX;
        uint64_t last_ns = end_ns == UINT64_MAX ? making->whole->now_ns : end_ns - 1;
        struct slice_reader reader;
        struct slice_context context;
        slice_read(&reader, &index->entries[i].slice);
        while (slice_next_context(&reader, &context)) {
            add(making, context.id, last_ns, context.alloc_bytes - context.free_bytes);
        }
    }
}

static int add_life(void *context, const struct life *life) {
    struct making *making = context;
    add(making, life->context, life->birth_ns, life_bytes(life));
    if (life->death_ns != LIFE_ALIVE) {
        add(making, life->context, life->death_ns, -life_bytes(life));
    }
    return 0;
}

static int add_before(void *context, const struct timeorder_event *entry) {
    struct making *making = context;
    const struct event *event = &entry->event;
    if (event_is_of_before(event)) {
        add(making, making->whole->before_node, event->time_ns,
            event_is_before_freed(event) ? -event->id : event->id);
    }
    return 0;
}

static int add_lives(struct making *making, struct timeorder_parts parts,
                     const struct replay_options *options, struct error *error) {
    const struct lives_visitor visitor = {.end = add_life, .other = add_before, .context = making};
    return lives_visit(parts, making->whole, &visitor, options, error);
}

static void add_up(struct making *making) {
    const struct series *series = making->series;
    for (size_t row = 0; row < series->rows; row++) {
        uint64_t held = 0;
        for (size_t i = 0; i < series->points; i++) {
            held += making->change[row * series->points + i];
            series->live[row * series->points + i] = held <= INT64_MAX ? held : 0;
        }
    }
}

/* The times are there. */
static int fill(struct making *making, struct timeorder_parts parts, const uint32_t *ids,
                const struct replay_options *options, struct error *error) {
    struct series *series = making->series;
    int result = 0;
    making->rows = calloc(making->whole->node_count, sizeof *making->rows);
    making->change = calloc(series->rows * series->points + 1, sizeof *making->change);
    series->live = calloc(series->rows * series->points + 1, sizeof *series->live);
    if (making->rows == NULL || making->change == NULL || series->live == NULL) {
        return out_of_memory(error);
    }
    for (size_t i = 0; i < series->rows; i++) {
        making->rows[ids[i]] = (uint32_t)i + 1;
    }
    if (series->is_pass) {
        result = add_lives(making, parts, options, error);
    } else {
        add_slices(making);
    }
    add_up(making);
    return result == 0 ? 0 : -1;
}

static int fill_and_free(struct making *making, struct timeorder_parts parts, const uint32_t *ids,
                         const struct replay_options *options, struct error *error) {
    int result = fill(making, parts, ids, options, error);
    free(making->rows);
    free(making->change);
    return result;
}

int series_make(struct series *series, const struct model *whole, struct timeorder_parts parts,
                uint64_t from_ns, uint64_t to_ns, const uint32_t *ids, size_t count, size_t most,
                const struct replay_options *options, struct error *error) {
    struct making making = {.series = series, .whole = whole};
    uint64_t end_ns = to_ns < whole->now_ns ? to_ns : whole->now_ns + 1;
    *series = (struct series){.rows = count};
    if (whole->index == NULL || parts.count == 0 || from_ns >= end_ns) {
        return 0;
    }
    series->times = calloc(most, sizeof *series->times);
    if (series->times == NULL) {
        return out_of_memory(error);
    }
    choose_times(series, whole, from_ns, end_ns, most);
    return fill_and_free(&making, parts, ids, options, error);
}

int series_at(struct series *series, const struct model *whole, struct timeorder_parts parts,
              const uint64_t *times, size_t points, const uint32_t *ids, size_t count,
              const struct replay_options *options, struct error *error) {
    struct making making = {.series = series, .whole = whole};
    *series = (struct series){.rows = count};
    if (whole->index == NULL || parts.count == 0 || points == 0) {
        return 0;
    }
    series->times = calloc(points, sizeof *series->times);
    if (series->times == NULL) {
        return out_of_memory(error);
    }
    memcpy(series->times, times, points * sizeof *times);
    series->points = points;
    series->is_pass = whole->recording.events <= SERIES_PASS_EVENTS;
    return fill_and_free(&making, parts, ids, options, error);
}

void series_free(struct series *series) {
    free(series->times);
    free(series->live);
    *series = (struct series){0};
}
