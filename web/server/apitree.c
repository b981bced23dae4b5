/* SPDX-License-Identifier: MIT */
/* apitree.c: calls as trees: down from main, up from the allocating functions, around one function;
 * and which functions a regular expression finds. Listed in routes.c. */
#include "web/server/apilist.h"

#include "analyze/base/array.h"
#include "analyze/model/roles.h"
#include "analyze/report/reports.h"
#include "analyze/report/treediff.h"
#include "analyze/rows/safetext.h"
#include "web/server/apiframes.h"
#include "web/server/apimetric.h"
#include "web/server/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NAME = 4096, MOST_FOUND = 1000 };

static int out_of_memory(struct error *error) {
    return error_set(error, "out of memory");
}

/* ---- What is asked for ---- */

struct tree_wish {
    bool is_up;
    double least_share; /* 0 to 1 */
    uint64_t depth;     /* 0: all */
    uint64_t limit;     /* calls; 0: all */
};

static int read_share(struct api_call *call, double *share, struct error *error) {
    const char *text = api_param(call, "min-share");
    char *end;
    *share = 0;
    if (text == NULL) {
        return 0;
    }
    errno = 0;
    *share = strtod(text, &end);
    return errno == 0 && end != text && *end == '\0' && *share >= 0 && *share <= 1
               ? 0
               : api_refuse(call, 400, error, "min-share is a number from 0 to 1, not '%s'", text);
}

