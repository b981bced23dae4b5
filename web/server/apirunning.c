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
#include <string.h>

struct running {
    uint32_t pid;
    uint32_t parent_pid;
    char *name;
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
enum { COLUMNS = sizeof columns / sizeof columns[0] };

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
                                .name = strdup(memtrace_program(&model->header)),
                                .live_bytes = model->totals.live_bytes,
                                .live_blocks = model->totals.live_blocks,
                                .allocations = model->totals.allocations};
    model_free(model);
    return running->name != NULL;
}

static int write_running(struct api_call *call, struct running *all, size_t count,
                         struct error *error) {
    static const unsigned char shown[COLUMNS] = {0, 1, 2, 3, 4, 5};
    const struct apitable_rows rows = {
        .rows = &running_rows, .shown = shown, .count = COLUMNS, .sort = "live_bytes"};
    const struct rows_of of = rows_of_report(&call->report);
    const void **records = calloc(count + 1, sizeof *records);
    int result;
    if (records == NULL) {
        return error_set(error, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        records[i] = &all[i];
    }
    result = apitable_records(call, NULL, &rows, &of, records, count, error);
    free(records);
    return result;
}

/* The region of the program that the view is of, which may be shown by its recording, and those of
 * its run; alone where it lies in another container's folder. */
static int find_regions(const struct answer *view, struct region **list, size_t *count,
                        struct error *error) {
    struct region own;
    *list = NULL;
    *count = 0;
    if (!view->whole->live || region_find((pid_t)view->whole->header.pid, &own, NULL) != 0) {
        return 0;
    }
    if (runregions_find(own.path, list, count, error) != 0) {
        return -1;
    }
    if (*count == 0) {
        free(*list);
        *list = malloc(sizeof own);
        if (*list == NULL) {
            return error_set(error, "out of memory");
        }
        **list = own;
        *count = 1;
    }
    return 0;
}

int api_running(struct api_call *call, struct error *error) {
    struct region *regions;
    struct running *all = NULL;
    size_t count;
    size_t seen = 0;
    int result = find_regions(call->view, &regions, &count, error);
    call->told.command = "memtrace list";
    call->told.is_whole = true;
    if (result == 0 && (all = calloc(count + 1, sizeof *all)) == NULL) {
        result = error_set(error, "out of memory");
    }
    for (size_t i = 0; result == 0 && i < count; i++) {
        seen += look(&regions[i], &all[seen]);
    }
    result = result == 0 ? write_running(call, all, seen, error) : -1;
    for (size_t i = 0; i < seen; i++) {
        free(all[i].name);
    }
    free(all);
    free(regions);
    return result;
}
