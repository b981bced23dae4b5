/* SPDX-License-Identifier: MIT */
/* onefile.c: see onefile.h. */
#include "web/server/onefile.h"

#include "analyze/base/numbermap.h"
#include "analyze/base/pathname.h"
#include "analyze/model/names.h"
#include "analyze/rows/pathwalk.h"
#include "analyze/window/series.h"
#include "memtrace/version.h"
#include "web/server/apicache.h"
#include "web/server/apilist.h"
#include "web/server/apimetric.h"
#include "web/server/apitable.h"
#include "web/server/dispatch.h"
#include "web/server/uifiles.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Paths beyond MOST_PATHS are put together, and more of them where that is not small enough: so
 * files of large programs stay small enough to mail, and their sums whole. */
enum { MOST_PATHS = 40000, LEAST_PATHS = 1000, PACKED_LIMIT = 1200000 };

#define PLACE "%DATA%" /* in the page: what the data takes the place of */

/* ---- What call paths cost ---- */

/* A hash is made from the allocating function on, so each costs its depth. Of paths deeper than
 * DEEPEST_HASH so many have one that they are of DEEP_FRAMES frames together. */
enum { DEEPEST_HASH = 4096, DEEP_FRAMES = 1 << 23, SUMS_MOST = 1 << 20 };

/* A place on call paths. The first one is the root. */
struct node {
    uint32_t frame; /* among frames */
    uint32_t first_child, next;
    uint32_t number;            /* in the order in which they are written */
    struct model_context *rest; /* of paths that are left out and leave the tree here */
};

/* Where a node of the model is in the tree: each is looked at once, so deep paths cost no more. */
struct known {
    uint32_t node;
    bool is_known;
    bool is_left; /* the tree has it not: node is the innermost of its callers that it has */
};

struct sums {
    const struct report *report;
    const struct model *model;
    const struct model *leaks; /* the same without what is suppressed */
    struct apiframes frames;
    struct node *nodes;
    size_t node_count, node_room;
    struct numbermap children; /* by node and frame: the node */
    const struct model_context **paths;
    uint32_t *ends; /* by path, then by rest: its node */
    size_t path_count;
    size_t kept; /* of them */
    struct model_context *rests;
    size_t rest_count;
    struct known *known; /* by node of the model */
    uint32_t *depths;    /* by node of the model: frames */
    uint32_t *above;     /* nodes of the model on the way up */
    size_t above_room;
};

/* What stands for paths that are left out. */
static const struct names_frame rest_frame = {.function = "(smaller call paths)",
                                              .module = "",
                                              .function_key = UINT64_MAX,
                                              .place_key = UINT64_MAX};

/* The largest of its shares of what a metric counts. */
static double weight_of(const struct model_context *context, const struct model *model) {
    double weight = 0;
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        uint64_t all = metric_total(metric, model).main;
        uint64_t part = metric_cost(metric, context).main;
        if (all != 0 && (double)part / (double)all > weight) {
            weight = (double)part / (double)all;
        }
    }
    return weight;
}

struct weighed {
    const struct model_context *context;
    double weight;
};

static int heaviest_first(const void *left, const void *right) {
    const struct weighed *a = left;
    const struct weighed *b = right;
    return a->weight != b->weight ? (a->weight < b->weight) - (a->weight > b->weight)
                                  : (a->context > b->context) - (a->context < b->context);
}

/* Those that cost something, the dearest first. */
static void list_paths(struct sums *sums) {
    const struct model *model = sums->model;
    struct weighed *weighed = job_array(model->context_count, sizeof *weighed);
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        double weight = context->class == MODEL_HEAP ? weight_of(context, model) : 0;
        if (weight > 0) {
            weighed[sums->path_count++] = (struct weighed){context, weight};
        }
    }
    qsort(weighed, sums->path_count, sizeof *weighed, heaviest_first);
    sums->paths = job_array(sums->path_count, sizeof *sums->paths);
    for (size_t i = 0; i < sums->path_count; i++) {
        sums->paths[i] = weighed[i].context;
    }
    job_release(weighed);
}

