/* SPDX-License-Identifier: MIT */
/* blocks.c: the list of single blocks: the largest, the oldest or the first ones. */
#include "analyze/rows/table.h"

static const char *title_of(enum detail_order order) {
    return order == DETAIL_LARGEST  ? "Blocks: the largest"
           : order == DETAIL_OLDEST ? "Blocks: those that lived longest"
                                    : "Blocks: the first";
}

static void put_block(struct table *table, const struct life *life) {
    const struct report *report = table->report;
    const struct model_context *context = model_find(report->model, life->context);
    bool is_alive = life->death_ns == LIFE_ALIVE;
    uint64_t until_ns = is_alive ? report->detail->end_ns : life->death_ns;
    struct table_cell death = {.is_known = !is_alive, .number = life->death_ns};
    struct table_cell freed_by = {.is_known = !is_alive, .number = life->death_thread};
    struct table_cell address = {.is_known = life->address != 0, .number = life->address};
    table_row(table,
              (struct table_cell[]){
                  address, table_number(life->size), table_number(life->slack),
                  table_number(life->birth_ns), death,
                  table_number(until_ns > life->birth_ns ? until_ns - life->birth_ns : 0),
                  table_number(life->block.thread), freed_by, table_number(life->chain_length),
                  table_number(model_hash(report->model, life->context)),
                  table_path(context != NULL ? context->path : 0)});
}

int report_blocks(const struct report *report) {
    static const struct table_column columns[] = {
        {"address", "address", TABLE_ADDRESS, 0}, {"size", "size", TABLE_BYTES, 0},
        {"slack", NULL, TABLE_BYTES, 0},          {"birth_ns", "born", TABLE_DURATION, 0},
        {"death_ns", "freed", TABLE_DURATION, 0}, {"age_ns", "age", TABLE_DURATION, 0},
        {"thread", "thread", TABLE_COUNT, 7},     {"freed_by", "by", TABLE_COUNT, 4},
        {"chain_length", NULL, TABLE_COUNT, 0},   {"hash", NULL, TABLE_HASH, 0},
        {"path", "call path", TABLE_PATH, 0},
    };
    const struct detail *detail = report->detail;
    struct table table = table_open(report, "blocks", title_of(detail->wish.order), columns, 11);
    for (size_t i = 0; i < detail->block_count; i++) {
        put_block(&table, &detail->blocks[i]);
    }
    table.hidden = detail->block_total - detail->block_count;
    table_close(&table);
    return 0;
}
