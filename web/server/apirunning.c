/* SPDX-License-Identifier: MIT */
/*
 * apirunning.c: the processes of a running program's run that run now, and what each one holds. The
 * sum of them, by call path, is the program itself with all-processes.
 */
#include "analyze/base/pathname.h"
#include "web/server/apilist.h"
#include "web/server/apitable.h"

#include "analyze/read/profile.h"
#include "ask/runregions.h"

#include <stdlib.h>

struct running {
    uint32_t pid;
    uint32_t parent_pid;
    const char *name;
    uint64_t live_bytes;
    uint64_t live_blocks;
    uint64_t allocations;
};

#define OF(member) ROWS_FIELD(struct running, member)
static const struct table_column columns[] = {
    {"pid", "process", TABLE_COUNT, 0, "pid", "", OF(pid)},
    {"parent_pid", "started by", TABLE_COUNT, 0, "parent_pid", "", OF(parent_pid)},
    {"name", "program", TABLE_TEXT, 0, "name", "", OF(name)},
    {"live_bytes", "holds now", TABLE_BYTES, 0, "live_bytes", "", OF(live_bytes)},
    {"live_blocks", "in blocks", TABLE_COUNT, 0, "live_blocks", "", OF(live_blocks)},
    {"allocations", "allocations", TABLE_COUNT, 0, "allocations", "", OF(allocations)},
};
#undef OF
static const struct rows running_rows = {
    .name = "running", .about = "processes that run now", ROWS_COLUMNS(columns)};

/* false: it has just ended. */
static bool look(const struct region *region, struct running *running) {
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
        seen += look(&regions[i], &all[seen]);
    }
    apitable_array(call, &rows, all, sizeof *all, seen);
}
