/* SPDX-License-Identifier: MIT */
/* diff.c: the trees of call paths that are compared, and the rows that come of it. See diff.h and
 * diffmatch.h. */
#include "analyze/report/diff.h"

#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/report/diffmatch.h"
#include "analyze/report/metric.h"
#include "analyze/rows/pathwalk.h"
#include "analyze/rows/style.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- The vocabulary ---- */

/* Functions of both sides. */
struct words {
    struct numbermap ids;    /* by hash */
    struct numbermap vague;  /* hashes of names that stand somewhere without a file */
    struct numbermap frames; /* ids by frame */
    uint32_t count;
};

/* Length of a name without what compilers append to copies of a function. */
static size_t diff_plain_length(const char *name) {
    static const char *const suffixes[] = {".constprop.", ".isra.",       ".part.",  ".cold",
                                           ".lto_priv.",  ".llvm.",       ".clone.", " [clone",
                                           ".localalias", ".specialized."};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        const char *at = strstr(name, suffixes[i]);
        if (at != NULL && at != name && (size_t)(at - name) < length) {
            length = (size_t)(at - name);
        }
    }
    return length;
}

static uint64_t diff_hash_name(const char *name) {
    return XXH3_64bits(name, diff_plain_length(name));
}

/* Kinds of names that may look alike are told apart by the seed. */
static uint64_t diff_hash_part(const char *text, uint64_t seed) {
    return XXH3_64bits_withSeed(text, strlen(text), seed);
}

/* The number of a hash, given at its first use. */
static uint32_t words_id(struct words *words, uint64_t hash) {
    uint32_t id = (uint32_t)(uintptr_t)numbermap_get(&words->ids, hash);
    if (id == 0) {
        id = ++words->count + DIFFTREE_ALLOCATION;
        numbermap_set(&words->ids, hash, (void *)(uintptr_t)id);
    }
    return id;
}

/* Of both sides before a tree is made. */
static void words_note(struct words *words, const struct diff_side *side) {
    for (size_t i = 1; i < side->model->node_count; i++) {
        size_t count;
        const struct names_frame *frames =
            names_frames(side->names, side->model->nodes[i].frame, &count);
        for (size_t k = 0; k < count; k++) {
            if (frames[k].function != NULL && frames[k].file == NULL) {
                numbermap_set(&words->vague, diff_hash_name(frames[k].function), words);
            }
        }
    }
}

static uint64_t words_hash(const struct words *words, const struct names_frame *frame) {
    enum { UNNAMED = 1, IN_FILE = 2 };
    uint64_t hash;
    if (frame->function == NULL) {
        return diff_hash_part(pathname_base(frame->module), UNNAMED);
    }
    hash = diff_hash_name(frame->function);
    if (frame->file == NULL || numbermap_get(&words->vague, hash) != NULL) {
        return hash;
    }
    return diff_hash_part(pathname_base(frame->file), hash + IN_FILE);
}

/* ---- A tree ---- */

static uint32_t difftree_add(struct difftree *tree, struct difftree_node node) {
    if (tree->count >= UINT32_MAX) {
        job_fail_memory();
    }
    job_grow(&tree->nodes, &tree->capacity, tree->count, sizeof *tree->nodes);
    tree->nodes[tree->count] = node;
    return (uint32_t)tree->count++;
}

/* The child called from this line, made if need be. */
static uint32_t difftree_child(struct difftree *tree, uint32_t parent, uint64_t line,
                               uint32_t function) {
    uint64_t key[3] = {parent, line, function};
    uint64_t hash = XXH3_64bits(key, sizeof key);
    uint32_t child = (uint32_t)(uintptr_t)numbermap_get(&tree->children, hash);
    if (child == 0) {
        child = difftree_add(
            tree, (struct difftree_node){.line = line, .parent = parent, .function = function});
        numbermap_set(&tree->children, hash, (void *)(uintptr_t)child);
    }
    return child;
}

/* Lines of the same build are the same lines; 0: nobody knows which build it is. */
static uint64_t diff_build_of(const struct model *model, uint64_t frame) {
    const struct model_module *module = &model->modules[model_place(model, frame).module];
    return module->build_id_size != 0 ? XXH3_64bits(module->build_id, module->build_id_size) : 0;
}

