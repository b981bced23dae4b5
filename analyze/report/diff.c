/* SPDX-License-Identifier: MIT */
/* diff.c: the trees of call paths that are compared, and the rows that come of it. See diff.h and
 * diffmatch.h. */
#include "analyze/report/diff.h"

#include "analyze/base/array.h"
#include "analyze/base/pathname.h"
#include "analyze/report/diffmatch.h"
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
static size_t plain_length(const char *name) {
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

static uint64_t hash_name(const char *name) {
    return XXH3_64bits(name, plain_length(name));
}

/* Kinds of names that may look alike are told apart by the seed. */
static uint64_t hash_part(const char *text, uint64_t seed) {
    return XXH3_64bits_withSeed(text, strlen(text), seed);
}

/* The number of a hash, given at its first use. 0: out of memory. */
static uint32_t word_id(struct words *words, uint64_t hash) {
    void *found = numbermap_get(&words->ids, hash);
    uint32_t id = words->count + DIFFTREE_ALLOCATION + 1;
    if (found != NULL) {
        return (uint32_t)(uintptr_t)found;
    }
    if (numbermap_put(&words->ids, hash, (void *)(uintptr_t)id) != 0) {
        return 0;
    }
    words->count++;
    return id;
}

static int note_frame(struct words *words, const struct names_frame *frame) {
    if (frame->function == NULL || frame->file != NULL) {
        return 0;
    }
    return numbermap_put(&words->vague, hash_name(frame->function), words);
}

/* Of both sides before a tree is made. */
static int note_functions(struct words *words, const struct diff_side *side) {
    for (size_t i = 1; i < side->model->node_count; i++) {
        size_t count;
        const struct names_frame *frames =
            names_frames(side->names, side->model->nodes[i].frame, &count);
        for (size_t k = 0; k < count; k++) {
            if (note_frame(words, &frames[k]) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

static uint64_t function_hash(const struct words *words, const struct names_frame *frame) {
    enum { UNNAMED = 1, IN_FILE = 2 };
    uint64_t hash;
    if (frame->function == NULL) {
        return hash_part(pathname_base(frame->module), UNNAMED);
    }
    hash = hash_name(frame->function);
    if (frame->file == NULL || numbermap_get(&words->vague, hash) != NULL) {
        return hash;
    }
    return hash_part(pathname_base(frame->file), hash + IN_FILE);
}

static void free_words(struct words *words) {
    numbermap_free(&words->ids);
    numbermap_free(&words->vague);
    numbermap_free(&words->frames);
}

/* ---- A tree ---- */

static int grow(struct difftree *tree) {
    return tree->count < UINT32_MAX
               ? array_grow(&tree->nodes, &tree->capacity, tree->count, sizeof *tree->nodes)
               : -1;
}

/* The child called from this line, made if need be. 0: out of memory. */
static uint32_t child_of(struct difftree *tree, uint32_t parent, uint64_t line, uint32_t function) {
    uint64_t key[3] = {parent, line, function};
    uint64_t hash = XXH3_64bits(key, sizeof key);
    void *found = numbermap_get(&tree->children, hash);
    uint32_t index = (uint32_t)tree->count;
    if (found != NULL) {
        return (uint32_t)(uintptr_t)found;
    }
    if (grow(tree) != 0 || numbermap_put(&tree->children, hash, (void *)(uintptr_t)index) != 0) {
        return 0;
    }
    tree->nodes[index] =
        (struct difftree_node){.line = line, .parent = parent, .function = function};
    tree->count++;
    return index;
}

/* Lines of the same build are the same lines; 0: nobody knows which build it is. */
static uint64_t build_of(const struct model *model, uint64_t frame) {
    const struct model_module *module = &model->modules[model_place(model, frame).module];
    return module->build_id_size != 0 ? XXH3_64bits(module->build_id, module->build_id_size) : 0;
}

static void charge(struct difftree_node *leaf, const struct model_context *context) {
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

static bool is_main(const struct names_frame *frame) {
    return frame->function != NULL && !frame->inlined && strcmp(frame->function, "main") == 0;
}

/* The function of a frame, whose hash is made once. 0: out of memory. */
static uint32_t function_of(struct words *words, const struct names_frame *frame) {
    uint64_t key = (uint64_t)(uintptr_t)frame;
    uint32_t id = (uint32_t)(uintptr_t)numbermap_get(&words->frames, key);
    if (id == 0) {
        id = word_id(words, function_hash(words, frame));
        if (id != 0 && numbermap_put(&words->frames, key, (void *)(uintptr_t)id) != 0) {
            return 0;
        }
    }
    return id;
}

/* One function further in. What the system runs before main, and all outside of it, is not told
 * (pathwalk()); a function that called itself is one, and the innermost call leads on. */
static int enter(struct growing *growing, struct place *place, const struct names_frame *frame,
                 uint64_t build) {
    uint32_t function = function_of(growing->words, frame);
    const struct difftree_node *here = &growing->tree->nodes[place->at];
    bool startup = pathwalk_is_startup(frame) ||
                   (place->at == DIFFTREE_ROOT && pathwalk_is_unnamed_libc(frame));
    if (function == 0) {
        return -1;
    }
    if (startup || is_main(frame)) {
        *place = (struct place){.startup = startup ? function : 0};
        here = &growing->tree->nodes[DIFFTREE_ROOT];
    }
    if (!startup &&
        (place->at == DIFFTREE_ROOT || frame->function == NULL || here->function != function)) {
        place->at = child_of(growing->tree, place->at, place->line, function);
        if (place->at == 0) {
            return -1;
        }
        growing->tree->nodes[place->at].build = build;
        growing->tree->nodes[place->at].named = frame->function != NULL;
    }
    place->line = startup ? 0 : frame->function != NULL ? frame->line : frame->offset;
    return 0;
}

static int enter_node(struct growing *growing, uint32_t id) {
    const struct model *model = growing->side->model;
    uint64_t frame = model->nodes[id].frame;
    struct place place = growing->places[model->nodes[id].parent];
    size_t count = 0;
    const struct names_frame *frames = NULL;
    int result = 0;
    if (frame >= MEMTRACE_FRAME_CLASSES) {
        frames = names_frames(growing->side->names, frame, &count);
    }
    for (size_t i = count; result == 0 && i-- > 0;) {
        result = enter(growing, &place, &frames[i], build_of(model, frame));
    }
    place.is_known = true;
    growing->places[id] = place;
    return result;
}

/* The leaf of the path that ends in this node. 0: out of memory. */
static uint32_t leaf_of(struct growing *growing, uint32_t id) {
    const struct model *model = growing->side->model;
    size_t count = 0;
    struct place place;
    for (uint32_t at = id; !growing->places[at].is_known; at = model->nodes[at].parent) {
        growing->chain[count++] = at;
    }
    while (count > 0) {
        if (enter_node(growing, growing->chain[--count]) != 0) {
            return 0;
        }
    }
    place = growing->places[id];
    if (place.at == DIFFTREE_ROOT && place.startup != 0) { /* the system itself allocates */
        place.at = child_of(growing->tree, DIFFTREE_ROOT, 0, place.startup);
        if (place.at == 0) {
            return 0;
        }
    }
    return child_of(growing->tree, place.at, place.line, DIFFTREE_ALLOCATION);
}

/* ---- Children in order ---- */

static int by_parent(const void *left, const void *right, void *context) {
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

static int put_in_order(struct difftree *tree) {
    tree->order = calloc(tree->count, sizeof *tree->order);
    if (tree->order == NULL) {
        return -1;
    }
    for (size_t i = 1; i < tree->count; i++) {
        tree->order[i - 1] = (uint32_t)i;
    }
    qsort_r(tree->order, tree->count - 1, sizeof *tree->order, by_parent, tree->nodes);
    for (size_t i = 0; i + 1 < tree->count; i++) {
        struct difftree_node *parent = &tree->nodes[tree->nodes[tree->order[i]].parent];
        if (parent->child_count++ == 0) {
            parent->first_child = (uint32_t)i;
        }
    }
    numbermap_free(&tree->children);
    return 0;
}

/* ---- Making them ---- */

/* A program that recorded no call paths has totals, but no contexts: they become one leaf. */
static struct model_context whole(const struct model *model) {
    const struct model_totals *totals = &model->totals;
    return (struct model_context){.peak_bytes = totals->maximum_bytes,
                                  .live_bytes = totals->live_bytes,
                                  .live_blocks = totals->live_blocks,
                                  .total_bytes = totals->total_bytes,
                                  .allocations = totals->allocations,
                                  .temporary = totals->temporary};
}

/* One leaf for each name of the innermost frames. 0: out of memory. */
static uint32_t named_leaf(struct growing *growing, uint32_t id, enum diff_by by) {
    enum { FILES = 3, MODULES = 4, NOTHING = 5 };
    const struct report report = {.model = growing->side->model, .names = growing->side->names};
    const struct names_frame *frame = pathwalk(&report, id).frame;
    uint64_t hash = NOTHING;
    uint32_t function;
    if (frame != NULL && by == DIFF_BY_FUNCTION) {
        hash = function_hash(growing->words, frame);
    } else if (frame != NULL && by == DIFF_BY_FILE && frame->file != NULL) {
        hash = hash_part(pathname_base(frame->file), FILES);
    } else if (frame != NULL) {
        hash = hash_part(pathname_base(frame->module), MODULES);
    }
    function = word_id(growing->words, hash);
    return function != 0 ? child_of(growing->tree, DIFFTREE_ROOT, 0, function) : 0;
}

static int add_contexts(struct growing *growing, enum diff_by by) {
    const struct model *model = growing->side->model;
    struct model_context all = whole(model);
    bool any = false;
    for (size_t i = 0; i <= model->context_count; i++) {
        bool is_last = i == model->context_count;
        const struct model_context *context = is_last ? &all : &model->contexts[i];
        uint32_t leaf;
        if (is_last ? any : context->class != MODEL_HEAP) {
            continue;
        }
        any = true;
        leaf = by == DIFF_BY_PATH ? leaf_of(growing, context->path)
                                  : named_leaf(growing, context->path, by);
        if (leaf == 0) {
            return -1;
        }
        charge(&growing->tree->nodes[leaf], context);
    }
    return 0;
}

static int grow_tree(struct growing *growing, enum diff_by by) {
    size_t count = growing->side->model->node_count + 1;
    int result = -1;
    growing->places = calloc(count, sizeof *growing->places);
    growing->chain = calloc(count, sizeof *growing->chain);
    if (growing->places != NULL && growing->chain != NULL && grow(growing->tree) == 0) {
        growing->tree->nodes[growing->tree->count++] = (struct difftree_node){0}; /* the root */
        growing->places[0].is_known = true;
        result = add_contexts(growing, by);
    }
    free(growing->places);
    free(growing->chain);
    return result;
}

static void free_tree(struct difftree *tree) {
    numbermap_free(&tree->children);
    free(tree->nodes);
    free(tree->order);
    *tree = (struct difftree){0};
}

/* By functions, files or modules the tree is flat: one leaf for each name of innermost frames. */
static int make_tree(struct difftree *tree, struct words *words, const struct diff_side *side,
                     enum diff_by by) {
    struct growing growing = {.tree = tree, .words = words, .side = side};
    *tree = (struct difftree){0};
    if (grow_tree(&growing, by) != 0 || put_in_order(tree) != 0) {
        free_tree(tree);
        return -1;
    }
    return 0;
}

/* ---- Rows ---- */

/* Rows while they come. */
struct collecting {
    struct diff *diff;
    const struct difftree *trees;
    size_t room;
};

static int add_row(void *context, uint32_t left, uint32_t right) {
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
        return 0;
    }
    if (array_grow(&diff->rows, &collecting->room, diff->row_count, sizeof *diff->rows) != 0) {
        return -1;
    }
    diff->rows[diff->row_count++] = row;
    return 0;
}

static struct diff_costs totals_of(const struct model *model) {
    struct diff_costs costs;
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        costs.of[metric] = metric_total(metric, model).main;
    }
    return costs;
}

static int match(struct diff *diff, struct words *words, const struct diff_options *options) {
    struct difftree trees[2] = {{0}, {0}};
    struct collecting collecting = {.diff = diff, .trees = trees};
    int result = make_tree(&trees[0], words, &diff->sides[0], options->by);
    if (result == 0) {
        result = make_tree(&trees[1], words, &diff->sides[1], options->by);
    }
    if (result == 0) {
        result = diffmatch(trees, options->line_tolerance, add_row, &collecting);
    }
    free_tree(&trees[0]);
    free_tree(&trees[1]);
    return result;
}

static int suppress(struct diff *diff, size_t side) {
    struct diff_side *of = &diff->sides[side];
    if (of->suppressions == NULL || !model_has_leaks(of->model)) {
        return 0;
    }
    if (suppressions_apply(of->suppressions, of->model, of->names, &diff->applied[side], NULL) !=
        0) {
        return -1;
    }
    of->model = &diff->applied[side];
    diff->is_applied[side] = true;
    return 0;
}

int diff_make(struct diff *diff, const struct diff_side sides[2],
              const struct diff_options *options) {
    struct words words = {0};
    int result = 0;
    *diff = (struct diff){.sides = {sides[0], sides[1]}, .by = options->by};
    for (size_t side = 0; result == 0 && side < 2; side++) {
        result = suppress(diff, side);
        if (result == 0) {
            diff->totals[side] = totals_of(diff->sides[side].model);
            result = note_functions(&words, &diff->sides[side]);
        }
    }
    if (result == 0) {
        result = match(diff, &words, options);
    }
    free_words(&words);
    if (result != 0) {
        diff_free(diff);
    }
    return result;
}

void diff_free(struct diff *diff) {
    for (size_t side = 0; side < 2; side++) {
        if (diff->is_applied[side]) {
            suppressions_applied_free(&diff->applied[side]);
        }
        diff->is_applied[side] = false;
    }
    free(diff->rows);
    diff->rows = NULL;
    diff->row_count = 0;
}

int64_t diff_change(const struct diff_costs costs[2], enum metric metric) {
    return (int64_t)(costs[1].of[metric] - costs[0].of[metric]);
}

/* By growth; then by what it costs now; then as they were found, which contexts tell. */
static int by_growth(const void *left, const void *right, void *context) {
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
        qsort_r(diff->rows, diff->row_count, sizeof *diff->rows, by_growth, &metric);
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
    struct diff_functions *functions = calloc(1, sizeof *functions);
    for (size_t side = 0; functions != NULL && side < 2; side++) {
        if (note_functions(&functions->words, &sides[side]) != 0) {
            diff_functions_close(functions);
            functions = NULL;
        }
    }
    return functions;
}

void diff_functions_close(struct diff_functions *functions) {
    if (functions != NULL) {
        free_words(&functions->words);
        free(functions);
    }
}

uint32_t diff_function(struct diff_functions *functions, const struct names_frame *frame) {
    return function_of(&functions->words, frame);
}
