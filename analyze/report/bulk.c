/* SPDX-License-Identifier: MIT */
/* bulk.c: see bulk.h. */
#include "analyze/report/bulk.h"

#include "analyze/report/reports.h"

#include <inttypes.h>
#include <string.h>

#define MOST_BYTES UINT64_C(100000000)

/* Of a frame, but for the texts. */
static const size_t frame_bytes[] = {[BULK_NUMBERS] = 2, [BULK_NAMES] = 12, [BULK_OBJECTS] = 200};

static size_t length_of(const char *text) {
    return text != NULL ? strlen(text) : 0;
}

/* What one node adds to each path through it. */
static struct bulk own_bulk(const struct names *names, enum bulk_form form, uint64_t recorded) {
    struct bulk own = {0};
    size_t count;
    const struct names_frame *frames = names_frames(names, recorded, &count);
    if (recorded < MEMTRACE_FRAME_CLASSES || form == BULK_NUMBERS) {
        own.frames = recorded >= MEMTRACE_FRAME_CLASSES;
        own.bytes = own.frames * frame_bytes[form];
        return own;
    }
    for (size_t i = 0; i < count; i++) {
        own.frames++;
        own.bytes += length_of(frames[i].function) + length_of(frames[i].file) + frame_bytes[form] +
                     (form == BULK_OBJECTS ? length_of(frames[i].module) : 0);
    }
    return own;
}

int bulk_refuse_paths(const struct model *model, const struct names *names, enum bulk_form form,
                      const char *advice, struct error *error) {
    struct bulk all = {.paths = model->context_count};
    struct bulk *paths = job_array(model->node_count + 1, sizeof *paths);
    if (names_prepare_all(names) != 0) {
        job_fail_memory();
    }
    /* Each parent comes before its children. Places without a node are not touched. */
    for (size_t id = 1; id < model->node_count; id++) {
        const struct model_node *node = &model->nodes[id];
        if (node->frame != 0) {
            struct bulk own = own_bulk(names, form, node->frame);
            paths[id].frames = paths[node->parent].frames + own.frames;
            paths[id].bytes = paths[node->parent].bytes + own.bytes;
        }
    }
    for (size_t i = 0; i < model->context_count; i++) {
        all.frames += paths[model->contexts[i].path].frames;
        all.bytes += paths[model->contexts[i].path].bytes;
    }
    job_release(paths);
    return bulk_refuse(&all, advice, error);
}

int bulk_refuse(const struct bulk *bulk, const char *advice, struct error *error) {
    if (bulk->bytes <= MOST_BYTES) {
        return 0;
    }
    return error_set(
        error, "%" PRIu64 " call paths with %" PRIu64 " frames would take about %" PRIu64 " MB%s",
        bulk->paths, bulk->frames, bulk->bytes / 1000000, advice);
}

int report_refuse_bulk(const struct report *report, struct error *error) {
    if (report->options.depth != 0 || report->options.no_frames) {
        return 0;
    }
    return bulk_refuse_paths(
        report->model, report->names,
        report->options.format == REPORT_JSON ? BULK_OBJECTS : BULK_NAMES,
        ": `memtrace report` with --depth N writes the N innermost frames of each (0: all of "
        "them), with --json each node of the tree once",
        error);
}
