/* SPDX-License-Identifier: MIT */
/* threads.c: the table of threads, and who freed whose blocks. */
#include "analyze/report/reports.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <stdlib.h>
#include <string.h>

static const char *name_of(const struct model_thread *thread, char *buffer, size_t size) {
    size_t length =
        (size_t)snprintf(buffer, size, "%s%s", thread->name[0] != '\0' ? thread->name : "-",
                         thread->end_ns == 0 ? "" : " (ended)");
    if (thread->earlier != 0 && length < size) {
        snprintf(buffer + length, size - length, " and %u before it", thread->earlier);
    }
    return buffer;
}

static void put_threads(const struct report *report) {
    const struct model *model = report->model;
    const struct table_column columns[] = {
        {"id", "id", TABLE_COUNT, 6},
        {"tid", "tid", TABLE_TEXT, 8},
        {"allocations", "allocations", TABLE_COUNT, 0},
        {"total_bytes", "bytes", TABLE_BYTES, 0},
        {"frees", "frees", TABLE_COUNT, 0},
        {"freed_bytes", NULL, TABLE_BYTES, 0},
        {"live_bytes", report_held(model), TABLE_BYTES, 0},
        {"freed_for_others", "freed of others", TABLE_COUNT, 15},
        {"freed_for_others_bytes", NULL, TABLE_BYTES, 0},
        {"name", NULL, TABLE_TEXT, 0},
        {NULL, "name", TABLE_TEXT, 0},
    };
    struct table table = table_open(report, "threads", "Threads", columns, 11);
    for (size_t i = 0; i < model->thread_count; i++) {
        const struct model_thread *thread = &model->threads[i];
        char name[80];
        char tid[16];
        snprintf(tid, sizeof tid, "%u", thread->tid);
        table_row(&table,
                  (struct table_cell[]){
                      table_number(thread->id), table_text(tid), table_number(thread->allocations),
                      table_number(thread->total_bytes), table_number(thread->frees),
                      table_number(thread->freed_bytes),
                      table_number(thread->live_bytes > 0 ? (uint64_t)thread->live_bytes : 0),
                      table_number(thread->foreign_frees),
                      table_number(thread->foreign_freed_bytes), table_text(thread->name),
                      table_text(name_of(thread, name, sizeof name))});
    }
    table_close(&table);
}

static const char *thread_name(const struct model *model, uint32_t id) {
    for (size_t i = 0; i < model->thread_count; i++) {
        if (model->threads[i].id == id) {
            return model->threads[i].name[0] != '\0' ? model->threads[i].name : "-";
        }
    }
    return "-";
}

static int most_first(const void *left, const void *right) {
    const struct model_foreign *a = left;
    const struct model_foreign *b = right;
    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? 1 : -1;
    }
    if (a->freer != b->freer) {
        return a->freer < b->freer ? -1 : 1;
    }
    return (a->owner > b->owner) - (a->owner < b->owner);
}

static void put_foreign(const struct report *report, const struct model_foreign *foreign) {
    static const struct table_column columns[] = {
        {"owner", "from", TABLE_COUNT, 6},    {"owner_name", "allocated by", TABLE_TEXT, 16},
        {"freer", "to", TABLE_COUNT, 6},      {"freer_name", "freed by", TABLE_TEXT, 16},
        {"blocks", "blocks", TABLE_COUNT, 0}, {"bytes", "bytes", TABLE_BYTES, 0},
    };
    const struct model *model = report->model;
    struct table table =
        table_open(report, "cross-thread-frees", "Who freed whose blocks", columns, 6);
    size_t limit = report->options.limit != 0 ? report->options.limit : SIZE_MAX;
    for (size_t i = 0; i < model->foreign_count && i < limit; i++) {
        table_row(&table, (struct table_cell[]){table_number(foreign[i].owner),
                                                table_text(thread_name(model, foreign[i].owner)),
                                                table_number(foreign[i].freer),
                                                table_text(thread_name(model, foreign[i].freer)),
                                                table_number(foreign[i].blocks),
                                                table_number(foreign[i].bytes)});
    }
    table.hidden = model->foreign_count - table.rows;
    table_close(&table);
}

int report_threads(const struct report *report) {
    const struct model *model = report->model;
    struct model_foreign *foreign;
    put_threads(report);
    if (model->foreign_count == 0 && report_is_for_people(report)) {
        return 0;
    }
    foreign = calloc(model->foreign_count + 1, sizeof *foreign);
    if (foreign == NULL) {
        return -1;
    }
    if (model->foreign_count != 0) {
        memcpy(foreign, model->foreign, model->foreign_count * sizeof *foreign);
        qsort(foreign, model->foreign_count, sizeof *foreign, most_first);
    }
    put_foreign(report, foreign);
    free(foreign);
    return 0;
}
