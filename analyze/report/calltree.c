/* SPDX-License-Identifier: MIT */
/* calltree.c: merging contexts into trees. See calltree.h. */
#include "analyze/report/calltree.h"

#include "analyze/base/array.h"
#include "analyze/base/numbermap.h"
#include "analyze/model/names.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct build {
    struct calltree *tree;
    const struct report *report;
    size_t room;
    struct numbermap children; /* hash of parent and frame, to index */
    bool folds;                /* runs of library functions */
};

static const struct names_frame unknown_frame = {.module = ""};

static int grow(struct build *build) {
    struct calltree *tree = build->tree;
    return tree->count < UINT32_MAX
               ? array_grow(&tree->calls, &build->room, tree->count, sizeof *tree->calls)
               : -1;
}

static int init(struct build *build, struct calltree *tree, const struct report *report) {
    *build = (struct build){.tree = tree,
                            .report = report,
                            .folds = report_is_for_people(report) && !report->options.all_frames};
    *tree = (struct calltree){0};
    if (grow(build) != 0) {
        return -1;
    }
    tree->calls[tree->count++] = (struct call){0}; /* the root */
    return 0;
}

static void note_line(struct call *call, uint32_t line) {
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

static uint64_t key_of(const struct build *build, const struct names_frame *frame) {
    return calltree_key(build->report, frame);
}

/* Functions that call themselves are one call: a recursion would draw a line for each level. */
static bool folds(const struct build *build, uint32_t parent, uint64_t key) {
    return parent != 0 && !build->report->options.all_frames &&
           key_of(build, build->tree->calls[parent].frame) == key;
}

/* Library functions that library functions call are one call with them, for people. */
static bool folds_library(const struct build *build, uint32_t parent,
                          const struct names_frame *frame) {
    return parent != 0 && build->folds && pathwalk_is_library(build->tree->calls[parent].frame) &&
           pathwalk_is_library(frame);
}

/* Counts a folded function once. 0: out of memory. */
static uint32_t note_folded(struct build *build, uint32_t parent, uint64_t hash) {
    if (numbermap_get(&build->children, hash) == NULL) {
        build->tree->calls[parent].folded++;
        if (numbermap_put(&build->children, hash, (void *)(uintptr_t)parent) != 0) {
            return 0;
        }
    }
    return parent;
}

/* The child of a call for this frame, made if need be; 0: out of memory. */
static uint32_t child_of(struct build *build, uint32_t parent, const struct names_frame *frame) {
    uint64_t key = key_of(build, frame);
    uint64_t hash = XXH3_64bits_withSeed(&key, sizeof key, parent);
    void *found = numbermap_get(&build->children, hash);
    uint32_t index = (uint32_t)build->tree->count;
    struct call *calls;
    if (folds(build, parent, key)) {
        build->tree->calls[parent].recursive = true;
        note_line(&build->tree->calls[parent], frame->line);
        return parent;
    }
    if (folds_library(build, parent, frame)) {
        return note_folded(build, parent, hash);
    }
    if (found != NULL) {
        index = (uint32_t)(uintptr_t)found;
        note_line(&build->tree->calls[index], frame->line);
        return index;
    }
    if (grow(build) != 0 || numbermap_put(&build->children, hash, (void *)(uintptr_t)index) != 0) {
        return 0;
    }
    calls = build->tree->calls;
    calls[index] = (struct call){.frame = frame,
                                 .id = calltree_id(build->report, &calls[parent], frame),
                                 .parent = parent,
                                 .next = calls[parent].first_child};
    calls[parent].first_child = index;
    note_line(&calls[index], frame->line);
    build->tree->count++;
    return index;
}

/* ---- Dearest first: siblings by merge sort, which lists sort without more memory ---- */

static bool before(const struct calltree *tree, uint32_t left, uint32_t right) {
    const struct cost *a = &tree->calls[left].cost;
    const struct cost *b = &tree->calls[right].cost;
    return a->main > b->main || (a->main == b->main && a->side >= b->side);
}

static uint32_t merge(struct calltree *tree, uint32_t left, uint32_t right) {
    uint32_t first = 0;
    uint32_t *to = &first;
    while (left != 0 && right != 0) {
        uint32_t *from = before(tree, left, right) ? &left : &right;
        *to = *from;
        to = &tree->calls[*from].next;
        *from = *to;
    }
    *to = left != 0 ? left : right;
    return first;
}

static uint32_t sort_list(struct calltree *tree, uint32_t list) {
    uint32_t bins[32] = {0}; /* bins[i]: 2^i sorted siblings, or none */
    uint32_t sorted = 0;
    size_t used = 0; /* most lists are short */
    while (list != 0) {
        uint32_t one = list;
        size_t i = 0;
        list = tree->calls[one].next;
        tree->calls[one].next = 0;
        for (; i < 31 && bins[i] != 0; i++) {
            one = merge(tree, bins[i], one);
            bins[i] = 0;
        }
        bins[i] = one;
        used = i < used ? used : i + 1;
    }
    for (size_t i = 0; i < used; i++) {
        sorted = merge(tree, bins[i], sorted);
    }
    return sorted;
}

void calltree_sort(struct calltree *tree) {
    for (size_t i = 0; i < tree->count; i++) {
        tree->calls[i].first_child = sort_list(tree, tree->calls[i].first_child);
    }
}

/* ---- Top-down ---- */

/* What nodes are to a tree: on a path that has costs, or its end. */
enum { NODE_USED = 1, NODE_END = 2 };

static unsigned char *look_at_nodes(const struct model *model, enum metric metric) {
    unsigned char *uses = calloc(model->node_count, 1);
    for (size_t i = 0; uses != NULL && i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        if (context->class == MODEL_HEAP && metric_cost(metric, context).main != 0) {
            uses[context->path] = NODE_USED | NODE_END;
        }
    }
    for (size_t id = model->node_count; uses != NULL && id-- > 1;) {
        uses[model->nodes[id].parent] |= uses[id] & NODE_USED;
    }
    return uses;
}

/* The call of a node, whose parent's is known: adds its functions, outermost first. */
/* Start-up code that allocates itself is shown nevertheless. */
static uint32_t map_node(struct build *build, uint32_t parent, uint64_t recorded, bool is_end) {
    bool all = build->report->options.all_frames;
    uint32_t at = parent;
    size_t count;
    const struct names_frame *frames = names_frames(build->report->names, recorded, &count);
    for (size_t i = count; i-- > 0;) {
        const struct names_frame *frame = &frames[i];
        if (!all && !is_end &&
            (pathwalk_is_startup(frame) || (at == 0 && pathwalk_is_unnamed_libc(frame)))) {
            at = 0; /* what stands outside of it is start-up code as well */
            continue;
        }
        at = child_of(build, !all && pathwalk_is_main(frame) ? 0 : at, frame);
        if (at == 0) {
            return UINT32_MAX;
        }
    }
    return at;
}

/* The call of each node. Parents come first, so each is one step: deep paths cost no more. */
static uint32_t *map_nodes(struct build *build, enum metric metric) {
    const struct model *model = build->report->model;
    unsigned char *uses = look_at_nodes(model, metric);
    uint32_t *calls = calloc(model->node_count, sizeof *calls);
    for (size_t id = 1; uses != NULL && calls != NULL && id < model->node_count; id++) {
        const struct model_node *node = &model->nodes[id];
        calls[id] = calls[node->parent];
        if (uses[id] != 0 && node->frame >= MEMTRACE_FRAME_CLASSES) {
            calls[id] = map_node(build, calls[node->parent], node->frame, uses[id] & NODE_END);
        }
        if (calls[id] == UINT32_MAX) {
            free(calls);
            calls = NULL;
        }
    }
    if (uses == NULL) {
        free(calls);
        calls = NULL;
    }
    free(uses);
    return calls;
}

static int add_contexts(struct build *build, const uint32_t *calls, enum metric metric) {
    const struct model *model = build->report->model;
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        struct cost cost = metric_cost(metric, context);
        uint32_t at = calls[context->path];
        if (context->class != MODEL_HEAP || cost.main == 0) {
            continue;
        }
        if (at == 0) {
            at = child_of(build, 0, &unknown_frame);
            if (at == 0) {
                return -1;
            }
        }
        metric_add(&build->tree->calls[at].self, cost);
    }
    return 0;
}

