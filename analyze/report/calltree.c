/* SPDX-License-Identifier: MIT */
/* calltree.c: contexts are merged into trees, and these are shown. See calltree.h; bottomup.c has
 * the trees from the allocating functions. */
#include "analyze/report/calltree.h"

#include "analyze/base/job.h"
#include "analyze/base/numbermap.h"
#include "analyze/model/names.h"
#include "analyze/rows/number.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct build {
    struct calltree *tree;
    const struct report *report;
    enum metric metric;
    struct numbermap children; /* hash of parent and frame, to index */
    bool folds;                /* runs of library functions */
};

static const struct names_frame unknown_frame = {.module = ""};

void calltree_reserve(struct calltree *tree, size_t count) {
    if (count >= UINT32_MAX - tree->count) {
        job_fail_memory();
    }
    job_reserve(&tree->calls, &tree->room, tree->count + count, sizeof *tree->calls);
}

struct calltree calltree_begin(void) {
    struct calltree tree = {0};
    calltree_reserve(&tree, 1);
    tree.calls[tree.count++] = (struct call){0};
    return tree;
}

static void calltree_note(struct call *call, uint32_t line) {
    calltree_note_line(&call->first_line, &call->last_line, line);
}

uint64_t calltree_key(const struct report *report, const struct names_frame *frame) {
    return report->options.by_line ? frame->place_key : frame->function_key;
}

uint64_t calltree_id(const struct report *report, const struct call *parent,
                     const struct names_frame *frame) {
    uint64_t key = calltree_key(report, frame);
    return XXH3_64bits_withSeed(&key, sizeof key, parent->id);
}

/* The child of a call for this frame, made if need be. */
static uint32_t calltree_child(struct build *build, uint32_t parent,
                               const struct names_frame *frame) {
    struct calltree *tree = build->tree;
    const struct report *report = build->report;
    uint64_t key = calltree_key(report, frame);
    uint64_t hash = XXH3_64bits_withSeed(&key, sizeof key, parent);
    uint32_t found = (uint32_t)(uintptr_t)numbermap_get(&build->children, hash);
    uint32_t index = (uint32_t)tree->count;
    struct call *calls = tree->calls;
    /* Functions that call themselves are one call: a recursion would draw a line for each level. */
    if (parent != 0 && !report->options.all_frames &&
        calltree_key(report, calls[parent].frame) == key) {
        calls[parent].recursive = true;
        calltree_note(&calls[parent], frame->line);
        return parent;
    }
    /* Library functions that library functions call are one call with them, for people: each is
     * counted once. */
    if (parent != 0 && build->folds && pathwalk_is_library(calls[parent].frame) &&
        pathwalk_is_library(frame)) {
        if (found == 0) {
            calls[parent].folded++;
            numbermap_set(&build->children, hash, (void *)(uintptr_t)parent);
        }
        return parent;
    }
    if (found != 0) {
        calltree_note(&calls[found], frame->line);
        return found;
    }
    calltree_reserve(tree, 1);
    numbermap_set(&build->children, hash, (void *)(uintptr_t)index);
    calls = tree->calls;
    calls[index] = (struct call){.frame = frame,
                                 .id = calltree_id(report, &calls[parent], frame),
                                 .parent = parent,
                                 .next = calls[parent].first_child};
    calls[parent].first_child = index;
    calltree_note(&calls[index], frame->line);
    tree->count++;
    return index;
}

/* ---- Dearest first: siblings by merge sort, which lists sort without more memory ---- */

static bool calltree_before(const struct calltree *tree, uint32_t left, uint32_t right) {
    const struct cost *a = &tree->calls[left].cost;
    const struct cost *b = &tree->calls[right].cost;
    return a->main > b->main || (a->main == b->main && a->side >= b->side);
}

static uint32_t calltree_merge(struct calltree *tree, uint32_t left, uint32_t right) {
    uint32_t first = 0;
    uint32_t *to = &first;
    while (left != 0 && right != 0) {
        uint32_t *from = calltree_before(tree, left, right) ? &left : &right;
        *to = *from;
        to = &tree->calls[*from].next;
        *from = *to;
    }
    *to = left != 0 ? left : right;
    return first;
}

