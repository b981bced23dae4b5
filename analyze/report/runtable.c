/* SPDX-License-Identifier: MIT */
/* runtable.c: see runtable.h; their table, and the member "run" of a report's JSON. docs/runs.md
 * tells what the numbers mean. */
#include "analyze/report/runtable.h"

#include "analyze/report/reports.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/table.h"

#include <string.h>

/* ---- Rows ---- */

const char *runtable_end(enum run_end end) {
    static const char *const names[] = {"ended", "execed", "killed", "running"};
    return names[end];
}

static struct run_process own(const struct model *model) {
    const struct model_totals *totals = &model->totals;
    uint32_t state = model->header.state;
    return (struct run_process){
        .pid = model->header.pid,
        .parent_pid = model->header.parent_pid,
        .image = 1,
        .program = (char *)model->header.executable,
        .command = (char *)model->header.command,
        .end_ns = model->now_ns,
        .end = state == MEMTRACE_STATE_EXECED    ? RUN_EXECED
               : state != MEMTRACE_STATE_RUNNING ? RUN_ENDED
               : model->live                     ? RUN_RUNNING
                                                 : RUN_KILLED,
        .is_counted = true,
        .allocations = totals->allocations,
        .total_bytes = totals->total_bytes,
        .frees = totals->frees,
        .leaked_bytes = totals->live_bytes,
        .leaked_blocks = totals->live_blocks,
        .peak_bytes = totals->maximum_bytes,
        .lost = totals->lost,
    };
}

static struct run_process child_of(const struct model *model, const struct model_child *child) {
    static char none[2];
    return (struct run_process){
        .pid = child->pid,
        .parent_pid = child->parent_pid,
        .image = 1,
        .program = (char *)child->name,
        .command = none,
        .start_ns = child->start_ns,
        .end_ns = child->end_ns > child->start_ns ? child->end_ns : child->start_ns,
        .end = child->execed  ? RUN_EXECED
               : child->ended ? RUN_ENDED
               : model->live  ? RUN_RUNNING
                              : RUN_KILLED,
        .light = true,
        .is_counted = true,
        .allocations = child->allocations,
        .total_bytes = child->total_bytes,
        .frees = child->frees,
        .leaked_bytes = child->total_bytes - child->freed_bytes,
        .leaked_blocks = child->allocations - child->frees,
        .peak_bytes = child->maximum_bytes,
        .lost = child->lost,
    };
}

size_t runtable_count(const struct run *run, const struct model *model) {
    return run != NULL ? run->process_count : 1 + model->child_count;
}

struct run_process runtable_at(const struct run *run, const struct model *model, size_t row) {
    if (run != NULL) {
        return run->processes[row];
    }
    return row == 0 ? own(model) : child_of(model, &model->children[row - 1]);
}

/* ---- The table ---- */

static void put_row(struct table *table, const struct run_process *process) {
    struct table_cell none = table_none();
    char pid[16];
    snprintf(pid, sizeof pid, "%u", process->pid);
    table_row(table, (struct table_cell[]){
                         table_number(process->pid), table_text(pid),
                         table_number(process->parent_pid), table_number(process->image),
                         table_text(run_name(process)), table_number(process->start_ns),
                         table_number(process->end_ns - process->start_ns),
                         table_text(runtable_end(process->end)), table_number(process->peak_bytes),
                         table_number(process->leaked_bytes),
                         process->is_counted ? table_number(process->allocations) : none,
                         process->is_counted ? table_number(process->total_bytes) : none,
                         table_number(process->lost), table_text(process->file)});
}

void report_processes(const struct report *report) {
    static const struct table_column columns[] = {
        {"pid", NULL, TABLE_COUNT, 0},
        {NULL, "pid", TABLE_TEXT, 8},
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
    const struct run *run = report->run != NULL ? report->run->run : NULL;
    struct table table =
        table_open(report, "processes", "Processes", columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < runtable_count(run, report->model); i++) {
        struct run_process process = runtable_at(run, report->model, i);
        put_row(&table, &process);
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
    jsonwriter_string(json, "end", runtable_end(process->end));
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
