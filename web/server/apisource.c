/* SPDX-License-Identifier: MIT */
/* apisource.c: source files: what their lines cost, and their text. Listed in routes.c. */
#include "web/server/apilist.h"

#include "analyze/base/pathname.h"
#include "analyze/report/framesums.h"
#include "analyze/rows/style.h"
#include "ask/option.h"
#include "web/server/apicache.h"
#include "web/server/apimetric.h"
#include "web/server/apitable.h"
#include "web/server/hub.h"
#include "web/server/sourcetext.h"

#include <stdlib.h>
#include <string.h>

/* ---- Their numbers: 0, 1, ... in the order of the source's nodes, whatever is selected ---- */

struct sourcefiles {
    const struct names_frame **items; /* a frame of each */
    size_t count, room;
    struct numbermap numbers; /* by framesums_key(): the number + 1 */
};

static void *make_files(const void *wish, const struct replay_options *replay) {
    const struct answer *view = wish;
    struct sourcefiles *files = job_alloc(sizeof *files);
    (void)replay;
    for (size_t id = 1; id < view->whole->node_count; id++) {
        uint64_t recorded = view->whole->nodes[id].frame;
        size_t count = 0;
        const struct names_frame *frames = NULL;
        if (recorded >= MEMTRACE_FRAME_CLASSES) {
            frames = names_frames(view->names, recorded, &count);
        }
        for (size_t i = 0; i < count; i++) {
            uint64_t key = framesums_key(FRAMESUMS_FILE, &frames[i]);
            if (key != 0 && numbermap_get(&files->numbers, key) == NULL) {
                job_grow(&files->items, &files->room, files->count, sizeof *files->items);
                numbermap_set(&files->numbers, key, (void *)(files->count + 1));
                files->items[files->count++] = &frames[i];
            }
        }
    }
    return files;
}

static size_t bytes_of_files(const void *value) {
    const struct sourcefiles *files = value;
    return sizeof *files + files->room * sizeof *files->items +
           files->numbers.places * sizeof *files->numbers.entries;
}

static const struct apicache_kind files_kind = {make_files, bytes_of_files};

static const struct sourcefiles *files_of(struct api_call *call) {
    return apicache_get(call, call->view, "source files", &files_kind, call->view);
}

/* The frame of the file that the path of the request names. */
static const struct names_frame *asked_file(struct api_call *call) {
    const struct sourcefiles *files = files_of(call);
    uint64_t number;
    if (quantity_u64(call->rest, &number) != 0 || number >= files->count) {
        api_refuse(call, 404, "there is no source file '%s'", call->rest);
    }
    return files->items[number];
}

/* ---- All files ---- */

struct file_row {
    uint64_t number;
    const char *file;
    const char *kind;
    uint64_t costs[METRIC_COUNT];
    uint64_t functions;
    uint64_t base; /* of a difference: the metric of the other side, and how much it grew */
    int64_t delta;
};

#define OF(member)   ROWS_FIELD(struct file_row, member)
#define COST(metric) ROWS_FIELD(struct file_row, costs[metric])
static const struct table_column file_columns[] = {
    {"number", "number", TABLE_COUNT, .about = "of /files/{n}", OF(number)},
    {"file", "file", TABLE_TEXT, OF(file)},
    {"own", "code", TABLE_WORD, .about = "own, library or system", OF(kind)},
    {"maximum", "peak", TABLE_BYTES, COST(METRIC_MAXIMUM)},
    {"leaked", "leaked", TABLE_BYTES, COST(METRIC_LEAKED)},
    {"cumulative", "allocated", TABLE_BYTES, COST(METRIC_CUMULATIVE)},
    {"allocations", "allocations", TABLE_COUNT, COST(METRIC_ALLOCATIONS)},
    {"temporary", "temporary", TABLE_COUNT, COST(METRIC_TEMPORARY)},
    {"functions", "functions", TABLE_COUNT, .about = "on call paths that allocate", OF(functions)},
    {"base", "before", TABLE_COUNT, OF(base)},
    {"delta", "change", TABLE_SIGNED, OF(delta)},
};
#undef COST
#undef OF
enum { FILE_ALL = sizeof file_columns / sizeof file_columns[0], FILE_COLUMNS = FILE_ALL - 2 };

/* The file's sums on the other side: of the same path, else of the only one of its name. NULL: it
 * has none. */
static const struct framesums_item *find_file(const struct framesums *sums, const char *file) {
    const struct framesums_item *named = NULL;
    size_t count = 0;
    for (size_t i = 0; i < sums->count; i++) {
        const struct framesums_item *item = &sums->items[i];
        if (strcmp(item->frame->file, file) == 0) {
            return item;
        }
        if (strcmp(pathname_base(item->frame->file), pathname_base(file)) == 0) {
            named = item;
            count++;
        }
    }
    return count == 1 ? named : NULL;
}

