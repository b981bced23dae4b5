/* SPDX-License-Identifier: MIT */
/* htmlcalls.c: see htmlcalls.h. */
#include "analyze/export/htmlcalls.h"

#include "analyze/export/mergedtree.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST_NAME = 300 };

struct writer {
    const struct export *export;
    const struct callforest *forest;
    struct jsonwriter *json;
    struct numbering functions;     /* of the calls that are kept */
    struct numbering strings;       /* files and modules */
    uint64_t (*rest)[EXPORT_COSTS]; /* by number of a call: what its callees left out bear */
    uint32_t *rest_count;           /* how many they are */
};

/* ---- Calls ---- */

/* Gives each call that is not kept, but whose caller is, to the caller. */
static int gather_rest(struct writer *writer) {
    const struct callforest *forest = writer->forest;
    writer->rest = calloc(forest->kept, sizeof *writer->rest);
    writer->rest_count = calloc(forest->kept, sizeof *writer->rest_count);
    if (writer->rest == NULL || writer->rest_count == NULL) {
        return -1;
    }
    for (size_t i = 1; i < forest->count; i++) {
        const struct callforest_call *call = &forest->calls[i];
        uint32_t parent = forest->calls[call->parent].number;
        if (call->number != CALLFOREST_OUT || parent == CALLFOREST_OUT) {
            continue;
        }
        writer->rest_count[parent]++;
        for (size_t metric = 0; metric < EXPORT_COSTS; metric++) {
            writer->rest[parent][metric] += call->cost[metric];
        }
    }
    return 0;
}

static int gather_functions(struct writer *writer) {
    for (size_t i = 1; i < writer->forest->count; i++) {
        const struct callforest_call *call = &writer->forest->calls[i];
        if (call->number != CALLFOREST_OUT) {
            mergedtree_number(&writer->functions, writer->export, call->frame);
        }
    }
    return writer->functions.out_of_memory ? -1 : 0;
}

/* A column of the calls: what `value` says of each one that is kept, then of the rests. */
static void put_column(struct writer *writer, const char *name,
                       uint64_t (*value)(struct writer *writer, const struct callforest_call *call,
                                         size_t which),
                       uint64_t (*of_rest)(struct writer *writer, uint32_t parent, size_t which),
                       size_t which) {
    const struct callforest *forest = writer->forest;
    jsonwriter_array(writer->json, name);
    for (size_t i = 0; i < forest->count; i++) {
        if (forest->calls[i].number != CALLFOREST_OUT) {
            jsonwriter_number(writer->json, NULL, value(writer, &forest->calls[i], which));
        }
    }
    for (uint32_t i = 0; i < forest->kept; i++) {
        if (writer->rest_count[i] != 0) {
            jsonwriter_number(writer->json, NULL, of_rest(writer, i, which));
        }
    }
    jsonwriter_end_array(writer->json);
}

static uint64_t parent_of(struct writer *writer, const struct callforest_call *call, size_t which) {
    (void)which;
    return writer->forest->calls[call->parent].number;
}
static uint64_t parent_of_rest(struct writer *writer, uint32_t parent, size_t which) {
    (void)writer;
    (void)which;
    return parent;
}

/* functions[count] is "left out" */
static uint64_t function_of(struct writer *writer, const struct callforest_call *call,
                            size_t which) {
    (void)which;
    return call->frame != NULL
               ? mergedtree_number(&writer->functions, writer->export, call->frame) - 1
               : writer->functions.count;
}
static uint64_t function_of_rest(struct writer *writer, uint32_t parent, size_t which) {
    (void)parent;
    (void)which;
    return writer->functions.count;
}

/* Of a call: 1 inlined, 2 recursive. Of a rest: how many calls it stands for. */
static uint64_t note_of(struct writer *writer, const struct callforest_call *call, size_t which) {
    (void)writer;
    (void)which;
    return (call->frame != NULL && call->frame->inlined ? 1u : 0u) | (call->recursive ? 2u : 0u);
}
static uint64_t note_of_rest(struct writer *writer, uint32_t parent, size_t which) {
    (void)which;
    return writer->rest_count[parent];
}

static uint64_t self_of(struct writer *writer, const struct callforest_call *call, size_t metric) {
    (void)writer;
    return call->self[metric];
}
static uint64_t self_of_rest(struct writer *writer, uint32_t parent, size_t metric) {
    return writer->rest[parent][metric];
}

static void put_calls(struct writer *writer) {
    jsonwriter_map(writer->json, "calls");
    jsonwriter_number(writer->json, "of", writer->forest->count);
    jsonwriter_number(writer->json, "kept", writer->forest->kept);
    jsonwriter_double(writer->json, "least_share", writer->forest->least_share);
    put_column(writer, "parent", parent_of, parent_of_rest, 0);
    put_column(writer, "function", function_of, function_of_rest, 0);
    put_column(writer, "note", note_of, note_of_rest, 0);
    jsonwriter_array(writer->json, "self");
    for (size_t metric = 0; metric < EXPORT_COSTS; metric++) {
        put_column(writer, NULL, self_of, self_of_rest, metric);
    }
    jsonwriter_end_array(writer->json);
    jsonwriter_end_map(writer->json);
}

static void put_name(struct writer *writer, const struct names_frame *frame) {
    char label[MERGEDTREE_LABEL];
    mergedtree_label(writer->export, frame, label);
    if (strlen(label) > LONGEST_NAME) {
        strcpy(label + LONGEST_NAME - 3, "...");
    }
    jsonwriter_string(writer->json, NULL, label);
}

static void put_string_numbers(struct writer *writer, const char *name, bool modules) {
    jsonwriter_array(writer->json, name);
    for (size_t i = 0; i < writer->functions.count; i++) {
        const struct names_frame *frame = writer->functions.items[i];
        const char *file = frame->file != NULL ? frame->file : "";
        const char *text = modules ? frame->module : file;
        jsonwriter_number(writer->json, NULL,
                          numbering_add(&writer->strings, numbering_key(text), text) - 1);
    }
    jsonwriter_end_array(writer->json);
}

/* Columns, as of the calls. */
static int put_functions(struct writer *writer) {
    jsonwriter_map(writer->json, "functions");
    jsonwriter_array(writer->json, "name");
    for (size_t i = 0; i < writer->functions.count; i++) {
        put_name(writer, writer->functions.items[i]);
    }
    jsonwriter_end_array(writer->json);
    put_string_numbers(writer, "file", false);
    put_string_numbers(writer, "module", true);
    jsonwriter_end_map(writer->json);
    jsonwriter_array(writer->json, "strings");
    for (size_t i = 0; i < writer->strings.count; i++) {
        jsonwriter_string(writer->json, NULL, writer->strings.items[i]);
    }
    jsonwriter_end_array(writer->json);
    return writer->strings.out_of_memory ? -1 : 0;
}

int htmlcalls_write(struct jsonwriter *json, const struct export *export,
                    const struct callforest *forest) {
    struct writer writer = {.export = export, .forest = forest, .json = json};
    int result = -1;
    if (gather_rest(&writer) == 0 && gather_functions(&writer) == 0) {
        put_calls(&writer);
        result = put_functions(&writer);
    }
    free(writer.rest);
    free(writer.rest_count);
    numbering_free(&writer.functions);
    numbering_free(&writer.strings);
    return result;
}
