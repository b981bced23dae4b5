/* SPDX-License-Identifier: MIT */
/* runtable.c: the table of processes, and the member "run" of a report's JSON. docs/runs.md
 * tells what the numbers mean. */
#include "analyze/report/reports.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/rows.h"

#include <string.h>

/* ---- The table ---- */

void report_processes(const struct report *report) {
    static const unsigned char shown[] = {
        PROCESS_PID,         PROCESS_PID_TEXT,    PROCESS_PARENT, PROCESS_IMAGE, PROCESS_NAME,
        PROCESS_STARTED,     PROCESS_DURATION,    PROCESS_END,    PROCESS_PEAK,  PROCESS_LEAKED,
        PROCESS_ALLOCATIONS, PROCESS_TOTAL_BYTES, PROCESS_LOST,   PROCESS_FILE,
    };
    struct report all = *report;
    struct rows_view view = rows_view(report, &rows_processes, shown, sizeof shown);
    struct table table;
    all.options.limit = 0;
    table = table_open(&all, "processes", "Processes", view.columns, view.count);
    rows_put_all(&table, &view);
    table_close(&table);
}

/* ---- JSON ---- */

static void put_arguments(struct jsonwriter *json, const char *name, const char *command) {
    jsonwriter_array(json, name);
    for (const char *at = command; *at != '\0'; at += strlen(at) + 1) {
        jsonwriter_string(json, NULL, at);
    }
    jsonwriter_end_array(json);
}

static void put_process(struct jsonwriter *json, const struct run_process *process) {
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "pid", process->pid);
    jsonwriter_number(json, "parent_pid", process->parent_pid);
    jsonwriter_number(json, "image", process->image);
    jsonwriter_string(json, "program", process->program);
    put_arguments(json, "arguments", process->command);
    jsonwriter_number(json, "start_ns", process->start_ns);
    jsonwriter_number(json, "end_ns", process->end_ns);
    jsonwriter_string(json, "end", rows_process_end(process->end));
    jsonwriter_number(json, "peak_bytes", process->peak_bytes);
    jsonwriter_number(json, "leaked_bytes", process->leaked_bytes);
    jsonwriter_number(json, "lost", process->lost);
    if (process->is_counted) {
        jsonwriter_number(json, "leaked_blocks", process->leaked_blocks);
        jsonwriter_number(json, "allocations", process->allocations);
        jsonwriter_number(json, "total_bytes", process->total_bytes);
        jsonwriter_number(json, "frees", process->frees);
    }
    jsonwriter_string(json, "file", process->file);
    jsonwriter_bool(json, "light", process->light);
    jsonwriter_end_map(json);
}

static void put_chosen(struct jsonwriter *json, const struct report_run *run) {
    if (run->chosen == RUN_NONE) {
        jsonwriter_string(json, "chosen", NULL); /* the sum of all */
        return;
    }
    jsonwriter_map(json, "chosen");
    jsonwriter_number(json, "pid", run->run->processes[run->chosen].pid);
    jsonwriter_number(json, "image", run->run->processes[run->chosen].image);
    jsonwriter_end_map(json);
}

void report_run_json(const struct report *report, struct jsonwriter *json) {
    const struct run *run = report->run->run;
    jsonwriter_map(json, "run");
    jsonwriter_string(json, "folder", run->path);
    put_arguments(json, "command", run->command);
    jsonwriter_bool(json, "has_summary", run->has_summary);
    jsonwriter_number(json, "duration_ns", run->duration_ns);
    if (run->has_exit) {
        jsonwriter_integer(json, run->was_signalled ? "exit_signal" : "exit_status",
                           run->exit_status);
    }
    jsonwriter_number(json, "peak_bytes", run->peak.seen_bytes);
    jsonwriter_number(json, "peak_ns", run->peak.at_ns);
    jsonwriter_number(json, "peak_bound_bytes", run->peak.bound_bytes);
    put_chosen(json, report->run);
    jsonwriter_array(json, "processes");
    for (size_t i = 0; i < run->process_count; i++) {
        put_process(json, &run->processes[i]);
    }
    jsonwriter_end_array(json);
    jsonwriter_array(json, "timeline");
    for (size_t i = 0; i < run->timeline_count; i++) {
        const struct run_point *point = &run->timeline[i];
        jsonwriter_map(json, NULL);
        jsonwriter_number(json, "time_ns", point->time_ns);
        jsonwriter_number(json, "live_bytes", point->live_bytes);
        jsonwriter_number(json, "resident_bytes", point->resident_bytes);
        jsonwriter_number(json, "processes", point->processes);
        jsonwriter_end_map(json);
    }
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
}