/* Of the other side. */
static struct report base_report(struct api_call *call) {
    struct report report = call->report;
    report.names = call->base->names;
    report.model = apimetric_of(call, call->base, METRIC_LEAKED);
    return report;
}

/* Fills base and delta of the rows; files that only the other side has are not shown. */
static void compare_files(struct api_call *call, struct file_row *rows, size_t count) {
    enum metric metric = call->metric < METRIC_COUNT ? call->metric : METRIC_LEAKED;
    const struct report report = base_report(call);
    const struct framesums sums = framesums_make(&report, FRAMESUMS_FILE);
    for (size_t i = 0; i < count; i++) {
        const struct framesums_item *item = find_file(&sums, rows[i].file);
        rows[i].base = item != NULL ? item->inclusive.of[metric].main : 0;
        rows[i].delta = (int64_t)(rows[i].costs[metric] - rows[i].base);
    }
}

/* A row for each file, by number; those without costs have no functions, either. */
static void fill_files(const struct report *report, const struct sourcefiles *files,
                       struct file_row *rows) {
    const struct framesums sums = framesums_make(report, FRAMESUMS_FILE);
    const struct framesums functions = framesums_make(report, FRAMESUMS_FUNCTION);
    for (size_t i = 0; i < files->count; i++) {
        const struct names_frame *frame = files->items[i];
        rows[i] = (struct file_row){
            .number = i, .file = frame->file, .kind = apiframes_kind(report, frame, true)};
    }
    for (size_t i = 0; i < sums.count; i++) {
        size_t number = (size_t)(uintptr_t)numbermap_get(&files->numbers, sums.items[i].key);
        for (enum metric metric = 0; number != 0 && metric < METRIC_COUNT; metric++) {
            rows[number - 1].costs[metric] = sums.items[i].inclusive.of[metric].main;
        }
    }
    for (size_t i = 0; i < functions.count; i++) {
        uint64_t key = framesums_key(FRAMESUMS_FILE, functions.items[i].frame);
        size_t number = (size_t)(uintptr_t)numbermap_get(&files->numbers, key);
        if (key != 0 && number != 0) {
            rows[number - 1].functions++;
        }
    }
}

/* Start-up code's files, which no tree shows, are not shown, either. */
static bool apisource_is_shown(const struct report *report, const struct file_row *row,
                               const struct names_frame *frame) {
    return (row->costs[METRIC_ALLOCATIONS] != 0 || row->costs[METRIC_LEAKED] != 0) &&
           (report->options.all_frames || !pathwalk_is_startup(frame));
}

void api_files(struct api_call *call) {
    static const struct rows file_rows = {ROWS_COLUMNS(file_columns)};
    const struct apitable_rows shown = {
        .rows = &file_rows,
        .count = call->base != NULL ? FILE_ALL : FILE_COLUMNS,
        .sort = call->metric < METRIC_COUNT ? metric_name(call->metric) : "leaked"};
    const struct rows_of of = rows_of_report(&call->report);
    const struct sourcefiles *files = files_of(call);
    struct file_row *rows = job_array(files->count, sizeof *rows);
    const void **records = job_array(files->count, sizeof *records);
    struct report report = call->report;
    size_t count = 0;
    report.model = apimetric_of(call, call->view, METRIC_LEAKED);
    fill_files(&report, files, rows);
    if (call->base != NULL) {
        apimetric_diff_command(call, "file");
        compare_files(call, rows, files->count);
    } else {
        api_command(call, "report %s --flat --by line", apimetric_option(call));
    }
    for (size_t i = 0; i < files->count; i++) {
        if (apisource_is_shown(&call->report, &rows[i], files->items[i])) {
            records[count++] = &rows[i];
        }
    }
    apitable_records(call, NULL, &shown, &of, records, count);
}

/* ---- The lines of one ---- */

static int by_line(const void *left, const void *right) {
    const struct framesums_item *a = *(const struct framesums_item *const *)left;
    const struct framesums_item *b = *(const struct framesums_item *const *)right;
    return (a->frame->line > b->frame->line) - (a->frame->line < b->frame->line);
}

static void put_costs(struct jsonwriter *json, const char *prefix,
                      const struct framesums_costs *costs) {
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", prefix, metric_name(metric));
        jsonwriter_number(json, name, costs->of[metric].main);
    }
}

