/* SPDX-License-Identifier: MIT */
/*
 * topdraw.c: see topdraw.h. Three lines of what the whole program does, the headings of columns,
 * the rows, and a line at the foot: keys, a message, or the filter that is typed. Or the list of
 * programs.
 */
#include "top/topdraw.h"

#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/report/reports.h"
#include "collect/programask.h"
#include "memtrace/sampled.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The head ---- */

static const char *topdraw_what(const struct topstate *state) {
    const struct topsource *source = state->source;
    const struct profile *profile = source->profile;
    enum recordask_state recorded;
    if (!source->is_live) {
        return source->pid != 0 ? "ended" : "file";
    }
    if (state->is_paused) {
        return "paused";
    }
    if (profile == NULL) {
        return "recording";
    }
    switch (profile_load_u32(&profile_header(profile)->mode)) {
    case MEMTRACE_MODE_OFF:
        return "off";
    case MEMTRACE_MODE_SAMPLED:
        return "sampled";
    default:
        recorded = recordask_look(profile_header(profile));
        return recorded == RECORDASK_START || recorded == RECORDASK_ON ? "recorded" : "live";
    }
}

static void draw_title(const struct topstate *state, struct topgrid *grid) {
    const struct topsource *source = state->source;
    const struct memtrace_header *header = &source->model->header;
    struct topgrid_pen pen = topgrid_pen(grid, 0);
    struct topgrid_pen end = pen;
    struct topnumber buffer;
    enum { SHORTEST = 4 }; /* of a name */
    char what[32];
    char pid[16];
    size_t whole;
    snprintf(what, sizeof what, "[%s]", topdraw_what(state));
    whole = grid->width > strlen(what) + 1 ? grid->width - strlen(what) - 1 : 0;
    snprintf(pid, sizeof pid, " (%" PRIu32 ")", header->pid);
    pen.end = whole > SHORTEST + strlen(pid) ? whole - strlen(pid) : whole;
    pen.style = TOPGRID_BOLD;
    topgrid_put(&pen, memtrace_program(header));
    pen.style = TOPGRID_PLAIN;
    pen.end = whole;
    topgrid_whole(&pen, "%s", pid);
    if (source->point_count != 0) {
        topgrid_whole(&pen, "  up %s",
                      topnumber_clock(&buffer, source->points[source->point_count - 1].time_ns));
    }
    if (source->is_live) {
        topgrid_whole(&pen, "  every %.1f s", (double)state->interval_ns / 1e9);
    }
    if (source->thread != 0) {
        topgrid_print(&pen, "  thread %" PRIu32, source->thread);
        for (size_t i = 0; i < source->model->thread_count; i++) {
            if (source->model->threads[i].id == source->thread) {
                topgrid_print(&pen, " %s", source->model->threads[i].name);
            }
        }
    }
    if (state->filter[0] != '\0') {
        topgrid_print(&pen, "  /%s", state->filter);
    }
    end.style = TOPGRID_BOLD;
    topgrid_right(&end, grid->width, what);
}

static void draw_totals(const struct topstate *state, struct topgrid *grid) {
    const struct topsource *source = state->source;
    const struct model_totals *whole = &source->model->totals;
    const struct toprows_costs *rows = &state->rows.totals;
    struct topgrid_pen pen = topgrid_pen(grid, 1);
    struct topnumber buffer;
    struct topnumber share;
    uint64_t live = rows->now.live_bytes;
    uint64_t most = rows->now.maximum_bytes;
    if (source->costs.count == 0) { /* of a program without call paths its threads know them */
        live = whole->live_bytes;
        most = whole->maximum_bytes;
    }
    topgrid_whole(&pen, "live %s", topnumber_bytes(&buffer, (double)live));
    topgrid_whole(&pen, "  max %s", topnumber_bytes(&buffer, (double)most));
    if (source->resident_bytes != 0) {
        topgrid_whole(&pen, "  rss %s", topnumber_bytes(&buffer, (double)source->resident_bytes));
    }
    if (source->seconds > 0) {
        topgrid_whole(&pen, "  +%s/s",
                      topnumber_bytes(&buffer, (double)rows->new_bytes / source->seconds));
        topgrid_whole(&pen, "  %s allocations/s",
                      topnumber_count(&buffer, (double)rows->new_blocks / source->seconds));
    }
    topgrid_whole(&pen, source->is_uncounted ? "  lost not known" : "  lost %s",
                  topnumber_count(&buffer, (double)whole->lost));
    if (source->group_limit != 0) {
        topgrid_whole(&pen, "  cgroup %s of %s",
                      topnumber_share(&share, source->group_bytes, source->group_limit),
                      topnumber_bytes(&buffer, (double)source->group_limit));
    }
}

