/* SPDX-License-Identifier: MIT */
/*
 * callpaths.c: names of functions and call paths as texts, the SQL functions of a session, and the
 * table of the frames of each call path. See vtable.h.
 */
#include "analyze/base/arena.h"
#include "analyze/base/array.h"
#include "analyze/base/job.h"
#include "analyze/base/numbermap.h"
#include "analyze/base/pattern.h"
#include "analyze/model/names.h"
#include "analyze/query/vtable.h"
#include "analyze/rows/number.h"

#include <inttypes.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { NAME_BYTES = 4096, KEPT = 64 };

/* A text that SQLite's values and the cache share; the last one frees it. */
struct shared {
    size_t holders;
    char text[];
};

struct callpaths {
    struct numbermap names; /* by address of the frame's struct */
    struct arena memory;    /* of the names */
    struct kept {
        uint32_t node;
        struct shared *path;     /* NULL: none */
    } kept[KEPT];                /* by node modulo KEPT */
    uint32_t *grouped;           /* NULL: not asked for yet */
    struct job_memory *grouping; /* what that takes */
};

struct callpaths *callpaths_new(void) {
    return job_alloc(sizeof(struct callpaths));
}

static void callpaths_release(struct shared *shared) {
    if (shared != NULL && --shared->holders == 0) {
        sqlite3_free(shared);
    }
}

static void callpaths_release_text(void *text) {
    callpaths_release((struct shared *)((char *)text - offsetof(struct shared, text)));
}

void callpaths_free(struct callpaths *paths) {
    for (size_t i = 0; i < KEPT; i++) {
        callpaths_release(paths->kept[i].path);
    }
    numbermap_free(&paths->names);
    arena_free(&paths->memory);
    job_free(&paths->grouping);
    *paths = (struct callpaths){0};
}

/* ---- Names ---- */

const char *callpaths_name(const struct query *query, const struct names_frame *frame) {
    struct callpaths *paths = query->callpaths;
    char text[NAME_BYTES];
    char *name = numbermap_get(&paths->names, (uintptr_t)frame);
    if (name != NULL) {
        return name;
    }
    name = arena_string(&paths->memory,
                        shortname_of(frame, query->source.has_full_names, text, sizeof text));
    return name != NULL && numbermap_put(&paths->names, (uintptr_t)frame, name) == 0 ? name : NULL;
}

/* ---- Paths ---- */

/* Writes the nodes of the path that are code, innermost first. */
static void callpaths_code_nodes(const struct model *model, uint32_t node, uint32_t *nodes) {
    for (; node != 0 && node < model->node_count; node = model->nodes[node].parent) {
        if (model->nodes[node].frame >= MEMTRACE_FRAME_CLASSES) {
            *nodes++ = node;
        }
    }
}

static void callpaths_append_node(const struct query *query, uint32_t node, sqlite3_str *text) {
    uint64_t frame = query->source.whole->nodes[node].frame;
    size_t count;
    const struct names_frame *frames = names_frames(query->source.names, frame, &count);
    while (count > 0) {
        const char *name = callpaths_name(query, &frames[--count]);
        if (sqlite3_str_length(text) != 0) {
            sqlite3_str_appendchar(text, 1, ';');
        }
        sqlite3_str_appendall(text, name != NULL ? name : "");
    }
}

/* The caller frees it by sqlite3_free(). NULL: out of memory. */
static struct shared *callpaths_share(const char *text, size_t length) {
    struct shared *shared = sqlite3_malloc64(sizeof *shared + length + 1);
    if (shared != NULL) {
        shared->holders = 1;
        memcpy(shared->text, text, length);
        shared->text[length] = '\0';
    }
    return shared;
}

static struct shared *callpaths_make_path(const struct query *query, uint32_t node) {
    size_t count = rows_depth(query->source.whole, node);
    uint32_t *nodes = sqlite3_malloc64((count + 1) * sizeof *nodes);
    sqlite3_str *text = sqlite3_str_new(query->db);
    struct shared *shared = NULL;
    if (nodes != NULL) {
        callpaths_code_nodes(query->source.whole, node, nodes);
        while (count > 0) {
            callpaths_append_node(query, nodes[--count], text);
        }
        if (sqlite3_str_errcode(text) == SQLITE_OK) {
            shared = callpaths_share(sqlite3_str_length(text) != 0 ? sqlite3_str_value(text) : "",
                                     (size_t)sqlite3_str_length(text));
        }
    }
    sqlite3_free(nodes);
    sqlite3_free(sqlite3_str_finish(text));
    return shared;
}

