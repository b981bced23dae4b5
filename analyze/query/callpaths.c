/* SPDX-License-Identifier: MIT */
/* callpaths.c: see callpaths.h. */
#include "analyze/query/callpaths.h"

#include "analyze/base/arena.h"
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
        struct shared *path; /* NULL: none */
    } kept[KEPT];            /* by node modulo KEPT */
    uint32_t *grouped;       /* NULL: not asked for yet */
};

struct callpaths *callpaths_new(void) {
    return calloc(1, sizeof(struct callpaths));
}

static void release(struct shared *shared) {
    if (shared != NULL && --shared->holders == 0) {
        sqlite3_free(shared);
    }
}

static void release_text(void *text) {
    release((struct shared *)((char *)text - offsetof(struct shared, text)));
}

void callpaths_free(struct callpaths *paths) {
    if (paths == NULL) {
        return;
    }
    for (size_t i = 0; i < KEPT; i++) {
        release(paths->kept[i].path);
    }
    numbermap_free(&paths->names);
    arena_free(&paths->memory);
    free(paths->grouped);
    free(paths);
}

/* ---- Names ---- */

const char *callpaths_name(const struct query *query, const struct names_frame *frame) {
    struct callpaths *paths = query->callpaths;
    char full[NAME_BYTES];
    char brief[NAME_BYTES];
    char *name = numbermap_get(&paths->names, (uintptr_t)frame);
    if (name != NULL) {
        return name;
    }
    names_spell(frame, full, sizeof full);
    name = arena_string(&paths->memory,
                        query->source.has_full_names ? full : shortname(full, brief, sizeof brief));
    return name != NULL && numbermap_put(&paths->names, (uintptr_t)frame, name) == 0 ? name : NULL;
}

/* ---- Paths ---- */

/* Writes the nodes of the path that are code, innermost first. */
static void code_nodes(const struct model *model, uint32_t node, uint32_t *nodes) {
    for (; node != 0 && node < model->node_count; node = model->nodes[node].parent) {
        if (model->nodes[node].frame >= MEMTRACE_FRAME_CLASSES) {
            *nodes++ = node;
        }
    }
}

