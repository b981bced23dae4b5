/* SPDX-License-Identifier: MIT */
/* marktable.c: what the program said of itself while it ran. */
#include "analyze/rows/table.h"

static const char *what_of(uint32_t what) {
    static const char *const names[] = {
        [MEMTRACE_MARK_POINT] = "mark",           [MEMTRACE_MARK_SCOPE_BEGIN] = "scope begins",
        [MEMTRACE_MARK_SCOPE_END] = "scope ends", [MEMTRACE_MARK_SNAPSHOT] = "snapshot",
        [MEMTRACE_MARK_ON] = "recording on",      [MEMTRACE_MARK_OFF] = "recording off",
        [MEMTRACE_MARK_SAMPLE] = "sampling",
    };
    return what < sizeof names / sizeof names[0] && names[what] != NULL ? names[what] : "unknown";
}

void report_marks(const struct report *report) {
    static const struct table_column columns[] = {
        {"time_ns", "time", TABLE_DURATION, 0}, {"thread", "thread", TABLE_COUNT, 7},
        {"what", "what", TABLE_TEXT, 13},       {"id", NULL, TABLE_COUNT, 0},
        {"name", "name", TABLE_TEXT, 0},
    };
    const struct model *model = report->model;
    struct table table = table_open(report, "marks", "Marks", columns, 5);
    size_t limit = report->options.limit != 0 ? report->options.limit : SIZE_MAX;
    for (size_t i = 0; i < model->mark_count && i < limit; i++) {
        const struct model_mark *mark = &model->marks[i];
        table_row(&table,
                  (struct table_cell[]){table_number(mark->time_ns), table_number(mark->thread),
                                        table_text(what_of(mark->what)), table_number(mark->id),
                                        table_text(mark->name)});
    }
    table.hidden = model->mark_total - table.rows;
    table_close(&table);
}