void callpaths_put(const struct query *query, uint32_t node, sqlite3_context *out) {
    struct kept *kept = &query->callpaths->kept[node % KEPT];
    if (kept->path == NULL || kept->node != node) {
        struct shared *path = callpaths_make_path(query, node);
        if (path == NULL) {
            sqlite3_result_error_nomem(out);
            return;
        }
        callpaths_release(kept->path);
        *kept = (struct kept){node, path};
    }
    kept->path->holders++;
    sqlite3_result_text(out, kept->path->text, -1, callpaths_release_text);
}

/* ---- Groups ---- */

struct place {
    XXH128_hash_t path;
    uint32_t row;
};

/* Of a path and one function more. A name may have a ';' in it: then it counts as two, since the
 * path's text does not tell them apart. */
static XXH128_hash_t callpaths_extend(XXH128_hash_t path, const char *name) {
    for (;;) {
        size_t length = strcspn(name, ";");
        XXH128_hash_t both[2] = {path, XXH3_128bits(name, length)};
        path = XXH3_128bits(both, sizeof both);
        if (name[length] == '\0') {
            return path;
        }
        name += length + 1;
    }
}

static XXH128_hash_t callpaths_hash_node(const struct query *query, XXH128_hash_t path,
                                         uint64_t frame) {
    size_t count;
    const struct names_frame *frames = names_frames(query->source.names, frame, &count);
    while (count > 0) {
        const char *name = callpaths_name(query, &frames[--count]);
        path = callpaths_extend(path, name != NULL ? name : "");
    }
    return path;
}

static int callpaths_by_path(const void *left, const void *right) {
    const struct place *a = left;
    const struct place *b = right;
    int order = XXH128_cmp(&a->path, &b->path);
    return order != 0 ? order : (a->row > b->row) - (a->row < b->row);
}

/* In a hash of 128 bits two paths are never the same by chance. Parents come before their children.
 */
static void callpaths_group(void *what) {
    const struct query *query = what;
    const struct model *model = query->source.model;
    const struct model *whole = query->source.whole;
    size_t count = model->context_count;
    XXH128_hash_t *hashes = job_array(whole->node_count + 1, sizeof *hashes);
    struct place *places = job_array(count, sizeof *places);
    uint32_t *rows = job_array(count + 1, sizeof *rows);
    for (size_t id = 1; id < whole->node_count; id++) {
        const struct model_node *node = &whole->nodes[id];
        hashes[id] = node->frame >= MEMTRACE_FRAME_CLASSES
                         ? callpaths_hash_node(query, hashes[node->parent], node->frame)
                         : hashes[node->parent];
    }
    for (uint32_t row = 0; row < count; row++) {
        places[row] = (struct place){hashes[model->contexts[row].path], row};
    }
    array_sort(places, count, sizeof *places, callpaths_by_path);
    for (size_t i = 0; i < count; i++) {
        rows[i] = places[i].row;
    }
    job_release(hashes);
    job_release(places);
    query->callpaths->grouped = rows;
}

/* Called by SQLite: a job of its own. */
const uint32_t *callpaths_grouped(const struct query *query) {
    struct callpaths *paths = query->callpaths;
    if (paths->grouped == NULL) {
        job_run(callpaths_group, (void *)(uintptr_t)query, &paths->grouping, NULL);
    }
    return paths->grouped;
}

/* ---- The SQL functions of a session: bytes(n), duration(ns), address(n), path(context),
 * function(context), path_hash(context), X REGEXP Y ---- */

static const struct query *sql_query_of(sqlite3_context *out) {
    return sqlite3_user_data(out);
}

/* Numbers for people: NULL stays NULL, text stays text. */

