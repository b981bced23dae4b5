/* SPDX-License-Identifier: MIT */
/*
 * speedscope.c: speedscope's own file format: the frames, and a profile for each cost, the chosen
 * one open at first. Profiles are "evented": a call opens at the sum of all costs left of it and
 * closes further right by its own, so that the file grows with calls and not with their depth.
 */
#include "analyze/export/mergedtree.h"
#include "analyze/rows/jsonwriter.h"
#include "memtrace/version.h"

#include <string.h>

struct writer {
    struct jsonwriter *json;
    const struct export *export;
    struct calltree trees[EXPORT_COSTS];
    struct numbering functions;
};

static void put_frames(struct writer *writer) {
    jsonwriter_map(writer->json, "shared");
    jsonwriter_array(writer->json, "frames");
    for (size_t i = 0; i < writer->functions.count; i++) {
        const struct names_frame *frame = writer->functions.items[i];
        char label[MERGEDTREE_LABEL];
        jsonwriter_map(writer->json, NULL);
        jsonwriter_string(writer->json, "name", mergedtree_label(writer->export, frame, label));
        jsonwriter_string(writer->json, "file", frame->file != NULL ? frame->file : frame->module);
        if (writer->export->by_line && frame->line != 0) {
            jsonwriter_number(writer->json, "line", frame->line);
        }
        jsonwriter_end_map(writer->json);
    }
    jsonwriter_end_array(writer->json);
    jsonwriter_end_map(writer->json);
}

static void put_event(struct writer *writer, const char *type, const struct call *call,
                      uint64_t at) {
    jsonwriter_map(writer->json, NULL);
    jsonwriter_string(writer->json, "type", type);
    jsonwriter_number(writer->json, "frame",
                      mergedtree_number(&writer->functions, writer->export, call->frame) - 1);
    jsonwriter_number(writer->json, "at", at);
    jsonwriter_end_map(writer->json);
}

/* A call's own cost is left of its callees. Going on from `at` closes what has been written. */
static void put_events(struct writer *writer, const struct calltree *tree) {
    size_t depth = 0;
    uint64_t place = 0;
    uint32_t at = mergedtree_next(tree, 0, &depth);
    while (at != 0) {
        uint32_t open = at;
        put_event(writer, "O", &tree->calls[at], place);
        place += tree->calls[at].self.main;
        at = mergedtree_next(tree, at, &depth);
        if (tree->calls[open].first_child != 0) {
            continue;
        }
        for (; open != 0 && open != tree->calls[at].parent; open = tree->calls[open].parent) {
            put_event(writer, "C", &tree->calls[open], place);
        }
    }
}

static void put_profile(struct writer *writer, enum metric metric) {
    const struct calltree *tree = &writer->trees[metric];
    bool is_bytes = strcmp(metric_main_heading(metric), "bytes") == 0;
    jsonwriter_map(writer->json, NULL);
    jsonwriter_string(writer->json, "type", "evented");
    jsonwriter_string(writer->json, "name", metric_title(metric, writer->export->model));
    jsonwriter_string(writer->json, "unit", is_bytes ? "bytes" : "none");
    jsonwriter_number(writer->json, "startValue", 0);
    jsonwriter_number(writer->json, "endValue", tree->calls[0].cost.main);
    jsonwriter_array(writer->json, "events");
    put_events(writer, tree);
    jsonwriter_end_array(writer->json);
    jsonwriter_end_map(writer->json);
}

static int put_all(struct writer *writer) {
    struct jsonwriter *json = jsonwriter_open(writer->export->out, JSONWRITER_COMPACT);
    if (json == NULL) {
        return -1;
    }
    writer->json = json;
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    jsonwriter_string(json, "exporter", "memtrace@" MEMTRACE_VERSION);
    jsonwriter_string(json, "name", writer->export->source);
    jsonwriter_number(json, "activeProfileIndex", writer->export->cost);
    put_frames(writer);
    jsonwriter_array(json, "profiles");
    for (enum metric metric = 0; metric < EXPORT_COSTS; metric++) {
        put_profile(writer, metric);
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
    jsonwriter_close(json);
    fputc('\n', writer->export->out);
    return 0;
}

int export_speedscope(const struct export *export, struct error *error) {
    struct writer writer = {.export = export};
    int result = 0;
    for (enum metric metric = 0; result == 0 && metric < EXPORT_COSTS; metric++) {
        result = mergedtree_open(&writer.trees[metric], export, metric, error);
        if (result == 0) {
            result = mergedtree_number_all(&writer.functions, export, &writer.trees[metric]);
        }
    }
    result = result == 0 && put_all(&writer) == 0 ? 0 : error_set(error, "out of memory");
    numbering_free(&writer.functions);
    for (enum metric metric = 0; metric < EXPORT_COSTS; metric++) {
        job_release(writer.trees[metric].calls);
    }
    return result;
}
