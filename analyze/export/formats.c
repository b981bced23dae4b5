/* SPDX-License-Identifier: MIT */
/* formats.c: see formats.h. */
#include "analyze/export/formats.h"

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

int exportformat_choose(const struct exportformat *format, const struct selection *selection,
                        struct export *export, struct model *heap, struct error *error) {
    uint32_t classes = selection_classes(selection);
    *heap = (struct model){0};
    if (classes == 0 || classes == 1u << MODEL_HEAP) {
        return 0;
    }
    if ((format->traits & EXPORTFORMAT_HEAP) != 0 && (classes & 1u << MODEL_HEAP) == 0) {
        return error_set(error, "%s holds the heap alone, no pools and no mappings", format->name);
    }
    if ((format->traits & EXPORTFORMAT_SUMS) == 0) {
        return 0;
    }
    if (selection_as_heap(export->model, classes, heap) != 0) {
        return error_set(error, "out of memory");
    }
    export->model = heap;
    return 0;
}

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
