/* SPDX-License-Identifier: MIT */
/* mergedtree.c: see mergedtree.h. */
#include "analyze/export/mergedtree.h"

#include "analyze/base/pathname.h"
#include "analyze/model/names.h"
#include "analyze/report/bulk.h"

#include <stdlib.h>
#include <string.h>

/* What is below a call of that depth is added to the call. -1: out of memory. */
static int cut(struct calltree *tree, size_t depth) {
    size_t *depths = calloc(tree->count, sizeof *depths);
    for (size_t i = 1; depths != NULL && i < tree->count; i++) {
        struct call *call = &tree->calls[i];
        depths[i] = depths[call->parent] + 1;
        if (depths[i] == depth) {
            call->self = call->cost;
            call->first_child = 0;
        }
    }
    free(depths);
    return depths != NULL ? 0 : -1;
}

int mergedtree_open(struct calltree *tree, const struct export *export, enum metric metric,
                    struct error *error) {
    const struct report report = {
        .model = export->model,
        .names = export->names,
        .options = {.by_line = export->by_line, .all_frames = export->all_frames}};
    *tree = calltree_top_down(&report, metric);
    return export->depth == 0 || cut(tree, export->depth) == 0 ? 0
                                                               : error_set(error, "out of memory");
}

uint32_t mergedtree_skip(const struct calltree *tree, uint32_t at, size_t *depth) {
    while (at != 0 && tree->calls[at].next == 0) {
        at = tree->calls[at].parent;
        --*depth;
    }
    return at != 0 ? tree->calls[at].next : 0;
}

uint32_t mergedtree_next(const struct calltree *tree, uint32_t at, size_t *depth) {
    if (tree->calls[at].first_child != 0) {
        ++*depth;
        return tree->calls[at].first_child;
    }
    return mergedtree_skip(tree, at, depth);
}

const char *mergedtree_name(const struct export *export, const struct names_frame *frame,
                            char *buffer) {
    char full[4096];
    names_spell(frame, full, sizeof full);
    if (frame->function != NULL && !export->full_names) {
        shortname(full, buffer, sizeof full);
    } else {
        strcpy(buffer, full);
    }
    return buffer;
}

const char *mergedtree_label(const struct export *export, const struct names_frame *frame,
                             char *buffer) {
    const char *file = frame->file;
    mergedtree_name(export, frame, buffer);
    if (export->by_line && file != NULL) {
        size_t used = strlen(buffer);
        snprintf(buffer + used, MERGEDTREE_LABEL - used, frame->line != 0 ? " %s:%u" : " %s",
                 pathname_base(file), frame->line);
    }
    return buffer;
}

size_t mergedtree_number(struct numbering *functions, const struct export *export,
                         const struct names_frame *frame) {
    return numbering_add(functions, export->by_line ? frame->place_key : frame->function_key,
                         frame);
}

int mergedtree_number_all(struct numbering *functions, const struct export *export,
                          const struct calltree *tree) {
    for (size_t i = 1; i < tree->count; i++) {
        mergedtree_number(functions, export, tree->calls[i].frame);
    }
    return functions->out_of_memory ? -1 : 0;
}

int mergedtree_refuse_bulk(const struct calltree *tree, const struct export *export,
                           struct numbering *functions, const size_t *sizes, struct error *error) {
    struct bulk all = {0};
    struct bulk *paths = calloc(tree->count, sizeof *paths);
    if (paths == NULL) {
        return error_set(error, "out of memory");
    }
    for (size_t i = 1; i < tree->count; i++) {
        const struct call *call = &tree->calls[i];
        paths[i].frames = paths[call->parent].frames + 1;
        paths[i].bytes = paths[call->parent].bytes +
                         sizes[mergedtree_number(functions, export, call->frame) - 1];
        if (call->self.main != 0) {
            all.paths++;
            all.frames += paths[i].frames;
            all.bytes += paths[i].bytes;
        }
    }
    free(paths);
    return export->is_depth_given
               ? 0
               : bulk_refuse(&all, ": --depth N writes paths N calls deep, from main on", error);
}
