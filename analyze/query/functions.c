/* SPDX-License-Identifier: MIT */
/*
 * functions.c: the SQL functions of a session: bytes(n), duration(ns), address(n),
 * path(context), function(context), X REGEXP Y.
 */
#include "analyze/query/callpaths.h"
#include "analyze/query/vtable.h"
#include "analyze/rows/number.h"

#include <inttypes.h>
#include <regex.h>
#include <stdlib.h>

static const struct query *query_of(sqlite3_context *out) {
    return sqlite3_user_data(out);
}

/* ---- Numbers for people; NULL stays NULL, text stays text ---- */

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
    sqlite3_int64 value = sqlite3_value_int64(argv[0]);
    (void)argc;
    if (!is_number(argv[0])) {
        sqlite3_result_value(out, argv[0]);
    } else {
        vtable_put_text(out, number_duration(&number, value > 0 ? (uint64_t)value : 0));
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

/* ---- Places in the code ---- */

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

/* ---- Regular expressions ---- */

static void free_regex(void *regex) {
    regfree(regex);
    free(regex);
}

/* Compiled once where the pattern is a constant. NULL: an error is the result. */
static regex_t *pattern_of(sqlite3_context *out, sqlite3_value *value, bool *is_mine) {
    regex_t *regex = sqlite3_get_auxdata(out, 0);
    char reason[128];
    int result;
    *is_mine = regex == NULL;
    if (regex != NULL) {
        return regex;
    }
    regex = malloc(sizeof *regex);
    if (regex == NULL) {
        sqlite3_result_error_nomem(out);
        return NULL;
    }
    result = regcomp(regex, (const char *)sqlite3_value_text(value), REG_EXTENDED | REG_NOSUB);
    if (result != 0) {
        char *message;
        regerror(result, regex, reason, sizeof reason);
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
        {"bytes", 1, put_bytes}, {"duration", 1, put_duration}, {"address", 1, put_address},
        {"path", 1, put_path},   {"function", 1, put_function}, {"regexp", 2, put_match},
    };
    int result = SQLITE_OK;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0] && result == SQLITE_OK; i++) {
        result = sqlite3_create_function(query->db, functions[i].name, functions[i].arguments,
                                         SQLITE_UTF8 | SQLITE_DETERMINISTIC, query,
                                         functions[i].call, NULL, NULL);
    }
    return result;
}