static int read_wish(struct api_call *call, struct tree_wish *wish, struct error *error) {
    int direction;
    if (api_word(call, "direction", "down|up", 0, &direction, error) != 0 ||
        read_share(call, &wish->least_share, error) != 0 ||
        api_number(call, "depth", 0, 1, UINT32_MAX, &wish->depth, error) != 0 ||
        api_number(call, "limit", 0, 1, UINT32_MAX, &wish->limit, error) != 0) {
        return -1;
    }
    wish->is_up = direction == 1;
    return 0;
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

static void columns_free(struct columns *columns) {
    free(columns->parent);
    free(columns->frame);
    free(columns->main);
    free(columns->side);
    free(columns->self);
    free(columns->base);
    free(columns->base_self);
    free(columns->places);
}

static int columns_make(struct columns *columns, size_t most, bool has_base) {
    *columns = (struct columns){.parent = calloc(most, sizeof *columns->parent),
                                .frame = calloc(most, sizeof *columns->frame),
                                .main = calloc(most, sizeof *columns->main),
                                .side = calloc(most, sizeof *columns->side),
                                .self = calloc(most, sizeof *columns->self),
                                .places = calloc(most, sizeof *columns->places)};
    if (has_base) {
        columns->base = calloc(most, sizeof *columns->base);
        columns->base_self = calloc(most, sizeof *columns->base_self);
    }
    return columns->parent != NULL && columns->frame != NULL && columns->main != NULL &&
                   columns->side != NULL && columns->self != NULL && columns->places != NULL &&
                   (!has_base || (columns->base != NULL && columns->base_self != NULL))
               ? 0
               : -1;
}

/* A tree, and of a difference what both sides have of it. */
struct shown {
    const struct calltree *tree;
    const struct treediff_costs *costs; /* by call; NULL: it is of one side */
    uint64_t total;
    uint64_t base_total;
};

static int add_call(struct columns *columns, struct apiframes *frames, const struct shown *shown,
                    uint32_t at) {
    const struct call *call = &shown->tree->calls[at];
    size_t place = columns->count++;
    int64_t frame = -1;
    if (at != 0) {
        frame = frames->report->options.by_line ? apiframes_add(frames, call->frame)
                                                : apiframes_add_function(frames, call->frame);
        if (frame < 0) {
            return -1;
        }
    }
    columns->places[at] = (uint32_t)place;
    columns->parent[place] = columns->places[call->parent];
    columns->frame[place] = at == 0 ? UINT32_MAX : (uint32_t)frame;
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
    return 0;
}

/* The calls that are dear enough, the dearest of siblings first, each behind its caller. */
static int fill(struct columns *columns, struct apiframes *frames, const struct shown *shown,
                uint64_t least, uint64_t depth_limit) {
    const struct calltree *tree = shown->tree;
    uint32_t at = 0;
    uint64_t depth = 0;
    if (add_call(columns, frames, shown, 0) != 0) {
        return -1;
    }
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
        if (add_call(columns, frames, shown, at) != 0) {
            return -1;
        }
    }
    columns->cut = tree->count - columns->count;
    return 0;
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

/* What calls bear at least of which at most `limit` are written. 0 or -1. */
static int least_of(const struct calltree *tree, const struct tree_wish *wish, uint64_t *least) {
    *least = (uint64_t)((double)tree->calls[0].cost.main * wish->least_share);
    if (wish->limit != 0 && tree->count > wish->limit) {
        uint64_t *costs = calloc(tree->count, sizeof *costs);
        uint64_t limit;
        if (costs == NULL) {
            return -1;
        }
        for (size_t i = 0; i < tree->count; i++) {
            costs[i] = tree->calls[i].cost.main;
        }
        /* those that are as dear as the first one left out go, too */
        limit = nth_dearest(costs, tree->count, wish->limit) + 1;
        *least = limit > *least ? limit : *least;
        free(costs);
    }
    return 0;
}

/* The root has none: -1, or as an unsigned number of 32 bits 2^32 - 1. */
static int put_frames(struct api_call *call, const struct columns *columns) {
    if (call->columns != NULL) {
        return api_column(call, "frame", API_U32, columns->frame, columns->count);
    }
    jsonwriter_array(call->json, "frame");
    for (size_t i = 0; i < columns->count; i++) {
        jsonwriter_integer(call->json, NULL, i == 0 ? -1 : (int64_t)columns->frame[i]);
    }
    jsonwriter_end_array(call->json);
    return 0;
}

static int put_nodes(struct api_call *call, const struct columns *columns, bool has_base) {
    int result;
    jsonwriter_map(call->json, "nodes");
    result = api_column(call, "parent", API_U32, columns->parent, columns->count) |
             put_frames(call, columns) |
             api_column(call, "main", API_U64, columns->main, columns->count) |
             api_column(call, "side", API_U64, columns->side, columns->count) |
             api_column(call, "self", API_U64, columns->self, columns->count);
    if (has_base) {
        result |= api_column(call, "base", API_U64, columns->base, columns->count) |
                  api_column(call, "base_self", API_U64, columns->base_self, columns->count);
    }
    jsonwriter_end_map(call->json);
    return result;
}

/* name: of the member that the tree is, NULL: the value of "data". */
static int put_shown(struct api_call *call, const struct report *report, const char *name,
                     const struct shown *shown, const struct tree_wish *wish, struct error *error) {
    enum metric metric = call->metric;
    struct apiframes frames = apiframes_start(report);
    struct columns columns;
    uint64_t least;
    int result = columns_make(&columns, shown->tree->count, shown->costs != NULL);
    if (result == 0) {
        result = least_of(shown->tree, wish, &least);
    }
    if (result == 0) {
        result = fill(&columns, &frames, shown, least, wish->depth);
    }
    if (result == 0) {
        jsonwriter_map(call->json, name);
        jsonwriter_string(call->json, "metric", apimetric_name(metric));
        jsonwriter_string(call->json, "unit", metric_main_is_bytes(metric) ? "bytes" : "count");
        jsonwriter_string(call->json, "side_unit",
                          metric_side_is_bytes(metric) ? "bytes" : "count");
        jsonwriter_number(call->json, "total", shown->total);
        if (shown->costs != NULL) {
            jsonwriter_number(call->json, "base_total", shown->base_total);
        }
        apiframes_write(&frames, call->json, "frames");
        result = put_nodes(call, &columns, shown->costs != NULL);
        jsonwriter_number(call->json, "cut", columns.cut);
        jsonwriter_end_map(call->json);
    }
    columns_free(&columns);
    apiframes_free(&frames);
    return result == 0 ? 0 : out_of_memory(error);
}

static int put_tree(struct api_call *call, const struct report *report, const char *name,
                    const struct calltree *tree, const struct tree_wish *wish,
                    struct error *error) {
    const struct shown shown = {.tree = tree,
                                .total = metric_total(call->metric, report->model).main};
    return put_shown(call, report, name, &shown, wish, error);
}

/* ---- A tree, and two ---- */

/* Of a difference no side is cut before both are known. */
static struct calltree make_tree(const struct report *report, enum metric metric,
                                 const struct tree_wish *wish) {
    return (wish->is_up ? calltree_bottom_up : calltree_top_down)(report, metric);
}

static int put_difference(struct api_call *call, const struct report reports[2], const char *name,
                          const struct calltree trees[2], const struct tree_wish *wish,
                          struct error *error) {
    struct diff_side sides[2];
    struct treediff diff;
    struct shown shown = {.total = metric_total(call->metric, reports[1].model).main,
                          .base_total = metric_total(call->metric, reports[0].model).main};
    apimetric_sides(call, sides);
    diff = treediff_make(trees, diff_functions_open(sides), reports[1].options.by_line);
    shown.tree = &diff.tree;
    shown.costs = diff.costs;
    return put_shown(call, &reports[1], name, &shown, wish, error);
}

static int tree_of_two(struct api_call *call, const struct tree_wish *wish, struct error *error) {
    const struct answer *views[2] = {call->base, call->view};
    struct tree_wish whole = *wish;
    struct report reports[2];
    struct calltree trees[2];
    int result;
    whole.least_share = 0;
    for (size_t side = 0; side < 2; side++) {
        const struct model *model = apimetric_model(call, views[side], error);
        if (model == NULL) {
            return -1;
        }
        reports[side] = report_of(call, views[side], model, &whole);
        trees[side] = make_tree(&reports[side], call->metric, &whole);
    }
    result = put_difference(call, reports, NULL, trees, wish, error);
    apimetric_diff_command(call, "path");
    return result;
}

/* As the command writes leaks: without those that are suppressed, which are told behind them. */
static int put_leaks(struct api_call *call, struct report report, struct error *error) {
    const struct answer *view = call->view;
    struct suppressions list = {0};
    struct model applied;
    int result = question_suppressions(view->question, view->model, &list, error);
    if (result == 0) {
        result = suppressions_apply(&list, report.model, report.names, &applied, error);
    }
    if (result == 0) {
        report.model = &applied;
        report.suppressions = &list;
        report_tree(&report, call->metric);
        report_suppressed(&report);
        suppressions_applied_free(&applied);
    }
    suppressions_free(&list);
    return result;
}

/* The lines of `memtrace report --show-METRIC`, with its usual bounds where none are asked for. */
static int put_text(struct api_call *call, struct report report, const struct tree_wish *wish,
                    struct error *error) {
    bool is_of_leaks = (call->metric == METRIC_LEAKED || call->metric == METRIC_SHUTDOWN) &&
                       model_has_leaks(call->view->model);
    struct table_document document;
    int result = 0;
    report.out = call->out;
    report.options.format = REPORT_TEXT;
    report.options.bottom_up = wish->is_up;
    report.options.min_percent =
        api_param(call, "min-share") != NULL ? wish->least_share * 100 : REPORT_TREE_PERCENT;
    report.options.limit = wish->limit != 0 ? (size_t)wish->limit : REPORT_TREE_LIMIT;
    report.options.depth = wish->depth != 0 ? (size_t)wish->depth : REPORT_TREE_DEPTH;
    report.model = apimetric_all(call, call->view, call->metric, error);
    if (report.model == NULL) {
        return -1;
    }
    table_document_open(&document, &report);
    report.document = &document;
    report_selected(&report);
    report_warnings(&report);
    if (is_of_leaks) {
        result = put_leaks(call, report, error);
    } else {
        report_tree(&report, call->metric);
    }
    table_document_close(&document, &report);
    call->type = "text/plain; charset=utf-8";
    return result;
}

int api_tree(struct api_call *call, struct error *error) {
    struct calltree tree;
    struct tree_wish wish;
    struct report report;
    const struct model *model;
    if (read_wish(call, &wish, error) != 0) {
        return -1;
    }
    if (call->base != NULL && call->request->wants_text) {
        return api_refuse(call, 400, error, "a difference is not told as text: `memtrace diff`");
    }
    if (call->base != NULL) {
        return tree_of_two(call, &wish, error);
    }
    model = apimetric_model(call, call->view, error);
    if (model == NULL) {
        return -1;
    }
    report = report_of(call, call->view, model, &wish);
    if (call->request->wants_text) {
        return put_text(call, report, &wish, error);
    }
    tree = make_tree(&report, call->metric, &wish);
    api_command(call, "report %s%s", apimetric_option(call), wish.is_up ? " --bottom-up" : "");
    return put_tree(call, &report, NULL, &tree, &wish, error);
}

/* ---- Words of commands ---- */

/* The command has a value that a shell sees as one word. */
static void tell_command(struct api_call *call, const char *option, const char *value) {
    char *word = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&word, &size);
    if (out != NULL) {
        shellword_put(out, value);
        if (fclose(out) == 0) {
            api_command(call, "report %s %s %s", apimetric_option(call), option, word);
        }
        free(word);
    }
}

