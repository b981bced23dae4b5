/* SPDX-License-Identifier: MIT */
/* reportforms.c: JSON and CSV are those of `memtrace report`, a database that of `memtrace query`.
 */
#include "analyze/export/export.h"
#include "analyze/query/query.h"
#include "analyze/report/bulk.h"
#include "analyze/report/reports.h"

static struct report report_of(const struct export *export, enum report_format format) {
    return (struct report){.out = export->out,
                           .model = export->model,
                           .names = export->names,
                           .options = {.format = format,
                                       .depth = export->depth,
                                       .full_names = export->full_names,
                                       .all_frames = export->all_frames},
                           .source = export->source};
}

int export_json(const struct export *export, struct error *error) {
    const struct report report = report_of(export, REPORT_JSON);
    if (!export->is_depth_given && report_refuse_bulk(&report, error) != 0) {
        return -1;
    }
    report_json(&report);
    fputc('\n', export->out);
    return 0;
}

int export_csv(const struct export *export, struct error *error) {
    const struct report report = report_of(export, REPORT_CSV);
    if (!export->is_depth_given && report_refuse_bulk(&report, error) != 0) {
        return -1;
    }
    report_csv(&report);
    return 0;
}

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
