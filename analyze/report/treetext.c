/* SPDX-License-Identifier: MIT */
/*
 * treetext.c: draws a tree of calls: percent, main and side number, then the frames.
 *
 * A call with one callee that bears all of its cost goes on without a branch, so that only real
 * branches indent. What a threshold, a limit or the depth leaves out is summed up in a line.
 */
#include "analyze/base/job.h"
#include "analyze/report/calltree.h"
#include "analyze/rows/number.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <stdlib.h>
#include <string.h>

/* ---- For programs: each call a row, callers before what they call ---- */

/* Depth first, without recursion. */
static void tree_put_call_rows(struct table *table, const struct calltree *tree,
                               struct cost total) {
    const struct report_options *options = &table->report->options;
    double least = (double)total.main / 100.0 * options->min_percent;
    uint32_t at = tree->calls[0].first_child;
    uint64_t depth = 0;
    while (at != 0) {
        const struct call *call = &tree->calls[at];
        bool is_shown = (double)call->cost.main >= least;
        bool is_deep = options->depth != 0 && depth + 1 >= options->depth;
        if (is_shown) {
            struct names_frame frame = *call->frame;
            frame.line = call->first_line;
            table_row(table, (struct table_cell[]){
                                 table_number(depth), table_share(call->cost.main, total.main),
                                 table_number(call->cost.main), table_number(call->cost.side),
                                 table_number(call->self.main), table_frame(&frame)});
        } else {
            table->hidden++;
        }
        if (is_shown && !is_deep && call->first_child != 0) {
            at = call->first_child;
            depth++;
            continue;
        }
        while (at != 0 && tree->calls[at].next == 0) {
            at = tree->calls[at].parent;
            depth -= at != 0;
        }
        at = tree->calls[at].next;
    }
}

static void treetable_put(const struct report *report, enum metric metric,
                          const struct calltree *tree) {
    const struct table_column columns[] = {
        {"depth", "depth", TABLE_COUNT, 0},
        {"percent", "share", TABLE_PERCENT, 0},
        metric_main_column(metric),
        metric_side_column(metric),
        {"self", "self", metric_main_kind(metric), 0},
        {"function", "function", TABLE_FRAME, 0},
    };
    struct report_title title;
    struct table table =
        table_open(report, metric_name(metric), report_title(report, metric, &title), columns, 6);
    table_note(&table, report->options.bottom_up ? "bottom-up" : "top-down");
    tree_put_call_rows(&table, tree, metric_total(metric, report->model));
    table_close(&table);
}

/* ---- For people ---- */

enum { INDENT_LIMIT = 60, NUMBERS_WIDTH = 21, NAME_WIDTH = 32 };

/* Glyphs, with and without Unicode. */
struct glyphs {
    const char *branch, *last, *line, *space;
};
static const struct glyphs drawn = {"├─ ", "└─ ", "│  ", "   "};
static const struct glyphs typed = {"|- ", "`- ", "|  ", "   "};

/* A branch still to be drawn. */
struct pending {
    uint32_t call;   /* 0: a summary line, with `rest` */
    uint32_t levels; /* branches above: its indent */
    uint32_t depth;  /* frames above */
    uint32_t hidden; /* summary: how many branches; UINT32_MAX: the call itself */
    struct cost rest;
};

struct drawing {
    const struct report *report;
    struct calltree tree;
    const struct glyphs *glyphs;
    enum metric metric;
    struct cost total;
    uint64_t least;
    struct pending *stack; /* the next one last */
    size_t count;
    size_t room;
    unsigned char *open; /* by level: 1 while a later sibling follows, so its line goes on */
    size_t open_room;
};

static void tree_push(struct drawing *drawing, struct pending pending) {
    job_grow(&drawing->stack, &drawing->room, drawing->count, sizeof *drawing->stack);
    drawing->stack[drawing->count++] = pending;
}

static void tree_set_open(struct drawing *drawing, size_t level, bool open) {
    size_t known = drawing->open_room;
    job_reserve(&drawing->open, &drawing->open_room, level + 1, sizeof *drawing->open);
    memset(drawing->open + known, 0, drawing->open_room - known);
    drawing->open[level] = open;
}

