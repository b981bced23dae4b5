/* SPDX-License-Identifier: MIT */
/*
 * callgrind.c: a callgrind file, with the costs as its events, the chosen one first.
 *
 * Readers take what a function costs with all it calls as the sum over the calls of it, or as its
 * own cost and the sum over the calls it makes. So that both are right, each function of a call
 * path stands in it once, at its innermost place: of A, B, A, C that is B, A, C. A call that nobody
 * made can only come into being where functions call each other in circles.
 */
#include "analyze/base/job.h"
#include "analyze/base/numbermap.h"
#include "analyze/export/shared.h"
#include "analyze/rows/safetext.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

enum { COSTS = METRIC_COUNT };

static const char *const event_names[COSTS] = {
    [METRIC_MAXIMUM] = "Peak",        [METRIC_LEAKED] = "Live",
    [METRIC_CUMULATIVE] = "Total",    [METRIC_ALLOCATIONS] = "Allocations",
    [METRIC_TEMPORARY] = "Temporary",
};
static const char *const event_titles[COSTS] = {
    [METRIC_MAXIMUM] = "bytes held when the program held most",
    [METRIC_LEAKED] = "bytes never freed, or live now",
    [METRIC_CUMULATIVE] = "bytes ever allocated",
    [METRIC_ALLOCATIONS] = "allocations",
    [METRIC_TEMPORARY] = "allocations freed before their thread's next allocation",
};

/* A line of a function: its own costs, or those of one call that it makes there. */
struct line {
    const struct function *callee; /* NULL: own */
    uint64_t calls;                /* not how often it was called: allocations within */
    unsigned line;
    uint64_t costs[COSTS];
    struct line *next; /* of the same function, in the order of their first use */
};

struct function {
    uint64_t key; /* of module, file and name as they are written */
    const char *module;
    const char *file;
    char *name;
    struct line *first;
    struct line **last;    /* where the next one is noted */
    struct function *next; /* of those that have lines */
};

/* A function of a path, at its innermost place there. */
struct place {
    struct function *function;
    unsigned line;
    uint32_t outer; /* what stands outside of it; 0: nothing */
};

struct callgrind {
    const struct export *export;
    enum metric order[COSTS];
    struct numbermap frames;    /* by address of the names_frame: its function */
    struct numbermap functions; /* by key */
    struct numbermap lines;     /* by function, line and callee */
    struct function *first;
    struct function **last;
    struct place *places; /* paths of several nodes share what is outside */
    size_t place_count;   /* from 1 on */
    size_t place_room;
    uint32_t *paths;          /* by node: its innermost place */
    struct numbering objects; /* texts that have numbers: (1) file.c, later (1) */
    struct numbering files;
    struct numbering names;
};

/* ---- What is in a path ---- */

/* Readers know functions by what is written of them, so what reads the same is the same. */
static struct function *callgrind_function_of(struct callgrind *callgrind,
                                              const struct names_frame *frame) {
    struct function *function = numbermap_get(&callgrind->frames, (uintptr_t)frame);
    char label[EXPORT_LABEL];
    const char *file = frame->file != NULL ? frame->file : "";
    uint64_t key;
    if (function != NULL) {
        return function;
    }
    export_name(callgrind->export, frame, label);
    key = XXH3_64bits(frame->module, strlen(frame->module));
    key = XXH3_64bits_withSeed(file, strlen(file), key);
    key = XXH3_64bits_withSeed(label, strlen(label), key);
    function = numbermap_get(&callgrind->functions, key);
    if (function == NULL) {
        function = job_alloc(sizeof *function);
        *function = (struct function){.key = key,
                                      .module = frame->module[0] != '\0' ? frame->module : "???",
                                      .file = frame->file != NULL ? frame->file : "???",
                                      .name = job_string(label),
                                      .last = &function->first};
        numbermap_set(&callgrind->functions, key, function);
    }
    numbermap_set(&callgrind->frames, (uintptr_t)frame, function);
    return function;
}