static void append_node(const struct query *query, uint32_t node, sqlite3_str *text) {
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
static struct shared *share(const char *text, size_t length) {
    struct shared *shared = sqlite3_malloc64(sizeof *shared + length + 1);
    if (shared != NULL) {
        shared->holders = 1;
        memcpy(shared->text, text, length);
        shared->text[length] = '\0';
    }
    return shared;
}

static struct shared *make_path(const struct query *query, uint32_t node) {
    size_t count = rows_depth(query->source.whole, node);
    uint32_t *nodes = sqlite3_malloc64((count + 1) * sizeof *nodes);
    sqlite3_str *text = sqlite3_str_new(query->db);
    struct shared *shared = NULL;
    if (nodes != NULL) {
        code_nodes(query->source.whole, node, nodes);
        while (count > 0) {
            append_node(query, nodes[--count], text);
        }
        if (sqlite3_str_errcode(text) == SQLITE_OK) {
            shared = share(sqlite3_str_length(text) != 0 ? sqlite3_str_value(text) : "",
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
        struct shared *path = make_path(query, node);
        if (path == NULL) {
            sqlite3_result_error_nomem(out);
            return;
        }
        release(kept->path);
        *kept = (struct kept){node, path};
    }
    kept->path->holders++;
    sqlite3_result_text(out, kept->path->text, -1, release_text);
}

/* ---- Groups ---- */

struct place {
    XXH128_hash_t path;
    uint32_t row;
};

/* Of a path and one function more. A name may have a ';' in it: then it counts as two, since the
 * path's text does not tell them apart. */
static XXH128_hash_t extend(XXH128_hash_t path, const char *name) {
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

static XXH128_hash_t hash_node(const struct query *query, XXH128_hash_t path, uint64_t frame) {
    size_t count;
    const struct names_frame *frames = names_frames(query->source.names, frame, &count);
    while (count > 0) {
        const char *name = callpaths_name(query, &frames[--count]);
        path = extend(path, name != NULL ? name : "");
    }
    return path;
}

/* Of each node's path; parents come before their children. The caller frees them. */
static XXH128_hash_t *hash_nodes(const struct query *query) {
    const struct model *model = query->source.whole;
    XXH128_hash_t *hashes = calloc(model->node_count + 1, sizeof *hashes);
    for (size_t id = 1; hashes != NULL && id < model->node_count; id++) {
        const struct model_node *node = &model->nodes[id];
        hashes[id] = node->frame >= MEMTRACE_FRAME_CLASSES
                         ? hash_node(query, hashes[node->parent], node->frame)
                         : hashes[node->parent];
    }
    return hashes;
}

static int by_path(const void *left, const void *right) {
    const struct place *a = left;
    const struct place *b = right;
    int order = XXH128_cmp(&a->path, &b->path);
    return order != 0 ? order : (a->row > b->row) - (a->row < b->row);
}

/* In a hash of 128 bits two paths are never the same by chance. */
const uint32_t *callpaths_grouped(const struct query *query) {
    const struct model *model = query->source.model;
    struct callpaths *paths = query->callpaths;
    size_t count = model->context_count;
    XXH128_hash_t *hashes;
    struct place *places;
    uint32_t *rows;
    if (paths->grouped != NULL) {
        return paths->grouped;
    }
    hashes = hash_nodes(query);
    places = calloc(count + 1, sizeof *places);
    rows = calloc(count + 1, sizeof *rows);
    if (hashes != NULL && places != NULL && rows != NULL) {
        for (uint32_t row = 0; row < count; row++) {
            places[row] = (struct place){hashes[model->contexts[row].path], row};
        }
        qsort(places, count, sizeof *places, by_path);
        for (size_t i = 0; i < count; i++) {
            rows[i] = places[i].row;
        }
        paths->grouped = rows;
        rows = NULL;
    }
    free(rows);
    free(places);
    free(hashes);
    return paths->grouped;
}

/* ---- The SQL functions of a session: bytes(n), duration(ns), address(n), path(context),
 * function(context), path_hash(context), X REGEXP Y ---- */

static const struct query *query_of(sqlite3_context *out) {
    return sqlite3_user_data(out);
}

/* Numbers for people: NULL stays NULL, text stays text. */

static bool is_number(sqlite3_value *value) {
    int type = sqlite3_value_numeric_type(value);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static void put_bytes(sqlite3_context *out, int argc, sqlite3_value **argv) {
    struct number number;
    sqlite3_int64 value = sqlite3_value_int64(argv[0]);
    (void)argc;
    if (!is_number(argv[0])) {
        sqlite3_result_value(out, argv[0]);
    } else if (value < 0) {
        vtable_put_text(out, number_change(&number, value));
    } else {
        vtable_put_text(out, number_bytes(&number, (uint64_t)value));
    }
}

static void put_duration(sqlite3_context *out, int argc, sqlite3_value **argv) {
    struct number number;
    char text[sizeof number + 1] = "-";
    sqlite3_int64 value = sqlite3_value_int64(argv[0]);
    (void)argc;
    if (!is_number(argv[0])) {
        sqlite3_result_value(out, argv[0]);
    } else if (value < 0) {
        strcat(text, number_duration(&number, -(uint64_t)value));
        vtable_put_text(out, text);
    } else {
        vtable_put_text(out, number_duration(&number, (uint64_t)value));
    }
}

static void put_address(sqlite3_context *out, int argc, sqlite3_value **argv) {
    char text[24];
    (void)argc;
    if (!is_number(argv[0])) {
        sqlite3_result_value(out, argv[0]);
        return;
    }
    sqlite3_snprintf(sizeof text, text, "0x%llx", sqlite3_value_int64(argv[0]));
    vtable_put_text(out, text);
}

/* The node that an argument names; 0: none. */
static uint32_t node_of(const struct query *query, sqlite3_value *value) {
    sqlite3_int64 id = sqlite3_value_int64(value);
    return sqlite3_value_type(value) == SQLITE_INTEGER && id > 0 &&
                   (sqlite3_uint64)id < query->source.whole->node_count
               ? (uint32_t)id
               : 0;
}

static void put_path(sqlite3_context *out, int argc, sqlite3_value **argv) {
    const struct query *query = query_of(out);
    uint32_t node = node_of(query, argv[0]);
    (void)argc;
    if (node != 0) {
        callpaths_put(query, node, out);
    }
}

static void put_function(sqlite3_context *out, int argc, sqlite3_value **argv) {
    const struct query *query = query_of(out);
    const struct names_frame *frame = rows_innermost(&query->of, node_of(query, argv[0]));
    (void)argc;
    if (frame != NULL) {
        vtable_put_lasting(out, callpaths_name(query, frame));
    }
}

static void put_hash(sqlite3_context *out, int argc, sqlite3_value **argv) {
    const struct query *query = query_of(out);
    uint32_t node = node_of(query, argv[0]);
    char text[24];
    (void)argc;
    if (node != 0) {
        sqlite3_snprintf(sizeof text, text, "%016llx",
                         (unsigned long long)model_hash(query->source.whole, node));
        vtable_put_text(out, text);
    }
}

static void free_regex(void *regex) {
    regfree(regex);
    free(regex);
}

/* Compiled once where the pattern is a constant. NULL: an error is the result. */
static regex_t *pattern_of(sqlite3_context *out, sqlite3_value *value, bool *is_mine) {
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
static void put_match(sqlite3_context *out, int argc, sqlite3_value **argv) {
    const char *text;
    regex_t *regex;
    bool is_mine;
    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL || sqlite3_value_type(argv[1]) == SQLITE_NULL) {
        return;
    }
    text = (const char *)sqlite3_value_text(argv[1]);
    regex = pattern_of(out, argv[0], &is_mine);
    if (regex == NULL) {
        return;
    }
    sqlite3_result_int(out, regexec(regex, text != NULL ? text : "", 0, NULL, 0) == 0);
    if (is_mine) {
        sqlite3_set_auxdata(out, 0, regex, free_regex);
    }
}

int vtable_add_functions(struct query *query) {
    static const struct {
        const char *name;
        int arguments;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        {"bytes", 1, put_bytes},  {"duration", 1, put_duration}, {"address", 1, put_address},
        {"path", 1, put_path},    {"function", 1, put_function}, {"path_hash", 1, put_hash},
        {"regexp", 2, put_match},
    };
    int result = SQLITE_OK;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0] && result == SQLITE_OK; i++) {
        result = sqlite3_create_function(query->db, functions[i].name, functions[i].arguments,
                                         SQLITE_UTF8 | SQLITE_DETERMINISTIC, query,
                                         functions[i].call, NULL, NULL);
    }
    return result;
}