static uint64_t child_key(uint32_t node, uint32_t frame) {
    return (uint64_t)node << 32 | frame;
}

static uint32_t add_child(struct sums *sums, uint32_t node, uint32_t frame) {
    uint32_t child = (uint32_t)sums->node_count;
    job_grow(&sums->nodes, &sums->node_room, child, sizeof *sums->nodes);
    numbermap_set(&sums->children, child_key(node, frame), (void *)(uintptr_t)child);
    sums->nodes[child] = (struct node){.frame = frame, .next = sums->nodes[node].first_child};
    sums->nodes[node].first_child = child;
    sums->node_count++;
    return child;
}

/* From a place on to the functions of a frame, the outermost first; calls that are not there are
 * added, or end the way. Start-up code is shown where it allocates itself, as in other trees. */
static void extend(struct sums *sums, struct known *at, uint64_t recorded, bool is_end, bool adds) {
    bool all = sums->report->options.all_frames;
    size_t count;
    const struct names_frame *frames = names_frames(sums->report->names, recorded, &count);
    while (count-- > 0 && !at->is_left) {
        const struct names_frame *frame = &frames[count];
        uint32_t number;
        uint32_t child;
        if (!all && !is_end &&
            (pathwalk_is_startup(frame) || (at->node == 0 && pathwalk_is_unnamed_libc(frame)))) {
            at->node = 0;
            continue;
        }
        at->node = !all && pathwalk_is_main(frame) ? 0 : at->node;
        number = apiframes_add(&sums->frames, frame);
        child = (uint32_t)(uintptr_t)numbermap_get(&sums->children, child_key(at->node, number));
        if (child == 0 && adds) {
            child = add_child(sums, at->node, number);
        }
        at->is_left = child == 0;
        at->node = child != 0 ? child : at->node;
    }
}

/* Where a path is, or leaves the tree. */
static struct known find_path(struct sums *sums, uint32_t path, bool adds) {
    const struct model_node *nodes = sums->model->nodes;
    struct known at = {.is_known = true};
    size_t count = 0;
    for (uint32_t id = nodes[path].parent; id != 0; id = nodes[id].parent) {
        if (sums->known[id].is_known) {
            at = sums->known[id];
            break;
        }
        job_grow(&sums->above, &sums->above_room, count, sizeof *sums->above);
        sums->above[count++] = id;
    }
    while (count-- > 0) {
        uint32_t id = sums->above[count];
        if (nodes[id].frame >= MEMTRACE_FRAME_CLASSES) {
            extend(sums, &at, nodes[id].frame, false, adds);
        }
        sums->known[id] = at;
    }
    if (path != 0) {
        extend(sums, &at, nodes[path].frame, true, adds);
    }
    return at;
}

/* Adds a path that is left out to the rest of where it leaves the tree. */
static void leave_out(struct sums *sums, const struct model_context *context) {
    uint32_t node = find_path(sums, context->path, false).node;
    struct model_context *rest = sums->nodes[node].rest;
    if (rest == NULL) {
        rest = &sums->rests[sums->rest_count++];
        sums->nodes[node].rest = rest;
        sums->ends[sums->kept + sums->rest_count - 1] = node;
    }
    rest->peak_bytes += context->peak_bytes;
    rest->live_bytes += context->live_bytes;
    rest->live_blocks += context->live_blocks;
    rest->total_bytes += context->total_bytes;
    rest->allocations += context->allocations;
    rest->frees += context->frees;
    rest->temporary += context->temporary;
}

