/* SPDX-License-Identifier: MIT */
/* diffmatch.c: see diffmatch.h. */
#include "analyze/report/diffmatch.h"

#include "analyze/report/diffloose.h"

#include <stdlib.h>

/* Two nodes whose subtrees are still to be compared; one may be DIFFMATCH_NONE. */
struct task {
    uint32_t nodes[2];
};

struct matching {
    const struct difftree *trees;
    uint32_t tolerance;
    struct task *tasks;
    size_t count;
    size_t capacity;
    uint64_t *lines; /* of the group that is paired, of both sides */
    uint32_t *to;
    size_t room;
};

/* Children of one function, as places in a tree's order. */
struct group {
    size_t start;
    size_t end;
};

static int push(struct matching *matching, uint32_t left, uint32_t right) {
    if (matching->count == matching->capacity) {
        size_t capacity = matching->capacity != 0 ? matching->capacity * 2 : 64;
        struct task *tasks = realloc(matching->tasks, capacity * sizeof *tasks);
        if (tasks == NULL) {
            return -1;
        }
        matching->tasks = tasks;
        matching->capacity = capacity;
    }
    matching->tasks[matching->count++] = (struct task){{left, right}};
    return 0;
}

static const struct difftree_node *child(const struct difftree *tree, size_t place) {
    return &tree->nodes[tree->order[place]];
}

static struct group children_of(const struct difftree *tree, uint32_t node) {
    struct group all = {0, 0};
    if (node != DIFFMATCH_NONE) {
        all.start = tree->nodes[node].first_child;
        all.end = all.start + tree->nodes[node].child_count;
    }
    return all;
}

/* Cuts off the first children, as far as they are of this function. */
static struct group take_group(const struct difftree *tree, struct group *rest, uint32_t function) {
    struct group group = {rest->start, rest->start};
    while (group.end < rest->end && child(tree, group.end)->function == function) {
        group.end++;
    }
    rest->start = group.end;
    return group;
}

static uint32_t next_function(const struct matching *matching, const struct group rest[2]) {
    uint32_t least = UINT32_MAX;
    for (size_t side = 0; side < 2; side++) {
        if (rest[side].start < rest[side].end) {
            uint32_t function = child(&matching->trees[side], rest[side].start)->function;
            least = function < least ? function : least;
        }
    }
    return least;
}

/* How far lines below these two nodes may be apart. */
static uint64_t tolerance_of(const struct matching *matching, struct task task) {
    const struct difftree_node *left = &matching->trees[0].nodes[task.nodes[0]];
    const struct difftree_node *right = &matching->trees[1].nodes[task.nodes[1]];
    if (left->build != 0 && left->build == right->build) {
        return 0;
    }
    return left->named && matching->tolerance != DIFF_ANY_LINE ? matching->tolerance
                                                               : DIFFMATCH_ANY;
}

static int reserve(struct matching *matching, size_t count) {
    if (count > matching->room) {
        free(matching->lines);
        free(matching->to);
        matching->room = count * 2;
        matching->lines = calloc(matching->room, sizeof *matching->lines);
        matching->to = calloc(matching->room, sizeof *matching->to);
    }
    return matching->lines != NULL && matching->to != NULL ? 0 : -1;
}

static int pair_up(struct matching *matching, const struct group groups[2], uint64_t tolerance) {
    size_t counts[2] = {groups[0].end - groups[0].start, groups[1].end - groups[1].start};
    uint64_t *lines;
    if (reserve(matching, counts[0] + counts[1] + 1) != 0) {
        return -1;
    }
    lines = matching->lines;
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < counts[side]; i++) {
            *lines++ = child(&matching->trees[side], groups[side].start + i)->line;
        }
    }
    return diffmatch_lines(matching->lines, counts[0], matching->lines + counts[0], counts[1],
                           tolerance, matching->to);
}

/* Pairs the calls of one function; those without a partner are gone on the left, new on the right.
 */
static int add_group(struct matching *matching, const struct group groups[2], uint64_t tolerance) {
    const struct difftree *trees = matching->trees;
    size_t next = groups[1].start;
    if (pair_up(matching, groups, tolerance) != 0) {
        return -1;
    }
    for (size_t i = groups[0].start; i < groups[0].end; i++) {
        uint32_t to = matching->to[i - groups[0].start];
        size_t partner = groups[1].start + to;
        for (; to != DIFFMATCH_NONE && next < partner; next++) {
            if (push(matching, DIFFMATCH_NONE, trees[1].order[next]) != 0) {
                return -1;
            }
        }
        next += to != DIFFMATCH_NONE;
        if (push(matching, trees[0].order[i],
                 to != DIFFMATCH_NONE ? trees[1].order[partner] : DIFFMATCH_NONE) != 0) {
            return -1;
        }
    }
    for (; next < groups[1].end; next++) {
        if (push(matching, DIFFMATCH_NONE, trees[1].order[next]) != 0) {
            return -1;
        }
    }
    return 0;
}

static int expand(struct matching *matching, struct task task) {
    struct group rest[2] = {children_of(&matching->trees[0], task.nodes[0]),
                            children_of(&matching->trees[1], task.nodes[1])};
    bool both = task.nodes[0] != DIFFMATCH_NONE && task.nodes[1] != DIFFMATCH_NONE;
    uint64_t tolerance = both ? tolerance_of(matching, task) : 0;
    int result = 0;
    while (result == 0 && (rest[0].start < rest[0].end || rest[1].start < rest[1].end)) {
        uint32_t function = next_function(matching, rest);
        struct group groups[2] = {take_group(&matching->trees[0], &rest[0], function),
                                  take_group(&matching->trees[1], &rest[1], function)};
        result = add_group(matching, groups, tolerance);
    }
    return result;
}

static bool is_leaf(const struct difftree *tree, uint32_t node) {
    return node == DIFFMATCH_NONE || (node != DIFFTREE_ROOT && tree->nodes[node].child_count == 0);
}

int diffmatch(const struct difftree trees[2], uint32_t line_tolerance,
              int (*pair)(void *context, uint32_t left, uint32_t right), void *context) {
    struct matching matching = {.trees = trees, .tolerance = line_tolerance};
    struct diffloose loose[2] = {{0}, {0}};
    int result = push(&matching, DIFFTREE_ROOT, DIFFTREE_ROOT);
    while (result == 0 && matching.count != 0) {
        struct task task = matching.tasks[--matching.count];
        if (!is_leaf(&trees[0], task.nodes[0]) || !is_leaf(&trees[1], task.nodes[1])) {
            result = expand(&matching, task);
        } else if (task.nodes[0] == DIFFMATCH_NONE) {
            result = diffloose_add(&loose[1], task.nodes[1]);
        } else if (task.nodes[1] == DIFFMATCH_NONE) {
            result = diffloose_add(&loose[0], task.nodes[0]);
        } else {
            result = pair(context, task.nodes[0], task.nodes[1]);
        }
    }
    if (result == 0) {
        result = diffloose_match(trees, loose, pair, context);
    }
    diffloose_free(&loose[0]);
    diffloose_free(&loose[1]);
    free(matching.tasks);
    free(matching.lines);
    free(matching.to);
    return result;
}
