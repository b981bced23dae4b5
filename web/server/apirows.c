/* SPDX-License-Identifier: MIT */
/* apirows.c: endpoints that are tables of one thing of the model (rows.h), of suppressions, and of
 * the processes that run. */
#include "analyze/read/profile.h"
#include "ask/runregions.h"
#include "web/server/apilist.h"
#include "web/server/apimetric.h"
#include "web/server/apitable.h"

#include <stdlib.h>

void api_marks(struct api_call *call) {
    const struct apitable_rows rows = {.rows = &rows_marks};
    api_command(call, "report --show-marks");
    api_sql(call, "SELECT * FROM marks");
    apitable_rows(call, NULL, &rows);
}

void api_scopes(struct api_call *call) {
    const struct apitable_rows rows = {.rows = &rows_scopes};
    api_command(call, "query 'SELECT * FROM scopes'");
    api_sql(call, "SELECT * FROM scopes");
    apitable_rows(call, NULL, &rows);
}

void api_threads(struct api_call *call) {
    const struct apitable_rows rows = {.rows = &rows_threads};
    api_command(call, "report --show-threads");
    apitable_rows(call, NULL, &rows);
}

void api_foreign(struct api_call *call) {
    static const unsigned char shown[] = {FOREIGN_OWNER,      FOREIGN_OWNER_NAME, FOREIGN_FREER,
                                          FOREIGN_FREER_NAME, FOREIGN_BLOCKS,     FOREIGN_BYTES};
    const struct apitable_rows rows = {
        .rows = &rows_foreign, .shown = shown, .count = sizeof shown, .sort = "bytes"};
    api_command(call, "report --show-threads");
    apitable_rows(call, NULL, &rows);
}

void api_modules(struct api_call *call) {
    const struct apitable_rows rows = {.rows = &rows_modules};
    api_command(call, "query 'SELECT * FROM modules'");
    api_sql(call, "SELECT * FROM modules");
    apitable_rows(call, NULL, &rows);
}

void api_processes(struct api_call *call) {
    static const unsigned char shown[] = {
        PROCESS_PID,         PROCESS_PARENT,      PROCESS_IMAGE,      PROCESS_NAME,
        PROCESS_PROGRAM,     PROCESS_COMMAND,     PROCESS_STARTED,    PROCESS_ENDED,
        PROCESS_END,         PROCESS_PEAK,        PROCESS_LIVE_BYTES, PROCESS_LIVE_BLOCKS,
        PROCESS_ALLOCATIONS, PROCESS_TOTAL_BYTES, PROCESS_FREES,      PROCESS_LOST,
        PROCESS_FILE,        PROCESS_LIGHT,
    };
    const struct apitable_rows rows = {
        .rows = &rows_processes, .shown = shown, .count = sizeof shown};
    api_command(call, "report --show-processes");
    apitable_rows(call, NULL, &rows);
}

/* ---- Suppressed leaks ---- */

#define OF(member) ROWS_FIELD(struct suppression, member)
static const struct table_column suppressed_columns[] = {
    {"blocks", "blocks", TABLE_COUNT, OF(blocks)},
    {"bytes", "bytes", TABLE_BYTES, OF(bytes)},
    {"paths", "call paths", TABLE_COUNT, OF(contexts)},
    {"pattern", "pattern", TABLE_TEXT, OF(pattern)},
    {"caller", "called by", TABLE_TEXT, OF(caller)},
    {"origin", "from", TABLE_TEXT, OF(origin)},
    {"line", "line", TABLE_COUNT, OF(line), .none = TABLE_ZERO},
};
#undef OF
static const struct rows suppressed_rows = {ROWS_COLUMNS(suppressed_columns)};

/* Of what was never freed; metric=shutdown: of what its trees leave out. */
void api_suppressed(struct api_call *call) {
    const struct apitable_rows shown = {.rows = &suppressed_rows};
    const struct answer *view = call->view;
    const bool is_shutdown = call->metric == METRIC_SHUTDOWN;
    const struct rows_of of = rows_of_report(&call->report);
    const struct model *heap =
        apimetric_all(call, view, is_shutdown ? METRIC_SHUTDOWN : METRIC_LEAKED);
    struct suppressions *list;
    const void **records;
    size_t count = 0;
    if (api_param(call, "sort") != NULL) {
        api_refuse(call, 400, "sort: suppressions stand in the order they apply");
    }
    list = question_suppressions(view->question, view->model);
    suppressions_leave(list, heap, view->names);
    api_command(call, is_shutdown ? "report --show-shutdown" : "report --show-leaked");
    records = job_array(list->count, sizeof *records);
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].contexts != 0) {
            records[count++] = &list->items[i];
        }
    }
    apitable_records(call, NULL, &shown, &of, records, count);
}

/* ---- The processes of a running program's run that run now, and what each one holds. The sum of
 * them, by call path, is the program itself with all-processes ---- */

struct running {
    uint32_t pid;
    uint32_t parent_pid;
    const char *name;
    uint64_t live_bytes;
    uint64_t live_blocks;
    uint64_t allocations;
};

#define OF(member) ROWS_FIELD(struct running, member)
static const struct table_column running_columns[] = {
    {"pid", "process", TABLE_COUNT, 0, "pid", "", OF(pid)},
    {"parent_pid", "started by", TABLE_COUNT, 0, "parent_pid", "", OF(parent_pid)},
    {"name", "program", TABLE_TEXT, 0, "name", "", OF(name)},
    {"live_bytes", "holds now", TABLE_BYTES, 0, "live_bytes", "", OF(live_bytes)},
    {"live_blocks", "in blocks", TABLE_COUNT, 0, "live_blocks", "", OF(live_blocks)},
    {"allocations", "allocations", TABLE_COUNT, 0, "allocations", "", OF(allocations)},
};
#undef OF
static const struct rows running_rows = {
    .name = "running", .about = "processes that run now", ROWS_COLUMNS(running_columns)};

/* false: it has just ended. */
static bool running_look(const struct region *region, struct running *running) {
    struct profile *profile = profile_open(region->path, NULL);
    struct model *model = profile != NULL && profile->live ? model_load(profile, NULL) : NULL;
    profile_close(profile);
    if (model == NULL) {
        return false;
    }
    *running = (struct running){.pid = (uint32_t)region->pid,
                                .parent_pid = model->header.parent_pid,
                                .name = job_string(memtrace_program(&model->header)),
                                .live_bytes = model->totals.live_bytes,
                                .live_blocks = model->totals.live_blocks,
                                .allocations = model->totals.allocations};
    model_free(model);
    return true;
}

/* The region of the program that the view is of, which may be shown by its recording, and those of
 * its run; alone where it lies in another container's folder. */
void api_running(struct api_call *call) {
    const struct apitable_rows rows = {.rows = &running_rows, .sort = "live_bytes"};
    const struct model *whole = call->view->whole;
    struct region *regions = NULL;
    struct running *all;
    struct region own;
    struct error error;
    size_t count = 0;
    size_t seen = 0;
    call->told.command = "memtrace list";
    call->told.is_whole = true;
    if (whole->live && region_find((pid_t)whole->header.pid, &own, NULL) == 0) {
        job_check(runregions_find(own.path, &regions, &count, &error), &error);
        job_undo(free, regions);
        regions = count != 0 ? regions : &own;
        count = count != 0 ? count : 1;
    }
    all = job_array(count, sizeof *all);
    for (size_t i = 0; i < count; i++) {
        seen += running_look(&regions[i], &all[seen]);
    }
    apitable_array(call, &rows, all, sizeof *all, seen);
}
