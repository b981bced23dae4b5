/* SPDX-License-Identifier: MIT */
/* massiftree.c: groups contexts by their next frame, again and again. See massiftree.h. */
#include "analyze/export/massiftree.h"

#include "analyze/export/mergedtree.h"
#include "analyze/rows/safetext.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 30, PERMILLE = 10 }; /* massif's own: 30 frames, 1 % */

/* Items [first, first + count) that go on with the same place. */
struct group {
    size_t first;
    size_t count;
    uint64_t bytes;
};

struct tree {
    const struct export *export;
    struct massiftree_item *items;
    uint64_t threshold;
};

/* By place; contexts that end here come last. */
static int by_place(const void *left, const void *right) {
    const struct massiftree_item *a = left;
    const struct massiftree_item *b = right;
    if (a->walk.frame == NULL || b->walk.frame == NULL) {
        return (a->walk.frame == NULL) - (b->walk.frame == NULL);
    }
    if (a->walk.frame->place_key != b->walk.frame->place_key) {
        return a->walk.frame->place_key < b->walk.frame->place_key ? -1 : 1;
    }
    return (a->walk.node > b->walk.node) - (a->walk.node < b->walk.node);
}

static int dearest_first(const void *left, const void *right) {
    const struct group *a = left;
    const struct group *b = right;
    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? 1 : -1;
    }
    return (a->first > b->first) - (a->first < b->first);
}

/* The groups of sorted items; NULL where there are none, or no memory. */
static struct group *make_groups(const struct tree *tree, size_t first, size_t count,
                                 size_t *group_count) {
    struct group *groups = calloc(count, sizeof *groups);
    const struct names_frame *before = NULL;
    *group_count = 0;
    for (size_t i = first; groups != NULL && i < first + count; i++) {
        const struct names_frame *frame = tree->items[i].walk.frame;
        if (frame == NULL) {
            break;
        }
        if (before == NULL || frame->place_key != before->place_key) {
            groups[(*group_count)++].first = i;
        }
        groups[*group_count - 1].count++;
        groups[*group_count - 1].bytes += tree->items[i].bytes;
        before = frame;
    }
    return groups;
}

/* ms_print takes '#' for the begin of a comment. */
static void put_text(FILE *out, const char *text) {
    while (*(text = put_safe_until(out, text, "#")) != '\0') {
        putc_unlocked(':', out);
        text++;
    }
}

static void put_place(const struct tree *tree, const struct pathwalk *walk) {
    const struct model *model = tree->export->model;
    struct model_place place = model_place(model, model->nodes[walk->node].frame);
    const struct names_frame *frame = walk->frame;
    FILE *out = tree->export->out;
    char label[MERGEDTREE_LABEL];
    const char *slash;
    fprintf(out, " 0x%" PRIX64 ": ", place.address - (place.exact || place.address == 0 ? 0 : 1));
    put_text(out, mergedtree_name(tree->export, frame, label));
    if (frame->file != NULL) {
        slash = strrchr(frame->file, '/');
        fputs(" (", out);
        put_text(out, slash != NULL ? slash + 1 : frame->file);
        fprintf(out, ":%u)\n", frame->line);
    } else {
        fputs(" (in ", out);
        put_text(out, frame->module[0] != '\0' ? frame->module : "???");
        fputs(")\n", out);
    }
}

static void put_node(const struct tree *tree, size_t depth, size_t children, uint64_t bytes) {
    fprintf(tree->export->out, "%*sn%zu: %" PRIu64, (int)depth, "", children, bytes);
}

static void put_children(const struct tree *tree, size_t first, size_t count, size_t depth,
                         uint64_t bytes, const struct pathwalk *walk);

static void put_groups(const struct tree *tree, const struct group *groups, size_t kept,
                       size_t count, size_t depth) {
    uint64_t rest = 0;
    for (size_t i = 0; i < kept; i++) {
        const struct group *group = &groups[i];
        struct pathwalk place = tree->items[group->first].walk;
        for (size_t item = group->first; item < group->first + group->count; item++) {
            pathwalk_next(&tree->items[item].walk);
        }
        put_children(tree, group->first, group->count, depth + 1, group->bytes, &place);
    }
    for (size_t i = kept; i < count; i++) {
        rest += groups[i].bytes;
    }
    if (kept < count) {
        put_node(tree, depth + 1, 0, rest);
        fprintf(tree->export->out, " in %zu %s, below massif's threshold (1.00%%)\n", count - kept,
                count - kept == 1 ? "place" : "places, all");
    }
}

/* A node (walk NULL: the root) and what is below it. */
static void put_children(const struct tree *tree, size_t first, size_t count, size_t depth,
                         uint64_t bytes, const struct pathwalk *walk) {
    size_t group_count = 0;
    size_t kept = 0;
    struct group *groups = NULL;
    if (depth < DEEPEST && count != 0) {
        qsort(tree->items + first, count, sizeof *tree->items, by_place);
        groups = make_groups(tree, first, count, &group_count);
    }
    if (group_count != 0) {
        qsort(groups, group_count, sizeof *groups, dearest_first);
    }
    while (kept < group_count && groups[kept].bytes >= tree->threshold && groups[kept].bytes != 0) {
        kept++;
    }
    put_node(tree, depth, kept + (kept < group_count), bytes);
    if (walk == NULL) {
        fputs(" (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n",
              tree->export->out);
    } else {
        put_place(tree, walk);
    }
    if (groups != NULL) {
        put_groups(tree, groups, kept, group_count, depth);
    }
    free(groups);
}

void massiftree_put(const struct export *export, struct massiftree_item *items, size_t count,
                    uint64_t total) {
    const struct tree tree = {export, items, total / 1000 * PERMILLE};
    put_children(&tree, 0, count, 0, total, NULL);
}
