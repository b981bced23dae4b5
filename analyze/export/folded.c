/* SPDX-License-Identifier: MIT */
/*
 * folded.c: folded stacks, one line a call path, outermost function first:
 *     main;parse;make_node 4096
 * That is what flamegraph.pl, inferno and most viewers of flame graphs read.
 */
#include "analyze/export/mergedtree.h"
#include "analyze/rows/safetext.h"

#include <inttypes.h>
#include <stdlib.h>

/* ';' separates functions and the last space the number: a name has no ';' and no line end. */
static void put_label(FILE *out, const char *label) {
    while (*(label = put_safe_until(out, label, ";")) != '\0') {
        fputc_unlocked(':', out);
        label++;
    }
}

/* One stack: `path` is the calls from the outermost to this one. */
static void put_stack(const struct export *export, const struct calltree *tree,
                      const uint32_t *path, size_t depth) {
    char label[MERGEDTREE_LABEL];
    for (size_t i = 0; i < depth; i++) {
        if (i != 0) {
            fputc_unlocked(';', export->out);
        }
        put_label(export->out, mergedtree_label(export, tree->calls[path[i]].frame, label));
    }
    fprintf(export->out, " %" PRIu64 "\n", tree->calls[path[depth - 1]].self.main);
}

static int put_stacks(const struct export *export, const struct calltree *tree) {
    uint32_t *path = calloc(tree->count, sizeof *path);
    size_t depth = 0;
    if (path == NULL) {
        return -1;
    }
    for (uint32_t at = mergedtree_next(tree, 0, &depth); at != 0;
         at = mergedtree_next(tree, at, &depth)) {
        path[depth - 1] = at;
        if (tree->calls[at].self.main != 0) {
            put_stack(export, tree, path, depth);
        }
    }
    free(path);
    return 0;
}

int export_folded(const struct export *export, struct error *error) {
    struct calltree tree;
    int result;
    if (mergedtree_open(&tree, export, export->cost, error) != 0) {
        return -1;
    }
    result = put_stacks(export, &tree);
    calltree_free(&tree);
    return result == 0 ? 0 : error_set(error, "out of memory");
}
