/* SPDX-License-Identifier: MIT */
/* suppressedtable.c: which leaks were left out of a report, and because of what. */
#include "analyze/rows/number.h"
#include "analyze/rows/table.h"

static const char *spell_pattern(const struct suppression *item, char *buffer, size_t size) {
    snprintf(buffer, size, "%s%s%s", item->pattern, item->caller != NULL ? " called by " : "",
             item->caller != NULL ? item->caller : "");
    return buffer;
}

static const char *spell_origin(const struct suppression *item, char *buffer, size_t size) {
    snprintf(buffer, size, item->line != 0 ? "%s:%u" : "%s", item->origin, item->line);
    return buffer;
}

void report_suppressed(const struct report *report) {
    static const struct table_column columns[] = {
        {"blocks", "blocks", TABLE_COUNT, 0},    {"bytes", "bytes", TABLE_BYTES, 0},
        {"paths", "call paths", TABLE_COUNT, 0}, {"pattern", "pattern", TABLE_TEXT, 32},
        {"origin", "from", TABLE_TEXT, 0},
    };
    const struct suppressions *list = report->suppressions;
    struct number bytes;
    struct number blocks;
    struct table table;
    if (list->blocks == 0 && report_is_for_people(report)) {
        return;
    }
    table =
        table_open(report, "suppressed", "Suppressed: leaks that are left out above", columns, 5);
    table_note(&table, "%s in %s.", number_bytes(&bytes, list->bytes),
               number_items(&blocks, list->blocks, "block"));
    for (size_t i = 0; i < list->count; i++) {
        const struct suppression *item = &list->items[i];
        char pattern[512];
        char origin[512];
        if (item->contexts != 0) {
            table_row(&table, (struct table_cell[]){
                                  table_number(item->blocks), table_number(item->bytes),
                                  table_number(item->contexts),
                                  table_text(spell_pattern(item, pattern, sizeof pattern)),
                                  table_text(spell_origin(item, origin, sizeof origin))});
        }
    }
    table_close(&table);
}