static struct line *callgrind_line_of(struct callgrind *callgrind, struct function *function,
                                      unsigned line, const struct function *callee) {
    const uint64_t parts[] = {function->key, line, callee != NULL ? callee->key : 0,
                              callee != NULL};
    uint64_t key = XXH3_64bits(parts, sizeof parts);
    struct line *found = numbermap_get(&callgrind->lines, key);
    if (found != NULL) {
        return found;
    }
    found = job_alloc(sizeof *found);
    found->line = line;
    found->callee = callee;
    numbermap_set(&callgrind->lines, key, found);
    if (function->first == NULL) {
        *callgrind->last = function;
        callgrind->last = &function->next;
    }
    *function->last = found;
    function->last = &found->next;
    return found;
}

/* Its number, from 1 on. */
static uint32_t callgrind_new_place(struct callgrind *callgrind, struct place place) {
    if (callgrind->place_count >= UINT32_MAX - 1) {
        job_fail_memory();
    }
    job_grow(&callgrind->places, &callgrind->place_room, callgrind->place_count + 1,
             sizeof *callgrind->places);
    callgrind->places[++callgrind->place_count] = place;
    return (uint32_t)callgrind->place_count;
}

/* The path with a frame more: if its function stands in it already, it leaves that place, and what
 * is inside of it is put down anew. */
static uint32_t callgrind_enter_frame(struct callgrind *callgrind, uint32_t path,
                                      const struct names_frame *frame) {
    struct function *function = callgrind_function_of(callgrind, frame);
    uint32_t former = path;
    uint32_t at;
    uint32_t entered;
    while (former != 0 && callgrind->places[former].function != function) {
        former = callgrind->places[former].outer;
    }
    entered = at = callgrind_new_place(callgrind, (struct place){function, frame->line, path});
    for (; former != 0 && path != former; path = callgrind->places[path].outer) {
        uint32_t copy = callgrind_new_place(callgrind, callgrind->places[path]);
        callgrind->places[at].outer = copy;
        at = copy;
    }
    if (former != 0) {
        callgrind->places[at].outer = callgrind->places[former].outer;
    }
    return entered;
}

static uint32_t callgrind_enter_node(struct callgrind *callgrind, uint32_t path,
                                     uint64_t recorded) {
    size_t count;
    const struct names_frame *frames = names_frames(callgrind->export->names, recorded, &count);
    while (count-- > 0) {
        path = callgrind_enter_frame(callgrind, path, &frames[count]);
    }
    return path;
}

/* Parents come first, so each node is one step: a recursion costs no more for its depth. */
static void callgrind_enter_nodes(struct callgrind *callgrind) {
    const struct model *model = callgrind->export->model;
    callgrind->paths = job_array(model->node_count + 1, sizeof *callgrind->paths);
    for (size_t id = 1; id < model->node_count; id++) {
        const struct model_node *node = &model->nodes[id];
        if (node->frame != 0) {
            callgrind->paths[id] =
                callgrind_enter_node(callgrind, callgrind->paths[node->parent], node->frame);
        }
    }
    callgrind->paths[0] = callgrind_enter_node(callgrind, 0, MEMTRACE_FRAME_UNKNOWN);
}

static void callgrind_take_path(struct callgrind *callgrind, const struct model_context *context) {
    const struct function *callee = NULL;
    for (uint32_t at = callgrind->paths[context->path]; at != 0; at = callgrind->places[at].outer) {
        const struct place *place = &callgrind->places[at];
        struct line *line = callgrind_line_of(callgrind, place->function, place->line, callee);
        line->calls += context->allocations;
        for (int i = 0; i < COSTS; i++) {
            line->costs[i] += metric_cost(callgrind->order[i], context).main;
        }
        callee = place->function;
    }
}

/* ---- The file ---- */

static void callgrind_put_numbered(struct callgrind *callgrind, const char *key,
                                   struct numbering *numbering, const char *text) {
    FILE *out = callgrind->export->out;
    bool is_new;
    fprintf(out, "%s=(%zu)", key, numbering_of(numbering, numbering_key(text), &is_new));
    if (is_new) {
        fputc(' ', out);
        put_safe(out, text);
    }
    fputc('\n', out);
}