static uint32_t calltree_sort_list(struct calltree *tree, uint32_t list) {
    uint32_t bins[32] = {0}; /* bins[i]: 2^i sorted siblings, or none */
    uint32_t sorted = 0;
    size_t used = 0; /* most lists are short */
    while (list != 0) {
        uint32_t one = list;
        size_t i = 0;
        list = tree->calls[one].next;
        tree->calls[one].next = 0;
        for (; i < 31 && bins[i] != 0; i++) {
            one = calltree_merge(tree, bins[i], one);
            bins[i] = 0;
        }
        bins[i] = one;
        used = i < used ? used : i + 1;
    }
    for (size_t i = 0; i < used; i++) {
        sorted = calltree_merge(tree, bins[i], sorted);
    }
    return sorted;
}

void calltree_sort(struct calltree *tree) {
    for (size_t i = 0; i < tree->count; i++) {
        tree->calls[i].first_child = calltree_sort_list(tree, tree->calls[i].first_child);
    }
}

/* ---- Top-down ---- */

/* What nodes are to a tree: on a path that has costs, or its end. */
enum { NODE_USED = 1, NODE_END = 2 };

static unsigned char *calltree_node_uses(const struct model *model, enum metric metric) {
    unsigned char *uses = job_array(model->node_count, 1);
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        if (context->class == MODEL_HEAP && metric_cost(metric, context).main != 0) {
            uses[context->path] = NODE_USED | NODE_END;
        }
    }
    for (size_t id = model->node_count; id-- > 1;) {
        uses[model->nodes[id].parent] |= uses[id] & NODE_USED;
    }
    return uses;
}

/* The call of a node, whose parent's is known: adds its functions, outermost first. Start-up code
 * that allocates itself is shown nevertheless. */
static uint32_t calltree_map_node(struct build *build, uint32_t parent, uint64_t recorded,
                                  bool is_end) {
    bool all = build->report->options.all_frames;
    uint32_t at = parent;
    size_t count;
    const struct names_frame *frames = names_frames(build->report->names, recorded, &count);
    for (size_t i = count; i-- > 0;) {
        const struct names_frame *frame = &frames[i];
        if (!all && !is_end &&
            (pathwalk_is_startup(frame) || (at == 0 && pathwalk_is_unnamed_libc(frame)))) {
            at = 0; /* what stands outside of it is start-up code as well */
        } else {
            at = calltree_child(build, !all && pathwalk_is_main(frame) ? 0 : at, frame);
        }
    }
    return at;
}

static void calltree_fill(void *what) {
    struct build *build = what;
    const struct model *model = build->report->model;
    struct calltree *tree = build->tree;
    const unsigned char *uses = calltree_node_uses(model, build->metric);
    uint32_t *calls = job_array(model->node_count, sizeof *calls); /* of each node */
    /* Parents come first, so each is one step: deep paths cost no more. */
    for (size_t id = 1; id < model->node_count; id++) {
        const struct model_node *node = &model->nodes[id];
        calls[id] = calls[node->parent];
        if (uses[id] != 0 && node->frame >= MEMTRACE_FRAME_CLASSES) {
            calls[id] =
                calltree_map_node(build, calls[node->parent], node->frame, uses[id] & NODE_END);
        }
    }
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        struct cost cost = metric_cost(build->metric, context);
        uint32_t at = calls[context->path];
        if (context->class == MODEL_HEAP && cost.main != 0) {
            at = at != 0 ? at : calltree_child(build, 0, &unknown_frame);
            metric_add(&tree->calls[at].self, cost);
        }
    }
    for (size_t i = tree->count; i-- > 0;) {
        metric_add(&tree->calls[i].cost, tree->calls[i].self);
        if (i != 0) {
            metric_add(&tree->calls[tree->calls[i].parent].cost, tree->calls[i].cost);
        }
    }
}

struct calltree calltree_top_down(const struct report *report, enum metric metric) {
    struct calltree tree = calltree_begin();
    struct build build = {.tree = &tree,
                          .report = report,
                          .metric = metric,
                          .folds = report_is_for_people(report) && !report->options.all_frames};
    job_within(calltree_fill, &build);
    calltree_sort(&tree);
    return tree;
}

