/* SPDX-License-Identifier: MIT */
/* apitable.c: see apitable.h. */
#include "web/server/apitable.h"

#include "analyze/base/array.h"
#include "analyze/rows/pathwalk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OF_BASE         (UINT64_C(1) << 32) /* a path of the other side */
#define LARGEST_INTEGER (UINT64_C(1) << 53) /* that JavaScript's numbers hold exactly */

static const char *const kind_names[] = {
    [TABLE_TEXT] = "text",       [TABLE_WORD] = "word",         [TABLE_COUNT] = "count",
    [TABLE_BYTES] = "bytes",     [TABLE_SIGNED] = "signed",     [TABLE_REAL] = "real",
    [TABLE_PERCENT] = "percent", [TABLE_DURATION] = "duration", [TABLE_ADDRESS] = "address",
    [TABLE_HASH] = "hash",       [TABLE_FRAME] = "frame",       [TABLE_PATH] = "path",
    [TABLE_ANY] = "any",
};

static const char *name_of(const struct table_column *column) {
    return column->name != NULL  ? column->name
           : column->sql != NULL ? column->sql
                                 : column->heading;
}

/* ---- How it is asked for ---- */

static bool is_text(enum table_kind kind) {
    return kind == TABLE_TEXT || kind == TABLE_WORD || kind == TABLE_FRAME || kind == TABLE_PATH;
}

static int find_column(struct api_call *call, const struct table_column *columns, size_t count,
                       const char *name, size_t *place, struct error *error) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name_of(&columns[i]), name) == 0) {
            *place = i;
            return 0;
        }
    }
    return api_refuse(call, 400, error, "sort: there is no column '%s'", name);
}

int apitable_wish(struct api_call *call, const struct table_column *columns, size_t count,
                  const char *usual_sort, struct apitable_wish *wish, struct error *error) {
    const char *sort = api_param(call, "sort");
    uint64_t limit;
    uint64_t from;
    int descending;
    *wish = (struct apitable_wish){.sort = SIZE_MAX};
    sort = sort != NULL ? sort : usual_sort;
    if (sort != NULL && find_column(call, columns, count, sort, &wish->sort, error) != 0) {
        return -1;
    }
    descending = wish->sort != SIZE_MAX && !is_text(columns[wish->sort].kind);
    if (api_word(call, "order", "asc|desc", descending, &descending, error) != 0 ||
        api_number(call, "limit", APITABLE_ROWS, 1, APITABLE_MOST_ROWS, &limit, error) != 0 ||
        api_number(call, "cursor", 0, 0, UINT64_MAX, &from, error) != 0) {
        return -1;
    }
    wish->descending = descending != 0;
    wish->limit = limit != 0 ? (size_t)limit : APITABLE_MOST_ROWS;
    wish->from = (size_t)from;
    return 0;
}

/* ---- Writing ---- */

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
        const struct table_column *column = &columns[i];
        jsonwriter_map(call->json, NULL);
        jsonwriter_string(call->json, "name", name_of(column));
        jsonwriter_string(call->json, "heading",
                          column->heading != NULL ? column->heading : name_of(column));
        jsonwriter_string(call->json, "kind", kind_names[column->kind]);
        if (column->about != NULL && column->about[0] != '\0') {
            jsonwriter_string(call->json, "about", column->about);
        }
        jsonwriter_end_map(call->json);
    }
    jsonwriter_end_array(call->json);
    jsonwriter_array(call->json, "rows");
}

static void put_text_of(struct jsonwriter *json, const char *format, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, format, value);
    jsonwriter_string(json, NULL, text);
}

/* Each row of call paths has one: without printf. */
static void put_hash(struct jsonwriter *json, uint64_t value) {
    char text[17];
    for (size_t i = 16; i-- > 0; value >>= 4) {
        text[i] = "0123456789abcdef"[value & 15];
    }
    text[16] = '\0';
    jsonwriter_string(json, NULL, text);
}

static void put_number(struct jsonwriter *json, uint64_t value) {
    if (value <= LARGEST_INTEGER) {
        jsonwriter_number(json, NULL, value);
    } else {
        put_text_of(json, "%" PRIu64, value);
    }
}

static void put_signed(struct jsonwriter *json, int64_t value) {
    if (value <= (int64_t)LARGEST_INTEGER && value >= -(int64_t)LARGEST_INTEGER) {
        jsonwriter_integer(json, NULL, value);
    } else {
        put_text_of(json, "%" PRId64, (uint64_t)value);
    }
}

static void put_place(struct apitable *table, int64_t place) {
    if (place >= 0) {
        jsonwriter_integer(table->call->json, NULL, place);
    } else {
        table->is_failed = true;
        jsonwriter_string(table->call->json, NULL, NULL);
    }
}