/* ---- Charts of the last looks ---- */

/* Eighths of a line. */
static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const plain_bars[] = {" ", ".", ".", ":", ":", "|", "|", "#", "#"};
enum { BARS = 8 };

enum chart { CHART_LIVE, CHART_RATE };

static double value_of(const struct topsource_point *point, enum chart chart) {
    return chart == CHART_LIVE      ? (double)point->live_bytes
           : point->allocations > 0 ? point->allocations
                                    : 0;
}

static double most_of(const struct topsource_point *points, size_t count, enum chart chart) {
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        double value = value_of(&points[i], chart);
        most = value > most ? value : most;
    }
    return most;
}

/* The latest points, one a column, as bars of so many lines, of which pen has line `line` from the
 * bottom. */
static void draw_bars(const struct topstate *state, struct topgrid_pen *pen, enum chart chart,
                      size_t columns, size_t line, size_t lines) {
    const struct topsource *source = state->source;
    size_t count = source->point_count < columns ? source->point_count : columns;
    const struct topsource_point *points = source->points + (source->point_count - count);
    double most = most_of(points, count, chart);
    for (size_t i = 0; i < count; i++) {
        double share = most > 0 ? value_of(&points[i], chart) / most : 0;
        double eighths = share * (double)(lines * BARS) - (double)(line * BARS);
        size_t bar = eighths <= 0 ? 0 : eighths >= BARS ? BARS : (size_t)(eighths + 0.999);
        topgrid_put(pen, state->unicode ? bars[bar] : plain_bars[bar]);
    }
}

static void draw_sparks(const struct topstate *state, struct topgrid *grid) {
    enum { LABEL = 6 };
    struct topgrid_pen pen = topgrid_pen(grid, 2);
    size_t half = grid->width / 2;
    pen.end = half > LABEL ? half - 1 : 0;
    topgrid_put(&pen, "live ");
    draw_bars(state, &pen, CHART_LIVE, pen.end > LABEL ? pen.end - LABEL : 0, 0, 1);
    pen = topgrid_pen(grid, 2);
    pen.column = half;
    topgrid_put(&pen, "rate ");
    draw_bars(state, &pen, CHART_RATE, pen.end > half + LABEL ? pen.end - half - LABEL : 0, 0, 1);
}

static void draw_chart(struct topstate *state, struct topgrid *grid, size_t first, size_t end) {
    enum { LABEL = 9 };
    size_t lines = end > first ? (end - first) / 2 : 0;
    for (int chart = CHART_LIVE; lines > 1 && chart <= CHART_RATE; chart++) {
        size_t begin = first + (size_t)chart * lines;
        size_t columns = grid->width > LABEL ? grid->width - LABEL : 0;
        struct topgrid_pen pen = topgrid_pen(grid, begin);
        const struct topsource *source = state->source;
        size_t count = source->point_count < columns ? source->point_count : columns;
        double most =
            most_of(source->points + (source->point_count - count), count, (enum chart)chart);
        struct topnumber buffer;
        pen.style = TOPGRID_BOLD;
        topgrid_put(&pen, chart == CHART_LIVE ? "live bytes" : "allocations a second");
        pen.style = TOPGRID_PLAIN;
        for (size_t line = 0; line + 1 < lines; line++) {
            pen = topgrid_pen(grid, begin + lines - 1 - line);
            if (line + 2 == lines) {
                topgrid_right(&pen, LABEL - 1,
                              chart == CHART_LIVE ? topnumber_bytes(&buffer, most)
                                                  : topnumber_count(&buffer, most));
            }
            pen.column = LABEL;
            draw_bars(state, &pen, (enum chart)chart, columns, line, lines - 1);
        }
    }
}

/* ---- Lists ---- */

struct column {
    const char *heading;
    size_t width;
    int sort;     /* what the list is sorted by, to mark it; or something else */
    size_t least; /* columns of a terminal that shows it */
};

