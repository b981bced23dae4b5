/* SPDX-License-Identifier: MIT */
/*
 * bulk.c: call paths that are written whole, each with all of its frames, take contexts times
 * depth: a recursion 20,000 deep makes gigabytes. How many that would be is counted before anything
 * is written.
 */
#include "analyze/report/reports.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES UINT64_C(100000000)

enum {
    JSON_FRAME_BYTES = 200, /* of a frame's members, but for the texts */
    CSV_FRAME_BYTES = 12,
};

struct bulk {
    uint64_t frames;
    uint64_t bytes;
};

static size_t length_of(const char *text) {
    return text != NULL ? strlen(text) : 0;
}

/* What one node adds to each path through it. */
static struct bulk own_bulk(const struct report *report, uint64_t recorded) {
    bool is_json = report->options.format == REPORT_JSON;
    struct bulk own = {0};
    size_t count;
    const struct names_frame *frames = names_frames(report->names, recorded, &count);
    for (size_t i = 0; recorded >= MEMTRACE_FRAME_CLASSES && i < count; i++) {
        own.frames++;
        own.bytes += length_of(frames[i].function) + length_of(frames[i].file) +
                     (is_json ? JSON_FRAME_BYTES + length_of(frames[i].module) : CSV_FRAME_BYTES);
    }
    return own;
}

/* Each parent comes before its children. Places without a node are not touched. */
static void add_up(const struct report *report, struct bulk *paths) {
    const struct model *model = report->model;
    for (size_t id = 1; id < model->node_count; id++) {
        const struct model_node *node = &model->nodes[id];
        if (node->frame != 0) {
            struct bulk own = own_bulk(report, node->frame);
            paths[id].frames = paths[node->parent].frames + own.frames;
            paths[id].bytes = paths[node->parent].bytes + own.bytes;
        }
    }
}

int report_refuse_bulk(const struct report *report, struct error *error) {
    const struct model *model = report->model;
    struct bulk all = {0};
    struct bulk *paths;
    if (report->options.depth != 0 || report->options.nodes) {
        return 0;
    }
    paths = calloc(model->node_count + 1, sizeof *paths);
    if (paths == NULL || names_prepare_all(report->names) != 0) {
        free(paths);
        return error_set(error, "out of memory");
    }
    add_up(report, paths);
    for (size_t i = 0; i < model->context_count; i++) {
        all.frames += paths[model->contexts[i].path].frames;
        all.bytes += paths[model->contexts[i].path].bytes;
    }
    free(paths);
    if (all.bytes <= MOST_BYTES) {
        return 0;
    }
    return error_set(error,
                     "%zu call paths with %" PRIu64 " frames would take about %" PRIu64
                     " MB: `memtrace report` with --depth N writes the N innermost frames of each "
                     "(0: all of them), with --json --nodes each node of the tree once",
                     model->context_count, all.frames, all.bytes / 1000000);
}
