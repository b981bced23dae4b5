/* SPDX-License-Identifier: MIT */
/* apireport.c: see apireport.h. */
#include "web/server/apireport.h"

#include "analyze/base/array.h"

#include <stdlib.h>
#include <string.h>

/* ---- Taking ---- */

static struct apireport_table *newest(struct apireport *taken) {
    return &taken->tables[taken->count - 1];
}

static int take_columns(struct apireport_table *to, const struct table *table) {
    to->columns = calloc(table->count + 1, sizeof *to->columns);
    to->taken = calloc(table->count + 1, sizeof *to->taken);
    if (to->columns == NULL || to->taken == NULL) {
        return -1;
    }
    for (size_t i = 0; i < table->count; i++) {
        const struct table_column *from = &table->columns[i];
        struct table_column *column = &to->columns[to->count];
        if (from->name == NULL) {
            continue;
        }
        *column = *from;
        column->heading = strdup(from->heading != NULL ? from->heading : from->name);
        column->name = strdup(from->name);
        to->taken[to->count++] = i;
        if (column->heading == NULL || column->name == NULL) {
            return -1;
        }
    }
    return 0;
}

static void on_open(void *context, const struct table *table, const char *title) {
    struct apireport *taken = context;
    (void)title;
    if (array_grow(&taken->tables, &taken->room, taken->count, sizeof *taken->tables) != 0) {
        taken->out_of_memory = true;
        return;
    }
    taken->tables[taken->count++] = (struct apireport_table){0};
    newest(taken)->name = table->name != NULL ? strdup(table->name) : NULL;
    taken->out_of_memory |= (newest(taken)->name == NULL) != (table->name == NULL) ||
                            take_columns(newest(taken), table) != 0;
}

static void on_note(void *context, const char *text) {
    struct apireport *taken = context;
    struct apireport_table *table;
    char *notes = NULL;
    if (taken->out_of_memory) {
        return;
    }
    table = newest(taken);
    if (asprintf(&notes, "%s%s%s", table->notes != NULL ? table->notes : "",
                 table->notes != NULL ? "\n" : "", text) < 0) {
        taken->out_of_memory = true;
        return;
    }
    free(table->notes);
    table->notes = notes;
}

static void on_row(void *context, const struct table_cell *cells) {
    struct apireport *taken = context;
    struct apireport_table *table;
    struct table_cell *to;
    if (taken->out_of_memory) {
        return;
    }
    table = newest(taken);
    if (taken->limit != 0 && table->rows == taken->limit) {
        return;
    }
    if (array_grow(&table->cells, &table->room, table->rows,
                   (table->count + 1) * sizeof *table->cells) != 0) {
        taken->out_of_memory = true;
        return;
    }
    to = &table->cells[table->rows * table->count];
    for (size_t i = 0; i < table->count; i++) {
        to[i] = cells[table->taken[i]];
        to[i].is_owned = false;
        to[i].text = to[i].text != NULL ? strdup(to[i].text) : NULL;
        taken->out_of_memory |= (to[i].text == NULL) != (cells[table->taken[i]].text == NULL);
    }
    table->rows++;
}

struct table_sink apireport_sink(struct apireport *taken) {
    return (struct table_sink){.open = on_open, .note = on_note, .row = on_row, .context = taken};
}

static void free_table(struct apireport_table *table) {
    for (size_t i = 0; i < table->rows * table->count; i++) {
        free((char *)table->cells[i].text);
    }
    for (size_t i = 0; table->columns != NULL && i < table->count; i++) {
        free((char *)table->columns[i].name);
        free((char *)table->columns[i].heading);
    }
    free(table->name);
    free(table->columns);
    free(table->taken);
    free(table->cells);
    free(table->notes);
}

void apireport_free(struct apireport *taken) {
    for (size_t i = 0; i < taken->count; i++) {
        free_table(&taken->tables[i]);
    }
    free(taken->tables);
    *taken = (struct apireport){0};
}

int apireport_take(struct apireport *taken, const struct report *report,
                   void (*write)(const struct report *report), struct error *error) {
    const struct table_sink sink = apireport_sink(taken);
    struct report all = *report;
    all.options.format = REPORT_SINK;
    all.options.limit = 0;
    all.sink = &sink;
    write(&all);
    return taken->out_of_memory ? error_set(error, "out of memory") : 0;
}

const struct apireport_table *apireport_find(const struct apireport *taken, const char *name) {
    for (size_t i = 0; i < taken->count; i++) {
        if (taken->tables[i].name != NULL && strcmp(taken->tables[i].name, name) == 0) {
            return &taken->tables[i];
        }
    }
    return NULL;
}

/* ---- Sorting ---- */

struct sorting {
    const struct apireport_table *table;
    struct rows_of of;
    size_t column;
    bool is_descending;
};

static int compare_numbers(uint64_t left, uint64_t right) {
    return (left > right) - (left < right);
}

static int compare_reals(double left, double right) {
    return (left > right) - (left < right);
}