/* What is drawn of a list, one line an item. */
struct list {
    const struct column *columns;
    size_t count;
    size_t left; /* where the first one begins */
    int without; /* a column of this sort is not shown */
};

static bool has_column(const struct list *list, const struct topgrid *grid, size_t column) {
    return list->columns[column].least <= grid->width &&
           list->columns[column].sort != list->without;
}

/* name: heading of what stands behind the columns. */
static void draw_headings(struct topgrid *grid, size_t row, const struct list *list, int sort,
                          bool reverse, const char *name) {
    struct topgrid_pen pen = topgrid_pen(grid, row);
    size_t end = list->left;
    for (size_t i = 0; i < list->count; i++) {
        const struct column *column = &list->columns[i];
        char text[32];
        if (has_column(list, grid, i)) {
            snprintf(text, sizeof text, "%s%s", column->heading,
                     column->sort != sort ? ""
                     : reverse            ? "^"
                                          : "*");
            end += column->width;
            topgrid_right(&pen, end, text);
        }
    }
    pen.column = end + 2;
    topgrid_put(&pen, name);
    pen.style = TOPGRID_HEADING;
    topgrid_fill(&pen);
}

/* An item's line, with the pen behind its columns. spell NULL: they are empty. */
static struct topgrid_pen
draw_item(struct topgrid *grid, size_t line, const struct list *list, bool is_selected,
          const char *(*spell)(struct topnumber *buffer, int column, const void *item),
          const void *item) {
    struct topgrid_pen pen = topgrid_pen(grid, line);
    size_t end = list->left;
    pen.style = is_selected ? TOPGRID_SELECTED : TOPGRID_PLAIN;
    if (is_selected) {
        topgrid_put(&pen, ">");
    }
    for (size_t i = 0; i < list->count; i++) {
        struct topnumber buffer;
        if (has_column(list, grid, i)) {
            end += list->columns[i].width;
            if (spell != NULL) {
                topgrid_right(&pen, end, spell(&buffer, list->columns[i].sort, item));
            }
        }
    }
    pen.column = end + 2;
    return pen;
}

/* ---- Rows ---- */

/* Behind those that rows are sorted by. */
enum { LIFETIME = TOPROWS_MAXIMUM + 1, THREADS, WIDE = 120, LIFETIMES_MOST = 20000 };
static const struct column row_columns[] = {
    {"LIVE", 9, TOPROWS_LIVE, 0},       {"DELTA", 9, TOPROWS_DELTA, 36},
    {"TOTAL", 9, TOPROWS_TOTAL, 76},    {"ALLOC/s", 9, TOPROWS_RATE, 46},
    {"TEMP", 6, TOPROWS_TEMPORARY, 68}, {"BLOCKS", 8, TOPROWS_BLOCKS, 60},
    {"MAX", 9, TOPROWS_MAXIMUM, 100},   {"P50", 11, LIFETIME, WIDE},
    {"THR", 5, THREADS, WIDE},
};
enum { ROW_COLUMNS = sizeof row_columns / sizeof row_columns[0] };

/* All paths are gone through for lifetimes: of so many it would take longer than all else. */
static bool takes_lifetimes(const struct topstate *state, const struct topgrid *grid) {
    return grid->width >= WIDE && state->source->costs.count <= LIFETIMES_MOST;
}

/* The step in which half of the blocks are that were freed; "-": none was. */
static const char *spell_lifetime(struct topnumber *buffer, const uint64_t *buckets) {
    uint64_t sum = 0;
    uint64_t below = 0;
    size_t step = 0;
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        sum += buckets[i];
    }
    if (sum == 0) {
        return "-";
    }
    while ((below += buckets[step]) < sum - sum / 2) {
        step++;
    }
    topdrawblocks_lifetime(step, buffer->text, sizeof buffer->text);
    return buffer->text;
}

static const char *spell_threads(struct topnumber *buffer, uint64_t who) {
    bool has_others = who >> LIVECOSTS_OTHERS != 0;
    if (who == 0) {
        return "-";
    }
    snprintf(buffer->text, sizeof buffer->text, "%s%d", has_others ? ">" : "",
             __builtin_popcountll(who) - has_others);
    return buffer->text;
}

/* A row, and the seconds since the look before. */
struct row {
    const struct toprow *row;
    double seconds;
};