static size_t tree_numbers_width(enum metric metric) {
    return NUMBERS_WIDTH + metric_side_width(metric);
}

static void tree_put_numbers(const struct drawing *drawing, struct cost cost, bool again) {
    const struct report *report = drawing->report;
    struct number percent;
    struct number main_number;
    struct number side_number;
    enum style style = again ? STYLE_DIM : style_share(cost.main, drawing->total.main);
    fprintf(report->out, "%s%7s%s %s%11s %*s%s  ", style_on(report, style),
            number_percent(&percent, cost.main, drawing->total.main), style_off(report),
            style_on(report, again ? STYLE_DIM : STYLE_PLAIN),
            metric_main_text(drawing->metric, &main_number, cost),
            metric_side_width(drawing->metric),
            metric_side_text(drawing->metric, &side_number, cost), style_off(report));
}

/* So many levels that there is room for a name. */
static uint32_t tree_indent_limit(const struct drawing *drawing) {
    size_t width = drawing->report->options.width;
    size_t taken = tree_numbers_width(drawing->metric) + NAME_WIDTH;
    size_t most = width > taken ? (width - taken) / 3 : 1;
    return width == 0 || most > INDENT_LIMIT ? INDENT_LIMIT : (uint32_t)most;
}

/* Returns the columns drawn. starts: this line begins its branch. */
static size_t tree_put_indent(const struct drawing *drawing, uint32_t levels, bool starts,
                              bool last) {
    const struct report *report = drawing->report;
    uint32_t most = tree_indent_limit(drawing);
    uint32_t from = levels > most ? levels - most : 0;
    fputs(style_on(report, STYLE_DIM), report->out);
    for (uint32_t level = from; level < levels; level++) {
        bool own = level + 1 == levels;
        const char *glyph = drawing->open[level] ? drawing->glyphs->line : drawing->glyphs->space;
        if (own && starts) {
            glyph = last ? drawing->glyphs->last : drawing->glyphs->branch;
        }
        fputs(glyph, report->out);
    }
    fputs(style_off(report), report->out);
    return (size_t)(levels - from) * 3 + tree_numbers_width(drawing->metric) + 2;
}

static bool tree_is_shown(const struct drawing *drawing, const struct call *call) {
    return call->cost.main != 0 && call->cost.main >= drawing->least;
}

static bool tree_is_same(struct cost left, struct cost right) {
    return left.main == right.main && left.side == right.side;
}

/* What stands under a call: how many branches are shown, and what is left. */
struct below {
    size_t shown;
    uint32_t hidden;
    struct cost rest;
    bool itself;
};

static struct below tree_look_below(const struct drawing *drawing, const struct call *call) {
    size_t limit = drawing->report->options.limit;
    struct below below = {.itself = call->self.main != 0};
    for (uint32_t at = call->first_child; at != 0; at = drawing->tree.calls[at].next) {
        const struct call *child = &drawing->tree.calls[at];
        if (tree_is_shown(drawing, child) && (limit == 0 || below.shown < limit)) {
            below.shown++;
        } else if (child->cost.main != 0) {
            below.hidden++;
            metric_add(&below.rest, child->cost);
        }
    }
    return below;
}

/* Puts the branches under a call on the stack, the first to be drawn on top. */
static void tree_push_branches(struct drawing *drawing, const struct call *call, struct below below,
                               uint32_t levels, uint32_t depth) {
    size_t first = drawing->count;
    uint32_t at = call->first_child;
    for (size_t i = 0; i < below.shown; at = drawing->tree.calls[at].next) {
        if (tree_is_shown(drawing, &drawing->tree.calls[at])) {
            tree_push(drawing, (struct pending){.call = at, .levels = levels, .depth = depth});
            i++;
        }
    }
    if (below.itself && (below.shown != 0 || below.hidden != 0)) {
        tree_push(drawing,
                  (struct pending){.levels = levels, .hidden = UINT32_MAX, .rest = call->self});
    }
    if (below.hidden != 0 && below.shown + below.itself != 0) {
        tree_push(drawing,
                  (struct pending){.levels = levels, .hidden = below.hidden, .rest = below.rest});
    }
    for (size_t last = drawing->count; first + 1 < last; first++) { /* in reverse order */
        struct pending swap = drawing->stack[first];
        drawing->stack[first] = drawing->stack[--last];
        drawing->stack[last] = swap;
    }
}

