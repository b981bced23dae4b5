/* SPDX-License-Identifier: MIT */
/* apitable.c: see apitable.h. */
#include "web/server/apitable.h"

#include "analyze/rows/pathwalk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OF_BASE         (UINT64_C(1) << 32) /* a path of the other side */
#define LARGEST_INTEGER (INT64_C(1) << 53)  /* that JavaScript's numbers hold exactly */

static const char *const kind_names[] = {
    [TABLE_TEXT] = "text",       [TABLE_WORD] = "word",         [TABLE_COUNT] = "count",
    [TABLE_BYTES] = "bytes",     [TABLE_SIGNED] = "signed",     [TABLE_REAL] = "real",
    [TABLE_PERCENT] = "percent", [TABLE_DURATION] = "duration", [TABLE_ADDRESS] = "address",
    [TABLE_HASH] = "hash",       [TABLE_FRAME] = "frame",       [TABLE_PATH] = "path",
    [TABLE_ANY] = "any",
};

static const char *apitable_name_of(const struct table_column *column) {
    return column->name != NULL  ? column->name
           : column->sql != NULL ? column->sql
                                 : column->heading;
}

/* ---- How it is asked for ---- */

bool apitable_is_text(enum table_kind kind) {
    return kind == TABLE_TEXT || kind == TABLE_WORD || kind == TABLE_FRAME || kind == TABLE_PATH;
}

struct apitable_wish apitable_wish(struct api_call *call, const struct table_column *columns,
                                   size_t count, const char *usual_sort) {
    const char *sort = api_param(call, "sort");
    struct apitable_wish wish = {.sort = SIZE_MAX};
    sort = sort != NULL ? sort : usual_sort;
    for (size_t i = 0; sort != NULL && wish.sort == SIZE_MAX; i++) {
        if (i == count) {
            api_refuse(call, 400, "sort: there is no column '%s'", sort);
        }
        wish.sort = strcmp(apitable_name_of(&columns[i]), sort) == 0 ? i : SIZE_MAX;
    }
    wish.descending =
        api_word(call, "order", "asc|desc",
                 wish.sort != SIZE_MAX && !apitable_is_text(columns[wish.sort].kind)) != 0;
    wish.limit = (size_t)api_number(call, "limit", APITABLE_ROWS, 1, APITABLE_MOST_ROWS);
    wish.from = (size_t)api_number(call, "cursor", 0, 0, UINT64_MAX);
    return wish;
}

void apitable_columns(const struct rows *rows, const unsigned char *shown, size_t count,
                      struct table_column *columns) {
    for (size_t i = 0; i < count; i++) {
        columns[i] = rows->columns[shown != NULL ? shown[i] : i];
    }
}

/* ---- Writing ---- */

void apitable_column(struct jsonwriter *json, const struct table_column *column) {
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "name", apitable_name_of(column));
    jsonwriter_string(json, "heading",
                      column->heading != NULL ? column->heading : apitable_name_of(column));
    jsonwriter_string(json, "kind", kind_names[column->kind]);
    if (column->about != NULL && column->about[0] != '\0') {
        jsonwriter_string(json, "about", column->about);
    }
    jsonwriter_end_map(json);
}

void apitable_begin(struct apitable *table, struct api_call *call, const char *name,
                    const struct table_column *columns, size_t count) {
    *table = (struct apitable){.call = call,
                               .columns = columns,
                               .count = count,
                               .frames = apiframes_start(&call->report),
                               .total = UINT64_MAX};
    jsonwriter_map(call->json, name);
    jsonwriter_array(call->json, "columns");
    for (size_t i = 0; i < count; i++) {
        apitable_column(call->json, &columns[i]);
    }
    jsonwriter_end_array(call->json);
    jsonwriter_array(call->json, "rows");
}

static void put_text_of(struct jsonwriter *json, const char *name, const char *format,
                        uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, format, value);
    jsonwriter_string(json, name, text);
}

static bool is_natural(enum table_kind kind) {
    return kind == TABLE_COUNT || kind == TABLE_BYTES || kind == TABLE_DURATION ||
           kind == TABLE_ANY;
}

void apitable_cell(struct jsonwriter *json, const char *name, enum table_kind kind,
                   const struct table_cell *cell) {
    int64_t number = (int64_t)cell->number;
    if (!cell->is_known) {
        jsonwriter_string(json, name, NULL);
        return;
    }
    if (kind == TABLE_SIGNED && (number > LARGEST_INTEGER || number < -LARGEST_INTEGER)) {
        put_text_of(json, name, "%" PRId64, cell->number);
    } else if (is_natural(kind) && cell->number > (uint64_t)LARGEST_INTEGER) {
        put_text_of(json, name, "%" PRIu64, cell->number);
    } else {
        tabledata_json_value(json, NULL, name, kind, cell);
    }
}

