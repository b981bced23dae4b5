/* SPDX-License-Identifier: MIT */
/* heaphistory.c: see heaphistory.h. */
#include "analyze/blocks/heaphistory.h"

#include "analyze/base/array.h"

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
    struct heaphistory *history;
    const uint64_t *times_ns;
    struct piece *pieces; /* of the present moment */
    size_t count, room;
    bool are_too_many; /* pieces: larger cells are needed */
    bool out_of_memory;
};

/* ---- One moment ---- */

static void add_piece(struct making *making, uint64_t number, uint64_t used) {
    struct piece *last = making->count != 0 ? &making->pieces[making->count - 1] : NULL;
    if (last != NULL && last->number == number) {
        last->used += used;
        return;
    }
    if (array_grow(&making->pieces, &making->room, making->count, sizeof *making->pieces) != 0) {
        making->out_of_memory = true;
        return;
    }
    making->pieces[making->count++] = (struct piece){number, used};
}

/* A page lies in one cell; what is longer than a page is in use from end to end. No address space
 * goes beyond ADDRESSES, whatever size a damaged file gives a block. */
static void take_range(void *context, uint64_t start, uint64_t end, uint64_t used) {
    struct making *making = context;
    uint64_t step = making->history->step;
    bool is_full = end - start > PAGE;
    end = end < ADDRESSES ? end : ADDRESSES;
    making->are_too_many |= is_full && start < end && step < LARGEST_STEP &&
                            making->count + (end - start) / step > HEAPHISTORY_CELLS;
    while (start < end && !making->out_of_memory && !making->are_too_many) {
        uint64_t cell_end = (start / step + 1) * step;
        uint64_t until = cell_end < end ? cell_end : end;
        add_piece(making, start / step, is_full ? until - start : used);
        start = until;
    }
}

static int by_number(const void *left, const void *right) {
    const struct piece *a = left;
    const struct piece *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

static uint32_t level_of(uint64_t used, uint64_t step) {
    uint64_t level = used >= step ? 255 : used * 255 / step;
    return level != 0 ? (uint32_t)level : 1;
}

/* Addresses are below 2^48, so numbers of cells fit. */
static int add_cells(struct making *making) {
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
        if (array_grow(&history->cells, &history->cell_room, history->cell_count,
                       sizeof *history->cells) != 0) {
            return -1;
        }
        history->cells[history->cell_count++] =
            (struct heaphistory_cell){(uint32_t)number, level_of(used, history->step)};
    }
    return 0;
}

/* ---- Larger cells ---- */

/* Each two neighbours become one. */
static void halve(struct heaphistory *history) {
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

/* With larger cells where large blocks would fill too many. */
static void take_pieces(struct making *making, const struct holes_state *state) {
    for (;;) {
        making->count = 0;
        making->are_too_many = false;
        holes_visit(state, take_range, making);
        if (!making->are_too_many) {
            break;
        }
        halve(making->history);
    }
}

static int take_moment(void *context, size_t which, const struct holes_state *state) {
    struct making *making = context;
    struct heaphistory *history = making->history;
    struct holes now = holes_now(state);
    struct heaphistory_moment *moment = &history->moments[history->count];
    take_pieces(making, state);
    if (making->count != 0) {
        qsort(making->pieces, making->count, sizeof *making->pieces, by_number);
    }
    *moment = (struct heaphistory_moment){.time_ns = making->times_ns[which],
                                          .live_bytes = now.live_bytes,
                                          .unused_bytes = now.unused_bytes,
                                          .pages = holes_pages(state),
                                          .first = history->cell_count};
    if (making->out_of_memory || add_cells(making) != 0) {
        return -1;
    }
    moment->count = history->cell_count - moment->first;
    history->count++;
    while (history->cell_count > HEAPHISTORY_CELLS && history->step < LARGEST_STEP) {
        halve(history);
    }
    return 0;
}

/* ---- All of them ---- */

struct heaphistory *heaphistory_make(const struct model *whole, struct timeorder_parts parts,
                                     uint64_t from_ns, uint64_t to_ns,
                                     const struct replay_options *options, struct error *error) {
    uint64_t times_ns[HEAPHISTORY_MOMENTS];
    struct making making = {.history = calloc(1, sizeof *making.history), .times_ns = times_ns};
    const struct holes_watch watch = {.times_ns = times_ns,
                                      .count = HEAPHISTORY_MOMENTS,
                                      .moment = take_moment,
                                      .context = &making};
    int result = -1;
    if (making.history == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    making.history->step = HEAPHISTORY_STEP;
    for (size_t i = 0; i < HEAPHISTORY_MOMENTS; i++) {
        times_ns[i] =
            from_ns + (uint64_t)((double)(to_ns - from_ns) * (double)(i + 1) / HEAPHISTORY_MOMENTS);
    }
    result = holes_watch(whole, parts, from_ns, &watch, options, &making.history->most, error);
    free(making.pieces);
    if (result != 0) {
        heaphistory_free(making.history);
        return NULL;
    }
    return making.history;
}

void heaphistory_free(struct heaphistory *history) {
    if (history != NULL) {
        free(history->cells);
        free(history);
    }
}

const struct heaphistory_moment *heaphistory_at(const struct heaphistory *history,
                                                uint64_t time_ns) {
    size_t at = 0;
    while (at + 1 < history->count && history->moments[at + 1].time_ns <= time_ns) {
        at++;
    }
    return &history->moments[at];
}