static bool sql_is_number(sqlite3_value *value) {
    int type = sqlite3_value_numeric_type(value);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static void sql_put_bytes(sqlite3_context *out, int argc, sqlite3_value **argv) {
    struct number number;
    sqlite3_int64 value = sqlite3_value_int64(argv[0]);
    (void)argc;
    if (!sql_is_number(argv[0])) {
        sqlite3_result_value(out, argv[0]);
    } else if (value < 0) {
        vtable_put_text(out, number_change(&number, value));
    } else {
        vtable_put_text(out, number_bytes(&number, (uint64_t)value));
    }
}

static void sql_put_duration(sqlite3_context *out, int argc, sqlite3_value **argv) {
    struct number number;
    char text[sizeof number + 1] = "-";
    sqlite3_int64 value = sqlite3_value_int64(argv[0]);
    (void)argc;
    if (!sql_is_number(argv[0])) {
        sqlite3_result_value(out, argv[0]);
    } else if (value < 0) {
        strcat(text, number_duration(&number, -(uint64_t)value));
        vtable_put_text(out, text);
    } else {
        vtable_put_text(out, number_duration(&number, (uint64_t)value));
    }
}

static void sql_put_address(sqlite3_context *out, int argc, sqlite3_value **argv) {
    char text[24];
    (void)argc;
    if (!sql_is_number(argv[0])) {
        sqlite3_result_value(out, argv[0]);
        return;
    }
    sqlite3_snprintf(sizeof text, text, "0x%llx", sqlite3_value_int64(argv[0]));
    vtable_put_text(out, text);
}

/* The node that an argument names; 0: none. */
static uint32_t sql_node_of(const struct query *query, sqlite3_value *value) {
    sqlite3_int64 id = sqlite3_value_int64(value);
    return sqlite3_value_type(value) == SQLITE_INTEGER && id > 0 &&
                   (sqlite3_uint64)id < query->source.whole->node_count
               ? (uint32_t)id
               : 0;
}

static void sql_put_path(sqlite3_context *out, int argc, sqlite3_value **argv) {
    const struct query *query = sql_query_of(out);
    uint32_t node = sql_node_of(query, argv[0]);
    (void)argc;
    if (node != 0) {
        callpaths_put(query, node, out);
    }
}

static void sql_put_function(sqlite3_context *out, int argc, sqlite3_value **argv) {
    const struct query *query = sql_query_of(out);
    const struct names_frame *frame = rows_innermost(&query->of, sql_node_of(query, argv[0]));
    (void)argc;
    if (frame != NULL) {
        vtable_put_lasting(out, callpaths_name(query, frame));
    }
}

static void sql_put_hash(sqlite3_context *out, int argc, sqlite3_value **argv) {
    const struct query *query = sql_query_of(out);
    uint32_t node = sql_node_of(query, argv[0]);
    char text[24];
    (void)argc;
    if (node != 0) {
        sqlite3_snprintf(sizeof text, text, "%016llx",
                         (unsigned long long)model_hash(query->source.whole, node));
        vtable_put_text(out, text);
    }
}

static void sql_free_regex(void *regex) {
    regfree(regex);
    free(regex);
}

/* Compiled once where the pattern is a constant. NULL: an error is the result. */
static regex_t *sql_pattern_of(sqlite3_context *out, sqlite3_value *value, bool *is_mine) {
    regex_t *regex = sqlite3_get_auxdata(out, 0);
    char reason[PATTERN_WHY];
    *is_mine = regex == NULL;
    if (regex != NULL) {
        return regex;
    }
    regex = malloc(sizeof *regex);
    if (regex == NULL) {
        sqlite3_result_error_nomem(out);
        return NULL;
    }
    if (pattern_compile(regex, (const char *)sqlite3_value_text(value), reason) != 0) {
        char *message;
        free(regex);
        message = sqlite3_mprintf("REGEXP: %s: '%s'", reason, sqlite3_value_text(value));
        sqlite3_result_error(out, message != NULL ? message : reason, -1);
        sqlite3_free(message);
        return NULL;
    }
    return regex;
}

/* X REGEXP Y is regexp(Y, X). */
static void sql_put_match(sqlite3_context *out, int argc, sqlite3_value **argv) {
    const char *text;
    regex_t *regex;
    bool is_mine;
    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL || sqlite3_value_type(argv[1]) == SQLITE_NULL) {
        return;
    }
    text = (const char *)sqlite3_value_text(argv[1]);
    regex = sql_pattern_of(out, argv[0], &is_mine);
    if (regex == NULL) {
        return;
    }
    sqlite3_result_int(out, regexec(regex, text != NULL ? text : "", 0, NULL, 0) == 0);
    if (is_mine) {
        sqlite3_set_auxdata(out, 0, regex, sql_free_regex);
    }
}

int callpaths_add_functions(struct query *query) {
    static const struct {
        const char *name;
        int arguments;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"bytes", 1, sql_put_bytes},       {"duration", 1, sql_put_duration},
        {"address", 1, sql_put_address},   {"path", 1, sql_put_path},
        {"function", 1, sql_put_function}, {"path_hash", 1, sql_put_hash},
        {"regexp", 2, sql_put_match},
    };
    int result = SQLITE_OK;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0] && result == SQLITE_OK; i++) {
        result = sqlite3_create_function(query->db, functions[i].name, functions[i].arguments,
                                         SQLITE_UTF8 | SQLITE_DETERMINISTIC, query,
                                         functions[i].call, NULL, NULL);
    }
    return result;
}

/* ---- The table of frames: a row for each function, those that were inlined into another one
 * included, innermost first.
 *
 * idxNum 1, idxStr "context=": argv[0] is the context; 0: all contexts. ---- */

struct frame_row {
    uint32_t context;
    uint32_t level;
    const struct names_frame *frame;
};