/* The number of a call path among those of the table. */
static size_t add_path(struct apitable *table, uint64_t node) {
    uintptr_t place = (uintptr_t)numbermap_get(&table->path_places, node);
    if (place != 0) {
        return place - 1;
    }
    job_grow(&table->paths, &table->path_room, table->path_count, sizeof *table->paths);
    numbermap_set(&table->path_places, node, (void *)(table->path_count + 1));
    table->paths[table->path_count] = node;
    return table->path_count++;
}

void apitable_row(struct apitable *table, struct table_cell *cells) {
    struct jsonwriter *json = table->call->json;
    jsonwriter_array(json, NULL);
    for (size_t i = 0; i < table->count; i++) {
        const struct table_cell *cell = &cells[i];
        enum table_kind kind = table->columns[i].kind;
        kind = kind == TABLE_ANY ? cell->kind : kind;
        if (cell->is_known && kind == TABLE_FRAME) {
            jsonwriter_number(json, NULL, apiframes_add(&table->frames, cell->frame));
        } else if (cell->is_known && kind == TABLE_PATH) {
            jsonwriter_number(json, NULL,
                              add_path(table, cell->path | (cell->number != 0 ? OF_BASE : 0)));
        } else {
            apitable_cell(json, NULL, kind, cell);
        }
        if (cell->is_owned) {
            free((char *)(uintptr_t)cell->text);
        }
    }
    jsonwriter_end_array(json);
    table->rows++;
}

static void put_paths(struct apitable *table) {
    const struct api_call *call = table->call;
    jsonwriter_array(call->json, "paths");
    for (size_t i = 0; i < table->path_count; i++) {
        struct report report = call->report;
        struct pathwalk walk;
        if ((table->paths[i] & OF_BASE) != 0) {
            report.model = call->base->model;
            report.names = call->base->names;
        }
        walk = pathwalk(&report, (uint32_t)table->paths[i]);
        jsonwriter_array(call->json, NULL);
        for (; walk.frame != NULL; pathwalk_next(&walk)) {
            jsonwriter_number(call->json, NULL, apiframes_add(&table->frames, walk.frame));
        }
        jsonwriter_end_array(call->json);
    }
    jsonwriter_end_array(call->json);
}

void apitable_end_rows(struct apitable *table) {
    jsonwriter_end_array(table->call->json);
    jsonwriter_number(table->call->json, "total",
                      table->total != UINT64_MAX ? table->total : table->rows);
    table->is_ended = true;
}

void apitable_end(struct apitable *table) {
    struct jsonwriter *json = table->call->json;
    if (!table->is_ended) {
        apitable_end_rows(table);
    }
    if (table->next != 0) {
        put_text_of(json, "next", "%" PRIu64, table->next);
    }
    if (table->path_count != 0) {
        put_paths(table);
    }
    if (table->frames.count != 0) {
        apiframes_write(&table->frames, json, "frames");
    }
    jsonwriter_end_map(json);
}

/* ---- All rows of a thing ---- */

enum { COLUMNS = 64 };

/* A row, and what it is sorted by. */
struct keyed {
    const void *record;
    struct table_cell cell;
    size_t place; /* as it came */
};

struct sorting {
    enum table_kind kind;
    bool descending;
};

static int compare_cells(enum table_kind kind, const struct table_cell *a,
                         const struct table_cell *b) {
    int64_t left = (int64_t)a->number;
    int64_t right = (int64_t)b->number;
    if (apitable_is_text(kind)) {
        return strcmp(a->text != NULL ? a->text : "", b->text != NULL ? b->text : "");
    }
    switch (kind) {
    case TABLE_REAL:
    case TABLE_PERCENT:
        return (a->real > b->real) - (a->real < b->real);
    case TABLE_SIGNED:
        return (left > right) - (left < right);
    default:
        return (a->number > b->number) - (a->number < b->number);
    }
}

/* Whether there is something to sort by: a change of nothing is none. */
static bool has_value(const struct sorting *sorting, const struct table_cell *cell) {
    return cell->is_known && (sorting->kind != TABLE_SIGNED || cell->number != 0);
}

/* What has no value comes last, whichever way is up. */
static int compare_keyed(const void *left, const void *right, void *context) {
    const struct sorting *sorting = context;
    const struct keyed *a = left;
    const struct keyed *b = right;
    bool has = has_value(sorting, &a->cell);
    int order = 0;
    if (has != has_value(sorting, &b->cell)) {
        return has ? -1 : 1;
    }
    if (has) {
        order = compare_cells(sorting->kind, &a->cell, &b->cell);
    }
    if (order == 0) {
        return (a->place > b->place) - (a->place < b->place);
    }
    return sorting->descending ? -order : order;
}

