/* SPDX-License-Identifier: MIT */
/* apitree.c: calls as trees: down from main, up from the allocating functions, around one function;
 * and which functions a regular expression finds. Listed in routes.c. */
#include "web/server/apilist.h"

#include "analyze/base/numbermap.h"
#include "analyze/model/roles.h"
#include "analyze/report/calltree.h"
#include "analyze/report/diff.h"
#include "analyze/report/reports.h"
#include "analyze/rows/safetext.h"
#include "web/server/apiframes.h"
#include "web/server/apimetric.h"
#include "web/server/request.h"

#define XXH_INLINE_ALL
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { LONGEST_NAME = 4096, MOST_FOUND = 1000 };

/* ---- What is asked for ---- */

struct tree_wish {
    bool is_up;
    double least_share; /* 0 to 1 */
    uint64_t depth;     /* 0: all */
    uint64_t limit;     /* calls; 0: all */
};

static struct tree_wish apitree_read_wish(struct api_call *call) {
    struct tree_wish wish = {.is_up = api_word(call, "direction", "down|up", 0) == 1};
    const char *share = api_param(call, "min-share");
    if (share != NULL) {
        char *end;
        errno = 0;
        wish.least_share = strtod(share, &end);
        if (errno != 0 || end == share || *end != '\0' ||
            !(wish.least_share >= 0 && wish.least_share <= 1)) {
            api_refuse(call, 400, "min-share is a number from 0 to 1, not '%s'", share);
        }
    }
    wish.depth = api_number(call, "depth", 0, 1, UINT32_MAX);
    wish.limit = api_number(call, "limit", 0, 1, UINT32_MAX);
    return wish;
}

/* The report that a tree is made of: all functions, as programs get them. */
static struct report report_of(const struct api_call *call, const struct answer *view,
                               const struct model *model, const struct tree_wish *wish) {
    struct report report = call->report;
    report.model = model;
    report.names = view->names;
    report.options.format = REPORT_JSON;
    report.options.min_percent = wish->least_share * 100;
    report.options.depth = (size_t)wish->depth;
    return report;
}

/*
 * ---- Two trees laid over each other, so that each call has the costs of both ----
 *
 * Calls are the same if their callers are, and their functions (diff.h); by line, if their lines
 * are, too.
 */

/* Side 0 is the earlier, as in diff.h. */
struct treediff {
    struct calltree tree; /* cost: the greater of both sides' main numbers; frames of side 1 where
                             it has the call */
    struct treediff_costs {
        struct cost cost[2];
        uint64_t self[2];
    } * costs; /* by call */
};

struct merging {
    struct treediff *diff;
    struct diff_functions *functions;
    struct numbermap children; /* by parent, function and line: the call */
    size_t cost_room;
    bool by_line;
};

/* The merged call of this frame below a merged one. */
static uint32_t treediff_child(struct merging *merging, uint32_t parent,
                               const struct names_frame *frame) {
    struct treediff *diff = merging->diff;
    struct calltree *tree = &diff->tree;
    uint32_t function = diff_function(merging->functions, frame);
    const uint64_t key[3] = {parent, function, merging->by_line ? frame->line : 0};
    uint64_t hash = XXH3_64bits(key, sizeof key);
    uint32_t at = (uint32_t)(uintptr_t)numbermap_get(&merging->children, hash);
    if (at != 0) {
        return at;
    }
    at = (uint32_t)tree->count;
    calltree_reserve(tree, 1);
    job_grow(&diff->costs, &merging->cost_room, at, sizeof *diff->costs);
    numbermap_set(&merging->children, hash, (void *)(uintptr_t)at);
    tree->calls[at] =
        (struct call){.frame = frame, .parent = parent, .next = tree->calls[parent].first_child};
    tree->calls[parent].first_child = at;
    diff->costs[at] = (struct treediff_costs){0};
    tree->count++;
    return at;
}