static const char *spell_row(struct topnumber *buffer, int column, const void *item) {
    const struct row *row = item;
    const struct toprows_costs *costs = &row->row->costs;
    switch (column) {
    case TOPROWS_LIVE:
        return topnumber_bytes(buffer, (double)costs->now.live_bytes);
    case TOPROWS_DELTA:
        return topnumber_change(buffer, (double)costs->delta_bytes);
    case TOPROWS_TOTAL:
        return topnumber_bytes(buffer, (double)costs->now.total_bytes);
    case TOPROWS_RATE:
        return row->seconds > 0 ? topnumber_count(buffer, (double)costs->new_blocks / row->seconds)
                                : "-";
    case TOPROWS_TEMPORARY:
        return topnumber_share(buffer, costs->now.temporary, costs->now.allocations);
    case TOPROWS_BLOCKS:
        return topnumber_count(buffer, (double)costs->now.live_blocks);
    case TOPROWS_MAXIMUM:
        return topnumber_bytes(buffer, (double)costs->now.maximum_bytes);
    case LIFETIME:
        return spell_lifetime(buffer, row->row->lifetimes);
    case THREADS:
        return spell_threads(buffer, costs->columns);
    default:
        return "";
    }
}

void topdraw_function(const struct names_frame *frame, struct topgrid_pen *pen) {
    char text[512];
    topgrid_put(pen, shortname_of(frame, false, text, sizeof text));
}

static void draw_name(const struct topstate *state, const struct toprow *row,
                      struct topgrid_pen *pen) {
    struct names_frame unknown;
    const struct names_frame *frame =
        toprows_frame(&state->rows, row->place, state->source->model, &unknown);
    if (row->rest != 0) {
        topgrid_print(pen, "... %zu more", row->rest);
        return;
    }
    if (frame == NULL) {
        topgrid_put(pen, "(no call path)");
        return;
    }
    topdraw_function(frame, pen);
    if (frame->file != NULL) {
        pen->style = pen->style == TOPGRID_PLAIN ? TOPGRID_DIM : pen->style;
        topgrid_print(pen, " %s:%u", pathname_base(frame->file), frame->line);
    }
    if (state->rows.by == TOPROWS_PATHS && row->depth == 0 && !row->is_open) {
        struct toprows_place place = row->place; /* who called it, as far as there is room */
        while (pen->column < pen->end && (place = toprows_caller(&state->rows, place)).node != 0) {
            topgrid_put(pen, " < ");
            topdraw_function(toprows_frame(&state->rows, place, state->source->model, &unknown),
                             pen);
        }
    }
}

static void draw_row(struct topstate *state, struct topgrid *grid, size_t line,
                     const struct list *list, const struct toprow *row, bool is_selected) {
    const struct row item = {row, state->source->seconds};
    bool has_costs = state->rows.by == TOPROWS_FUNCTIONS || row->depth == 0;
    struct topgrid_pen pen =
        draw_item(grid, line, list, is_selected, has_costs ? spell_row : NULL, &item);
    pen.column += row->depth < 16 ? 2 * row->depth : 32;
    topgrid_put(&pen, !row->can_open    ? "  "
                      : !state->unicode ? (row->is_open ? "- " : "+ ")
                      : row->is_open    ? "▾ "
                                        : "▸ ");
    draw_name(state, row, &pen);
    if (is_selected) {
        topgrid_fill(&pen);
    }
}

static void draw_rows(struct topstate *state, struct topgrid *grid, size_t first, size_t end) {
    const struct list list = {row_columns, ROW_COLUMNS, 1,
                              takes_lifetimes(state, grid) ? -1 : LIFETIME};
    draw_headings(grid, first - 1, &list, (int)state->rows.sort, state->rows.reverse,
                  state->rows.by == TOPROWS_PATHS ? "CALL PATH" : "FUNCTION");
    if (takes_lifetimes(state, grid) && toprows_wants_lifetimes(&state->rows)) {
        topsource_lifetimes(state->source, toprows_take_lifetimes, &state->rows);
    }
    state->shown = end > first ? end - first : 0;
    state->top = topstate_scroll(state->top, state->selected, state->rows.count, state->shown);
    for (size_t i = 0; i < state->shown && state->top + i < state->rows.count; i++) {
        size_t at = state->top + i;
        draw_row(state, grid, first + i, &list, &state->rows.rows[at], at == state->selected);
    }
    if (state->rows.count == 0 && end > first) {
        struct topgrid_pen pen = topgrid_pen(grid, first);
        topgrid_put(&pen, state->filter[0] != '\0' ? " nothing matches the filter"
                          : state->source->model->header.stacks == MEMTRACE_STACKS_NONE
                              ? " call paths are not recorded"
                              : " nothing was allocated yet");
    }
}

