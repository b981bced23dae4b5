/* SPDX-License-Identifier: MIT */
/* topdrawlist.c: the list of programs on the screen of `memtrace top`. See topdraw.h. */
#include "top/topdraw.h"

#include "analyze/base/pathname.h"
#include "top/topnumber.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct topdraw_column list_columns[] = {
    {"PID", 9, -1, 0},
    {"LIVE", 9, TOPLIST_LIVE, 0},
    {"LIVE/s", 9, TOPLIST_CHANGE, 50},
    {"ALLOC/s", 9, TOPLIST_RATE, 40},
    {"RSS", 8, TOPLIST_RESIDENT, 60},
    {"UP", 11, -1, 72},
};
enum { PID, LIVE, CHANGE, RATE, RESIDENT, UP, COLUMNS };

static void list_draw_head(const struct topstate *state, struct topgrid *grid) {
    const struct toplist *list = state->list;
    struct topgrid_pen pen = topgrid_pen(grid, 0);
    struct topgrid_pen end = pen;
    const char *what = state->is_paused ? "[paused]" : "[list]";
    size_t running = 0;
    for (size_t i = 0; i < list->count; i++) {
        running += list->items[i].is_running;
    }
    pen.end = pen.end > strlen(what) + 1 ? pen.end - strlen(what) - 1 : 0;
    pen.style = TOPGRID_BOLD;
    topgrid_put(&pen, list->of != NULL ? list->of : "programs");
    pen.style = TOPGRID_PLAIN;
    topgrid_print(&pen, "  %zu running", running);
    if (running != list->count) {
        topgrid_print(&pen, "  %zu file%s", list->count - running,
                      list->count - running == 1 ? "" : "s");
    }
    topgrid_print(&pen, "  every %.1f s", (double)state->interval_ns / 1e9);
    end.style = TOPGRID_BOLD;
    topgrid_right(&end, grid->width, what);
}

/* Of what runs, or still grows. */
static void list_draw_sums(const struct topstate *state, struct topgrid *grid) {
    const struct toplist *list = state->list;
    struct topgrid_pen pen = topgrid_pen(grid, 1);
    struct topnumber buffer;
    uint64_t live = 0;
    uint64_t resident = 0;
    double rate = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct toplist_item *item = &list->items[i];
        if (item->is_running || item->grows) {
            live += item->live_bytes;
            resident += item->resident_bytes;
            rate += item->has_rates ? item->rate : 0;
        }
    }
    topgrid_whole(&pen, "live %s", topnumber_bytes(&buffer, (double)live));
    topgrid_whole(&pen, "  rss %s", topnumber_bytes(&buffer, (double)resident));
    topgrid_whole(&pen, "  %s allocations/s", topnumber_count(&buffer, rate));
}

static const char *list_spell(struct topnumber *buffer, size_t column,
                              const struct toplist_item *item) {
    switch (column) {
    case PID:
        snprintf(buffer->text, sizeof buffer->text, "%ld", (long)item->pid);
        return buffer->text;
    case LIVE:
        return topnumber_bytes(buffer, (double)item->live_bytes);
    case CHANGE:
        return item->has_rates ? topnumber_change(buffer, item->live_change) : "-";
    case RATE:
        return item->has_rates ? topnumber_count(buffer, item->rate) : "-";
    case RESIDENT:
        return item->resident_bytes != 0 ? topnumber_bytes(buffer, (double)item->resident_bytes)
                                         : "-";
    case UP:
        return topnumber_clock(buffer, item->up_ns);
    default:
        return "";
    }
}

static void list_draw_item(const struct toplist_item *item, struct topgrid *grid, size_t row,
                           bool is_selected) {
    struct topgrid_pen pen = topgrid_pen(grid, row);
    size_t end = 0;
    pen.style = is_selected ? TOPGRID_SELECTED : TOPGRID_PLAIN;
    if (is_selected) {
        topgrid_put(&pen, ">");
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        struct topnumber buffer;
        if (list_columns[i].least <= grid->width) {
            end += list_columns[i].width;
            topgrid_right(&pen, end, list_spell(&buffer, i, item));
        }
    }
    pen.column = end + 2;
    topgrid_put(&pen, item->name);
    if (!item->is_running) {
        pen.style = is_selected ? pen.style : TOPGRID_DIM;
        topgrid_print(&pen, "  %s%s", item->grows ? "growing " : "", pathname_base(item->path));
    }
    if (is_selected) {
        topgrid_fill(&pen);
    }
}

void topdrawlist(struct topstate *state, struct topgrid *grid, size_t first, size_t end) {
    const struct toplist *list = state->list;
    list_draw_head(state, grid);
    if (first > 2) {
        list_draw_sums(state, grid);
    }
    topdraw_headings(grid, first - 1,
                     &(struct topdraw_head){list_columns, COLUMNS, 0, (int)list->sort,
                                            list->reverse, "PROGRAM", INT_MAX});
    state->shown = end > first ? end - first : 0;
    state->list_top =
        topstate_scroll(state->list_top, state->list_selected, list->count, state->shown);
    for (size_t i = 0; i < state->shown && state->list_top + i < list->count; i++) {
        size_t at = state->list_top + i;
        list_draw_item(&list->items[at], grid, first + i, at == state->list_selected);
    }
    if (list->count == 0 && end > first) {
        struct topgrid_pen pen = topgrid_pen(grid, first);
        topgrid_put(&pen, list->of != NULL ? " nothing runs, and there is no file"
                                           : " no program of yours is profiled now");
    }
}