static const char *text_of(const struct sorting *sorting, const struct table_cell *cell) {
    const struct names_frame *frame = cell->frame;
    if (sorting->table->columns[sorting->column].kind == TABLE_PATH) {
        frame = rows_innermost(&sorting->of, cell->path);
    }
    if (frame != NULL) {
        return frame->function != NULL ? frame->function : frame->module;
    }
    return cell->text != NULL ? cell->text : "";
}

static int compare_cells(const struct sorting *sorting, const struct table_cell *left,
                         const struct table_cell *right) {
    enum table_kind kind = sorting->table->columns[sorting->column].kind;
    kind = kind == TABLE_ANY ? left->kind : kind;
    switch (kind) {
    case TABLE_TEXT:
    case TABLE_WORD:
    case TABLE_FRAME:
    case TABLE_PATH:
    case TABLE_ANY:
        return strcmp(text_of(sorting, left), text_of(sorting, right));
    case TABLE_REAL:
    case TABLE_PERCENT:
        return compare_reals(left->real, right->real);
    case TABLE_SIGNED:
        return ((int64_t)left->number > (int64_t)right->number) -
               ((int64_t)left->number < (int64_t)right->number);
    default:
        return compare_numbers(left->number, right->number);
    }
}

/* What is not known comes last, rows that are equal stay in their order. */
static int by_column(const void *left, const void *right, void *context) {
    const struct sorting *sorting = context;
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;
    const struct table_cell *first =
        &sorting->table->cells[a * sorting->table->count + sorting->column];
    const struct table_cell *second =
        &sorting->table->cells[b * sorting->table->count + sorting->column];
    int order = 0;
    if (first->is_known != second->is_known) {
        return first->is_known ? -1 : 1;
    }
    if (first->is_known) {
        order = compare_cells(sorting, first, second);
    }
    order = sorting->is_descending ? -order : order;
    return order != 0 ? order : compare_numbers(a, b);
}

/* ---- Answering ---- */

/* The cells are the table's: none is owned. */
static void put_row(struct apitable *table, const struct apireport_table *from, size_t row) {
    apitable_row(table, &from->cells[row * from->count]);
}

static void tell_notes(struct api_call *call, const struct apireport_table *table) {
    if (table->notes != NULL) {
        api_note(call, "%s", table->notes);
    }
}

static void write_all_rows(struct api_call *call, const char *name,
                           const struct apireport_table *from, struct apitable *table) {
    apitable_begin(table, call, name, from->columns, from->count);
    table->total = from->rows;
    for (size_t row = 0; row < from->rows; row++) {
        put_row(table, from, row);
    }
    tell_notes(call, from);
}

int apireport_write(struct api_call *call, const char *name, const struct apireport_table *from,
                    struct error *error) {
    struct apitable table;
    write_all_rows(call, name, from, &table);
    return apitable_end(&table, error);
}

void apireport_begin(struct api_call *call, const struct apireport_table *from,
                     struct apitable *to) {
    write_all_rows(call, NULL, from, to);
    apitable_end_rows(to);
}

static int put_rows(struct api_call *call, const struct apireport_table *from,
                    const struct apitable_wish *wish, const size_t *order, struct error *error) {
    struct apitable table;
    size_t row = wish->from;
    apitable_begin(&table, call, NULL, from->columns, from->count);
    for (; row < from->rows && row - wish->from < wish->limit; row++) {
        put_row(&table, from, order[row]);
    }
    table.total = from->rows;
    table.next = row < from->rows ? row : 0;
    tell_notes(call, from);
    return apitable_end(&table, error);
}

int apireport_answer(struct api_call *call, const struct apireport_table *from,
                     struct error *error) {
    struct sorting sorting = {.table = from, .of = rows_of_report(&call->report)};
    struct apitable_wish wish;
    size_t *order = calloc(from->rows + 1, sizeof *order);
    int result = order != NULL ? 0 : error_set(error, "out of memory");
    if (result == 0) {
        result = apitable_wish(call, from->columns, from->count, NULL, &wish, error);
    }
    if (result == 0) {
        for (size_t i = 0; i < from->rows; i++) {
            order[i] = i;
        }
        if (wish.sort != SIZE_MAX) {
            sorting.column = wish.sort;
            sorting.is_descending = wish.descending;
            qsort_r(order, from->rows, sizeof *order, by_column, &sorting);
        }
        result = put_rows(call, from, &wish, order, error);
    }
    free(order);
    return result;
}

int apireport_one(struct api_call *call, const struct report *report,
                  void (*write)(const struct report *report), const char *name,
                  struct error *error) {
    struct apireport taken = {0};
    const struct apireport_table *table;
    int result = apireport_take(&taken, report, write, error);
    if (result == 0) {
        table = apireport_find(&taken, name);
        result = table != NULL ? apireport_answer(call, table, error)
                               : error_set(error, "the report has no table %s", name);
    }
    apireport_free(&taken);
    return result;
}
