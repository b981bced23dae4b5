/* SPDX-License-Identifier: MIT */
/* databasefile.c: all tables as an SQLite database, to be kept. See query_export(). */
#include "analyze/query/session.h"

/* Runs one statement, which it frees; NULL: no memory. An SQLite error, or SQLITE_OK. */
static int run(struct query *query, char *sql) {
    int result = sql != NULL ? sqlite3_exec(query->db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return result;
}

/* Single allocations and mappings are only in recordings. */
static bool has_rows(const struct query *query, const struct vtable *table) {
    return query->source.parts.count != 0 ||
           (table != &vtable_allocations && table != &vtable_mappings);
}

static int write_table(struct query *query, const struct vtable *table) {
    int result = run(query, vtable_declaration(table, "main."));
    if (result == SQLITE_OK && has_rows(query, table)) {
        result = run(query, sqlite3_mprintf("INSERT INTO main.%s SELECT * FROM temp.%s",
                                            table->rows->name, table->rows->name));
    }
    return result;
}

static int write_indices(struct query *query, const struct vtable *table) {
    int result = SQLITE_OK;
    for (size_t i = 0; table->indices != NULL && table->indices[i] != NULL && result == SQLITE_OK;
         i++) {
        result =
            run(query, sqlite3_mprintf("CREATE INDEX main.%s_by_%s ON %s(%s)", table->rows->name,
                                       table->indices[i], table->rows->name, table->indices[i]));
    }
    return result;
}

static int write_all(struct query *query) {
    int result = run(query, sqlite3_mprintf("PRAGMA main.journal_mode = OFF;"
                                            "PRAGMA main.synchronous = OFF; BEGIN"));
    for (size_t i = 0; vtable_list[i] != NULL && result == SQLITE_OK; i++) {
        result = write_table(query, vtable_list[i]);
    }
    for (size_t i = 0; vtable_list[i] != NULL && result == SQLITE_OK; i++) {
        result = write_indices(query, vtable_list[i]);
    }
    return result == SQLITE_OK ? run(query, sqlite3_mprintf("COMMIT")) : result;
}

int query_export(const struct query_source *source, const char *path, struct error *error) {
    struct query *query = session_open(source, path, "temp", error);
    int result;
    if (query == NULL) {
        return -1;
    }
    result = write_all(query);
    if (result != SQLITE_OK) {
        error_set(error, "SQLite: %s", sqlite3_errmsg(query->db));
    }
    query_close(query);
    return result == SQLITE_OK ? 0 : -1;
}
