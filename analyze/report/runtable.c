/* SPDX-License-Identifier: MIT */
/* runtable.c: the processes of a run, or the forked children of a profile, for programs: a table,
 * and the member "run" of a report's JSON. docs/runs.md tells what the numbers mean. */
#include "analyze/report/jsonwriter.h"
#include "analyze/report/report.h"
#include "analyze/report/table.h"

#include <string.h>

static const char *end_name(enum run_end end) {
    static const char *const names[] = {"ended", "execed", "killed", "running"};
    return names[end];
}

static struct table_cell counted(const struct run_process *process, uint64_t number) {
    return process->is_counted ? table_number(number) : table_none();
}

static void put_run_rows(struct table *table, const struct run *run) {
    for (size_t i = 0; i < run->process_count; i++) {
        const struct run_process *process = &run->processes[i];
        table_row(table,
                  (struct table_cell[]){
                      table_number(process->pid), table_number(process->parent_pid),
                      table_number(process->image), table_text(run_name(process)),
                      table_number(process->start_ns),
                      table_number(process->end_ns - process->start_ns),
                      table_text(end_name(process->end)), table_number(process->peak_bytes),
                      table_number(process->leaked_bytes), counted(process, process->allocations),
                      counted(process, process->total_bytes), table_number(process->lost),
                      table_text(process->file)});
    }
}

static void put_child_rows(struct table *table, const struct model *model) {
    for (size_t i = 0; i < model->child_count; i++) {
        const struct model_child *child = &model->children[i];
        uint64_t end_ns = child->end_ns > child->start_ns ? child->end_ns : child->start_ns;
        enum run_end end = child->execed  ? RUN_EXECED
                           : child->ended ? RUN_ENDED
                           : model->live  ? RUN_RUNNING
                                          : RUN_KILLED;
        table_row(table, (struct table_cell[]){
                             table_number(child->pid), table_number(child->parent_pid),
                             table_number(1), table_text(child->name),
                             table_number(child->start_ns), table_number(end_ns - child->start_ns),
                             table_text(end_name(end)), table_number(child->maximum_bytes),
                             table_number(child->total_bytes - child->freed_bytes),
                             table_number(child->allocations), table_number(child->total_bytes),
                             table_number(child->lost), table_none()});
    }
}

void report_processes(const struct report *report) {
    static const struct table_column columns[] = {
        {"pid", "pid", TABLE_COUNT, 0},
        {"parent_pid", NULL, TABLE_COUNT, 0},
        {"image", "image", TABLE_COUNT, 0},
        {"name", "name", TABLE_TEXT, 20},
        {"start_ns", "start", TABLE_DURATION, 0},
        {"duration_ns", "duration", TABLE_DURATION, 0},
        {"end", "end", TABLE_TEXT, 8},
        {"peak_bytes", "peak", TABLE_BYTES, 0},
        {"leaked_bytes", "leaked", TABLE_BYTES, 0},
        {"allocations", "allocations", TABLE_COUNT, 0},
        {"total_bytes", "allocated", TABLE_BYTES, 0},
        {"lost", "lost", TABLE_COUNT, 0},
        {"file", "file", TABLE_TEXT, 0},
    };
    struct table table =
        table_open(report, "processes", "Processes", columns, sizeof columns / sizeof columns[0]);
    if (report->run != NULL) {
        put_run_rows(&table, report->run->run);
    } else {
        put_child_rows(&table, report->model);
    }
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
    jsonwriter_string(json, "end", end_name(process->end));
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
