/* SPDX-License-Identifier: MIT */
/*
 * formats.c: the list of formats, and those that other folders write: JSON and CSV are those of
 * `memtrace report`, a database that of `memtrace query`. See export.h.
 */
#include "analyze/base/job.h"
#include "analyze/export/export.h"
#include "analyze/query/query.h"
#include "analyze/report/bulk.h"
#include "analyze/report/reports.h"

#include <string.h>

const struct exportformat exportformats[] = {
    {"folded", ".folded", "folded stacks, for flamegraph.pl, inferno, speedscope", export_folded,
     EXPORTFORMAT_SUMS | EXPORTFORMAT_COST | EXPORTFORMAT_DEPTH},
    {"flamegraph", ".svg", "a flame graph to look at in a browser", export_flamegraph,
     EXPORTFORMAT_SUMS | EXPORTFORMAT_COST},
    {"html", ".html", "the page in one file, to mail around and open anywhere", NULL,
     EXPORTFORMAT_COST},
    {"gprof2dot", ".gprof2dot.json", "call graph, for gprof2dot --format=json", export_gprof2dot,
     EXPORTFORMAT_SUMS | EXPORTFORMAT_COST | EXPORTFORMAT_DEPTH},
    {"speedscope", ".speedscope.json", "speedscope, a profile for each cost", export_speedscope,
     EXPORTFORMAT_SUMS | EXPORTFORMAT_COST},
    {"callgrind", ".callgrind", "call graph by line, for kcachegrind and callgrind_annotate",
     export_callgrind, EXPORTFORMAT_SUMS | EXPORTFORMAT_COST},
    {"heaptrack", ".zst", "every event, for heaptrack_gui and heaptrack_print", export_heaptrack,
     EXPORTFORMAT_HEAP | EXPORTFORMAT_BINARY},
    {"massif", ".massif", "the heap over time, with call trees, for ms_print", export_massif,
     EXPORTFORMAT_HEAP},
    {"pprof", ".pb.gz", "for go tool pprof, sample types as of Go's heap profiles", export_pprof,
     EXPORTFORMAT_SUMS | EXPORTFORMAT_COST | EXPORTFORMAT_DEPTH | EXPORTFORMAT_BINARY},
    {"sqlite", ".sqlite", "the tables of memtrace query, as an SQLite database", export_sqlite,
     EXPORTFORMAT_BINARY | EXPORTFORMAT_FILE},
    {"replay", ".replay", "the allocations alone, for memtrace replay", export_replay,
     EXPORTFORMAT_BINARY},
    {"json", ".json", "all call paths, threads and modules, as in memtrace report", export_json,
     EXPORTFORMAT_DEPTH},
    {"csv", ".csv", "one line for each call path, as in memtrace report", export_csv,
     EXPORTFORMAT_DEPTH},
    {.name = NULL},
};

const struct exportformat *exportformat_named(const char *name) {
    for (size_t i = 0; exportformats[i].name != NULL; i++) {
        if (strcmp(exportformats[i].name, name) == 0) {
            return &exportformats[i];
        }
    }
    return NULL;
}

/* The one with the longest ending that the file's name has. NULL: none. */
const struct exportformat *exportformat_of_file(const char *path) {
    const struct exportformat *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; exportformats[i].name != NULL; i++) {
        size_t length = strlen(exportformats[i].ending);
        size_t whole = strlen(path);
        if (whole > length && length > longest &&
            strcmp(path + whole - length, exportformats[i].ending) == 0) {
            found = &exportformats[i];
            longest = length;
        }
    }
    return found;
}

void exportformat_choose(const struct exportformat *format, const struct selection *selection,
                         struct export *export) {
    uint32_t classes = selection_classes(selection);
    bool is_heap = classes == 0 || classes == 1u << MODEL_HEAP;
    if ((format->traits & EXPORTFORMAT_HEAP) != 0 && !is_heap &&
        (classes & 1u << MODEL_HEAP) == 0) {
        job_fail("%s holds the heap alone, no pools and no mappings", format->name);
    }
    if ((format->traits & EXPORTFORMAT_SUMS) != 0 && !is_heap) {
        export->model = selection_as_heap(export->model, classes);
    }
}

/* ---- Formats that other folders write ---- */

static struct report export_report(const struct export *export, enum report_format format) {
    struct error error;
    struct report report = {.out = export->out,
                            .model = export->model,
                            .names = export->names,
                            .options = {.format = format,
                                        .depth = export->depth,
                                        .full_names = export->full_names,
                                        .all_frames = export->all_frames},
                            .source = export->source};
    if (!export->is_depth_given) {
        job_check(report_refuse_bulk(&report, &error), &error);
    }
    return report;
}

void export_json(const struct export *export) {
    const struct report report = export_report(export, REPORT_JSON);
    report_json(&report);
    fputc('\n', export->out);
}

void export_csv(const struct export *export) {
    const struct report report = export_report(export, REPORT_CSV);
    report_csv(&report);
}

void export_sqlite(const struct export *export) {
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
    struct error error;
    if (export->path == NULL) {
        job_fail("a database is a file: name it with --output");
    }
    job_check(bulk_refuse_paths(export->model, export->names, BULK_NAMES,
                                " in the table of frames: filters choose a part of them, and "
                                "`memtrace query` answers without a file",
                                &error),
              &error);
    query_export(&source, export->path);
}