static void onefile_make_tree(struct sums *sums) {
    const struct model *model = sums->model;
    sums->ends = job_array(sums->path_count, sizeof *sums->ends);
    sums->rests = job_array(sums->path_count - sums->kept, sizeof *sums->rests);
    sums->known = job_array(model->node_count, sizeof *sums->known);
    sums->depths = job_array(model->node_count, sizeof *sums->depths);
    for (size_t id = 1; id < model->node_count; id++) {
        sums->depths[id] = sums->depths[model->nodes[id].parent] + 1;
    }
    job_grow(&sums->nodes, &sums->node_room, 0, sizeof *sums->nodes);
    sums->nodes[0] = (struct node){.frame = 0};
    sums->node_count = 1;
    for (size_t i = 0; i < sums->kept; i++) {
        sums->ends[i] = find_path(sums, sums->paths[i]->path, true).node;
    }
    for (size_t i = sums->kept; i < sums->path_count; i++) {
        leave_out(sums, sums->paths[i]);
    }
    for (size_t i = 0; i < sums->rest_count; i++) { /* they end in a call of their own */
        uint32_t *end = &sums->ends[sums->kept + i];
        *end = add_child(sums, *end, apiframes_add(&sums->frames, &rest_frame));
    }
}

/* The nodes in their order, each behind its caller; without the root. */
static void onefile_put_nodes(struct api_call *call, struct sums *sums) {
    uint32_t *stack = job_array(sums->node_count, sizeof *stack);
    uint32_t *order = job_array(sums->node_count, sizeof *order);
    uint32_t *depths = job_array(sums->node_count, sizeof *depths);
    size_t waiting = 0;
    uint32_t count = 0;
    stack[waiting++] = 0;
    while (waiting != 0) {
        uint32_t at = stack[--waiting];
        sums->nodes[at].number = count;
        order[count++] = at;
        for (uint32_t child = sums->nodes[at].first_child; child != 0;
             child = sums->nodes[child].next) {
            depths[child] = depths[at] + 1;
            stack[waiting++] = child;
        }
    }
    jsonwriter_map(call->json, "nodes");
    jsonwriter_array(call->json, "depth");
    for (uint32_t i = 1; i < count; i++) {
        jsonwriter_number(call->json, NULL, depths[order[i]]);
    }
    jsonwriter_end_array(call->json);
    jsonwriter_array(call->json, "frame");
    for (uint32_t i = 1; i < count; i++) {
        jsonwriter_number(call->json, NULL, sums->nodes[order[i]].frame);
    }
    jsonwriter_end_array(call->json);
    jsonwriter_end_map(call->json);
}

/* One number a frame: frames of one function have the same. */
static void put_functions(struct api_call *call, const struct sums *sums) {
    struct numbermap known = {0};
    size_t count = 0;
    jsonwriter_array(call->json, "functions");
    for (size_t i = 0; i < sums->frames.count; i++) {
        uint64_t key = sums->frames.items[i]->function_key;
        uintptr_t number = (uintptr_t)numbermap_get(&known, key);
        if (number == 0) {
            number = ++count;
            numbermap_set(&known, key, (void *)number);
        }
        jsonwriter_number(call->json, NULL, number - 1);
    }
    jsonwriter_end_array(call->json);
}

/* Whether there is time for the hash of this path; left: frames of deep ones. */
static bool has_hash(const struct sums *sums, size_t path, uint32_t *left) {
    uint32_t depth = sums->depths[sums->paths[path]->id];
    if (depth > DEEPEST_HASH && depth > *left) {
        return false;
    }
    *left -= depth > DEEPEST_HASH ? depth : 0;
    return true;
}

/* A column of all paths; of rests only sums are known. */
static void put_column(struct api_call *call, const struct sums *sums, const struct rows *rows,
                       unsigned char place) {
    const struct table_column *column = &rows->columns[place];
    struct rows_of of = rows_of_report(&call->report);
    uint32_t left = DEEP_FRAMES;
    of.model = sums->model;
    of.whole = call->view->whole;
    jsonwriter_array(call->json, column->name);
    for (size_t i = 0; i < sums->kept; i++) {
        struct table_cell cell = {.is_known = false};
        if (place != CONTEXT_HASH || has_hash(sums, i, &left)) {
            cell = rows_cell(rows, &of, sums->paths[i], place);
        }
        apitable_cell(call->json, NULL, column->kind, &cell);
        if (cell.is_owned) {
            free((char *)(uintptr_t)cell.text);
        }
    }
    for (size_t i = 0; i < sums->rest_count; i++) {
        struct table_cell cell = {.is_known = false};
        if (column->size != 0 && place != CONTEXT_ID && place != CONTEXT_DEPTH) {
            cell = rows_cell(rows, &of, &sums->rests[i], place);
        }
        apitable_cell(call->json, NULL, column->kind, &cell);
    }
    jsonwriter_end_array(call->json);
}

