/* SPDX-License-Identifier: MIT */
/* mergedtree.c: see mergedtree.h. */
#include "analyze/export/mergedtree.h"

#include "analyze/model/shortname.h"

#include <string.h>

int mergedtree_open(struct calltree *tree, const struct export *export, enum metric metric,
                    struct error *error) {
    const struct report report = {
        .model = export->model,
        .names = export->names,
        .options = {.by_line = export->by_line, .all_frames = export->all_frames}};
    if (calltree_top_down(tree, &report, metric) != 0) {
        calltree_free(tree);
        return error_set(error, "out of memory");
    }
    return 0;
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

const char *mergedtree_label(const struct export *export, const struct names_frame *frame,
                             char *buffer) {
    char full[4096];
    const char *file = frame->file;
    names_spell(frame, full, sizeof full);
    if (frame->function != NULL && !export->full_names) {
        shortname(full, buffer, sizeof full);
    } else {
        strcpy(buffer, full);
    }
    if (export->by_line && file != NULL) {
        size_t used = strlen(buffer);
        const char *slash = strrchr(file, '/');
        snprintf(buffer + used, MERGEDTREE_LABEL - used, frame->line != 0 ? " %s:%u" : " %s",
                 slash != NULL ? slash + 1 : file, frame->line);
    }
    return buffer;
}