/* Callers come before what they call, in the one tree as in the other. */
static void treediff_add(struct merging *merging, const struct calltree *tree, size_t side) {
    uint32_t *places = job_array(tree->count, sizeof *places);
    for (size_t i = 0; i < tree->count; i++) {
        const struct call *call = &tree->calls[i];
        struct treediff_costs *costs;
        if (i != 0) {
            places[i] = treediff_child(merging, places[call->parent], call->frame);
        }
        if (i != 0 && side == 1) {
            merging->diff->tree.calls[places[i]].frame = call->frame;
        }
        costs = &merging->diff->costs[places[i]];
        metric_add(&costs->cost[side], call->cost);
        costs->self[side] += call->self.main;
    }
}

static struct treediff treediff_make(const struct calltree trees[2],
                                     struct diff_functions *functions, bool by_line) {
    struct treediff diff = {.tree = calltree_begin()};
    struct merging merging = {.diff = &diff, .functions = functions, .by_line = by_line};
    job_grow(&diff.costs, &merging.cost_room, 0, sizeof *diff.costs);
    diff.costs[0] = (struct treediff_costs){0};
    treediff_add(&merging, &trees[0], 0);
    treediff_add(&merging, &trees[1], 1);
    for (size_t i = 0; i < diff.tree.count; i++) {
        const struct treediff_costs *costs = &diff.costs[i];
        bool is_first = costs->cost[0].main > costs->cost[1].main;
        diff.tree.calls[i].cost = costs->cost[is_first ? 0 : 1];
    }
    calltree_sort(&diff.tree);
    return diff;
}

/* ---- As JSON ---- */

struct columns {
    uint32_t *parent;
    uint32_t *frame;
    uint64_t *main;
    uint64_t *side;
    uint64_t *self;
    uint64_t *base; /* of a difference: main and self of the other side; else NULL */
    uint64_t *base_self;
    uint32_t *places; /* by call: where it stands among those that are written */
    size_t count;
    uint64_t cut; /* calls that are left out */
};

static struct columns columns_make(size_t most, bool has_base) {
    struct columns columns = {.parent = job_array(most, sizeof *columns.parent),
                              .frame = job_array(most, sizeof *columns.frame),
                              .main = job_array(most, sizeof *columns.main),
                              .side = job_array(most, sizeof *columns.side),
                              .self = job_array(most, sizeof *columns.self),
                              .places = job_array(most, sizeof *columns.places)};
    if (has_base) {
        columns.base = job_array(most, sizeof *columns.base);
        columns.base_self = job_array(most, sizeof *columns.base_self);
    }
    return columns;
}

/* A tree, and of a difference what both sides have of it. */
struct shown {
    const struct calltree *tree;
    const struct treediff_costs *costs; /* by call; NULL: it is of one side */
    uint64_t total;
    uint64_t base_total;
};

static void add_call(struct columns *columns, struct apiframes *frames, const struct shown *shown,
                     uint32_t at) {
    const struct call *call = &shown->tree->calls[at];
    size_t place = columns->count++;
    columns->places[at] = (uint32_t)place;
    columns->parent[place] = columns->places[call->parent];
    columns->frame[place] = at == 0 ? UINT32_MAX
                            : frames->report->options.by_line
                                ? apiframes_add(frames, call->frame)
                                : apiframes_add_function(frames, call->frame);
    columns->main[place] = call->cost.main;
    columns->side[place] = call->cost.side;
    columns->self[place] = call->self.main;
    if (shown->costs != NULL) {
        const struct treediff_costs *costs = &shown->costs[at];
        columns->main[place] = costs->cost[1].main;
        columns->side[place] = costs->cost[1].side;
        columns->self[place] = costs->self[1];
        columns->base[place] = costs->cost[0].main;
        columns->base_self[place] = costs->self[0];
    }
}

