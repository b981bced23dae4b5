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

struct stacks {
    const struct export *export;
    struct calltree tree;
    struct numbering functions;
    char **labels; /* by number of a function, from 0 on */
    size_t *sizes; /* of them, with the ';' */
    uint32_t *path;
};

/* 0, or -1: out of memory. */
static int make_labels(struct stacks *stacks) {
    stacks->labels = calloc(stacks->functions.count + 1, sizeof *stacks->labels);
    stacks->sizes = calloc(stacks->functions.count + 1, sizeof *stacks->sizes);
    stacks->path = calloc(stacks->tree.count, sizeof *stacks->path);
    for (size_t i = 0; stacks->labels != NULL && i < stacks->functions.count; i++) {
        char label[MERGEDTREE_LABEL];
        FILE *memory = open_memstream(&stacks->labels[i], &stacks->sizes[i]);
        if (memory == NULL) {
            return -1;
        }
        put_label(memory, mergedtree_label(stacks->export, stacks->functions.items[i], label));
        fputc_unlocked(';', memory);
        if (fclose(memory) != 0) {
            return -1;
        }
    }
    return stacks->labels != NULL && stacks->sizes != NULL && stacks->path != NULL ? 0 : -1;
}

/* One stack: the path is the calls from the outermost to this one. */
static void put_stack(struct stacks *stacks, size_t depth) {
    const struct call *call = NULL;
    for (size_t i = 0; i < depth; i++) {
        size_t function;
        call = &stacks->tree.calls[stacks->path[i]];
        function = mergedtree_number(&stacks->functions, stacks->export, call->frame) - 1;
        fwrite_unlocked(stacks->labels[function], 1, stacks->sizes[function] - (i + 1 == depth),
                        stacks->export->out);
    }
    fprintf(stacks->export->out, " %" PRIu64 "\n", call->self.main);
}

static void put_stacks(struct stacks *stacks) {
    const struct calltree *tree = &stacks->tree;
    size_t depth = 0;
    for (uint32_t at = mergedtree_next(tree, 0, &depth); at != 0;
         at = mergedtree_next(tree, at, &depth)) {
        stacks->path[depth - 1] = at;
        if (tree->calls[at].self.main != 0) {
            put_stack(stacks, depth);
        }
    }
}

int export_folded(const struct export *export, struct error *error) {
    struct stacks stacks = {.export = export};
    int result;
    if (mergedtree_open(&stacks.tree, export, export->cost, error) != 0) {
        return -1;
    }
    if (mergedtree_number_all(&stacks.functions, export, &stacks.tree) != 0 ||
        make_labels(&stacks) != 0) {
        result = error_set(error, "out of memory");
    } else {
        result =
            mergedtree_refuse_bulk(&stacks.tree, export, &stacks.functions, stacks.sizes, error);
    }
    if (result == 0) {
        put_stacks(&stacks);
    }
    for (size_t i = 0; stacks.labels != NULL && i < stacks.functions.count; i++) {
        free(stacks.labels[i]);
    }
    free(stacks.labels);
    free(stacks.sizes);
    free(stacks.path);
    numbering_free(&stacks.functions);
    job_release(stacks.tree.calls);
    return result;
}
