/* SPDX-License-Identifier: MIT */
/* processestable.c: the table `processes`: those of a run, or the one of a file and the children it
 * forked. See vtable.h. */
#include "analyze/query/vtable.h"
#include "analyze/report/runtable.h"

#include <string.h>

enum { PID, PARENT_PID, IMAGE, PROGRAM, COMMAND, STARTED, ENDED, END, PEAK, LEAKED, LOST, SUMS };

static const struct vtable_column columns[] = {
    [PID] = {"pid", "INTEGER", ""},
    [PARENT_PID] = {"parent_pid", "INTEGER", ""},
    [IMAGE] = {"image", "INTEGER", "1, 2, ... of one process, in the order of exec"},
    [PROGRAM] = {"program", "TEXT", "the executable, or the name of a small forked child"},
    [COMMAND] = {"command", "TEXT", "its arguments; NULL: not known"},
    [STARTED] = {"started", "INTEGER", "ns since the run's start"},
    [ENDED] = {"ended", "INTEGER", "ns"},
    [END] = {"end", "TEXT", "ended, execed, killed or running"},
    [PEAK] = {"peak_bytes", "INTEGER", "the most that it held"},
    [LEAKED] = {"leaked_bytes", "INTEGER", "not freed at its end"},
    [LOST] = {"lost", "INTEGER", ""},
    [SUMS] = {"allocations", "INTEGER", "NULL from here on: not known without run.json"},
    {"total_bytes", "INTEGER", "ever allocated"},
    {"frees", "INTEGER", ""},
    {"leaked_blocks", "INTEGER", ""},
    {"file", "TEXT", "in the run's folder; NULL: nothing was kept"},
    {"light", "INTEGER", "1: a small forked child, which stands in its parent's file"},
};
enum { FILE_NAME = SUMS + 4, LIGHT };

static size_t count(const struct query *query) {
    return runtable_count(query->source.run, query->source.whole);
}

/* The arguments with a blank between them. */
static void put_command(const char *command, sqlite3_context *out) {
    sqlite3_str *text = sqlite3_str_new(NULL);
    char *joined;
    for (const char *at = command; *at != '\0'; at += strlen(at) + 1) {
        sqlite3_str_appendf(text, "%s%s", at != command ? " " : "", at);
    }
    joined = sqlite3_str_finish(text);
    if (joined != NULL) {
        sqlite3_result_text(out, joined, -1, sqlite3_free);
    }
}

static void put(const struct query *query, size_t row, int column, sqlite3_context *out) {
    struct run_process process = runtable_at(query->source.run, query->source.whole, row);
    const uint64_t numbers[FILE_NAME] = {
        [PID] = process.pid,
        [PARENT_PID] = process.parent_pid,
        [IMAGE] = process.image,
        [STARTED] = process.start_ns,
        [ENDED] = process.end_ns,
        [PEAK] = process.peak_bytes,
        [LEAKED] = process.leaked_bytes,
        [LOST] = process.lost,
        [SUMS] = process.allocations,
        process.total_bytes,
        process.frees,
        process.leaked_blocks,
    };
    switch (column) {
    case PROGRAM:
        vtable_put_text(out, process.program);
        break;
    case COMMAND:
        put_command(process.command, out);
        break;
    case END:
        vtable_put_text(out, runtable_end(process.end));
        break;
    case FILE_NAME:
        vtable_put_text(out, process.file);
        break;
    case LIGHT:
        vtable_put_number(out, process.light);
        break;
    default:
        if (column < SUMS || process.is_counted) {
            vtable_put_number(out, numbers[column]);
        }
        break;
    }
}

const struct vtable vtable_processes = {
    .name = "processes",
    .about = "those of a run, or the one of a file and its small forked children",
    VTABLE_COLUMNS(columns),
    VTABLE_ARRAY,
    .count = count,
    .put = put,
};
