/* SPDX-License-Identifier: MIT */
/*
 * gprof2dot.c: the JSON input of gprof2dot (--format=json), which draws call graphs:
 *     {"version": 0, "costs": [...], "functions": [{"name", "module"}],
 *      "events": [{"callchain": [function, its caller, ...], "cost": [bytes]}]}
 */
#include "analyze/base/pathname.h"
#include "analyze/export/mergedtree.h"
#include "analyze/rows/jsonwriter.h"

#include <stdlib.h>

static void put_costs(struct jsonwriter *json, enum metric cost) {
    jsonwriter_array(json, "costs");
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "description", metric_name(cost));
    jsonwriter_string(json, "unit", metric_main_heading(cost));
    jsonwriter_end_map(json);
    jsonwriter_end_array(json);
}

static void put_functions(struct jsonwriter *json, const struct export *export,
                          const struct numbering *functions) {
    jsonwriter_array(json, "functions");
    for (size_t i = 0; i < functions->count; i++) {
        const struct names_frame *frame = functions->items[i];
        char label[MERGEDTREE_LABEL];
        jsonwriter_map(json, NULL);
        jsonwriter_string(json, "name", mergedtree_label(export, frame, label));
        jsonwriter_string(json, "module", pathname_base(frame->module));
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
}

static void put_event(struct jsonwriter *json, const struct export *export,
                      const struct calltree *tree, struct numbering *functions, uint32_t at) {
    jsonwriter_map(json, NULL);
    jsonwriter_array(json, "callchain");
    for (uint32_t call = at; call != 0; call = tree->calls[call].parent) {
        jsonwriter_number(json, NULL,
                          mergedtree_number(functions, export, tree->calls[call].frame) - 1);
    }
    jsonwriter_end_array(json);
    jsonwriter_array(json, "cost");
    jsonwriter_number(json, NULL, tree->calls[at].self.main);
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
}

static int put_all(const struct export *export, const struct calltree *tree,
                   struct numbering *functions) {
    struct jsonwriter *json = jsonwriter_open(export->out, JSONWRITER_COMPACT);
    size_t depth = 0;
    if (json == NULL) {
        return -1;
    }
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "version", 0);
    put_costs(json, export->cost);
    put_functions(json, export, functions);
    jsonwriter_array(json, "events");
    for (uint32_t at = mergedtree_next(tree, 0, &depth); at != 0;
         at = mergedtree_next(tree, at, &depth)) {
        if (tree->calls[at].self.main != 0) {
            put_event(json, export, tree, functions, at);
        }
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
    jsonwriter_close(json);
    fputc('\n', export->out);
    return 0;
}

/* What a function takes in a chain: the digits of its number and a comma. */
static int refuse_bulk(const struct calltree *tree, const struct export *export,
                       struct numbering *functions, struct error *error) {
    size_t *sizes = calloc(functions->count + 1, sizeof *sizes);
    int result;
    for (size_t i = 0; sizes != NULL && i < functions->count; i++) {
        sizes[i] = (size_t)snprintf(NULL, 0, "%zu,", i);
    }
    result = sizes != NULL ? mergedtree_refuse_bulk(tree, export, functions, sizes, error)
                           : error_set(error, "out of memory");
    free(sizes);
    return result;
}

int export_gprof2dot(const struct export *export, struct error *error) {
    struct numbering functions = {0};
    struct calltree tree;
    int result;
    if (mergedtree_open(&tree, export, export->cost, error) != 0) {
        return -1;
    }
    if (mergedtree_number_all(&functions, export, &tree) != 0) {
        result = error_set(error, "out of memory");
    } else {
        result = refuse_bulk(&tree, export, &functions, error);
    }
    if (result == 0 && put_all(export, &tree, &functions) != 0) {
        result = error_set(error, "out of memory");
    }
    numbering_free(&functions);
    job_release(tree.calls);
    return result;
}