static void difftree_charge(struct difftree_node *leaf, const struct model_context *context) {
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        leaf->costs.of[metric] += metric_cost(metric, context).main;
    }
    if (leaf->context == 0 || context->total_bytes > leaf->dearest) {
        leaf->context = context->id;
        leaf->dearest = context->total_bytes;
    }
}

/* ---- Call paths ---- */

/* Where the path that ends in a node of the model leads in the tree: each node is looked at once.
 */
struct place {
    uint64_t line; /* of the function at `at`, from which is called what comes next */
    uint32_t at;
    bool is_known;
    uint32_t startup; /* at the root: the function of the system that stands there; 0: none */
};

struct growing {
    struct difftree *tree;
    struct words *words;
    const struct diff_side *side;
    struct place *places; /* by node of the model */
    uint32_t *chain;      /* nodes that wait for their parents */
};

static bool diff_is_main(const struct names_frame *frame) {
    return frame->function != NULL && !frame->inlined && strcmp(frame->function, "main") == 0;
}

/* The function of a frame, whose hash is made once. */
static uint32_t words_function(struct words *words, const struct names_frame *frame) {
    uint64_t key = (uint64_t)(uintptr_t)frame;
    uint32_t id = (uint32_t)(uintptr_t)numbermap_get(&words->frames, key);
    if (id == 0) {
        id = words_id(words, words_hash(words, frame));
        numbermap_set(&words->frames, key, (void *)(uintptr_t)id);
    }
    return id;
}

/* One function further in. What the system runs before main, and all outside of it, is not told
 * (pathwalk()); a function that called itself is one, and the innermost call leads on. */
static void growing_enter(struct growing *growing, struct place *place,
                          const struct names_frame *frame, uint64_t build) {
    struct difftree *tree = growing->tree;
    uint32_t function = words_function(growing->words, frame);
    uint32_t here = tree->nodes[place->at].function;
    bool startup = pathwalk_is_startup(frame) ||
                   (place->at == DIFFTREE_ROOT && pathwalk_is_unnamed_libc(frame));
    if (startup || diff_is_main(frame)) {
        *place = (struct place){.startup = startup ? function : 0};
        here = tree->nodes[DIFFTREE_ROOT].function;
    }
    if (!startup && (place->at == DIFFTREE_ROOT || frame->function == NULL || here != function)) {
        place->at = difftree_child(tree, place->at, place->line, function);
        tree->nodes[place->at].build = build;
        tree->nodes[place->at].named = frame->function != NULL;
    }
    place->line = startup ? 0 : frame->function != NULL ? frame->line : frame->offset;
}

static void growing_enter_node(struct growing *growing, uint32_t id) {
    const struct model *model = growing->side->model;
    uint64_t frame = model->nodes[id].frame;
    struct place place = growing->places[model->nodes[id].parent];
    size_t count = 0;
    const struct names_frame *frames = NULL;
    if (frame >= MEMTRACE_FRAME_CLASSES) {
        frames = names_frames(growing->side->names, frame, &count);
    }
    for (size_t i = count; i-- > 0;) {
        growing_enter(growing, &place, &frames[i], diff_build_of(model, frame));
    }
    place.is_known = true;
    growing->places[id] = place;
}

/* The leaf of the path that ends in this node. */
static uint32_t growing_leaf(struct growing *growing, uint32_t id) {
    const struct model *model = growing->side->model;
    size_t count = 0;
    struct place place;
    for (uint32_t at = id; !growing->places[at].is_known; at = model->nodes[at].parent) {
        growing->chain[count++] = at;
    }
    while (count > 0) {
        growing_enter_node(growing, growing->chain[--count]);
    }
    place = growing->places[id];
    if (place.at == DIFFTREE_ROOT && place.startup != 0) { /* the system itself allocates */
        place.at = difftree_child(growing->tree, DIFFTREE_ROOT, 0, place.startup);
    }
    return difftree_child(growing->tree, place.at, place.line, DIFFTREE_ALLOCATION);
}