/* Of a frame, and of a call path's allocating function, the name. */
static struct table_cell sort_cell(const struct rows *rows, const struct rows_of *of,
                                   const void *record, size_t column) {
    struct table_cell cell = rows_cell(rows, of, record, column);
    const struct names_frame *frame = rows->columns[column].kind == TABLE_FRAME ? cell.frame : NULL;
    if (rows->columns[column].kind == TABLE_PATH && cell.is_known) {
        frame = rows_innermost(of, cell.path);
    }
    if (frame != NULL) {
        cell.text = frame->function != NULL ? frame->function : frame->module;
    }
    return cell;
}

/* The records, as they are to be written. */
static const void **sort_records(const struct apitable_rows *rows, const struct rows_of *of,
                                 const struct apitable_wish *wish, const void *const *records,
                                 size_t count) {
    size_t column =
        rows->shown != NULL && wish->sort != SIZE_MAX ? rows->shown[wish->sort] : wish->sort;
    const void **sorted = job_array(count, sizeof *sorted);
    struct sorting sorting = {.descending = wish->descending};
    struct keyed *keyed;
    if (wish->sort == SIZE_MAX) {
        for (size_t i = 0; i < count; i++) {
            sorted[i] = records[i];
        }
        return sorted;
    }
    keyed = job_array(count, sizeof *keyed);
    sorting.kind = rows->rows->columns[column].kind;
    for (size_t i = 0; i < count; i++) {
        keyed[i] = (struct keyed){records[i], sort_cell(rows->rows, of, records[i], column), i};
    }
    qsort_r(keyed, count, sizeof *keyed, compare_keyed, &sorting);
    for (size_t i = 0; i < count; i++) {
        sorted[i] = keyed[i].record;
        if (keyed[i].cell.is_owned) {
            free((char *)(uintptr_t)keyed[i].cell.text);
        }
    }
    job_release(keyed);
    return sorted;
}

void apitable_records(struct api_call *call, const char *name, const struct apitable_rows *rows,
                      const struct rows_of *of, const void *const *records, size_t count) {
    struct table_column columns[COLUMNS];
    struct table_cell cells[COLUMNS];
    unsigned char shown[COLUMNS];
    struct apitable_rows asked = *rows;
    struct apitable_wish wish;
    struct apitable table;
    const void **sorted;
    size_t end = count;
    if (rows->count == 0) {
        asked.count = rows_shown(rows->rows, TABLE_PAGE, shown, COLUMNS);
        asked.shown = shown;
    }
    apitable_columns(rows->rows, asked.shown, asked.count, columns);
    wish = apitable_wish(call, columns, asked.count, rows->sort);
    sorted = sort_records(&asked, of, &wish, records, count);
    wish.from = wish.from < count ? wish.from : count;
    apitable_begin(&table, call, name, columns, asked.count);
    table.total = count;
    if (wish.limit < count - wish.from) {
        table.next = end = wish.from + wish.limit;
    }
    for (size_t i = wish.from; i < end; i++) {
        for (size_t column = 0; column < asked.count; column++) {
            cells[column] = rows_cell(rows->rows, of, sorted[i],
                                      asked.shown != NULL ? asked.shown[column] : column);
        }
        apitable_row(&table, cells);
    }
    apitable_end_rows(&table);
    if (rows->more != NULL) {
        rows->more(call, sorted + wish.from, end - wish.from);
    }
    apitable_end(&table);
}

void apitable_array(struct api_call *call, const struct apitable_rows *rows, const void *records,
                    size_t record_size, size_t count) {
    const struct rows_of of = rows_of_report(&call->report);
    const void **list = job_array(count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        list[i] = (const char *)records + i * record_size;
    }
    apitable_records(call, NULL, rows, &of, list, count);
}

void apitable_rows(struct api_call *call, const char *name, const struct apitable_rows *rows) {
    struct rows_of of = rows_of_report(&call->report);
    struct rows_cursor cursor;
    const void **records;
    const void *record;
    size_t count = 0;
    of.whole = call->view->whole;
    if (rows->rows == &rows_scopes && rows_pair_scopes(&of) != 0) {
        job_fail_memory();
    }
    cursor = rows_begin(rows->rows, &of);
    records = job_array(cursor.end, sizeof *records);
    while ((record = rows_next(&cursor)) != NULL) {
        bool is_of_cursor = record == (const void *)cursor.room;
        records[count++] =
            is_of_cursor ? memcpy(job_alloc(sizeof cursor.room), cursor.room, sizeof cursor.room)
                         : record;
    }
    apitable_records(call, name, rows, &of, records, count);
    free(of.scopes);
}