/* ---- The list of programs ---- */

/* Behind those that the list is sorted by. */
enum { PID = TOPLIST_RESIDENT + 1, UP };
static const struct column list_columns[] = {
    {"PID", 9, PID, 0},
    {"LIVE", 9, TOPLIST_LIVE, 0},
    {"LIVE/s", 9, TOPLIST_CHANGE, 50},
    {"ALLOC/s", 9, TOPLIST_RATE, 40},
    {"RSS", 8, TOPLIST_RESIDENT, 60},
    {"UP", 11, UP, 72},
};
enum { LIST_COLUMNS = sizeof list_columns / sizeof list_columns[0] };

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

static const char *list_spell(struct topnumber *buffer, int column, const void *what) {
    const struct toplist_item *item = what;
    switch (column) {
    case PID:
        snprintf(buffer->text, sizeof buffer->text, "%ld", (long)item->pid);
        return buffer->text;
    case TOPLIST_LIVE:
        return topnumber_bytes(buffer, (double)item->live_bytes);
    case TOPLIST_CHANGE:
        return item->has_rates ? topnumber_change(buffer, item->live_change) : "-";
    case TOPLIST_RATE:
        return item->has_rates ? topnumber_count(buffer, item->rate) : "-";
    case TOPLIST_RESIDENT:
        return item->resident_bytes != 0 ? topnumber_bytes(buffer, (double)item->resident_bytes)
                                         : "-";
    case UP:
        return topnumber_clock(buffer, item->up_ns);
    default:
        return "";
    }
}

static void draw_list(struct topstate *state, struct topgrid *grid, size_t first, size_t end) {
    const struct list drawn = {list_columns, LIST_COLUMNS, 0, -1};
    const struct toplist *list = state->list;
    list_draw_head(state, grid);
    if (first > 2) {
        list_draw_sums(state, grid);
    }
    draw_headings(grid, first - 1, &drawn, (int)list->sort, list->reverse, "PROGRAM");
    state->shown = end > first ? end - first : 0;
    state->list_top =
        topstate_scroll(state->list_top, state->list_selected, list->count, state->shown);
    for (size_t i = 0; i < state->shown && state->list_top + i < list->count; i++) {
        size_t at = state->list_top + i;
        bool is_selected = at == state->list_selected;
        const struct toplist_item *item = &list->items[at];
        struct topgrid_pen pen = draw_item(grid, first + i, &drawn, is_selected, list_spell, item);
        topgrid_put(&pen, item->name);
        if (!item->is_running) {
            pen.style = is_selected ? pen.style : TOPGRID_DIM;
            topgrid_print(&pen, "  %s%s", item->grows ? "growing " : "", pathname_base(item->path));
        }
        if (is_selected) {
            topgrid_fill(&pen);
        }
    }
    if (list->count == 0 && end > first) {
        struct topgrid_pen pen = topgrid_pen(grid, first);
        topgrid_put(&pen, list->of != NULL ? " nothing runs, and there is no file"
                                           : " no program of yours is profiled now");
    }
}

/* ---- Other pages ---- */

static void draw_text(struct topstate *state, struct topgrid *grid, size_t first, size_t end,
                      const char *text) {
    size_t line = 0;
    size_t shown = 0;
    for (const char *at = text; *at != '\0' && first + shown < end; line++) {
        size_t length = strcspn(at, "\n");
        if (line >= state->top) {
            struct topgrid_pen pen = topgrid_pen(grid, first + shown++);
            topgrid_print(&pen, "%.*s", (int)length, at);
        }
        at += length + (at[length] == '\n');
    }
}

static void write_threads(void *report) {
    report_threads(report);
}

/* The report's table, as it would be printed. */
static void draw_threads(struct topstate *state, struct topgrid *grid, size_t first, size_t end) {
    char *text = NULL;
    size_t size = 0;
    struct report report = {.out = open_memstream(&text, &size),
                            .model = state->source->model,
                            .options = {.width = grid->width, .unicode = state->unicode}};
    if (report.out != NULL && job_run(write_threads, &report, NULL, NULL) == 0 &&
        fclose(report.out) == 0) {
        draw_text(state, grid, first, end, text + (text[0] == '\n'));
    }
    free(text);
}