/* The calls that are dear enough, the dearest of siblings first, each behind its caller. */
static void apitree_fill(struct columns *columns, struct apiframes *frames,
                         const struct shown *shown, uint64_t least, uint64_t depth_limit) {
    const struct calltree *tree = shown->tree;
    uint32_t at = 0;
    uint64_t depth = 0;
    add_call(columns, frames, shown, 0);
    for (;;) {
        bool goes_in = tree->calls[at].first_child != 0 &&
                       (depth_limit == 0 || depth < depth_limit) &&
                       tree->calls[tree->calls[at].first_child].cost.main >= least;
        if (goes_in) {
            at = tree->calls[at].first_child;
            depth++;
        } else {
            /* siblings are sorted: what follows one that is too cheap is, too */
            while (at != 0 && (tree->calls[at].next == 0 ||
                               tree->calls[tree->calls[at].next].cost.main < least)) {
                at = tree->calls[at].parent;
                depth--;
            }
            if (at == 0) {
                break;
            }
            at = tree->calls[at].next;
        }
        add_call(columns, frames, shown, at);
    }
    columns->cut = tree->count - columns->count;
}

/* The cost that `nth` others are dearer than or as dear as: from its highest byte on, by counting.
 */
static uint64_t nth_dearest(const uint64_t *costs, size_t count, size_t nth) {
    uint64_t found = 0; /* its bytes above the one that is looked for */
    for (int shift = 56; shift >= 0; shift -= 8) {
        size_t bins[256] = {0};
        size_t byte = 255;
        for (size_t i = 0; i < count; i++) {
            if (costs[i] >> shift >> 8 == found) {
                bins[costs[i] >> shift & 255]++;
            }
        }
        while (nth >= bins[byte]) {
            nth -= bins[byte--];
        }
        found = found << 8 | byte;
    }
    return found;
}

/* What calls bear at least of which at most `limit` are written. */
static uint64_t least_of(const struct calltree *tree, const struct tree_wish *wish) {
    uint64_t least = (uint64_t)((double)tree->calls[0].cost.main * wish->least_share);
    if (wish->limit != 0 && tree->count > wish->limit) {
        uint64_t *costs = job_array(tree->count, sizeof *costs);
        uint64_t limit;
        for (size_t i = 0; i < tree->count; i++) {
            costs[i] = tree->calls[i].cost.main;
        }
        /* those that are as dear as the first one left out go, too */
        limit = nth_dearest(costs, tree->count, wish->limit) + 1;
        least = limit > least ? limit : least;
        job_release(costs);
    }
    return least;
}

/* The root has no frame: -1, or as an unsigned number of 32 bits 2^32 - 1. */
static void apitree_put_nodes(struct api_call *call, const struct columns *columns) {
    size_t count = columns->count;
    jsonwriter_map(call->json, "nodes");
    api_column(call, "parent", API_U32, columns->parent, count);
    if (call->columns != NULL) {
        api_column(call, "frame", API_U32, columns->frame, count);
    } else {
        jsonwriter_array(call->json, "frame");
        for (size_t i = 0; i < count; i++) {
            jsonwriter_integer(call->json, NULL, i == 0 ? -1 : (int64_t)columns->frame[i]);
        }
        jsonwriter_end_array(call->json);
    }
    api_column(call, "main", API_U64, columns->main, count);
    api_column(call, "side", API_U64, columns->side, count);
    api_column(call, "self", API_U64, columns->self, count);
    if (columns->base != NULL) {
        api_column(call, "base", API_U64, columns->base, count);
        api_column(call, "base_self", API_U64, columns->base_self, count);
    }
    jsonwriter_end_map(call->json);
}

