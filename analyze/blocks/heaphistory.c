/* SPDX-License-Identifier: MIT */
/* heaphistory.c: see heaphistory.h. */
#include "analyze/blocks/heaphistory.h"

#include "analyze/base/array.h"
#include "analyze/base/job.h"

#include <stdlib.h>

#define ADDRESSES    (UINT64_C(1) << 48)
#define LARGEST_STEP (UINT64_C(1) << 40)

enum { PAGE = 4096 };

/* Bytes in use of a cell, more than once where several pieces lie in it. */
struct piece {
    uint64_t number;
    uint64_t used;
};

struct making {
    const struct model *whole;
    struct timeorder_parts parts;
    uint64_t from_ns, to_ns;
    const struct replay_options *options;
    struct heaphistory *history;
    const uint64_t *times_ns;
    struct piece *pieces; /* of the present moment */
    size_t count, room;
    bool are_too_many; /* pieces: larger cells are needed */
};

/* ---- One moment ---- */

static void heaphistory_add_piece(struct making *making, uint64_t number, uint64_t used) {
    struct piece *last = making->count != 0 ? &making->pieces[making->count - 1] : NULL;
    if (last != NULL && last->number == number) {
        last->used += used;
        return;
    }
    job_grow(&making->pieces, &making->room, making->count, sizeof *making->pieces);
    making->pieces[making->count++] = (struct piece){number, used};
}

/* A page lies in one cell; what is longer than a page is in use from end to end. No address space
 * goes beyond ADDRESSES, whatever size a damaged file gives a block. */
static void heaphistory_take_range(void *context, uint64_t start, uint64_t end, uint64_t used) {
    struct making *making = context;
    uint64_t step = making->history->step;
    bool is_full = end - start > PAGE;
    end = end < ADDRESSES ? end : ADDRESSES;
    making->are_too_many |= is_full && start < end && step < LARGEST_STEP &&
                            making->count + (end - start) / step > HEAPHISTORY_CELLS;
    while (start < end && !making->are_too_many) {
        uint64_t cell_end = (start / step + 1) * step;
        uint64_t until = cell_end < end ? cell_end : end;
        heaphistory_add_piece(making, start / step, is_full ? until - start : used);
        start = until;
    }
}

static uint32_t heaphistory_level_of(uint64_t used, uint64_t step) {
    uint64_t level = used >= step ? 255 : used * 255 / step;
    return level != 0 ? (uint32_t)level : 1;
}

/* Addresses are below 2^48, so numbers of cells fit. */
static void heaphistory_add_cells(struct making *making) {
    struct heaphistory *history = making->history;
    size_t at = 0;
    while (at < making->count) {
        uint64_t number = making->pieces[at].number;
        uint64_t used = 0;
        for (; at < making->count && making->pieces[at].number == number; at++) {
            used += making->pieces[at].used;
        }
        if (number > UINT32_MAX) {
            continue;
        }
        job_grow(&history->cells, &history->cell_room, history->cell_count, sizeof *history->cells);
        history->cells[history->cell_count++] =
            (struct heaphistory_cell){(uint32_t)number, heaphistory_level_of(used, history->step)};
    }
}

/* ---- Larger cells ---- */

/* Each two neighbours become one. */
static void heaphistory_halve(struct heaphistory *history) {
    size_t kept = 0;
    for (size_t i = 0; i < history->count; i++) {
        struct heaphistory_moment *moment = &history->moments[i];
        size_t first = kept;
        for (size_t k = moment->first; k < moment->first + moment->count; k++) {
            struct heaphistory_cell cell = history->cells[k];
            if (kept != first && history->cells[kept - 1].number == cell.number / 2) {
                history->cells[kept - 1].level += (cell.level + 1) / 2;
            } else {
                history->cells[kept++] =
                    (struct heaphistory_cell){cell.number / 2, (cell.level + 1) / 2};
            }
        }
        moment->first = first;
        moment->count = kept - first;
    }
    for (size_t k = 0; k < kept; k++) {
        history->cells[k].level = history->cells[k].level < 255 ? history->cells[k].level : 255;
    }
    history->cell_count = kept;
    history->step *= 2;
}

static void heaphistory_take_moment(void *context, size_t which, const struct holes_state *state) {
    struct making *making = context;
    struct heaphistory *history = making->history;
    struct holes now = holes_now(state);
    struct heaphistory_moment *moment = &history->moments[history->count];
    for (;;) { /* with larger cells where large blocks would fill too many */
        making->count = 0;
        making->are_too_many = false;
        holes_visit(state, heaphistory_take_range, making);
        if (!making->are_too_many) {
            break;
        }
        heaphistory_halve(history);
    }
    array_sort_by(making->pieces, making->count, sizeof *making->pieces,
                  offsetof(struct piece, number));
    *moment = (struct heaphistory_moment){.time_ns = making->times_ns[which],
                                          .live_bytes = now.live_bytes,
                                          .unused_bytes = now.unused_bytes,
                                          .pages = holes_pages(state),
                                          .first = history->cell_count};
    heaphistory_add_cells(making);
    moment->count = history->cell_count - moment->first;
    history->count++;
    while (history->cell_count > HEAPHISTORY_CELLS && history->step < LARGEST_STEP) {
        heaphistory_halve(history);
    }
}

/* ---- All of them ---- */

static void heaphistory_look(void *what) {
    struct making *making = what;
    uint64_t times_ns[HEAPHISTORY_MOMENTS];
    uint64_t from_ns = making->from_ns;
    const struct holes_watch watch = {.times_ns = times_ns,
                                      .count = HEAPHISTORY_MOMENTS,
                                      .moment = heaphistory_take_moment,
                                      .context = making};
    struct heaphistory *history = job_alloc(sizeof *history);
    struct error error = {""};
    history->step = HEAPHISTORY_STEP;
    making->history = history;
    making->times_ns = times_ns;
    job_reserve(&making->pieces, &making->room, 1, sizeof *making->pieces);
    job_reserve(&history->cells, &history->cell_room, 1, sizeof *history->cells);
    for (size_t i = 0; i < HEAPHISTORY_MOMENTS; i++) {
        times_ns[i] = from_ns + (uint64_t)((double)(making->to_ns - from_ns) * (double)(i + 1) /
                                           HEAPHISTORY_MOMENTS);
    }
    job_check(holes_watch(making->whole, making->parts, from_ns, &watch, making->options,
                          &history->most, &error),
              &error);
    job_release(making->pieces);
}

struct heaphistory *heaphistory_make(const struct model *whole, struct timeorder_parts parts,
                                     uint64_t from_ns, uint64_t to_ns,
                                     const struct replay_options *options, struct error *error) {
    struct making making = {
        .whole = whole, .parts = parts, .from_ns = from_ns, .to_ns = to_ns, .options = options};
    struct job_memory *memory = NULL;
    if (job_run(heaphistory_look, &making, &memory, error) != 0) {
        return NULL;
    }
    making.history->memory = memory;
    return making.history;
}

void heaphistory_free(struct heaphistory *history) {
    struct job_memory *memory = history != NULL ? history->memory : NULL;
    job_free(&memory);
}

const struct heaphistory_moment *heaphistory_at(const struct heaphistory *history,
                                                uint64_t time_ns) {
    size_t at = 0;
    while (at + 1 < history->count && history->moments[at + 1].time_ns <= time_ns) {
        at++;
    }
    return &history->moments[at];
}