/* ---- Around functions ---- */

struct around {
    struct build callers, callees;
    const struct callers_of *of;
    struct numbermap known; /* whether a function is one of them, by function_key: one of these: */
    /* The frames of one path, innermost first. */
    const struct names_frame **frames;
    size_t count, room;
    size_t innermost, outermost; /* of the functions; no path of theirs: innermost == count */
};
static char is_asked_for, is_other;

/* A whole name may be given as it is recorded, or as reports show it. */
static bool around_matches(const struct callers_of *of, const struct names_frame *frame) {
    char name[4096];
    names_spell(frame, name, sizeof name);
    if (of->function == NULL) {
        return regexec(of->regex, name, 0, NULL, 0) == 0;
    }
    return strcmp(name, of->function) == 0 ||
           strcmp(shortname_of(frame, false, name, sizeof name), of->function) == 0;
}

/* Each function's name is looked at once. */
static bool around_is_asked(struct around *around, const struct names_frame *frame) {
    void *known = numbermap_get(&around->known, frame->function_key);
    if (known == NULL) {
        known = around_matches(around->of, frame) ? &is_asked_for : &is_other;
        numbermap_set(&around->known, frame->function_key, known);
    }
    return known == &is_asked_for;
}

static void around_look_along(struct around *around, uint32_t path) {
    struct pathwalk walk = pathwalk(around->callers.report, path);
    bool is_met = false;
    for (around->count = 0; walk.frame != NULL; pathwalk_next(&walk)) {
        job_grow(&around->frames, &around->room, around->count, sizeof *around->frames);
        if (around_is_asked(around, walk.frame)) {
            around->innermost = is_met ? around->innermost : around->count;
            around->outermost = around->count;
            is_met = true;
        }
        around->frames[around->count++] = walk.frame;
    }
    around->innermost = is_met ? around->innermost : around->count;
}

/* From the frame at `from`, `step` by step, `count` of them. */
static void around_add_branch(struct around *around, struct build *build, size_t from, int step,
                              size_t count, struct cost cost) {
    size_t depth = build->report->options.depth;
    uint32_t call = 0;
    metric_add(&build->tree->calls[0].cost, cost);
    for (size_t i = 0; i < count && (depth == 0 || i < depth); i++) {
        const struct names_frame *frame = around->frames[step > 0 ? from + i : from - i];
        uint32_t next = calltree_child(build, call, frame);
        if (next != call) {
            metric_add(&build->tree->calls[next].cost, cost);
        }
        call = next;
    }
    metric_add(&build->tree->calls[call].self, cost);
}

static void around_fill(void *what) {
    struct around *around = what;
    const struct model *model = around->callers.report->model;
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        struct cost cost = metric_cost(around->callers.metric, context);
        if (context->class != MODEL_HEAP || cost.main == 0) {
            continue;
        }
        around_look_along(around, context->path);
        if (around->innermost == around->count) {
            continue;
        }
        if (around->callers.tree->calls[0].frame == NULL) {
            around->callers.tree->calls[0].frame = around->frames[around->innermost];
            around->callees.tree->calls[0].frame = around->frames[around->innermost];
        }
        around_add_branch(around, &around->callers, around->outermost + 1, 1,
                          around->count - around->outermost - 1, cost);
        around_add_branch(around, &around->callees, around->innermost - 1, -1, around->innermost,
                          cost);
    }
}

void calltree_around(struct calltree *callers, struct calltree *callees,
                     const struct report *report, enum metric metric, const struct callers_of *of) {
    struct around around = {.callers = {.tree = callers, .report = report, .metric = metric},
                            .callees = {.tree = callees, .report = report, .metric = metric},
                            .of = of};
    *callers = calltree_begin();
    *callees = calltree_begin();
    job_within(around_fill, &around);
    calltree_sort(callers);
    calltree_sort(callees);
}

/* ---- Shown to programs: each call a row, callers before what they call ---- */

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

/*
 * ---- Drawn for people: percent, main and side number, then the frames ----
 *
 * A call with one callee that bears all of its cost goes on without a branch, so that only real
 * branches indent. What a threshold, a limit or the depth leaves out is summed up in a line.
 */

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
