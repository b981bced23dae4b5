/* SPDX-License-Identifier: MIT */
/*
 * groups.c: the table of contexts: what each allocated and holds, and, of a recording, when it
 * allocated first and last and how long its blocks lived.
 */
#include "analyze/replay/accounts.h"
#include "analyze/report/reports.h"
#include "analyze/rows/table.h"

#include <stdlib.h>

static int dearest_first(const void *left, const void *right) {
    const struct model_context *a = *(const struct model_context *const *)left;
    const struct model_context *b = *(const struct model_context *const *)right;
    if (a->total_bytes != b->total_bytes) {
        return a->total_bytes < b->total_bytes ? 1 : -1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

static struct table_cell time_cell(const struct detail_context *detail, uint64_t time_ns) {
    return (struct table_cell){.is_known = detail != NULL && detail->allocations != 0,
                               .number = time_ns};
}

static struct table_cell lifetime_cell(const struct detail_context *detail) {
    uint64_t freed = detail != NULL ? detail->lifetimes.count : 0;
    struct table_cell cell = {.is_known = freed != 0};
    if (freed != 0) {
        cell.number = (uint64_t)(detail->lifetime_sum_ns * (double)TALLY_ONE / (double)freed);
    }
    return cell;
}

static void put_group(struct table *table, const struct model_context *context) {
    const struct report *report = table->report;
    const struct detail_context *detail =
        report->detail != NULL ? detail_find(report->detail, context->id) : NULL;
    struct table_cell average = {.is_known = context->allocations != 0};
    if (context->allocations != 0) {
        average.number = context->total_bytes / context->allocations;
    }
    table_row(table,
              (struct table_cell[]){
                  table_number(context->allocations), table_number(context->total_bytes), average,
                  table_number(context->live_blocks), table_number(context->live_bytes),
                  table_number(context->frees), table_number(context->temporary),
                  time_cell(detail, detail != NULL ? detail->first_ns : 0),
                  time_cell(detail, detail != NULL ? detail->last_ns : 0), lifetime_cell(detail),
                  table_number(model_hash(report->model, context->id)), table_path(context->path)});
}

int report_groups(const struct report *report) {
    bool is_recording = report->detail != NULL;
    const struct table_column columns[] = {
        {"allocations", "allocations", TABLE_COUNT, 0},
        {"total_bytes", "bytes", TABLE_BYTES, 0},
        {"average_bytes", "average", TABLE_BYTES, 0},
        {"live_blocks", report_held(report->model), TABLE_COUNT, 0},
        {"live_bytes", "bytes", TABLE_BYTES, 0},
        {"frees", NULL, TABLE_COUNT, 0},
        {"temporary", NULL, TABLE_COUNT, 0},
        {"first_ns", is_recording ? "first" : NULL, TABLE_DURATION, 0},
        {"last_ns", is_recording ? "last" : NULL, TABLE_DURATION, 0},
        {"average_lifetime_ns", is_recording ? "lifetime" : NULL, TABLE_DURATION, 0},
        {"hash", "hash", TABLE_HASH, 0},
        {"path", "call path", TABLE_PATH, 0},
    };
    const struct model *model = report->model;
    const struct model_context **groups = calloc(model->context_count + 1, sizeof *groups);
    size_t limit = report->options.limit != 0 ? report->options.limit : SIZE_MAX;
    size_t count = 0;
    struct table table;
    if (groups == NULL) {
        return -1;
    }
    for (size_t i = 0; i < model->context_count; i++) {
        if (model->contexts[i].class == MODEL_HEAP) {
            groups[count++] = &model->contexts[i];
        }
    }
    qsort(groups, count, sizeof *groups, dearest_first);
    table = table_open(report, "groups", "Groups: blocks of one call path", columns, 12);
    for (size_t i = 0; i < count && i < limit; i++) {
        put_group(&table, groups[i]);
    }
    table.hidden = count - table.rows;
    table_close(&table);
    free(groups);
    return 0;
}