/* A function that is called: as in callgrind's own files, its object and its file where they are
 * not those of its caller. */
static void callgrind_put_callee(struct callgrind *callgrind, const struct function *caller,
                                 const struct function *callee) {
    if (strcmp(caller->module, callee->module) != 0) {
        callgrind_put_numbered(callgrind, "cob", &callgrind->objects, callee->module);
    }
    if (strcmp(caller->file, callee->file) != 0) {
        callgrind_put_numbered(callgrind, "cfi", &callgrind->files, callee->file);
    }
    callgrind_put_numbered(callgrind, "cfn", &callgrind->names, callee->name);
}

static void callgrind_put_costs(FILE *out, const uint64_t *costs) {
    for (int i = 0; i < COSTS; i++) {
        fprintf(out, " %" PRIu64, costs[i]);
    }
    fputc('\n', out);
}

static void callgrind_put_lines(struct callgrind *callgrind, const struct function *function) {
    FILE *out = callgrind->export->out;
    const struct line *own = function->first;
    while (own != NULL && own->callee != NULL) {
        own = own->next;
    }
    fputc('\n', out);
    callgrind_put_numbered(callgrind, "ob", &callgrind->objects, function->module);
    callgrind_put_numbered(callgrind, "fl", &callgrind->files, function->file);
    callgrind_put_numbered(callgrind, "fn", &callgrind->names, function->name);
    if (own == NULL) {
        fprintf(out, "%u 0\n", function->first->line); /* callgrind_annotate wants one to show */
    }
    for (const struct line *line = function->first; line != NULL; line = line->next) {
        if (line->callee != NULL) {
            callgrind_put_callee(callgrind, function, line->callee);
            fprintf(out, "calls=%" PRIu64 " 0\n", line->calls != 0 ? line->calls : 1);
        }
        fprintf(out, "%u", line->line);
        callgrind_put_costs(out, line->costs);
    }
}

static void callgrind_put_head(const struct callgrind *callgrind, const uint64_t *totals) {
    const struct memtrace_header *header = &callgrind->export->model->header;
    FILE *out = callgrind->export->out;
    fputs("# callgrind format\nversion: 1\ncreator: memtrace\n", out);
    fprintf(out, "pid: %" PRIu32 "\n", header->pid);
    fputs("cmd:", out);
    commandline_put(out, header);
    fputs("\npart: 1\n\npositions: line\n", out);
    for (int i = 0; i < COSTS; i++) {
        enum metric metric = callgrind->order[i];
        fprintf(out, "event: %s : %s\n", event_names[metric], event_titles[metric]);
    }
    fputs("events:", out);
    for (int i = 0; i < COSTS; i++) {
        fprintf(out, " %s", event_names[callgrind->order[i]]);
    }
    fputs("\nsummary:", out);
    callgrind_put_costs(out, totals);
}

void export_callgrind(const struct export *export) {
    const struct model *model = export->model;
    struct callgrind callgrind = {.export = export};
    uint64_t totals[COSTS] = {0};
    int place = 0;
    callgrind.last = &callgrind.first;
    callgrind.order[place++] = export->cost;
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        if (metric != export->cost) {
            callgrind.order[place++] = metric;
        }
    }
    export_prepare_names(export);
    callgrind_enter_nodes(&callgrind);
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        if (context->class != MODEL_HEAP) {
            continue;
        }
        callgrind_take_path(&callgrind, context);
        for (int cost = 0; cost < COSTS; cost++) {
            totals[cost] += metric_cost(callgrind.order[cost], context).main;
        }
    }
    callgrind_put_head(&callgrind, totals);
    for (const struct function *function = callgrind.first; function != NULL;
         function = function->next) {
        callgrind_put_lines(&callgrind, function);
    }
    fputs("\ntotals:", export->out);
    callgrind_put_costs(export->out, totals);
}
