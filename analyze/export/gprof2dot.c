/* SPDX-License-Identifier: MIT */
/*
 * gprof2dot.c: the JSON input of gprof2dot (--format=json), which draws call graphs:
 *     {"version": 0, "costs": [...], "functions": [{"name", "module"}],
 *      "events": [{"callchain": [function, its caller, ...], "cost": [bytes]}]}
 */
#include "analyze/export/functiontable.h"
#include "analyze/export/mergedtree.h"
#include "analyze/rows/jsonwriter.h"

#include <string.h>

static void put_costs(struct jsonwriter *json, enum metric cost) {
    jsonwriter_array(json, "costs");
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "description", metric_name(cost));
    jsonwriter_string(json, "unit", metric_main_heading(cost));
    jsonwriter_end_map(json);
    jsonwriter_end_array(json);
}

static void put_functions(struct jsonwriter *json, const struct export *export,
                          const struct functiontable *functions) {
    jsonwriter_array(json, "functions");
    for (size_t i = 0; i < functions->count; i++) {
        const char *module = functions->frames[i]->module;
        const char *slash = strrchr(module, '/');
        char label[MERGEDTREE_LABEL];
        jsonwriter_map(json, NULL);
        jsonwriter_string(json, "name", mergedtree_label(export, functions->frames[i], label));
        jsonwriter_string(json, "module", slash != NULL ? slash + 1 : module);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
}

static void put_event(struct jsonwriter *json, const struct calltree *tree,
                      const struct functiontable *functions, uint32_t at) {
    jsonwriter_map(json, NULL);
    jsonwriter_array(json, "callchain");
    for (uint32_t call = at; call != 0; call = tree->calls[call].parent) {
        jsonwriter_number(json, NULL, functiontable_number(functions, tree->calls[call].frame));
    }
    jsonwriter_end_array(json);
    jsonwriter_array(json, "cost");
    jsonwriter_number(json, NULL, tree->calls[at].self.main);
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
}

static int put_all(const struct export *export, const struct calltree *tree,
                   const struct functiontable *functions) {
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
            put_event(json, tree, functions, at);
        }
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
    jsonwriter_close(json);
    fputc('\n', export->out);
    return 0;
}

int export_gprof2dot(const struct export *export, struct error *error) {
    struct functiontable functions = {.by_line = export->by_line};
    struct calltree tree;
    int result;
    if (mergedtree_open(&tree, export, export->cost, error) != 0) {
        return -1;
    }
    result = functiontable_add(&functions, &tree);
    if (result == 0) {
        result = put_all(export, &tree, &functions);
    }
    functiontable_free(&functions);
    calltree_free(&tree);
    return result == 0 ? 0 : error_set(error, "out of memory");
}