/* The number of a call path among those of the table. -1: out of memory. */
static int64_t add_path(struct apitable *table, uint64_t node) {
    void *place = numbermap_get(&table->path_places, node);
    if (place != NULL) {
        return (int64_t)(uintptr_t)place - 1;
    }
    if (array_grow(&table->paths, &table->path_room, table->path_count, sizeof *table->paths) !=
            0 ||
        numbermap_put(&table->path_places, node, (void *)(uintptr_t)(table->path_count + 1)) != 0) {
        return -1;
    }
    table->paths[table->path_count] = node;
    return (int64_t)table->path_count++;
}

static void put_cell(struct apitable *table, enum table_kind kind, const struct table_cell *cell) {
    struct jsonwriter *json = table->call->json;
    if (!cell->is_known) {
        jsonwriter_string(json, NULL, NULL);
        return;
    }
    switch (kind == TABLE_ANY ? cell->kind : kind) {
    case TABLE_TEXT:
    case TABLE_WORD:
        jsonwriter_string(json, NULL, cell->text);
        break;
    case TABLE_REAL:
    case TABLE_PERCENT:
        jsonwriter_double(json, NULL, cell->real);
        break;
    case TABLE_SIGNED:
        put_signed(json, (int64_t)cell->number);
        break;
    case TABLE_ADDRESS:
        put_text_of(json, "0x%" PRIx64, cell->number);
        break;
    case TABLE_HASH:
        put_hash(json, cell->number);
        break;
    case TABLE_FRAME:
        put_place(table, apiframes_add(&table->frames, cell->frame));
        break;
    case TABLE_PATH:
        put_place(table, add_path(table, cell->path | (cell->number != 0 ? OF_BASE : 0)));
        break;
    default:
        put_number(json, cell->number);
        break;
    }
}

void apitable_row(struct apitable *table, struct table_cell *cells) {
    jsonwriter_array(table->call->json, NULL);
    for (size_t i = 0; i < table->count; i++) {
        put_cell(table, table->columns[i].kind, &cells[i]);
        if (cells[i].is_owned) {
            free((char *)(uintptr_t)cells[i].text);
        }
    }
    jsonwriter_end_array(table->call->json);
    table->rows++;
}

static void put_paths(struct apitable *table) {
    struct jsonwriter *json = table->call->json;
    jsonwriter_array(json, "paths");
    for (size_t i = 0; i < table->path_count; i++) {
        const struct api_call *call = table->call;
        struct report report = call->report;
        struct pathwalk walk;
        if ((table->paths[i] & OF_BASE) != 0) {
            report.model = call->base->model;
            report.names = call->base->names;
        }
        walk = pathwalk(&report, (uint32_t)table->paths[i]);
        jsonwriter_array(json, NULL);
        for (; walk.frame != NULL; pathwalk_next(&walk)) {
            put_place(table, apiframes_add(&table->frames, walk.frame));
        }
        jsonwriter_end_array(json);
    }
    jsonwriter_end_array(json);
}

void apitable_end_rows(struct apitable *table) {
    struct jsonwriter *json = table->call->json;
    if (!table->is_ended) {
        jsonwriter_end_array(json);
        jsonwriter_number(json, "total", table->total != UINT64_MAX ? table->total : table->rows);
        table->is_ended = true;
    }
}

int apitable_end(struct apitable *table, struct error *error) {
    struct jsonwriter *json = table->call->json;
    apitable_end_rows(table);
    if (table->next != 0) {
        char text[24];
        snprintf(text, sizeof text, "%" PRIu64, table->next);
        jsonwriter_string(json, "next", text);
    }
    if (table->path_count != 0) {
        put_paths(table);
    }
    if (table->frames.count != 0) {
        apiframes_write(&table->frames, json, "frames");
    }
    jsonwriter_end_map(json);
    apiframes_free(&table->frames);
    numbermap_free(&table->path_places);
    free(table->paths);
    return table->is_failed ? error_set(error, "out of memory") : 0;
}

/* ---- All rows of a thing ---- */

struct keyed {
    const void *record;
    struct table_cell cell;
    size_t place; /* as it came */
};

struct sorting {
    enum table_kind kind;
    bool descending;
};

static int compare_texts(const char *left, const char *right) {
    return strcmp(left != NULL ? left : "", right != NULL ? right : "");
}