/* name: of the member that the tree is, NULL: the value of "data". */
static void put_shown(struct api_call *call, const struct report *report, const char *name,
                      const struct shown *shown, const struct tree_wish *wish) {
    enum metric metric = call->metric;
    struct apiframes frames = apiframes_start(report);
    struct columns columns = columns_make(shown->tree->count, shown->costs != NULL);
    apitree_fill(&columns, &frames, shown, least_of(shown->tree, wish), wish->depth);
    jsonwriter_map(call->json, name);
    jsonwriter_string(call->json, "metric", apimetric_name(metric));
    jsonwriter_string(call->json, "unit", metric_main_is_bytes(metric) ? "bytes" : "count");
    jsonwriter_string(call->json, "side_unit", metric_side_is_bytes(metric) ? "bytes" : "count");
    jsonwriter_number(call->json, "total", shown->total);
    if (shown->costs != NULL) {
        jsonwriter_number(call->json, "base_total", shown->base_total);
    }
    apiframes_write(&frames, call->json, "frames");
    apitree_put_nodes(call, &columns);
    jsonwriter_number(call->json, "cut", columns.cut);
    jsonwriter_end_map(call->json);
}

static void put_tree(struct api_call *call, const struct report *report, const char *name,
                     const struct calltree *tree, const struct tree_wish *wish) {
    const struct shown shown = {.tree = tree,
                                .total = metric_total(call->metric, report->model).main};
    put_shown(call, report, name, &shown, wish);
}

/* ---- A tree, and two ---- */

static struct calltree apitree_make_tree(const struct report *report, enum metric metric,
                                         const struct tree_wish *wish) {
    return (wish->is_up ? calltree_bottom_up : calltree_top_down)(report, metric);
}

static void put_difference(struct api_call *call, const struct report reports[2], const char *name,
                           const struct calltree trees[2], const struct tree_wish *wish) {
    struct diff_side sides[2];
    struct treediff diff;
    struct shown shown = {.total = metric_total(call->metric, reports[1].model).main,
                          .base_total = metric_total(call->metric, reports[0].model).main};
    apimetric_sides(call, sides);
    diff = treediff_make(trees, diff_functions_open(sides), reports[1].options.by_line);
    shown.tree = &diff.tree;
    shown.costs = diff.costs;
    put_shown(call, &reports[1], name, &shown, wish);
}

/* No side is cut before both are known. */
static void tree_of_two(struct api_call *call, const struct tree_wish *wish) {
    const struct answer *views[2] = {call->base, call->view};
    struct tree_wish whole = *wish;
    struct report reports[2];
    struct calltree trees[2];
    whole.least_share = 0;
    for (size_t side = 0; side < 2; side++) {
        reports[side] = report_of(call, views[side], apimetric_model(call, views[side]), &whole);
        trees[side] = apitree_make_tree(&reports[side], call->metric, &whole);
    }
    put_difference(call, reports, NULL, trees, wish);
    apimetric_diff_command(call, "path");
}

/* As the command writes leaks: without those that are suppressed, which are told behind them. */
static void apitree_put_leaks(struct api_call *call, struct report report) {
    report.suppressions = question_suppressions(call->view->question, call->view->model);
    report.model = suppressions_leave(report.suppressions, report.model, report.names);
    report_tree(&report, call->metric);
    report_suppressed(&report);
}

/* The lines of `memtrace report --show-METRIC`, with its usual bounds where none are asked for. */
static void put_text(struct api_call *call, struct report report, const struct tree_wish *wish) {
    struct table_document document;
    report.out = call->out;
    report.options.format = REPORT_TEXT;
    report.options.bottom_up = wish->is_up;
    report.options.min_percent =
        api_param(call, "min-share") != NULL ? wish->least_share * 100 : REPORT_TREE_PERCENT;
    report.options.limit = wish->limit != 0 ? (size_t)wish->limit : REPORT_TREE_LIMIT;
    report.options.depth = wish->depth != 0 ? (size_t)wish->depth : REPORT_TREE_DEPTH;
    report.model = apimetric_all(call, call->view, call->metric);
    table_document_open(&document, &report);
    report.document = &document;
    report_selected(&report);
    report_warnings(&report);
    if ((call->metric == METRIC_LEAKED || call->metric == METRIC_SHUTDOWN) &&
        model_has_leaks(call->view->model)) {
        apitree_put_leaks(call, report);
    } else {
        report_tree(&report, call->metric);
    }
    table_document_close(&document, &report);
    call->type = "text/plain; charset=utf-8";
}