/* What a line costs, and of a difference what it did on the other side; either may be NULL. */
static void put_line(const struct api_call *call, const struct framesums_item *item,
                     const struct framesums_item *earlier) {
    static const struct framesums_item none;
    const struct names_frame *frame = (item != NULL ? item : earlier)->frame;
    char name[8192];
    item = item != NULL ? item : &none;
    jsonwriter_map(call->json, NULL);
    jsonwriter_number(call->json, "line", frame->line);
    jsonwriter_string(call->json, "function",
                      shortname_of(frame, call->report.options.full_names, name, sizeof name));
    put_costs(call->json, "", &item->inclusive);
    put_costs(call->json, "self_", &item->self);
    if (call->base != NULL) {
        put_costs(call->json, "base_", &(earlier != NULL ? earlier : &none)->inclusive);
    }
    jsonwriter_number(call->json, "paths", item->inclusive.paths);
    jsonwriter_end_map(call->json);
}

struct lines {
    const struct framesums_item **items;
    size_t count;
};

/* Those of one file, by line. */
static struct lines make_lines(const struct report *report, const char *file) {
    const struct framesums sums = framesums_make(report, FRAMESUMS_LINE);
    struct lines lines = {.items = job_array(sums.count, sizeof *lines.items)};
    for (size_t i = 0; i < sums.count; i++) {
        if (strcmp(sums.items[i].frame->file, file) == 0) {
            lines.items[lines.count++] = &sums.items[i];
        }
    }
    qsort(lines.items, lines.count, sizeof *lines.items, by_line);
    return lines;
}

/* Lines are the same if their numbers are: whoever edited a file in between sees it. */
static void put_lines(struct api_call *call, const char *file, const struct lines *lines,
                      const struct lines *earlier) {
    jsonwriter_map(call->json, NULL);
    jsonwriter_string(call->json, "file", file);
    jsonwriter_array(call->json, "lines");
    for (size_t i = 0, k = 0; i < lines->count || k < earlier->count;) {
        uint32_t line = i < lines->count ? lines->items[i]->frame->line : UINT32_MAX;
        uint32_t other = k < earlier->count ? earlier->items[k]->frame->line : UINT32_MAX;
        put_line(call, line <= other ? lines->items[i] : NULL,
                 other <= line ? earlier->items[k] : NULL);
        i += line <= other;
        k += other <= line;
    }
    jsonwriter_end_array(call->json);
    jsonwriter_end_map(call->json);
}

void api_file(struct api_call *call) {
    const struct names_frame *file = asked_file(call);
    struct report report = call->report;
    struct lines lines;
    struct lines earlier = {0};
    report.model = apimetric_of(call, call->view, METRIC_LEAKED);
    lines = make_lines(&report, file->file);
    if (call->base != NULL) {
        const struct report base = base_report(call);
        const struct framesums files = framesums_make(&base, FRAMESUMS_FILE);
        const struct framesums_item *other = find_file(&files, file->file);
        if (other != NULL) {
            earlier = make_lines(&base, other->frame->file);
        }
        api_note(call, "Lines are compared by their numbers.");
    }
    put_lines(call, file->file, &lines, &earlier);
}

/* ---- The text of one ---- */

/* NULL: the file is of none of them. */
static const struct model_module *module_named(const struct model *model, const char *path) {
    for (size_t i = 1; i < model->module_count; i++) {
        if (path[0] != '\0' && strcmp(model->modules[i].path, path) == 0) {
            return &model->modules[i];
        }
    }
    return NULL;
}

void api_file_text(struct api_call *call) {
    static const char *const states[] = {"current", "newer", "differs", "missing", "forbidden"};
    const struct names_frame *file = asked_file(call);
    const struct model *model = call->view->whole;
    const struct hub_options *options = hub_options(call->hub);
    struct sourcetext text = {.state = SOURCETEXT_FORBIDDEN,
                              .note = "The names of this recording are made up."};
    struct jsonwriter *json = call->json;
    /* What was anonymised names things that are not, and says where nothing is. */
    if (strncmp(model->header.executable, "module_", strlen("module_")) != 0) {
        const struct model_module *module = module_named(model, file->module);
        const struct sourcetext_wish wish = {.file = file->file,
                                             .module = file->module,
                                             .build_id = module != NULL ? module->build_id : NULL,
                                             .build_id_size =
                                                 module != NULL ? module->build_id_size : 0,
                                             .debug_folders = options->debug_folders,
                                             .start_ns = model->header.start_realtime_ns,
                                             .maps = options->source_maps,
                                             .map_count = options->source_map_count,
                                             .folders = options->source_folders,
                                             .folder_count = options->source_folder_count,
                                             .only_named = options->only_named_sources,
                                             .served = hub_path(call->view->source)};
        text = sourcetext_read(&wish);
    }
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "file", file->file);
    jsonwriter_string(json, "state", states[text.state]);
    jsonwriter_string(json, "text", text.text);
    jsonwriter_string(json, "language", sourcetext_language(file->file));
    if (text.note != NULL) {
        jsonwriter_string(json, "note", text.note);
    }
    jsonwriter_end_map(json);
}