static void add_up(struct calltree *tree) {
    for (size_t i = tree->count; i-- > 0;) {
        metric_add(&tree->calls[i].cost, tree->calls[i].self);
        if (i != 0) {
            metric_add(&tree->calls[tree->calls[i].parent].cost, tree->calls[i].cost);
        }
    }
}

int calltree_top_down(struct calltree *tree, const struct report *report, enum metric metric) {
    struct build build;
    uint32_t *calls = NULL;
    int result = init(&build, tree, report);
    if (result == 0) {
        calls = map_nodes(&build, metric);
        result = calls != NULL ? add_contexts(&build, calls, metric) : -1;
    }
    if (result == 0) {
        add_up(tree);
        calltree_sort(tree);
    }
    free(calls);
    numbermap_free(&build.children);
    return result;
}

/* ---- Around functions ---- */

/* Whether a frame is one of the functions: each function's name is looked at once. */
struct asking {
    const struct callers_of *of;
    struct numbermap known; /* by function_key: to one of the two below */
};
static char is_asked_for, is_other;

/* A whole name may be given as it is recorded, or as reports show it. */
static bool matches(const struct callers_of *of, const struct names_frame *frame) {
    char name[4096];
    char brief[4096];
    names_spell(frame, name, sizeof name);
    if (of->function == NULL) {
        return regexec(of->regex, name, 0, NULL, 0) == 0;
    }
    return strcmp(name, of->function) == 0 ||
           (frame->function != NULL &&
            strcmp(shortname(name, brief, sizeof brief), of->function) == 0);
}