static void tree_draw_summary(struct drawing *drawing, const struct pending *pending, bool last) {
    const struct report *report = drawing->report;
    tree_put_numbers(drawing, pending->rest, false);
    tree_put_indent(drawing, pending->levels, true, last);
    fputs(style_on(report, STYLE_DIM), report->out);
    if (pending->hidden == UINT32_MAX) {
        fputs(report->options.bottom_up ? "(called by nothing known)" : "(itself)", report->out);
    } else {
        struct number count;
        fprintf(report->out, "(%s smaller)", number_count(&count, pending->hidden));
    }
    fprintf(report->out, "%s\n", style_off(report));
}

/* One call, and those under it as long as there is only one way on. */
static void tree_draw_chain(struct drawing *drawing, const struct pending *pending, bool last) {
    const struct report *report = drawing->report;
    const struct call *call = &drawing->tree.calls[pending->call];
    uint32_t depth = pending->depth;
    bool starts = true;
    for (;;) {
        struct below below = tree_look_below(drawing, call);
        bool deep = report->options.depth != 0 && depth + 1 >= report->options.depth;
        const struct call *child = &drawing->tree.calls[call->first_child];
        size_t column;
        tree_put_numbers(drawing, call->cost, !starts);
        column = tree_put_indent(drawing, pending->levels, starts, last);
        style_frame_lines(report, call->frame, column, call->first_line, call->last_line,
                          call->folded);
        if (call->recursive) {
            fprintf(report->out, "%s (recursive)%s", style_on(report, STYLE_DIM),
                    style_off(report));
        }
        if (deep && call->first_child != 0) {
            fprintf(report->out, "%s (goes on)%s", style_on(report, STYLE_DIM), style_off(report));
        }
        fputc('\n', report->out);
        depth++;
        if (deep || below.shown == 0) {
            return;
        }
        if (below.shown != 1 || below.itself || !tree_is_same(child->cost, call->cost)) {
            tree_push_branches(drawing, call, below, pending->levels + 1, depth);
            return;
        }
        call = child;
        starts = false;
    }
}

static void tree_draw(struct drawing *drawing) {
    const struct report *report = drawing->report;
    const struct call *root = &drawing->tree.calls[0];
    struct report_title title;
    table_drawing_begin(report, report_title(report, drawing->metric, &title));
    fprintf(report->out, "%s%7s %11s %*s  %s%s\n", style_on(report, STYLE_DIM), "share",
            metric_main_heading(drawing->metric), metric_side_width(drawing->metric),
            metric_side_heading(drawing->metric),
            report->options.bottom_up ? "allocated in, called by" : "called from the outside in",
            style_off(report));
    if (root->cost.main == 0) {
        fprintf(report->out, "%7s\n", "nothing");
    } else {
        tree_push_branches(drawing, root, tree_look_below(drawing, root), 0, 0);
    }
    while (drawing->count != 0) {
        struct pending pending = drawing->stack[--drawing->count];
        bool last =
            drawing->count == 0 || drawing->stack[drawing->count - 1].levels < pending.levels;
        if (pending.levels != 0) {
            tree_set_open(drawing, pending.levels - 1, !last);
        }
        (pending.call == 0 ? tree_draw_summary : tree_draw_chain)(drawing, &pending, last);
    }
    table_drawing_end(report);
}

void report_tree(const struct report *report, enum metric metric) {
    struct drawing drawing = {
        .report = report,
        .metric = metric,
        .glyphs = report->options.unicode ? &drawn : &typed,
        .total = metric_total(metric, report->model),
        .tree =
            (report->options.bottom_up ? calltree_bottom_up : calltree_top_down)(report, metric),
    };
    drawing.least = (uint64_t)((double)drawing.total.main / 100.0 * report->options.min_percent);
    if (report_is_for_people(report)) {
        tree_draw(&drawing);
    } else {
        treetable_put(report, metric, &drawing.tree);
    }
    job_release(drawing.tree.calls);
}
