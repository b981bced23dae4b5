/* SPDX-License-Identifier: MIT */
/*
 * trees.c: formats that are the tree of functions, written in its order.
 *
 * folded: folded stacks, one line a call path, outermost function first, as flamegraph.pl, inferno
 * and most viewers of flame graphs read them:
 *     main;parse;make_node 4096
 *
 * gprof2dot: the JSON input of gprof2dot (--format=json), which draws call graphs:
 *     {"version": 0, "costs": [...], "functions": [{"name", "module"}],
 *      "events": [{"callchain": [function, its caller, ...], "cost": [bytes]}]}
 *
 * speedscope: speedscope's own file format: the frames, and a profile for each cost, the chosen one
 * open at first. Profiles are "evented": a call opens at the sum of all costs left of it and closes
 * further right by its own, so that the file grows with calls and not with their depth.
 */
#include "analyze/base/job.h"
#include "analyze/base/pathname.h"
#include "analyze/export/shared.h"
#include "analyze/report/bulk.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/safetext.h"
#include "memtrace/version.h"

#include <inttypes.h>
#include <string.h>

struct trees {
    const struct export *export;
    struct jsonwriter *json;
    struct calltree tree;
    struct numbering functions; /* of all calls; the items are frames */
};

/* The number of a call's function, or of its line by_line, from 0 on. */
static size_t trees_function(struct trees *trees, const struct call *call) {
    const struct names_frame *frame = call->frame;
    return numbering_add(&trees->functions,
                         trees->export->by_line ? frame->place_key : frame->function_key, frame) -
           1;
}

static struct trees trees_open(const struct export *export, enum metric cost,
                               struct numbering functions) {
    struct trees trees = {
        .export = export, .tree = mergedtree_open(export, cost), .functions = functions};
    for (size_t i = 1; i < trees.tree.count; i++) {
        trees_function(&trees, &trees.tree.calls[i]);
    }
    return trees;
}

static void trees_begin_json(struct trees *trees) {
    trees->json = jsonwriter_begin(trees->export->out, JSONWRITER_COMPACT);
    jsonwriter_map(trees->json, NULL);
}

static void trees_end_json(struct trees *trees) {
    jsonwriter_end_map(trees->json);
    fputc('\n', trees->export->out);
}

/* Before a format writes the whole path of each call that has a cost of its own: more than 100 MB
 * of that are refused where export.depth does not bound it. sizes: what each function takes. */
static void trees_refuse_bulk(struct trees *trees, const size_t *sizes) {
    const struct calltree *tree = &trees->tree;
    struct bulk all = {0};
    struct bulk *paths;
    struct error error;
    if (trees->export->is_depth_given) {
        return;
    }
    paths = job_array(tree->count, sizeof *paths);
    for (size_t i = 1; i < tree->count; i++) {
        const struct call *call = &tree->calls[i];
        paths[i].frames = paths[call->parent].frames + 1;
        paths[i].bytes = paths[call->parent].bytes + sizes[trees_function(trees, call)];
        if (call->self.main != 0) {
            all.paths++;
            all.frames += paths[i].frames;
            all.bytes += paths[i].bytes;
        }
    }
    job_release(paths);
    job_check(bulk_refuse(&all, ": --depth N writes paths N calls deep, from main on", &error),
              &error);
}

/* ---- folded ---- */

/* ';' separates functions and the last space the number: a name has no ';' and no line end. */
static char *folded_label(const struct trees *trees, const struct names_frame *frame) {
    char name[EXPORT_LABEL];
    const char *label = export_label(trees->export, frame, name);
    struct job_printing *printing = job_print();
    while (*(label = put_safe_until(printing->out, label, ";")) != '\0') {
        fputc_unlocked(':', printing->out);
        label++;
    }
    fputc_unlocked(';', printing->out);
    return job_printed(printing);
}

void export_folded(const struct export *export) {
    struct trees trees = trees_open(export, export->cost, (struct numbering){0});
    const struct calltree *tree = &trees.tree;
    char **labels = job_array(trees.functions.count, sizeof *labels);
    size_t *sizes = job_array(trees.functions.count, sizeof *sizes); /* with the ';' */
    uint32_t *path = job_array(tree->count, sizeof *path); /* from the outermost call on */
    size_t depth = 0;
    for (size_t i = 0; i < trees.functions.count; i++) {
        labels[i] = folded_label(&trees, trees.functions.items[i]);
        sizes[i] = strlen(labels[i]);
    }
    trees_refuse_bulk(&trees, sizes);
    for (uint32_t at = mergedtree_next(tree, 0, &depth); at != 0;
         at = mergedtree_next(tree, at, &depth)) {
        path[depth - 1] = at;
        for (size_t i = 0; tree->calls[at].self.main != 0 && i < depth; i++) {
            size_t function = trees_function(&trees, &tree->calls[path[i]]);
            fwrite_unlocked(labels[function], 1, sizes[function] - (i + 1 == depth), export->out);
        }
        if (tree->calls[at].self.main != 0) {
            fprintf(export->out, " %" PRIu64 "\n", tree->calls[at].self.main);
        }
    }
}

/* ---- gprof2dot ---- */

