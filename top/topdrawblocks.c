/* SPDX-License-Identifier: MIT */
/*
 * topdrawblocks.c: how long the blocks of a row lived and how large they were, on the screen of
 * `memtrace top`. See topdraw.h.
 */
#include "top/topdraw.h"

#include "analyze/base/pathname.h"
#include "analyze/rows/number.h"

#include <stdio.h>

/* Sizes are in steps of a factor of 4, as lifetimes are: step i holds those below 16 * 4^i. */
enum { SIZES = 12, SMALLEST = 16, LABEL = 12, COUNT = 9, SHARE = 6 };

struct blocks {
    uint64_t lifetimes[MEMTRACE_LIFETIME_BUCKETS];
    uint64_t sizes[SIZES];
};

struct covering {
    struct topstate *state;
    const struct toprow *row;
    uint64_t *lifetimes;
};

static void blocks_take(void *context, size_t place, const uint64_t *buckets) {
    const struct covering *covering = context;
    if (toprows_covers(&covering->state->rows, covering->row, place)) {
        for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
            covering->lifetimes[i] += buckets[i];
        }
    }
}

static void blocks_sum_up(struct topstate *state, const struct toprow *row, struct blocks *blocks) {
    const struct livecosts *costs = &state->source->costs;
    struct covering covering = {state, row, blocks->lifetimes};
    *blocks = (struct blocks){0};
    for (size_t i = 0; i < costs->count; i++) {
        const struct livecosts_counts *now = &costs->contexts[i].now;
        if (now->allocations != 0 && toprows_covers(&state->rows, row, i)) {
            uint64_t bytes = now->total_bytes / now->allocations;
            unsigned step = 0;
            for (uint64_t below = SMALLEST; step + 1 < SIZES && bytes >= below; below *= 4) {
                step++;
            }
            blocks->sizes[step] += now->allocations;
        }
    }
    topsource_lifetimes(state->source, blocks_take, &covering);
}

/* ---- A chart: one line a step ---- */

struct chart {
    const char *title;
    const uint64_t *counts;
    size_t steps;
    void (*label)(size_t step, char *text, size_t size);
    size_t left, right; /* columns of the grid */
};

void topdrawblocks_lifetime(size_t step, char *text, size_t size) {
    bool is_last = step + 1 == MEMTRACE_LIFETIME_BUCKETS;
    struct number number;
    uint64_t ns = (UINT64_C(1) << MEMTRACE_TICK_SHIFT) << 2 * (is_last ? step - 1 : step);
    snprintf(text, size, "%s%s", is_last ? ">=" : "<", number_duration(&number, ns));
}

static void blocks_label_size(size_t step, char *text, size_t size) {
    bool is_last = step + 1 == SIZES;
    struct topnumber number;
    uint64_t bytes = (uint64_t)SMALLEST << 2 * (is_last ? step - 1 : step);
    snprintf(text, size, "%s%s", is_last ? ">=" : "<", topnumber_bytes(&number, (double)bytes));
}

/* From the first step that has any to the last one. */
static void blocks_draw_chart(const struct topstate *state, struct topgrid *grid, size_t first,
                              size_t end, const struct chart *chart) {
    uint64_t sum = 0;
    size_t from = chart->steps;
    size_t to = 0;
    size_t row = first + 1;
    struct topgrid_pen pen = topgrid_pen(grid, first);
    for (size_t i = 0; i < chart->steps; i++) {
        sum += chart->counts[i];
        from = chart->counts[i] != 0 && from == chart->steps ? i : from;
        to = chart->counts[i] != 0 ? i + 1 : to;
    }
    pen.column = chart->left;
    pen.end = chart->right;
    pen.style = TOPGRID_BOLD;
    topgrid_put(&pen, chart->title);
    for (size_t i = from; i < to && row < end; i++) {
        char label[64];
        struct topnumber number;
        double length;
        pen = topgrid_pen(grid, row++);
        pen.column = chart->left;
        pen.end = chart->right;
        chart->label(i, label, sizeof label);
        topgrid_right(&pen, chart->left + LABEL, label);
        topgrid_right(&pen, chart->left + LABEL + COUNT,
                      topnumber_count(&number, (double)chart->counts[i]));
        topgrid_right(&pen, chart->left + LABEL + COUNT + SHARE,
                      topnumber_share(&number, chart->counts[i], sum));
        pen.column++;
        length = pen.end > pen.column ? (double)(pen.end - pen.column) : 0;
        length *= (double)chart->counts[i] / (double)sum;
        for (size_t j = 0; j < (size_t)(length + 0.5); j++) {
            topgrid_put(&pen, state->unicode ? "█" : "#");
        }
    }
    if (sum == 0 && row < end) {
        pen = topgrid_pen(grid, row);
        pen.column = chart->left;
        pen.end = chart->right;
        topgrid_put(&pen, " none");
    }
}

/* ---- Whose they are ---- */

static void blocks_draw_whose(const struct topstate *state, struct topgrid *grid, size_t line,
                              const struct toprow *row) {
    struct topgrid_pen pen = topgrid_pen(grid, line);
    struct names_frame unknown;
    const struct names_frame *frame =
        row != NULL ? toprows_frame(&state->rows, row->place, state->source->model, &unknown)
                    : NULL;
    topgrid_put(&pen, "of ");
    if (frame == NULL) {
        topgrid_put(&pen, "all rows");
    } else {
        topdraw_function(frame, &pen);
    }
    if (frame != NULL && frame->file != NULL) {
        topgrid_print(&pen, " %s:%u", pathname_base(frame->file), frame->line);
    }
    topgrid_print(&pen, ", call paths: %zu", row != NULL ? row->paths : state->rows.paths);
}

void topdrawblocks(struct topstate *state, struct topgrid *grid, size_t first, size_t end) {
    const struct toprow *row = topstate_row(state);
    struct blocks blocks;
    struct chart lifetimes = {.title = "lifetimes of blocks that were freed",
                              .counts = blocks.lifetimes,
                              .steps = MEMTRACE_LIFETIME_BUCKETS,
                              .label = topdrawblocks_lifetime,
                              .right = grid->width / 2};
    struct chart sizes = {.title = "sizes, by each call path's mean",
                          .counts = blocks.sizes,
                          .steps = SIZES,
                          .label = blocks_label_size,
                          .left = grid->width / 2 + 1,
                          .right = grid->width};
    row = row != NULL && row->rest != 0 ? NULL : row;
    if (first + 2 > end) {
        return;
    }
    blocks_sum_up(state, row, &blocks);
    blocks_draw_whose(state, grid, first - 1, row);
    blocks_draw_chart(state, grid, first + 1, end, &lifetimes);
    blocks_draw_chart(state, grid, first + 1, end, &sizes);
}
