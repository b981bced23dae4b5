/* SPDX-License-Identifier: MIT */
/* vtable.c: the list of tables, and what all of them have in common. See vtable.h. */
#include "analyze/query/vtable.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which a written file has them: rows of the first ones are few. */
const struct vtable *const vtable_list[] = {
    &vtable_summary,  &vtable_processes,     &vtable_threads,
    &vtable_modules,  &vtable_contexts,      &vtable_frames,
    &vtable_timeline, &vtable_samples,       &vtable_markers,
    &vtable_scopes,   &vtable_foreign_frees, &vtable_mappings,
    &vtable_smaps,    &vtable_allocations,   NULL,
};

/* ---- SQLite's side ---- */

char *vtable_declaration(const struct vtable *table, const char *schema) {
    sqlite3_str *text = sqlite3_str_new(NULL);
    sqlite3_str_appendf(text, "CREATE TABLE %s%s(", schema, table->name);
    for (size_t i = 0; i < table->column_count; i++) {
        sqlite3_str_appendf(text, "%s\"%w\" %s", i != 0 ? ", " : "", table->columns[i].name,
                            table->columns[i].type);
    }
    sqlite3_str_appendall(text, ")");
    return sqlite3_str_finish(text);
}

int vtable_connect(sqlite3 *db, void *binding, int argc, const char *const *argv,
                   sqlite3_vtab **view, char **error) {
    const struct vtable_binding *bound = binding;
    char *declaration = vtable_declaration(bound->table, "");
    struct vtable_view *made = sqlite3_malloc(sizeof *made);
    int result = SQLITE_NOMEM;
    (void)argc;
    (void)argv;
    (void)error;
    if (declaration != NULL && made != NULL) {
        *made = (struct vtable_view){.query = bound->query, .table = bound->table};
        result = sqlite3_declare_vtab(db, declaration);
    }
    sqlite3_free(declaration);
    if (result != SQLITE_OK) {
        sqlite3_free(made);
        return result;
    }
    *view = &made->base;
    return SQLITE_OK;
}

int vtable_disconnect(sqlite3_vtab *view) {
    sqlite3_free(view);
    return SQLITE_OK;
}

int vtable_open(sqlite3_vtab *view, sqlite3_vtab_cursor **cursor) {
    size_t size = ((const struct vtable_view *)view)->table->cursor_size;
    *cursor = sqlite3_malloc64(size);
    if (*cursor == NULL) {
        return SQLITE_NOMEM;
    }
    memset(*cursor, 0, size);
    return SQLITE_OK;
}

int vtable_close(sqlite3_vtab_cursor *cursor) {
    sqlite3_free(cursor);
    return SQLITE_OK;
}

bool vtable_ask_equal(sqlite3_index_info *info, const struct vtable *table, int column) {
    for (int i = 0; i < info->nConstraint; i++) {
        if (info->aConstraint[i].usable && info->aConstraint[i].iColumn == column &&
            info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ) {
            info->aConstraintUsage[i].argvIndex = 1;
            info->idxNum = 1;
            info->idxStr = sqlite3_mprintf("%s=", table->columns[column].name);
            info->needToFreeIdxStr = 1;
            return true;
        }
    }
    return false;
}

int vtable_fail(sqlite3_vtab *view, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    sqlite3_free(view->zErrMsg);
    view->zErrMsg = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    return SQLITE_ERROR;
}

/* ---- Values ---- */

void vtable_put_number(sqlite3_context *out, uint64_t value) {
    sqlite3_result_int64(out, value <= INT64_MAX ? (sqlite3_int64)value : INT64_MAX);
}

void vtable_put_unless(sqlite3_context *out, uint64_t value, uint64_t none) {
    if (value != none) {
        vtable_put_number(out, value);
    }
}

void vtable_put_text(sqlite3_context *out, const char *text) {
    if (text != NULL) {
        sqlite3_result_text(out, text, -1, SQLITE_TRANSIENT);
    }
}

void vtable_put_lasting(sqlite3_context *out, const char *text) {
    if (text != NULL) {
        sqlite3_result_text(out, text, -1, SQLITE_STATIC);
    }
}

void vtable_put_hash(sqlite3_context *out, uint64_t hash) {
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    vtable_put_text(out, text);
}

/* ---- People's side ---- */

void query_describe_all(FILE *out) {
    for (size_t i = 0; vtable_list[i] != NULL; i++) {
        fprintf(out, "%-14s %s\n", vtable_list[i]->name, vtable_list[i]->about);
    }
}

static void describe(FILE *out, const struct vtable *table) {
    fprintf(out, "%s: %s\n", table->name, table->about);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct vtable_column *column = &table->columns[i];
        bool has_more = column->about[0] != '\0';
        fprintf(out, "    %-20s %s%s%s\n", column->name, column->type, has_more ? "  " : "",
                column->about);
    }
}

void query_describe_columns(FILE *out) {
    for (size_t i = 0; vtable_list[i] != NULL; i++) {
        fputs(i != 0 ? "\n" : "", out);
        describe(out, vtable_list[i]);
    }
}

int query_describe(FILE *out, const char *name) {
    for (size_t i = 0; vtable_list[i] != NULL; i++) {
        if (strcmp(vtable_list[i]->name, name) == 0) {
            describe(out, vtable_list[i]);
            return 0;
        }
    }
    return -1;
}