static void gprof2dot_put_head(struct trees *trees) {
    struct jsonwriter *json = trees->json;
    enum metric cost = trees->export->cost;
    jsonwriter_number(json, "version", 0);
    jsonwriter_array(json, "costs");
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "description", metric_name(cost));
    jsonwriter_string(json, "unit", metric_main_heading(cost));
    jsonwriter_end_map(json);
    jsonwriter_end_array(json);
    jsonwriter_array(json, "functions");
    for (size_t i = 0; i < trees->functions.count; i++) {
        const struct names_frame *frame = trees->functions.items[i];
        char label[EXPORT_LABEL];
        jsonwriter_map(json, NULL);
        jsonwriter_string(json, "name", export_label(trees->export, frame, label));
        jsonwriter_string(json, "module", pathname_base(frame->module));
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
}

static void gprof2dot_put_event(struct trees *trees, uint32_t at) {
    const struct call *calls = trees->tree.calls;
    struct jsonwriter *json = trees->json;
    jsonwriter_map(json, NULL);
    jsonwriter_array(json, "callchain");
    for (uint32_t call = at; call != 0; call = calls[call].parent) {
        jsonwriter_number(json, NULL, trees_function(trees, &calls[call]));
    }
    jsonwriter_end_array(json);
    jsonwriter_array(json, "cost");
    jsonwriter_number(json, NULL, calls[at].self.main);
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
}

void export_gprof2dot(const struct export *export) {
    struct trees trees = trees_open(export, export->cost, (struct numbering){0});
    size_t *sizes = job_array(trees.functions.count, sizeof *sizes);
    size_t depth = 0;
    for (size_t i = 0; i < trees.functions.count; i++) {
        sizes[i] = (size_t)snprintf(NULL, 0, "%zu,", i); /* in a chain */
    }
    trees_refuse_bulk(&trees, sizes);
    trees_begin_json(&trees);
    gprof2dot_put_head(&trees);
    jsonwriter_array(trees.json, "events");
    for (uint32_t at = mergedtree_next(&trees.tree, 0, &depth); at != 0;
         at = mergedtree_next(&trees.tree, at, &depth)) {
        if (trees.tree.calls[at].self.main != 0) {
            gprof2dot_put_event(&trees, at);
        }
    }
    jsonwriter_end_array(trees.json);
    trees_end_json(&trees);
}

/* ---- speedscope ---- */

static void speedscope_put_frames(struct trees *trees) {
    jsonwriter_map(trees->json, "shared");
    jsonwriter_array(trees->json, "frames");
    for (size_t i = 0; i < trees->functions.count; i++) {
        const struct names_frame *frame = trees->functions.items[i];
        char label[EXPORT_LABEL];
        jsonwriter_map(trees->json, NULL);
        jsonwriter_string(trees->json, "name", export_label(trees->export, frame, label));
        jsonwriter_string(trees->json, "file", frame->file != NULL ? frame->file : frame->module);
        if (trees->export->by_line && frame->line != 0) {
            jsonwriter_number(trees->json, "line", frame->line);
        }
        jsonwriter_end_map(trees->json);
    }
    jsonwriter_end_array(trees->json);
    jsonwriter_end_map(trees->json);
}

static void speedscope_put_event(struct trees *trees, const char *type, const struct call *call,
                                 uint64_t at) {
    jsonwriter_map(trees->json, NULL);
    jsonwriter_string(trees->json, "type", type);
    jsonwriter_number(trees->json, "frame", trees_function(trees, call));
    jsonwriter_number(trees->json, "at", at);
    jsonwriter_end_map(trees->json);
}

/* A call's own cost is left of its callees. Going on from `at` closes what has been written. */
static void speedscope_put_events(struct trees *trees) {
    const struct calltree *tree = &trees->tree;
    size_t depth = 0;
    uint64_t place = 0;
    uint32_t at = mergedtree_next(tree, 0, &depth);
    while (at != 0) {
        uint32_t open = at;
        speedscope_put_event(trees, "O", &tree->calls[at], place);
        place += tree->calls[at].self.main;
        at = mergedtree_next(tree, at, &depth);
        if (tree->calls[open].first_child != 0) {
            continue;
        }
        for (; open != 0 && open != tree->calls[at].parent; open = tree->calls[open].parent) {
            speedscope_put_event(trees, "C", &tree->calls[open], place);
        }
    }
}

static void speedscope_put_profile(struct trees *trees, enum metric metric) {
    struct jsonwriter *json = trees->json;
    bool is_bytes = strcmp(metric_main_heading(metric), "bytes") == 0;
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "type", "evented");
    jsonwriter_string(json, "name", metric_title(metric, trees->export->model));
    jsonwriter_string(json, "unit", is_bytes ? "bytes" : "none");
    jsonwriter_number(json, "startValue", 0);
    jsonwriter_number(json, "endValue", trees->tree.calls[0].cost.main);
    jsonwriter_array(json, "events");
    speedscope_put_events(trees);
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
}

void export_speedscope(const struct export *export) {
    struct trees trees = {.export = export};
    struct calltree all[EXPORT_COSTS];
    for (enum metric metric = 0; metric < EXPORT_COSTS; metric++) {
        trees = trees_open(export, metric, trees.functions);
        all[metric] = trees.tree;
    }
    trees_begin_json(&trees);
    jsonwriter_string(trees.json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    jsonwriter_string(trees.json, "exporter", "memtrace@" MEMTRACE_VERSION);
    jsonwriter_string(trees.json, "name", export->source);
    jsonwriter_number(trees.json, "activeProfileIndex", export->cost);
    speedscope_put_frames(&trees);
    jsonwriter_array(trees.json, "profiles");
    for (enum metric metric = 0; metric < EXPORT_COSTS; metric++) {
        trees.tree = all[metric];
        speedscope_put_profile(&trees, metric);
    }
    jsonwriter_end_array(trees.json);
    trees_end_json(&trees);
}