static bool is_asked(struct asking *asking, const struct names_frame *frame) {
    void *known = numbermap_get(&asking->known, frame->function_key);
    if (known == NULL) {
        known = matches(asking->of, frame) ? &is_asked_for : &is_other;
        (void)numbermap_put(&asking->known, frame->function_key, known); /* else asked again */
    }
    return known == &is_asked_for;
}

/* The frames of one path, innermost first. */
struct frames {
    const struct names_frame **items;
    size_t count, room;
    size_t innermost, outermost; /* of the functions; no path of theirs: innermost == count */
};

static int look_along(struct frames *frames, struct asking *asking, const struct report *report,
                      uint32_t path) {
    struct pathwalk walk = pathwalk(report, path);
    bool is_met = false;
    for (frames->count = 0; walk.frame != NULL; pathwalk_next(&walk)) {
        if (array_grow(&frames->items, &frames->room, frames->count, sizeof *frames->items) != 0) {
            return -1;
        }
        if (is_asked(asking, walk.frame)) {
            frames->innermost = is_met ? frames->innermost : frames->count;
            frames->outermost = frames->count;
            is_met = true;
        }
        frames->items[frames->count++] = walk.frame;
    }
    frames->innermost = is_met ? frames->innermost : frames->count;
    return 0;
}

/* From the frame at `from`, `step` by step, `count` of them. */
static int add_branch(struct build *build, const struct frames *frames, size_t from, int step,
                      size_t count, struct cost cost) {
    size_t depth = build->report->options.depth;
    uint32_t call = 0;
    metric_add(&build->tree->calls[0].cost, cost);
    for (size_t i = 0; i < count && (depth == 0 || i < depth); i++) {
        const struct names_frame *frame = frames->items[step > 0 ? from + i : from - i];
        uint32_t next = child_of(build, call, frame);
        if (next == 0) {
            return -1;
        }
        if (next != call) {
            metric_add(&build->tree->calls[next].cost, cost);
        }
        call = next;
    }
    metric_add(&build->tree->calls[call].self, cost);
    return 0;
}

static int add_around(struct build *callers, struct build *callees, struct asking *asking,
                      struct frames *frames, enum metric metric) {
    const struct report *report = callers->report;
    const struct model *model = report->model;
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        struct cost cost = metric_cost(metric, context);
        if (context->class != MODEL_HEAP || cost.main == 0) {
            continue;
        }
        if (look_along(frames, asking, report, context->path) != 0) {
            return -1;
        }
        if (frames->innermost == frames->count) {
            continue;
        }
        if (callers->tree->calls[0].frame == NULL) {
            callers->tree->calls[0].frame = frames->items[frames->innermost];
            callees->tree->calls[0].frame = frames->items[frames->innermost];
        }
        if (add_branch(callers, frames, frames->outermost + 1, 1,
                       frames->count - frames->outermost - 1, cost) != 0 ||
            add_branch(callees, frames, frames->innermost - 1, -1, frames->innermost, cost) != 0) {
            return -1;
        }
    }
    return 0;
}

int calltree_around(struct calltree *callers, struct calltree *callees, const struct report *report,
                    enum metric metric, const struct callers_of *of) {
    struct build builds[2];
    struct asking asking = {.of = of};
    struct frames frames = {0};
    int result = init(&builds[0], callers, report) | init(&builds[1], callees, report);
    builds[0].folds = false;
    builds[1].folds = false;
    if (result == 0) {
        result = add_around(&builds[0], &builds[1], &asking, &frames, metric);
    }
    if (result == 0) {
        calltree_sort(callers);
        calltree_sort(callees);
    }
    numbermap_free(&builds[0].children);
    numbermap_free(&builds[1].children);
    numbermap_free(&asking.known);
    free(frames.items);
    return result;
}

void calltree_free(struct calltree *tree) {
    free(tree->calls);
    *tree = (struct calltree){0};
}