/* ---- Children in order ---- */

static int difftree_by_parent(const void *left, const void *right, void *context) {
    const struct difftree_node *nodes = context;
    const struct difftree_node *a = &nodes[*(const uint32_t *)left];
    const struct difftree_node *b = &nodes[*(const uint32_t *)right];
    if (a->parent != b->parent) {
        return a->parent < b->parent ? -1 : 1;
    }
    if (a->function != b->function) {
        return a->function < b->function ? -1 : 1;
    }
    return (a->line > b->line) - (a->line < b->line);
}

static void difftree_put_in_order(struct difftree *tree) {
    tree->order = job_array(tree->count, sizeof *tree->order);
    for (size_t i = 1; i < tree->count; i++) {
        tree->order[i - 1] = (uint32_t)i;
    }
    qsort_r(tree->order, tree->count - 1, sizeof *tree->order, difftree_by_parent, tree->nodes);
    for (size_t i = 0; i + 1 < tree->count; i++) {
        struct difftree_node *parent = &tree->nodes[tree->nodes[tree->order[i]].parent];
        if (parent->child_count++ == 0) {
            parent->first_child = (uint32_t)i;
        }
    }
}

/* ---- Making them ---- */

/* One leaf for each name of the innermost frames. */
static uint32_t growing_named_leaf(struct growing *growing, uint32_t id, enum diff_by by) {
    enum { FILES = 3, MODULES = 4, NOTHING = 5 };
    const struct report report = {.model = growing->side->model, .names = growing->side->names};
    const struct names_frame *frame = pathwalk(&report, id).frame;
    uint64_t hash = NOTHING;
    if (frame != NULL && by == DIFF_BY_FUNCTION) {
        hash = words_hash(growing->words, frame);
    } else if (frame != NULL && by == DIFF_BY_FILE && frame->file != NULL) {
        hash = diff_hash_part(pathname_base(frame->file), FILES);
    } else if (frame != NULL) {
        hash = diff_hash_part(pathname_base(frame->module), MODULES);
    }
    return difftree_child(growing->tree, DIFFTREE_ROOT, 0, words_id(growing->words, hash));
}

/* By functions, files or modules the tree is flat: one leaf for each name of innermost frames. */
static void difftree_make(struct difftree *tree, struct words *words, const struct diff_side *side,
                          enum diff_by by) {
    const struct model *model = side->model;
    struct model_context all = metric_whole(model); /* one leaf, where there are no contexts */
    bool any = false;
    struct growing growing = {
        .tree = tree,
        .words = words,
        .side = side,
        .places = job_array(model->node_count + 1, sizeof *growing.places),
        .chain = job_array(model->node_count + 1, sizeof *growing.chain),
    };
    difftree_add(tree, (struct difftree_node){0}); /* the root */
    growing.places[0].is_known = true;
    for (size_t i = 0; i <= model->context_count; i++) {
        bool is_last = i == model->context_count;
        const struct model_context *context = is_last ? &all : &model->contexts[i];
        uint32_t leaf;
        if (is_last ? any : context->class != MODEL_HEAP) {
            continue;
        }
        any = true;
        leaf = by == DIFF_BY_PATH ? growing_leaf(&growing, context->path)
                                  : growing_named_leaf(&growing, context->path, by);
        difftree_charge(&tree->nodes[leaf], context);
    }
    difftree_put_in_order(tree);
}

/* ---- Rows ---- */

/* A difference while it is made. */
struct collecting {
    struct diff *diff;
    const struct diff_options *options;
    struct words words;
    struct difftree trees[2];
    size_t room; /* for rows */
};