static void put_columns(struct api_call *call, const struct sums *sums) {
    struct table_column columns[CONTEXT_COLUMNS];
    const struct rows rows = {.columns = columns, .column_count = CONTEXT_COLUMNS};
    apipaths_columns(columns);
    jsonwriter_map(call->json, "cells");
    for (size_t i = 0; i < APIPATHS_SHOWN; i++) {
        if (columns[apipaths_shown[i]].kind != TABLE_PATH) {
            put_column(call, sums, &rows, apipaths_shown[i]);
        }
    }
    jsonwriter_end_map(call->json);
}

/* What suppressions leave of the leaks: of a path that is kept. */
static struct cost leak_of(const struct sums *sums, size_t place) {
    const struct model_context *context = model_find(sums->leaks, sums->paths[place]->id);
    return context != NULL ? metric_cost(METRIC_LEAKED, context) : (struct cost){0, 0};
}

/* Of rests those that are suppressed are not told apart: they are left in them. */
static void onefile_put_leaks(struct api_call *call, const struct sums *sums) {
    jsonwriter_array(call->json, "leaked");
    for (int side = 0; side < 2; side++) {
        jsonwriter_array(call->json, NULL);
        for (size_t i = 0; i < sums->kept; i++) {
            struct cost leak = leak_of(sums, i);
            jsonwriter_number(call->json, NULL, side == 0 ? leak.main : leak.side);
        }
        for (size_t i = 0; i < sums->rest_count; i++) {
            const struct model_context *rest = &sums->rests[i];
            jsonwriter_number(call->json, NULL, side == 0 ? rest->live_bytes : rest->live_blocks);
        }
        jsonwriter_end_array(call->json);
    }
    jsonwriter_end_array(call->json);
}

/*
 * The dearest `limit` call paths, what they cost in columns, by path: from this the page makes its
 * trees, functions, files and lines itself (web/ui/src/sums.ts).
 *   cells   {column of /paths: values}, `leaked`: [bytes, blocks] where suppressions change them
 *   ends    where the path ends in nodes
 *   nodes   {depth, frame}: the call paths as a tree, each node behind its caller
 *   frames, functions   what nodes name; by frame which function it is
 *   left_out, rests     the paths that are not here; the last so many stand for them: each for
 * those that are alike up to there, so that sums are of all
 */
static void api_sums(struct api_call *call) {
    struct sums sums = {.report = &call->report, .frames = apiframes_start(&call->report)};
    size_t limit = (size_t)api_number(call, "limit", SUMS_MOST, 1, SUMS_MOST);
    struct jsonwriter *json = call->json;
    sums.model = apimetric_of(call, call->view, METRIC_MAXIMUM);
    sums.leaks = apimetric_of(call, call->view, METRIC_LEAKED);
    list_paths(&sums);
    sums.kept = sums.path_count < limit ? sums.path_count : limit;
    onefile_make_tree(&sums);
    jsonwriter_map(json, NULL);
    put_columns(call, &sums);
    if (sums.leaks != sums.model) {
        onefile_put_leaks(call, &sums);
    }
    onefile_put_nodes(call, &sums);
    jsonwriter_array(json, "ends");
    for (size_t i = 0; i < sums.kept + sums.rest_count; i++) {
        jsonwriter_number(json, NULL, sums.nodes[sums.ends[i]].number);
    }
    jsonwriter_end_array(json);
    apiframes_write(&sums.frames, json, "frames");
    put_functions(call, &sums);
    jsonwriter_number(json, "left_out", sums.path_count - sums.kept);
    jsonwriter_number(json, "rests", sums.rest_count);
    jsonwriter_end_map(json);
}

