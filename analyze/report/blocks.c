/* SPDX-License-Identifier: MIT */
/* blocks.c: the list of single blocks: the largest, the oldest or the first ones. */
#include "analyze/report/reports.h"
#include "analyze/rows/rows.h"

static const char *title_of(enum detail_order order) {
    return order == DETAIL_LARGEST  ? "Blocks: the largest"
           : order == DETAIL_OLDEST ? "Blocks: those that lived longest"
                                    : "Blocks: the first";
}

int report_blocks(const struct report *report) {
    static const unsigned char shown[] = {
        ALLOCATION_ADDRESS,      ALLOCATION_SIZE, ALLOCATION_SLACK,  ALLOCATION_BORN,
        ALLOCATION_FREED,        ALLOCATION_AGE,  ALLOCATION_THREAD, ALLOCATION_FREED_BY,
        ALLOCATION_CHAIN_LENGTH, ALLOCATION_HASH, ALLOCATION_PATH,
    };
    const struct detail *detail = report->detail;
    struct rows_view view = rows_view(report, &rows_allocations, shown, sizeof shown);
    struct table table =
        table_open(report, "blocks", title_of(detail->wish.order), view.columns, view.count);
    for (size_t i = 0; i < detail->block_count; i++) {
        rows_put(&table, &view, &detail->blocks[i]);
    }
    table.hidden = detail->block_total - detail->block_count;
    table_close(&table);
    return 0;
}
