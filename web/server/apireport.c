/* SPDX-License-Identifier: MIT */
/* apireport.c: see apireport.h. */
#include "web/server/apireport.h"

#include "analyze/base/job.h"

#include <string.h>

/* ---- Taking ---- */

static void on_open(void *context, const struct table *table, const char *title) {
    struct apireport *taken = context;
    struct apireport_table *to;
    (void)title;
    job_grow(&taken->tables, &taken->room, taken->count, sizeof *taken->tables);
    to = &taken->tables[taken->count++];
    *to = (struct apireport_table){
        .name = table->name != NULL ? job_string(table->name) : NULL,
        .columns = job_array(table->count, sizeof *to->columns),
        .taken = job_array(table->count, sizeof *to->taken),
    };
    for (size_t i = 0; i < table->count; i++) {
        const struct table_column *from = &table->columns[i];
        if (from->name != NULL) {
            to->columns[to->count] = (struct table_column){
                .name = job_string(from->name),
                .heading = job_string(from->heading != NULL ? from->heading : from->name),
                .kind = from->kind,
                .about = from->about,
                .size = sizeof *to->cells,
                .place = (unsigned)(to->count * sizeof *to->cells)};
            to->taken[to->count++] = i;
        }
    }
}

static void on_note(void *context, const char *text) {
    struct apireport *taken = context;
    struct apireport_table *table = &taken->tables[taken->count - 1];
    table->notes = table->notes != NULL ? job_text("%s\n%s", table->notes, text) : job_string(text);
}

static void apireport_on_row(void *context, const struct table_cell *cells) {
    struct apireport *taken = context;
    struct apireport_table *table = &taken->tables[taken->count - 1];
    struct table_cell *to;
    if (taken->limit != 0 && table->rows == taken->limit) {
        return;
    }
    job_grow(&table->cells, &table->room, table->rows, (table->count + 1) * sizeof *table->cells);
    to = &table->cells[table->rows++ * table->count];
    for (size_t i = 0; i < table->count; i++) {
        to[i] = cells[table->taken[i]];
        to[i].is_owned = false;
        to[i].text = to[i].text != NULL ? job_string(to[i].text) : NULL;
    }
}

struct table_sink apireport_sink(struct apireport *taken) {
    return (struct table_sink){
        .open = on_open, .note = on_note, .row = apireport_on_row, .context = taken};
}

struct apireport apireport_take(const struct report *report,
                                void (*write)(const struct report *report)) {
    struct apireport taken = {0};
    const struct table_sink sink = apireport_sink(&taken);
    struct report all = *report;
    all.options.format = REPORT_SINK;
    all.options.limit = 0;
    all.sink = &sink;
    write(&all);
    return taken;
}

const struct apireport_table *apireport_find(const struct apireport *taken, const char *name) {
    for (size_t i = 0; i < taken->count; i++) {
        if (taken->tables[i].name != NULL && strcmp(taken->tables[i].name, name) == 0) {
            return &taken->tables[i];
        }
    }
    job_fail("the report has no table %s", name);
}

/* ---- Answering ---- */

static void tell_notes(struct api_call *call, const struct apireport_table *table) {
    if (table->notes != NULL) {
        api_note(call, "%s", table->notes);
    }
}

void apireport_begin(struct api_call *call, const char *name, const struct apireport_table *from,
                     struct apitable *to) {
    apitable_begin(to, call, name, from->columns, from->count);
    for (size_t row = 0; row < from->rows; row++) {
        apitable_row(to, &from->cells[row * from->count]);
    }
    apitable_end_rows(to);
    tell_notes(call, from);
}

void apireport_write(struct api_call *call, const char *name, const struct apireport_table *from) {
    struct apitable table;
    apireport_begin(call, name, from, &table);
    apitable_end(&table);
}

void apireport_one(struct api_call *call, const struct report *report,
                   void (*write)(const struct report *report), const char *name) {
    const struct apireport taken = apireport_take(report, write);
    const struct apireport_table *table = apireport_find(&taken, name);
    const struct rows rows = {.columns = table->columns, .column_count = table->count};
    const struct apitable_rows shown = {.rows = &rows, .count = table->count};
    tell_notes(call, table);
    apitable_array(call, &shown, table->cells, table->count * sizeof *table->cells, table->rows);
}
