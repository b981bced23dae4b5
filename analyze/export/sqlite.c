/* SPDX-License-Identifier: MIT */
/* sqlite.c: the tables of `memtrace query` as a database to be kept. See export.h. */
#include "analyze/export/export.h"
#include "analyze/query/query.h"

int export_sqlite(const struct export *export, struct error *error) {
    const struct selection all = selection_all();
    const struct query_source source = {
        .whole = export->whole,
        .model = export->model,
        .names = export->names,
        .parts = export->parts,
        .selection = export->selection != NULL ? export->selection : &all,
        .replay = export->progress,
        .has_full_names = export->full_names,
    };
    if (export->path == NULL) {
        return error_set(error, "a database is a file: name it with --output");
    }
    return query_export(&source, export->path, error);
}
