/* SPDX-License-Identifier: MIT */
/* timepoints.c: see timepoints.h. */
#include "analyze/profile/timepoints.h"

#include "analyze/base/search.h"

#include <stdlib.h>
#include <string.h>

/* ---- From events ---- */

void timepoints_start(struct timepoints *points) {
    *points = (struct timepoints){
        .pieces = job_array(TIMEPOINTS_PIECES, sizeof *points->pieces),
        .shift = MEMTRACE_TICK_SHIFT,
    };
}

static void timepoints_join(struct timepoints_piece *piece, const struct timepoints_piece *later) {
    if (later->highest.live_bytes > piece->highest.live_bytes) {
        piece->highest = later->highest;
    }
    piece->last = later->last;
}

/* Pieces become twice as long. */
static void timepoints_lengthen(struct timepoints *points) {
    size_t kept = 0;
    points->shift++;
    for (size_t i = 0; i < points->count; i++) {
        struct timepoints_piece piece = points->pieces[i];
        piece.number /= 2;
        if (kept != 0 && points->pieces[kept - 1].number == piece.number) {
            timepoints_join(&points->pieces[kept - 1], &piece);
        } else {
            points->pieces[kept++] = piece;
        }
    }
    points->count = kept;
}

void timepoints_add(struct timepoints *points, uint64_t window_ns,
                    const struct memtrace_point *highest, const struct memtrace_point *last) {
    struct timepoints_piece piece = {.highest = *highest, .last = *last};
    while (points->count == TIMEPOINTS_PIECES &&
           points->pieces[points->count - 1].number != window_ns >> points->shift) {
        timepoints_lengthen(points);
    }
    piece.number = window_ns >> points->shift;
    if (points->count != 0 && points->pieces[points->count - 1].number == piece.number) {
        timepoints_join(&points->pieces[points->count - 1], &piece);
    } else {
        points->pieces[points->count++] = piece;
    }
}

/* Of several at one time that with the most live bytes first: it is kept. */
static int timepoints_by_time(const void *left, const void *right) {
    const struct memtrace_point *a = left;
    const struct memtrace_point *b = right;
    return a->time_ns != b->time_ns
               ? (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns)
               : (a->live_bytes < b->live_bytes) - (a->live_bytes > b->live_bytes);
}

void timepoints_take(struct model *model, const struct memtrace_point *points, size_t count) {
    size_t kept = 0;
    model->timeline = job_array(count + 1, sizeof *model->timeline);
    if (count != 0) {
        memcpy(model->timeline, points, count * sizeof *points);
    }
    qsort(model->timeline, count, sizeof *model->timeline, timepoints_by_time);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || model->timeline[i].time_ns > model->timeline[kept - 1].time_ns) {
            model->timeline[kept++] = model->timeline[i];
        }
    }
    model->timeline_count = kept;
}

void timepoints_finish(const struct timepoints *points, struct model *model,
                       const struct memtrace_point *samples, size_t sample_count) {
    struct memtrace_point *all = job_array(sample_count + 2 * points->count + 1, sizeof *all);
    /* Between samples as much was resident as at the one before; before the first as at that. */
    uint64_t resident_bytes = sample_count != 0 ? samples[0].resident_bytes : 0;
    size_t count = sample_count;
    if (sample_count != 0) {
        memcpy(all, samples, sample_count * sizeof *all);
    }
    for (size_t i = 0; i < points->count; i++) {
        all[count++] = points->pieces[i].highest;
        all[count++] = points->pieces[i].last;
    }
    qsort(all, count, sizeof *all, timepoints_by_time);
    for (size_t i = 0; i < count; i++) {
        if (all[i].resident_bytes != 0) {
            resident_bytes = all[i].resident_bytes;
        }
        all[i].resident_bytes = resident_bytes;
    }
    timepoints_take(model, all, count);
    job_release(all);
}

/* ---- Ends and maximum ---- */

/* A part of the way from a to b, which a damaged file may hold anything for. */
static uint64_t timepoints_between(uint64_t a, uint64_t b, double share) {
    if (b <= a || share >= 1) {
        return b > a ? b : a;
    }
    return a + (uint64_t)((long double)(b - a) * (long double)share);
}

