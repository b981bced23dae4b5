/* SPDX-License-Identifier: MIT */
/* difftree.c: see difftree.h. */
#include "analyze/report/difftree.h"

#include "analyze/report/calltree.h"
#include "analyze/report/style.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- The vocabulary ---- */

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
static uint32_t word_id(struct difftree_words *words, uint64_t hash) {
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

static int note_frame(struct difftree_words *words, const struct names_frame *frame) {
    if (frame->function == NULL || frame->file != NULL) {
        return 0;
    }
    return numbermap_put(&words->vague, hash_name(frame->function), words);
}

int difftree_note(struct difftree_words *words, const struct diff_side *side) {
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

static uint64_t function_hash(const struct difftree_words *words, const struct names_frame *frame) {
    enum { UNNAMED = 1, IN_FILE = 2 };
    uint64_t hash;
    if (frame->function == NULL) {
        return hash_part(style_base(frame->module), UNNAMED);
    }
    hash = hash_name(frame->function);
    if (frame->file == NULL || numbermap_get(&words->vague, hash) != NULL) {
        return hash;
    }
    return hash_part(style_base(frame->file), hash + IN_FILE);
}

void difftree_free_words(struct difftree_words *words) {
    numbermap_free(&words->ids);
    numbermap_free(&words->vague);
}

/* ---- A tree ---- */

static int grow(struct difftree *tree) {
    size_t capacity = tree->capacity != 0 ? tree->capacity * 2 : 256;
    struct difftree_node *nodes;
    if (tree->count < tree->capacity) {
        return 0;
    }
    if (capacity > UINT32_MAX) {
        return -1;
    }
    nodes = realloc(tree->nodes, capacity * sizeof *nodes);
    if (nodes == NULL) {
        return -1;
    }
    tree->nodes = nodes;
    tree->capacity = capacity;
    return 0;
}

static int add_root(struct difftree *tree) {
    *tree = (struct difftree){0};
    if (grow(tree) != 0) {
        return -1;
    }
    tree->nodes[tree->count++] = (struct difftree_node){0};
    return 0;
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

/* One frame of a path on its way in. */
struct step {
    uint64_t line;
    uint64_t build;
    uint32_t function;
    bool named;
};

struct path {
    struct step *steps; /* innermost first */
    size_t count;
    size_t capacity;
};

static int push(struct path *path, struct step step) {
    if (path->count == path->capacity) {
        size_t capacity = path->capacity != 0 ? path->capacity * 2 : 64;
        struct step *steps = realloc(path->steps, capacity * sizeof *steps);
        if (steps == NULL) {
            return -1;
        }
        path->steps = steps;
        path->capacity = capacity;
    }
    path->steps[path->count++] = step;
    return 0;
}

/* A function that called itself: the call that leads on is the innermost one. */
static bool folds(const struct path *path, const struct step *step) {
    return path->count != 0 && step->named &&
           path->steps[path->count - 1].function == step->function;
}

static int read_path(struct path *path, struct difftree_words *words, const struct report *report,
                     uint32_t id) {
    struct calltree_walk walk = calltree_walk(report, id);
    path->count = 0;
    for (; walk.frame != NULL; calltree_walk_next(&walk)) {
        const struct names_frame *frame = walk.frame;
        struct step step = {.line = frame->function != NULL ? frame->line : frame->offset,
                            .build = build_of(report->model, report->model->nodes[walk.node].frame),
                            .function = word_id(words, function_hash(words, frame)),
                            .named = frame->function != NULL};
        if (step.function == 0 || (!folds(path, &step) && push(path, step) != 0)) {
            return -1;
        }
    }
    return 0;
}

/* Adds a path, from the outermost function in, and returns its leaf. 0: out of memory. */
static uint32_t add_path(struct difftree *tree, const struct path *path) {
    uint32_t at = DIFFTREE_ROOT;
    uint64_t line = 0;
    for (size_t i = path->count; i-- > 0;) {
        const struct step *step = &path->steps[i];
        at = child_of(tree, at, line, step->function);
        if (at == 0) {
            return 0;
        }
        tree->nodes[at].build = step->build;
        tree->nodes[at].named = step->named;
        line = step->line;
    }
    return child_of(tree, at, line, DIFFTREE_ALLOCATION);
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

static int add_context(struct difftree *tree, struct difftree_words *words,
                       const struct report *report, const struct model_context *context,
                       struct path *path) {
    uint32_t leaf;
    if (read_path(path, words, report, context->path) != 0) {
        return -1;
    }
    leaf = add_path(tree, path);
    if (leaf == 0) {
        return -1;
    }
    charge(&tree->nodes[leaf], context);
    return 0;
}

/* One leaf for each name of the innermost frames. */
static int add_named(struct difftree *tree, struct difftree_words *words,
                     const struct report *report, const struct model_context *context,
                     enum diff_by by) {
    enum { FILES = 3, MODULES = 4, NOTHING = 5 };
    const struct names_frame *frame = calltree_walk(report, context->path).frame;
    uint64_t hash = NOTHING;
    uint32_t function;
    uint32_t leaf;
    if (frame != NULL && by == DIFF_BY_FUNCTION) {
        hash = function_hash(words, frame);
    } else if (frame != NULL && by == DIFF_BY_FILE && frame->file != NULL) {
        hash = hash_part(style_base(frame->file), FILES);
    } else if (frame != NULL) {
        hash = hash_part(style_base(frame->module), MODULES);
    }
    function = word_id(words, hash);
    leaf = function != 0 ? child_of(tree, DIFFTREE_ROOT, 0, function) : 0;
    if (leaf == 0) {
        return -1;
    }
    charge(&tree->nodes[leaf], context);
    return 0;
}

static int add_contexts(struct difftree *tree, struct difftree_words *words,
                        const struct diff_side *side, enum diff_by by) {
    struct report report = {.model = side->model, .names = side->names};
    struct model_context all = whole(side->model);
    struct path path = {0};
    bool any = false;
    int result = 0;
    for (size_t i = 0; result == 0 && i <= side->model->context_count; i++) {
        bool is_last = i == side->model->context_count;
        const struct model_context *context = is_last ? &all : &side->model->contexts[i];
        if (is_last ? any : context->class != MODEL_HEAP) {
            continue;
        }
        any = true;
        result = by == DIFF_BY_PATH ? add_context(tree, words, &report, context, &path)
                                    : add_named(tree, words, &report, context, by);
    }
    free(path.steps);
    return result;
}

int difftree_make(struct difftree *tree, struct difftree_words *words, const struct diff_side *side,
                  enum diff_by by) {
    if (add_root(tree) != 0 || add_contexts(tree, words, side, by) != 0 ||
        put_in_order(tree) != 0) {
        difftree_free(tree);
        return -1;
    }
    return 0;
}

void difftree_free(struct difftree *tree) {
    numbermap_free(&tree->children);
    free(tree->nodes);
    free(tree->order);
    *tree = (struct difftree){0};
}
