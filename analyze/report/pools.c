/* SPDX-License-Identifier: MIT */
/* pools.c: the table of pools: what each has given out, and what it holds for that. See reports.h.
 */
#include "analyze/report/reports.h"
#include "analyze/rows/rows.h"
#include "analyze/rows/style.h"

#include <stdlib.h>

/* The columns that pools have where nothing is known of what they hold, and those besides. */
static const unsigned char given[] = {POOL_NAME, POOL_ALLOCATIONS, POOL_TOTAL_BYTES,
                                      POOL_LIVE_BLOCKS, POOL_LIVE_BYTES};
static const unsigned char held[] = {
    POOL_NAME,  POOL_LIVE_BLOCKS, POOL_LIVE_BYTES,    POOL_HELD_BYTES, POOL_HELD_BACK,
    POOL_SHARE, POOL_HEAP_BYTES,  POOL_MAPPING_BYTES, POOL_POOL_BYTES, POOL_OUTSIDE_BYTES};

static bool is_held_known(const struct rows_of *of) {
    struct rows_cursor cursor = rows_begin(&rows_pools, of);
    const void *record;
    while ((record = rows_next(&cursor)) != NULL) {
        if (rows_cell(&rows_pools, of, record, POOL_HELD_BYTES).is_known) {
            return true;
        }
    }
    return false;
}

static uint64_t number_of(const struct rows_of *of, size_t row, size_t column) {
    max_align_t room[ROWS_ROOM / sizeof(max_align_t)];
    return rows_cell(&rows_pools, of, rows_pools.record(of, row, room), column).number;
}

/* The rows, those that hold or have most first. NULL: out of memory. */
static size_t *order_of(const struct rows_of *of, size_t count, size_t column) {
    size_t *order = calloc(count + 1, sizeof *order);
    for (size_t i = 0; order != NULL && i < count; i++) {
        uint64_t number = number_of(of, i, column);
        size_t at = i;
        while (at != 0 && number_of(of, order[at - 1], column) < number) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    return order;
}

int report_pools(const struct report *report) {
    const struct rows_of of = rows_of_report(report);
    bool is_known = is_held_known(&of);
    struct rows_view view = rows_view(report, &rows_pools, is_known ? held : given,
                                      is_known ? sizeof held : sizeof given);
    size_t count = rows_pools.count(&of);
    size_t *order = order_of(&of, count, is_known ? POOL_HELD_BYTES : POOL_TOTAL_BYTES);
    struct table table;
    if (order == NULL) {
        return -1;
    }
    table = table_open(report, "pools", "Pools", view.columns, view.count);
    for (size_t i = 0; i < count && table_has_room(&table); i++) {
        max_align_t room[ROWS_ROOM / sizeof(max_align_t)];
        rows_put(&table, &view, rows_pools.record(&of, order[i], room));
    }
    table.hidden = count - table.rows;
    table_close(&table);
    free(order);
    return 0;
}

void report_json_pools(struct jsonwriter *json, const struct report *report) {
    static const unsigned char shown[] = {
        POOL_NAME,        POOL_ALLOCATIONS, POOL_TOTAL_BYTES,   POOL_FREES,
        POOL_LIVE_BLOCKS, POOL_LIVE_BYTES,  POOL_HELD_BYTES,    POOL_HELD_BACK,
        POOL_HEAP_BYTES,  POOL_HEAP_BLOCKS, POOL_MAPPING_BYTES, POOL_MAPPINGS,
        POOL_POOL_BYTES,  POOL_POOL_BLOCKS, POOL_OUTSIDE_BYTES, POOL_OUTSIDE_BLOCKS};
    struct report all = *report;
    struct rows_view view = rows_view(report, &rows_pools, shown, sizeof shown);
    struct table table;
    all.options.limit = 0;
    table = table_begin_member(&all, json, "by_pool", NULL, view.columns, view.count);
    rows_put_all(&table, &view);
    table_end_member(&table);
}

bool report_has_pools(const struct report *report) {
    const struct rows_of of = rows_of_report(report);
    return rows_pools.count(&of) != 0;
}