size_t timepoints_place(const struct model *model, uint64_t time_ns) {
    return search_below(model->timeline, model->timeline_count, sizeof *model->timeline,
                        offsetof(struct memtrace_point, time_ns), time_ns);
}

/* What was allocated by then, as if evenly from the point before to the point behind. */
static struct memtrace_point point_between(const struct model *model, size_t place,
                                           uint64_t time_ns) {
    const struct memtrace_point end = {.time_ns = model->now_ns,
                                       .alloc_count = model->totals.allocations,
                                       .alloc_bytes = model->totals.total_bytes};
    const struct memtrace_point none = {0};
    const struct memtrace_point *before = place != 0 ? &model->timeline[place - 1] : &none;
    const struct memtrace_point *behind =
        place < model->timeline_count ? &model->timeline[place] : &end;
    uint64_t length = behind->time_ns > before->time_ns ? behind->time_ns - before->time_ns : 0;
    double share = time_ns - before->time_ns < length
                       ? (double)(time_ns - before->time_ns) / (double)length
                       : 1;
    return (struct memtrace_point){
        .time_ns = time_ns,
        .resident_bytes = place != 0 ? before->resident_bytes : behind->resident_bytes,
        .alloc_count = timepoints_between(before->alloc_count, behind->alloc_count, share),
        .alloc_bytes = timepoints_between(before->alloc_bytes, behind->alloc_bytes, share),
    };
}

/* That so much was live then is known. There is room for it. */
static void timepoints_put(struct model *model, uint64_t time_ns, uint64_t live_bytes) {
    size_t place = timepoints_place(model, time_ns);
    struct memtrace_point *at = &model->timeline[place];
    if (place < model->timeline_count && at->time_ns == time_ns) {
        at->live_bytes = live_bytes > at->live_bytes ? live_bytes : at->live_bytes;
        return;
    }
    struct memtrace_point point = point_between(model, place, time_ns);
    point.live_bytes = live_bytes;
    memmove(at + 1, at, (model->timeline_count - place) * sizeof *at);
    *at = point;
    model->timeline_count++;
}

/* Where the time of the maximum is not known, as in older profiles: about when most was sampled. */
static uint64_t guess_maximum(const struct model *model) {
    const struct memtrace_point *highest = NULL;
    for (size_t i = 0; i < model->timeline_count; i++) {
        if (highest == NULL || model->timeline[i].live_bytes > highest->live_bytes) {
            highest = &model->timeline[i];
        }
    }
    return highest != NULL ? highest->time_ns : 0;
}

static void timepoints_make_room(struct model *model, size_t count) {
    size_t room = model->timeline_count;
    job_reserve(&model->timeline, &room, model->timeline_count + count + 1,
                sizeof *model->timeline);
}

/* The clock is looked at now and then, so the maximum may have its time in common with an end where
 * less was live: then it was a moment inside. */
static uint64_t timepoints_inside(const struct model *model, uint64_t time_ns) {
    const struct memtrace_point *first = model->timeline;
    const struct memtrace_point *last = first + model->timeline_count - 1;
    uint64_t most = model->totals.maximum_bytes;
    if (model->timeline_count < 2 || last->time_ns - first->time_ns < 2) {
        return time_ns;
    }
    if (time_ns == last->time_ns && last->live_bytes < most) {
        return time_ns - 1;
    }
    return time_ns == first->time_ns && first->live_bytes < most ? time_ns + 1 : time_ns;
}

void timepoints_put_maximum(struct model *model) {
    const struct model_totals *totals = &model->totals;
    uint64_t time_ns = totals->maximum_ns != 0 ? totals->maximum_ns : guess_maximum(model);
    timepoints_make_room(model, 1);
    if (totals->maximum_bytes != 0 && time_ns >= model->from_ns && time_ns < model->to_ns) {
        timepoints_put(model, timepoints_inside(model, time_ns), totals->maximum_bytes);
    }
}

void timepoints_complete(struct model *model, uint64_t from_ns, uint64_t to_ns,
                         uint64_t start_live) {
    uint64_t last_ns = to_ns <= model->now_ns ? to_ns - 1 : model->now_ns;
    timepoints_make_room(model, 2);
    timepoints_put(model, from_ns, start_live);
    if (last_ns > from_ns) {
        timepoints_put(model, last_ns, model->totals.live_bytes);
    }
    timepoints_put_maximum(model);
}