#define CELL(name, value) ROWS_CELL(frame_##name, struct frame_row, row, value)
CELL(function, table_frame(row->frame))
CELL(file, table_text(row->frame->file))
CELL(line, table_number_if(row->frame->line != 0, row->frame->line))
CELL(module, table_text(row->frame->module[0] != '\0' ? row->frame->module : NULL))
CELL(inlined, table_number(row->frame->inlined))
CELL(offset, table_number(row->frame->offset))
#undef CELL

static const struct table_column frames_columns[] = {
    {"context", NULL, TABLE_COUNT, 0, "context", "contexts.id",
     ROWS_FIELD(struct frame_row, context)},
    {"level", NULL, TABLE_COUNT, 0, "level",
     "0: the function that allocated, 1: who called it, ...", ROWS_FIELD(struct frame_row, level)},
    {"function", NULL, TABLE_FRAME, 0, "function", "where unknown: module+0xoffset",
     .cell = frame_function},
    {"file", NULL, TABLE_TEXT, 0, "file", "NULL: unknown", .cell = frame_file},
    {"line", NULL, TABLE_COUNT, 0, "line", "NULL: unknown", .cell = frame_line},
    {"module", NULL, TABLE_TEXT, 0, "module", "program or library; NULL: unknown",
     .cell = frame_module},
    {"inlined", NULL, TABLE_COUNT, 0, "inlined",
     "1: the compiler put it into the function of the next level", .cell = frame_inlined},
    {"offset", NULL, TABLE_ADDRESS, 0, "offset",
     "in the module's file; without a module the address", .cell = frame_offset},
};

static const struct rows frames_rows = {
    .name = "frames",
    .about = "the frames of each call path, innermost first",
    ROWS_COLUMNS(frames_columns),
};

struct frames_cursor {
    struct vtable_cursor cursor;
    size_t row; /* of the contexts */
    size_t end;
    uint32_t node;
    const struct names_frame *frames; /* of that node */
    size_t count;
    size_t frame; /* the next one */
    struct frame_row made;
};

/* Goes to the first node that is code, from that one outwards. */
static void frames_take_node(struct frames_cursor *mine, uint32_t node) {
    const struct query *query = vtable_query(&mine->cursor);
    const struct model_node *nodes = query->source.model->nodes;
    while (node != 0 && nodes[node].frame < MEMTRACE_FRAME_CLASSES) {
        node = nodes[node].parent;
    }
    mine->node = node;
    mine->frame = 0;
    mine->count = 0;
    if (node != 0) {
        mine->frames = names_frames(query->source.names, nodes[node].frame, &mine->count);
    }
}

static int frames_next(struct vtable_cursor *cursor) {
    struct frames_cursor *mine = (struct frames_cursor *)cursor;
    const struct model *model = vtable_query(cursor)->source.model;
    mine->made.level++;
    if (mine->frame == mine->count && mine->node != 0) {
        frames_take_node(mine, model->nodes[mine->node].parent);
    }
    for (; mine->node == 0 && mine->row < mine->end; mine->row++) {
        mine->made = (struct frame_row){.context = model->contexts[mine->row].id};
        frames_take_node(mine, model->contexts[mine->row].path);
    }
    cursor->record = NULL;
    if (mine->node != 0) {
        mine->made.frame = &mine->frames[mine->frame++];
        cursor->record = &mine->made;
    }
    return SQLITE_OK;
}

static int frames_plan(sqlite3_vtab *view, sqlite3_index_info *info) {
    enum { FRAMES = 16 }; /* of a path, about */
    const struct vtable_view *mine = (const struct vtable_view *)view;
    size_t count = mine->query->source.model->context_count;
    bool is_of_one = vtable_ask_equal(info, mine->table);
    info->estimatedRows = is_of_one ? FRAMES : (sqlite3_int64)count * FRAMES;
    info->estimatedCost = is_of_one ? FRAMES : (double)count * FRAMES + 1;
    return SQLITE_OK;
}

static int frames_begin(struct vtable_cursor *cursor, int number, const char *text, int argc,
                        sqlite3_value **argv) {
    struct frames_cursor *mine = (struct frames_cursor *)cursor;
    const struct query *query = vtable_query(cursor);
    (void)text;
    (void)argc;
    mine->end = query->source.model->context_count;
    if (number == 1 && sqlite3_value_type(argv[0]) == SQLITE_INTEGER) {
        size_t found = rows_contexts.find(&query->of, sqlite3_value_int64(argv[0]));
        mine->row = found != SIZE_MAX ? found : mine->end;
        mine->end = found != SIZE_MAX ? found + 1 : mine->end;
    }
    return SQLITE_OK;
}

static const char *const frames_indices[] = {"context", "function", NULL};

const struct vtable vtable_frames = {
    .rows = &frames_rows,
    .indices = frames_indices,
    .cursor_size = sizeof(struct frames_cursor),
    .plan = frames_plan,
    .begin = frames_begin,
    .next = frames_next,
};