static int compare_cells(enum table_kind kind, const struct table_cell *a,
                         const struct table_cell *b) {
    switch (kind) {
    case TABLE_TEXT:
    case TABLE_WORD:
        return compare_texts(a->text, b->text);
    case TABLE_FRAME:
        return compare_texts(a->frame->function, b->frame->function);
    case TABLE_REAL:
    case TABLE_PERCENT:
        return (a->real > b->real) - (a->real < b->real);
    case TABLE_SIGNED:
        return ((int64_t)a->number > (int64_t)b->number) -
               ((int64_t)a->number < (int64_t)b->number);
    case TABLE_PATH:
        return (a->path > b->path) - (a->path < b->path);
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

/* NULL: out of memory. */
static struct keyed *sort_records(const struct apitable_rows *rows, const struct rows_of *of,
                                  const struct apitable_wish *wish, const void *const *records,
                                  size_t count) {
    struct keyed *keyed = calloc(count + 1, sizeof *keyed);
    struct sorting sorting = {.descending = wish->descending};
    if (keyed == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        keyed[i] = (struct keyed){.record = records[i], .place = i};
        if (wish->sort != SIZE_MAX) {
            keyed[i].cell = rows_cell(rows->rows, of, records[i], rows->shown[wish->sort]);
        }
    }
    if (wish->sort != SIZE_MAX) {
        sorting.kind = rows->rows->columns[rows->shown[wish->sort]].kind;
        qsort_r(keyed, count, sizeof *keyed, compare_keyed, &sorting);
    }
    for (size_t i = 0; i < count; i++) {
        if (keyed[i].cell.is_owned) {
            free((char *)(uintptr_t)keyed[i].cell.text);
        }
    }
    return keyed;
}

enum { COLUMNS = 64 };

static int put_more(struct api_call *call, const struct apitable_rows *rows,
                    const struct keyed *keyed, size_t from, size_t end, struct error *error) {
    size_t count = from < end ? end - from : 0;
    const void **records = calloc(count + 1, sizeof *records);
    int result;
    if (records == NULL) {
        return error_set(error, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        records[i] = keyed[from + i].record;
    }
    result = rows->more(call, records, count, error);
    free(records);
    return result;
}

static int put_keyed(struct api_call *call, const char *name, const struct apitable_rows *rows,
                     const struct rows_of *of, const struct table_column *columns,
                     const struct apitable_wish *wish, const struct keyed *keyed, size_t count,
                     struct error *error) {
    struct table_cell cells[COLUMNS];
    struct apitable table;
    struct error unheard;
    int result = 0;
    size_t end =
        wish->from < count && wish->limit < count - wish->from ? wish->from + wish->limit : count;
    apitable_begin(&table, call, name, columns, rows->count);
    table.total = count;
    table.next = end < count ? end : 0;
    for (size_t i = wish->from; i < end; i++) {
        for (size_t column = 0; column < rows->count; column++) {
            cells[column] = rows_cell(rows->rows, of, keyed[i].record, rows->shown[column]);
        }
        apitable_row(&table, cells);
    }
    apitable_end_rows(&table);
    if (rows->more != NULL) {
        result = put_more(call, rows, keyed, wish->from, end, error);
    }
    return apitable_end(&table, result == 0 ? error : &unheard) | result;
}

int apitable_records(struct api_call *call, const char *name, const struct apitable_rows *rows,
                     const struct rows_of *of, const void *const *records, size_t count,
                     struct error *error) {
    struct table_column columns[COLUMNS];
    struct apitable_wish wish;
    struct keyed *keyed;
    int result;
    for (size_t i = 0; i < rows->count; i++) {
        columns[i] = rows->rows->columns[rows->shown[i]];
    }
    if (apitable_wish(call, columns, rows->count, rows->sort, &wish, error) != 0) {
        return -1;
    }
    keyed = sort_records(rows, of, &wish, records, count);
    if (keyed == NULL) {
        return error_set(error, "out of memory");
    }
    result = put_keyed(call, name, rows, of, columns, &wish, keyed, count, error);
    free(keyed);
    return result;
}

/* Records that are made in the cursor's room are copied. */
struct records {
    const void **items;
    size_t count;
    void **copies;
    size_t copy_count;
};

static void free_records(struct records *records) {
    for (size_t i = 0; i < records->copy_count; i++) {
        free(records->copies[i]);
    }
    free(records->copies);
    free(records->items);
}

static int list_records(const struct apitable_rows *rows, const struct rows_of *of,
                        struct records *records) {
    struct rows_cursor cursor = rows_begin(rows->rows, of);
    const void *record;
    *records = (struct records){.items = calloc(cursor.end + 1, sizeof *records->items),
                                .copies = calloc(cursor.end + 1, sizeof *records->copies)};
    if (records->items == NULL || records->copies == NULL) {
        return -1;
    }
    while ((record = rows_next(&cursor)) != NULL) {
        if (rows->is_wanted != NULL && !rows->is_wanted(record)) {
            continue;
        }
        if (record == (const void *)cursor.room) {
            void *copy = malloc(sizeof cursor.room);
            if (copy == NULL) {
                return -1;
            }
            record = memcpy(copy, cursor.room, sizeof cursor.room);
            records->copies[records->copy_count++] = copy;
        }
        records->items[records->count++] = record;
    }
    return 0;
}

int apitable_rows(struct api_call *call, const char *name, const struct apitable_rows *rows,
                  struct error *error) {
    struct rows_of of = rows_of_report(&call->report);
    struct records records;
    int result;
    of.whole = call->view->whole;
    if (rows->rows == &rows_scopes && rows_pair_scopes(&of) != 0) {
        return error_set(error, "out of memory");
    }
    result = list_records(rows, &of, &records) == 0
                 ? apitable_records(call, name, rows, &of, records.items, records.count, error)
                 : error_set(error, "out of memory");
    free_records(&records);
    free(of.scopes);
    return result;
}