void api_tree(struct api_call *call) {
    const struct tree_wish wish = apitree_read_wish(call);
    struct report report;
    struct calltree tree;
    if (call->base != NULL && call->request->wants_text) {
        api_refuse(call, 400, "a difference is not told as text: `memtrace diff`");
    }
    if (call->base != NULL) {
        tree_of_two(call, &wish);
        return;
    }
    report = report_of(call, call->view, apimetric_model(call, call->view), &wish);
    if (call->request->wants_text) {
        put_text(call, report, &wish);
        return;
    }
    tree = apitree_make_tree(&report, call->metric, &wish);
    api_command(call, "report %s%s", apimetric_option(call), wish.is_up ? " --bottom-up" : "");
    put_tree(call, &report, NULL, &tree, &wish);
}

/* ---- Words of commands ---- */

/* The command has a value that a shell sees as one word. */
static void tell_command(struct api_call *call, const char *option, const char *value) {
    struct job_printing *word = job_print();
    shellword_put(word->out, value);
    api_command(call, "report %s %s %s", apimetric_option(call), option, job_printed(word));
}

/* ---- Around one function ---- */

/* [1] is what is selected, [0] the other side of a difference. */
struct around {
    struct report reports[2];
    struct calltree callers[2];
    struct calltree callees[2];
};

static void around_make(struct api_call *call, struct around *around, struct tree_wish *wish,
                        const char *name) {
    const struct callers_of of = {.function = name, .text = name};
    const struct answer *views[2] = {call->base, call->view};
    if (call->base != NULL) {
        wish->least_share = 0; /* no side is cut before both are known */
    }
    for (size_t side = call->base != NULL ? 0 : 1; side < 2; side++) {
        around->reports[side] =
            report_of(call, views[side], apimetric_model(call, views[side]), wish);
        calltree_around(&around->callers[side], &around->callees[side], &around->reports[side],
                        call->metric, &of);
    }
}

/* As one of its calls is, after or before; NULL: there is none. */
static const struct names_frame *focus_of(const struct api_call *call,
                                          const struct around *around) {
    const struct names_frame *frame = around->callees[1].calls[0].frame;
    return frame == NULL && call->base != NULL ? around->callees[0].calls[0].frame : frame;
}

static void put_focus(struct api_call *call, const struct around *around, const char *name) {
    const struct call *root = &around->callees[1].calls[0];
    const struct names_frame *known = focus_of(call, around);
    struct names_frame focus = {.function = name, .roles = roles_of(name, NULL), .module = ""};
    if (known != NULL) {
        focus = *known;
    }
    focus.line = 0; /* of one of its calls */
    focus.inlined = false;
    apiframes_write_one(&around->reports[1], call->json, "focus", &focus);
    jsonwriter_number(call->json, "main", root->cost.main);
    jsonwriter_number(call->json, "side", root->cost.side);
    jsonwriter_number(call->json, "self", root->self.main);
    if (call->base != NULL) {
        const struct call *before = &around->callees[0].calls[0];
        jsonwriter_number(call->json, "base_main", before->cost.main);
        jsonwriter_number(call->json, "base_self", before->self.main);
    }
}

static void put_side(struct api_call *call, const struct around *around, const char *name,
                     const struct calltree trees[2], const struct tree_wish *wish) {
    if (call->base != NULL) {
        put_difference(call, around->reports, name, trees, wish);
    } else {
        put_tree(call, &around->reports[1], name, &trees[1], wish);
    }
}