static const char help[] =
    "Rows: functions that allocate (f), each opens to its callers; or call paths (g).\n"
    "\n"
    "  up down PgUp PgDn Home End   select a row     Enter, right   open it\n"
    "  left                         close it, or go to what it belongs to\n"
    "\n"
    "Sorted by:  l live bytes   d delta, live bytes since the mark   t total bytes\n"
    "            a allocations a second   e temporary   c blocks   m at the maximum\n"
    "            r the other way round\n"
    "z  sets the mark: DELTA counts from now on\n"
    "/  filter: call paths through functions of that name (a regular expression)\n"
    "T  threads, who frees whose blocks     < >  one thread, all\n"
    "x  charts     h  lifetimes and sizes of the row's blocks     Esc  back\n"
    "y  copy the hash of the row's call path\n"
    "space  pause     + -  look more or less often\n"
    "s  save the profile as it is now, to a new file of this folder\n"
    "o  count nothing new, or again     O  count a sample, or all\n"
    "R  record each event from now on, to a new file of this folder; or end that\n"
    "M  put a mark into the recording\n"
    "q  quit; the program goes on in any case\n";

/* ---- The foot ---- */

#define FOOT "Enter open  / filter  f functions  g paths  T threads  x charts"
static const char foot[] = "? help  q quit  " FOOT;
static const char foot_above_list[] = "? help  Esc list  " FOOT;
static const char list_foot[] = "q quit  Enter open  l d a m sort  r reverse  + - interval";

/* A recording that was asked for may be refused a moment later. */
static const char *what_became(const struct topstate *state, char why[RECORDASK_PATH]) {
    const struct profile *profile = state->source != NULL ? state->source->profile : NULL;
    if (profile == NULL || strncmp(state->message, "recording to ", 13) != 0 ||
        recordask_look(profile_header(profile)) != RECORDASK_REFUSED) {
        return state->message;
    }
    recordask_path(profile_header(profile), why);
    return why;
}

static void draw_foot(const struct topstate *state, struct topgrid *grid) {
    struct topgrid_pen pen = topgrid_pen(grid, grid->height - 1);
    char why[RECORDASK_PATH];
    if (state->is_asking) {
        topgrid_print(&pen, "/%s", state->typed);
        pen.style = TOPGRID_SELECTED;
        topgrid_put(&pen, " ");
        return;
    }
    pen.style = state->message[0] != '\0' ? TOPGRID_BOLD : TOPGRID_DIM;
    topgrid_put(&pen, state->message[0] != '\0'      ? what_became(state, why)
                      : state->page == TOPSTATE_LIST ? list_foot
                      : state->list != NULL          ? foot_above_list
                                                     : foot);
}

size_t topdraw_above(size_t height) {
    enum { CHARTS = 8, TOTALS = 6 }; /* lines of a terminal that has them */
    return height >= CHARTS ? TOPDRAW_ABOVE : height >= TOTALS ? TOPDRAW_ABOVE - 1 : 2;
}

void topdraw(struct topstate *state, struct topgrid *grid, size_t above) {
    size_t end = grid->height > TOPDRAW_BELOW ? grid->height - TOPDRAW_BELOW : 0;
    if (grid->height == 0) {
        return;
    }
    if (state->source != NULL) {
        draw_title(state, grid);
        if (above > 2) {
            draw_totals(state, grid);
        }
        if (above == TOPDRAW_ABOVE) {
            draw_sparks(state, grid);
        }
    }
    switch (state->page) {
    case TOPSTATE_LIST:
        draw_list(state, grid, above, end);
        break;
    case TOPSTATE_ROWS:
        draw_rows(state, grid, above, end);
        break;
    case TOPSTATE_THREADS:
        draw_threads(state, grid, above, end);
        break;
    case TOPSTATE_CHART:
        draw_chart(state, grid, above, end);
        break;
    case TOPSTATE_BLOCKS:
        topdrawblocks(state, grid, above, end);
        break;
    case TOPSTATE_HELP:
        draw_text(state, grid, above, end, help);
        break;
    }
    draw_foot(state, grid);
}
