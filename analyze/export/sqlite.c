/* SPDX-License-Identifier: MIT */
/* sqlite.c: the tables of `memtrace query` as a database to be kept. See export.h. */
#include "analyze/export/export.h"
#include "analyze/query/query.h"
#include "analyze/report/bulk.h"

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
    if (bulk_refuse_paths(export->model, export->names, BULK_NAMES,
                          " in the table of frames: filters choose a part of them, and `memtrace "
                          "query` answers without a file",
                          error) != 0) {
        return -1;
    }
    return query_export(&source, export->path, error);
}