static void diff_add_row(void *context, uint32_t left, uint32_t right) {
    struct collecting *collecting = context;
    struct diff *diff = collecting->diff;
    const uint32_t nodes[2] = {left, right};
    struct diff_row row = {0};
    for (size_t side = 0; side < 2; side++) {
        if (nodes[side] != DIFFMATCH_NONE) {
            const struct difftree_node *node = &collecting->trees[side].nodes[nodes[side]];
            row.costs[side] = node->costs;
            row.contexts[side] = node->context;
            row.present[side] = true;
        }
    }
    if (memcmp(&row.costs[0], &row.costs[1], sizeof row.costs[0]) == 0) {
        diff->same_count += row.present[0] && row.present[1];
        return;
    }
    job_grow(&diff->rows, &collecting->room, diff->row_count, sizeof *diff->rows);
    diff->rows[diff->row_count++] = row;
}

static void diff_collect(void *what) {
    struct collecting *collecting = what;
    struct diff *diff = collecting->diff;
    words_note(&collecting->words, &diff->sides[0]);
    words_note(&collecting->words, &diff->sides[1]);
    for (size_t side = 0; side < 2; side++) {
        difftree_make(&collecting->trees[side], &collecting->words, &diff->sides[side], diff->by);
    }
    diffmatch(collecting->trees, collecting->options->line_tolerance, diff_add_row, collecting);
}

struct diff diff_make(const struct diff_side sides[2], const struct diff_options *options) {
    struct diff diff = {.sides = {sides[0], sides[1]}, .by = options->by};
    struct collecting collecting = {.diff = &diff, .options = options};
    for (size_t side = 0; side < 2; side++) {
        struct diff_side *of = &diff.sides[side];
        if (of->suppressions != NULL && model_has_leaks(of->model)) {
            of->model = suppressions_leave(of->suppressions, of->model, of->names);
            diff.is_applied[side] = true;
        }
        for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
            diff.totals[side].of[metric] = metric_total(metric, of->model).main;
        }
    }
    job_grow(&diff.rows, &collecting.room, 0, sizeof *diff.rows);
    job_within(diff_collect, &collecting);
    return diff;
}

int64_t diff_change(const struct diff_costs costs[2], enum metric metric) {
    return (int64_t)(costs[1].of[metric] - costs[0].of[metric]);
}

/* By growth; then by what it costs now; then as they were found, which contexts tell. */
static int diff_by_growth(const void *left, const void *right, void *context) {
    enum metric metric = *(const enum metric *)context;
    const struct diff_row *a = left;
    const struct diff_row *b = right;
    int64_t change_a = diff_change(a->costs, metric);
    int64_t change_b = diff_change(b->costs, metric);
    if (change_a != change_b) {
        return change_a < change_b ? 1 : -1;
    }
    for (size_t side = 2; side-- > 0;) {
        if (a->costs[side].of[metric] != b->costs[side].of[metric]) {
            return a->costs[side].of[metric] < b->costs[side].of[metric] ? 1 : -1;
        }
        if (a->contexts[side] != b->contexts[side]) {
            return a->contexts[side] < b->contexts[side] ? -1 : 1;
        }
    }
    return 0;
}

void diff_sort(struct diff *diff, enum metric metric) {
    if (diff->row_count != 0) {
        qsort_r(diff->rows, diff->row_count, sizeof *diff->rows, diff_by_growth, &metric);
    }
}

uint32_t diff_path(const struct diff *diff, const struct diff_row *row, struct report *report) {
    size_t side = row->contexts[1] != 0 ? 1 : 0;
    const struct model_context *context = model_find(diff->sides[side].model, row->contexts[side]);
    report->model = diff->sides[side].model;
    report->names = diff->sides[side].names;
    report->source = diff->sides[side].source;
    return context != NULL ? context->path : 0;
}

const struct names_frame *diff_frame(const struct diff *diff, const struct diff_row *row) {
    struct report report = {0};
    uint32_t node = diff_path(diff, row, &report);
    return pathwalk(&report, node).frame;
}

/* ---- Functions alone ---- */

struct diff_functions {
    struct words words;
};

struct diff_functions *diff_functions_open(const struct diff_side sides[2]) {
    struct diff_functions *functions = job_alloc(sizeof *functions);
    words_note(&functions->words, &sides[0]);
    words_note(&functions->words, &sides[1]);
    return functions;
}

uint32_t diff_function(struct diff_functions *functions, const struct names_frame *frame) {
    return words_function(&functions->words, frame);
}