void api_callers(struct api_call *call) {
    const char *name = api_param(call, "focus");
    struct around around = {.callers = {{0}, {0}}, .callees = {{0}, {0}}};
    struct tree_wish wish;
    if (name == NULL || name[0] == '\0') {
        api_refuse(call, 400, "focus is to be the name of a function");
    }
    wish = apitree_read_wish(call);
    around_make(call, &around, &wish, name);
    jsonwriter_map(call->json, NULL);
    put_focus(call, &around, name);
    put_side(call, &around, "callers", around.callers, &wish);
    put_side(call, &around, "callees", around.callees, &wish);
    jsonwriter_end_map(call->json);
    if (call->base != NULL) {
        apimetric_diff_command(call, "function"); /* the nearest: it has no callers */
    } else {
        tell_command(call, "--show-caller-callee", name);
    }
    if (focus_of(call, &around) == NULL) {
        api_note(call, "No call path with such a cost goes through this function.");
    }
}

/* ---- Search ---- */

struct found {
    const char **names; /* in the order of the tree: the dearest first */
    size_t count, room; /* names: at most MOST_FOUND */
    size_t functions;
    struct numbermap known; /* by function_key: one of the two below */
    struct cost cost;
};
static char does_match, does_not_match;

/* The regex is asked for the whole name, as --function does. */
static bool is_found(struct found *found, const struct report *report, const regex_t *regex,
                     const struct names_frame *frame) {
    void *known = numbermap_get(&found->known, frame->function_key);
    if (known == NULL) {
        char name[LONGEST_NAME];
        known = regexec(regex, names_spell(frame, name, sizeof name), 0, NULL, 0) == 0
                    ? &does_match
                    : &does_not_match;
        numbermap_set(&found->known, frame->function_key, known);
        found->functions += known == &does_match;
        if (known == &does_match && found->count < MOST_FOUND) {
            job_grow(&found->names, &found->room, found->count, sizeof *found->names);
            found->names[found->count++] =
                job_string(shortname_of(frame, report->options.full_names, name, sizeof name));
        }
    }
    return known == &does_match;
}

/* A path counts once: below a call that was found nothing is added. */
void api_search(struct api_call *call) {
    static const struct tree_wish everything;
    const char *text = api_param(call, "regex");
    struct selection *selection = job_alloc(sizeof *selection);
    const struct model *model;
    struct found found = {0};
    struct calltree tree;
    struct report report;
    struct error why;
    bool *is_below;
    uint64_t total;
    if (text == NULL) {
        api_refuse(call, 400, "regex is to be given");
    }
    *selection = selection_all();
    if (selection_add_pattern(selection, SELECTION_FUNCTION, false, text, &why) != 0) {
        api_refuse(call, 400, "regex: %s", why.message);
    }
    model = apimetric_model(call, call->view);
    report = report_of(call, call->view, model, &everything);
    tree = calltree_top_down(&report, call->metric);
    is_below = job_array(tree.count, sizeof *is_below);
    for (size_t i = 1; i < tree.count; i++) {
        const struct call *at = &tree.calls[i];
        bool matches = is_found(&found, &report, selection->patterns[0].regex, at->frame);
        if (replay_is_cancelled(&call->replay)) {
            job_fail("cancelled");
        }
        is_below[i] = is_below[at->parent] || matches;
        if (is_below[i] && !is_below[at->parent]) {
            metric_add(&found.cost, at->cost);
        }
    }
    total = metric_total(call->metric, model).main;
    jsonwriter_map(call->json, NULL);
    jsonwriter_array(call->json, "functions");
    for (size_t i = 0; i < found.count; i++) {
        jsonwriter_string(call->json, NULL, found.names[i]);
    }
    jsonwriter_end_array(call->json);
    jsonwriter_number(call->json, "count", found.functions);
    jsonwriter_number(call->json, "main", found.cost.main);
    jsonwriter_number(call->json, "total", total);
    jsonwriter_double(call->json, "share",
                      total != 0 ? (double)found.cost.main / (double)total : 0);
    jsonwriter_end_map(call->json);
    tell_command(call, "--function", text);
}