/* ---- The answers ---- */

struct writer {
    const struct onefile *page;
    char names[64]; /* parameters: how names are shown */
    FILE *out;
    size_t count;
};

static void put_answer(struct writer *writer, const char *name, const char *path,
                       api_handler handler) {
    const struct dispatch_question question = {.view = writer->page->view,
                                               .path = path,
                                               .names = writer->names,
                                               .handler = handler,
                                               .replay = &writer->page->replay};
    struct reply reply = {.status = 0};
    dispatch_of_view(&question, &reply);
    fprintf(writer->out, "%s\"%s\":", writer->count++ != 0 ? "," : "", name);
    fwrite(reply.bytes, 1, reply.size, writer->out);
    free(reply.bytes);
    free(reply.file_name);
}

/* Those that are tables or figures as they are shown; a profile has no mappings: then that is the
 * answer. Nobody waits for a pass over many events: the page says who makes it. */
static void put_answers(struct writer *writer) {
    static const struct {
        const char *name;
        const char *path;
    } asked[] = {
        {"summary", ""},
        {"timeline", "/timeline?points=700&series=live,resident,swap,virtual,rate,frees"},
        {"marks", "/marks?limit=2000"},
        {"scopes", "/scopes?limit=2000"},
        {"threads", "/threads?limit=10000"},
        {"foreign", "/foreign?limit=10000"},
        {"modules", "/modules?limit=10000"},
        {"suppressed", "/suppressed?limit=1000"},
        {"findings", "/findings?limit=12"},
        {"files", "/files?limit=20000"},
    };
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        put_answer(writer, asked[i].name, asked[i].path, NULL);
    }
    if (writer->page->view->whole->recording.events <= SERIES_PASS_EVENTS) {
        put_answer(writer, "mappings", "/mappings?all=1&limit=10000", NULL);
    }
}

/* Heads of what the page makes itself of the sums: columns, units, totals, commands. */
static void put_heads(struct writer *writer) {
    static const char *const endpoints[] = {"tree", "functions", "paths"};
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
            char name[64];
            char path[96];
            snprintf(name, sizeof name, "%s %s", endpoints[i], metric_name(metric));
            snprintf(path, sizeof path, "/%s?metric=%s&limit=1", endpoints[i], metric_name(metric));
            put_answer(writer, name, path, NULL);
        }
    }
}

static void put_session(struct jsonwriter *json, const struct onefile *page) {
    const struct source *file = page->view->source;
    const char *path = hub_path(file);
    struct hub_status status = {.number = 1,
                                .title = (char *)(uintptr_t)pathname_base(path),
                                .path = (char *)(uintptr_t)path,
                                .kind = hub_kind_of(file),
                                .state = HUB_OPEN,
                                .generation = 1};
    char view[64];
    hub_fingerprint(file, status.fingerprint);
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "version", MEMTRACE_VERSION);
    jsonwriter_array(json, "capabilities");
    jsonwriter_end_array(json);
    jsonwriter_map(json, "limits");
    jsonwriter_end_map(json);
    jsonwriter_array(json, "sources");
    apisession_put_source(json, &status);
    jsonwriter_end_array(json);
    if (page->metric != METRIC_MAXIMUM) {
        snprintf(view, sizeof view, "summary?metric=%s", metric_name(page->metric));
        jsonwriter_string(json, "view", view);
    }
    jsonwriter_bool(json, "by_line", page->by_line);
    jsonwriter_bool(json, "all_frames", page->all_frames);
    if (page->view->question->filters.text != NULL) {
        jsonwriter_string(json, "selected", page->view->question->filters.text);
    }
    jsonwriter_end_map(json);
}

static void close_json(void *json) {
    jsonwriter_close(json);
}

