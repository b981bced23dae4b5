/* SPDX-License-Identifier: MIT */
/* pools.c: the table of pools: what each has given out, and what it holds for that. See reports.h.
 */
#include "analyze/base/job.h"
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

struct pool_rank {
    uint64_t number;
    size_t row;
};

/* The largest first; of equal ones as they come. */
static int pools_largest_first(const void *left, const void *right) {
    const struct pool_rank *a = left;
    const struct pool_rank *b = right;
    return a->number != b->number ? (a->number < b->number) - (a->number > b->number)
                                  : (a->row > b->row) - (a->row < b->row);
}

/* Those that hold or have most first. Each row is made once to be ranked: that goes through all
 * contexts. */
void report_pools(const struct report *report) {
    const struct rows_of of = rows_of_report(report);
    bool is_known = is_held_known(&of);
    struct rows_view view = rows_view(report, &rows_pools, is_known ? held : given,
                                      is_known ? sizeof held : sizeof given);
    size_t column = is_known ? POOL_HELD_BYTES : POOL_TOTAL_BYTES;
    size_t count = rows_count(&rows_pools, &of);
    struct pool_rank *ranks = job_array(count, sizeof *ranks);
    max_align_t room[ROWS_ROOM / sizeof(max_align_t)];
    struct table table;
    for (size_t i = 0; i < count; i++) {
        ranks[i].number =
            rows_cell(&rows_pools, &of, rows_record(&rows_pools, &of, i, room), column).number;
        ranks[i].row = i;
    }
    qsort(ranks, count, sizeof *ranks, pools_largest_first);
    table = table_open(report, "pools", "Pools", view.columns, view.count);
    for (size_t i = 0; i < count && table_has_room(&table); i++) {
        rows_put(&table, &view, rows_record(&rows_pools, &of, ranks[i].row, room));
    }
    table.hidden = count - table.rows;
    table_close(&table);
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
    return rows_count(&rows_pools, &of) != 0;
}