/* ---- Around one function ---- */

/* [1] is what is selected, [0] the other side of a difference. */
struct around {
    struct report reports[2];
    struct calltree callers[2];
    struct calltree callees[2];
};

static int around_make(struct api_call *call, struct around *around, struct tree_wish *wish,
                       const char *name, struct error *error) {
    const struct callers_of of = {.function = name, .text = name};
    const struct answer *views[2] = {call->base, call->view};
    if (call->base != NULL) {
        wish->least_share = 0; /* no side is cut before both are known */
    }
    for (size_t side = call->base != NULL ? 0 : 1; side < 2; side++) {
        const struct model *model = apimetric_model(call, views[side], error);
        if (model == NULL) {
            return -1;
        }
        around->reports[side] = report_of(call, views[side], model, wish);
        calltree_around(&around->callers[side], &around->callees[side], &around->reports[side],
                        call->metric, &of);
    }
    return 0;
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

static int put_side(struct api_call *call, const struct around *around, const char *name,
                    const struct calltree trees[2], const struct tree_wish *wish,
                    struct error *error) {
    return call->base != NULL ? put_difference(call, around->reports, name, trees, wish, error)
                              : put_tree(call, &around->reports[1], name, &trees[1], wish, error);
}

static int put_around(struct api_call *call, const struct around *around, const char *name,
                      const struct tree_wish *wish, struct error *error) {
    int result;
    jsonwriter_map(call->json, NULL);
    put_focus(call, around, name);
    result = put_side(call, around, "callers", around->callers, wish, error);
    if (result == 0) {
        result = put_side(call, around, "callees", around->callees, wish, error);
    }
    jsonwriter_end_map(call->json);
    return result;
}

int api_callers(struct api_call *call, struct error *error) {
    const char *name = api_param(call, "focus");
    struct around around = {.callers = {{0}, {0}}, .callees = {{0}, {0}}};
    struct tree_wish wish;
    int result;
    if (name == NULL || name[0] == '\0') {
        return api_refuse(call, 400, error, "focus is to be the name of a function");
    }
    if (read_wish(call, &wish, error) != 0) {
        return -1;
    }
    result = around_make(call, &around, &wish, name, error);
    if (result == 0) {
        result = put_around(call, &around, name, &wish, error);
        if (call->base != NULL) {
            apimetric_diff_command(call, "function"); /* the nearest: it has no callers */
        } else {
            tell_command(call, "--show-caller-callee", name);
        }
    }
    if (result == 0 && focus_of(call, &around) == NULL) {
        api_note(call, "No call path with such a cost goes through this function.");
    }
    return result;
}

/* ---- Search ---- */

struct found {
    const char **names; /* malloc'd, in the order of the tree: the dearest first */
    size_t count, room; /* names: at most MOST_FOUND */
    size_t functions;
    struct numbermap known; /* by function_key: one of the two below */
    struct cost cost;
};
static char does_match, does_not_match;

static int note_found(struct found *found, const char *name) {
    char *copy;
    found->functions++;
    if (found->count >= MOST_FOUND) {
        return 0;
    }
    copy = strdup(name);
    if (copy == NULL ||
        array_grow(&found->names, &found->room, found->count, sizeof *found->names) != 0) {
        free(copy);
        return -1;
    }
    found->names[found->count++] = copy;
    return 0;
}

/* 1, 0, or -1: out of memory. The regex is asked for the whole name, as --function does. */
static int is_found(struct found *found, const struct report *report, const regex_t *regex,
                    const struct names_frame *frame) {
    void *known = numbermap_get(&found->known, frame->function_key);
    if (known == NULL) {
        char name[LONGEST_NAME];
        bool matches = regexec(regex, names_spell(frame, name, sizeof name), 0, NULL, 0) == 0;
        known = matches ? &does_match : &does_not_match;
        if (numbermap_put(&found->known, frame->function_key, known) != 0 ||
            (matches &&
             note_found(found, apiframes_spell(report, frame, name, sizeof name)) != 0)) {
            return -1;
        }
    }
    return known == &does_match;
}

/* A path counts once: below a call that was found nothing is added. */
static int look_through(struct found *found, const struct report *report,
                        const struct calltree *tree, const regex_t *regex,
                        const struct replay_options *replay, struct error *error) {
    bool *is_below = calloc(tree->count, sizeof *is_below);
    int result = is_below != NULL ? 0 : out_of_memory(error);
    for (size_t i = 1; result == 0 && i < tree->count; i++) {
        const struct call *call = &tree->calls[i];
        int matches = is_found(found, report, regex, call->frame);
        if (matches < 0) {
            result = out_of_memory(error);
        } else if (replay_is_cancelled(replay)) {
            result = error_set(error, "cancelled");
        }
        is_below[i] = is_below[call->parent] || matches > 0;
        if (is_below[i] && !is_below[call->parent]) {
            metric_add(&found->cost, call->cost);
        }
    }
    free(is_below);
    return result;
}

static void put_found(struct api_call *call, const struct found *found, uint64_t total) {
    jsonwriter_map(call->json, NULL);
    jsonwriter_array(call->json, "functions");
    for (size_t i = 0; i < found->count; i++) {
        jsonwriter_string(call->json, NULL, found->names[i]);
    }
    jsonwriter_end_array(call->json);
    jsonwriter_number(call->json, "count", found->functions);
    jsonwriter_number(call->json, "main", found->cost.main);
    jsonwriter_number(call->json, "total", total);
    jsonwriter_double(call->json, "share",
                      total != 0 ? (double)found->cost.main / (double)total : 0);
    jsonwriter_end_map(call->json);
}

static int search(struct api_call *call, const struct model *model, const regex_t *regex,
                  struct error *error) {
    const struct tree_wish everything = {0};
    struct report report = report_of(call, call->view, model, &everything);
    struct calltree tree = calltree_top_down(&report, call->metric);
    struct found found = {0};
    int result = look_through(&found, &report, &tree, regex, &call->replay, error);
    if (result == 0) {
        put_found(call, &found, metric_total(call->metric, model).main);
    }
    for (size_t i = 0; i < found.count; i++) {
        free((char *)found.names[i]);
    }
    free(found.names);
    numbermap_free(&found.known);
    return result;
}

int api_search(struct api_call *call, struct error *error) {
    const char *text = api_param(call, "regex");
    const struct model *model;
    struct selection selection = selection_all();
    struct error why;
    int result = -1;
    if (text == NULL) {
        return api_refuse(call, 400, error, "regex is to be given");
    }
    if (selection_add_pattern(&selection, SELECTION_FUNCTION, false, text, &why) != 0) {
        return api_refuse(call, 400, error, "regex: %s", why.message);
    }
    model = apimetric_model(call, call->view, error);
    if (model != NULL) {
        result = search(call, model, &selection.patterns[0].regex, error);
        tell_command(call, "--function", text);
    }
    selection_free(&selection);
    return result;
}