/* The document that the page has inside. */
static void write_document(const struct onefile *page, size_t most_paths, FILE *out) {
    struct writer writer = {.page = page, .out = out};
    struct jsonwriter *json = jsonwriter_open(out, JSONWRITER_COMPACT);
    if (json == NULL) {
        job_fail_memory();
    }
    job_undo(close_json, json);
    snprintf(writer.names, sizeof writer.names, "%s%s%s", page->full_names ? "&full-names" : "",
             page->all_frames ? "&all-frames" : "", page->by_line ? "&by=line" : "");
    fputs("{\"session\":", out);
    put_session(json, page);
    fputs(",\"answers\":{", out);
    put_answers(&writer);
    put_heads(&writer);
    put_answer(&writer, "sums", job_text("/sums?limit=%zu", most_paths), api_sums);
    fputs("}}", out);
}

/* ---- Packing ---- */

/* Of a document with so many paths; the text is not kept. */
struct packing {
    const struct onefile *page;
    size_t most_paths;
    unsigned char *bytes; /* as DecompressionStream("deflate") reads it */
    size_t size, room;
};

static void pack_document(void *what) {
    struct packing *packing = what;
    struct job_printing *text = job_print();
    uLongf size;
    write_document(packing->page, packing->most_paths, text->out);
    job_printed(text);
    size = compressBound(text->size);
    job_reserve(&packing->bytes, &packing->room, size, 1);
    if (compress2(packing->bytes, &size, (const Bytef *)text->text, text->size, 9) != Z_OK) {
        job_fail_memory();
    }
    packing->size = size;
}

/* Of as many paths as the file has room for. */
static struct packing pack_fitting(const struct onefile *page) {
    struct packing packing = {.page = page, .bytes = job_array(1, 1), .most_paths = MOST_PATHS};
    struct error error;
    for (;;) {
        job_check(job_run(pack_document, &packing, NULL, &error), &error);
        if (packing.size <= PACKED_LIMIT || packing.most_paths / 2 < LEAST_PATHS) {
            return packing;
        }
        packing.most_paths /= 2;
    }
}

static void put_base64(FILE *out, const unsigned char *bytes, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        size_t count = size - i < 3 ? size - i : 3;
        unsigned group = (unsigned)bytes[i] << 16 | (count > 1 ? (unsigned)bytes[i + 1] << 8 : 0u) |
                         (count > 2 ? (unsigned)bytes[i + 2] : 0u);
        putc(digits[group >> 18], out);
        putc(digits[group >> 12 & 63], out);
        putc(count > 1 ? digits[group >> 6 & 63] : '=', out);
        putc(count > 2 ? digits[group & 63] : '=', out);
    }
}

/* ---- The page ---- */

void onefile_write(const struct onefile *page, FILE *out) {
    const struct uifile *file = uifiles_find("onefile.html");
    const char *html = file != NULL ? (const char *)file->bytes : NULL;
    const char *place = html != NULL ? memmem(html, file->size, PLACE, sizeof PLACE - 1) : NULL;
    struct packing packing;
    if (place == NULL) {
        job_fail("this memtrace was built without the page: no html");
    }
    packing = pack_fitting(page);
    if (replay_is_cancelled(&page->replay)) {
        job_fail("cancelled");
    }
    fwrite(html, 1, (size_t)(place - html), out);
    put_base64(out, packing.bytes, packing.size);
    place += sizeof PLACE - 1;
    fwrite(place, 1, file->size - (size_t)(place - html), out);
}

struct saving {
    struct onefile *page;
    struct answer view;
    FILE *out;
};

static void save_answer(void *what) {
    struct saving *saving = what;
    saving->view.cache = apicache_begin();
    saving->page->view = &saving->view;
    onefile_write(saving->page, saving->out);
}

int onefile_write_answer(struct onefile *page, const struct answer *answer, FILE *out,
                         struct error *error) {
    struct saving saving = {page, *answer, out};
    return job_run(save_answer, &saving, NULL, error);
}
