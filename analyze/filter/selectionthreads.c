/* SPDX-License-Identifier: MIT */
/* selectionthreads.c: see selectionthreads.h. */
#include "analyze/filter/selectionthreads.h"

#include "analyze/model/model.h"
#include "analyze/profile/timepoints.h"
#include "analyze/replay/accounts.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 1 << MEMTRACE_THREAD_BITS };

struct counts {
    uint64_t alloc_units, alloc_bytes;
    uint64_t free_units, free_bytes;
    uint64_t foreign_units, foreign_bytes;
    uint64_t live_bytes;
};

/* By how much more is held and was allocated at a point than at the one before it. */
struct step {
    uint64_t live_bytes; /* wraps: it may fall */
    uint64_t alloc_units, alloc_bytes;
};

struct selectionthreads {
    struct model *model;
    struct counts counts[THREADS];
    struct foreign foreign; /* blocks in units */
    struct step *steps;     /* model->timeline_count + 1: the last one is behind all points */
};

struct selectionthreads *selectionthreads_new(struct model *model) {
    struct selectionthreads *threads = calloc(1, sizeof *threads);
    if (threads != NULL) {
        threads->model = model;
        threads->steps = calloc(model->timeline_count + 1, sizeof *threads->steps);
    }
    if (threads != NULL && threads->steps == NULL) {
        free(threads);
        return NULL;
    }
    return threads;
}

void selectionthreads_free(struct selectionthreads *threads) {
    if (threads != NULL) {
        foreign_free(&threads->foreign);
        free(threads->steps);
        free(threads);
    }
}

/* ---- Timeline ---- */

static void take_steps(struct selectionthreads *threads, const struct life *life,
                       struct selectionsums_seen seen) {
    struct step *birth =
        &threads->steps[seen.born ? timepoints_place(threads->model, life->birth_ns) : 0];
    birth->live_bytes += life_bytes(life);
    birth->alloc_bytes += seen.born ? life_bytes(life) : 0;
    birth->alloc_units += seen.born ? life_units(life) : 0;
    if (seen.died) {
        threads->steps[timepoints_place(threads->model, life->death_ns)].live_bytes -=
            life_bytes(life);
    }
}

static void finish_timeline(struct selectionthreads *threads) {
    struct step sum = {0};
    for (size_t i = 0; i < threads->model->timeline_count; i++) {
        struct memtrace_point *point = &threads->model->timeline[i];
        sum.live_bytes += threads->steps[i].live_bytes;
        sum.alloc_bytes += threads->steps[i].alloc_bytes;
        sum.alloc_units += threads->steps[i].alloc_units;
        point->live_bytes = sum.live_bytes;
        point->alloc_bytes = sum.alloc_bytes;
        point->alloc_count = (sum.alloc_units + ACCOUNTS_ONE / 2) / ACCOUNTS_ONE;
    }
}

/* ---- Threads ---- */

static int take_free(struct selectionthreads *threads, const struct life *life) {
    struct counts *counts = &threads->counts[life->death_thread];
    counts->free_units += life_units(life);
    counts->free_bytes += life_bytes(life);
    if (life->death_thread == life->block.thread) {
        return 0;
    }
    counts->foreign_units += life_units(life);
    counts->foreign_bytes += life_bytes(life);
    return foreign_add(&threads->foreign, (struct model_foreign){.freer = life->death_thread,
                                                                 .owner = life->block.thread,
                                                                 .blocks = life_units(life),
                                                                 .bytes = life_bytes(life)});
}

int selectionthreads_take(struct selectionthreads *threads, const struct life *life,
                          struct selectionsums_seen seen) {
    bool is_own = !life->is_inherited && life->block.thread < THREADS;
    if (!seen.at_all || contexts_class(threads->model->nodes[life->context].frame) != MODEL_HEAP) {
        return 0;
    }
    take_steps(threads, life, seen);
    if (is_own && seen.born) {
        threads->counts[life->block.thread].alloc_units += life_units(life);
        threads->counts[life->block.thread].alloc_bytes += life_bytes(life);
    }
    if (is_own && !seen.died) {
        threads->counts[life->block.thread].live_bytes += life_bytes(life);
    }
    return seen.died && life->death_thread < THREADS ? take_free(threads, life) : 0;
}

/* ---- The end ---- */

static uint64_t whole_of(uint64_t units) {
    return (units + ACCOUNTS_ONE / 2) / ACCOUNTS_ONE;
}

static void finish_thread(struct model_thread *thread, const struct counts *counts) {
    thread->allocations = whole_of(counts->alloc_units);
    thread->total_bytes = counts->alloc_bytes;
    thread->frees = whole_of(counts->free_units);
    thread->freed_bytes = counts->free_bytes;
    thread->foreign_frees = whole_of(counts->foreign_units);
    thread->foreign_freed_bytes = counts->foreign_bytes;
    thread->live_bytes = (int64_t)counts->live_bytes;
}

static bool is_used(const struct model_thread *thread) {
    return thread->allocations != 0 || thread->frees != 0 || thread->live_bytes != 0;
}

static void finish_threads(struct selectionthreads *threads) {
    struct model *model = threads->model;
    size_t kept = 0;
    for (size_t i = 0; i < model->thread_count; i++) {
        struct model_thread *thread = &model->threads[i];
        finish_thread(thread, &threads->counts[thread->id]);
        if (is_used(thread)) {
            model->threads[kept++] = *thread;
        }
    }
    model->thread_count = kept;
}

int selectionthreads_finish(struct selectionthreads *threads) {
    finish_threads(threads);
    finish_timeline(threads);
    foreign_sort(&threads->foreign);
    for (size_t i = 0; i < threads->foreign.count; i++) {
        struct model_foreign foreign = threads->foreign.pairs[i];
        foreign.blocks = whole_of(foreign.blocks);
        if (records_take_foreign(threads->model, foreign) != 0) {
            return -1;
        }
    }
    return 0;
}
