/* SPDX-License-Identifier: MIT */
/* vtable.c: the list of tables, and what all of them have in common. See vtable.h. */
#include "analyze/query/vtable.h"

#include "analyze/base/job.h"
#include "analyze/base/timedwait.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- SQLite's side ---- */

/* As CREATE TABLE says it. */
const char *query_type(const struct table_column *column) {
    switch (column->kind) {
    case TABLE_TEXT:
    case TABLE_HASH:
    case TABLE_FRAME:
    case TABLE_PATH:
        return "TEXT";
    case TABLE_REAL:
        return "REAL";
    default:
        return "INTEGER";
    }
}

char *vtable_declaration(const struct vtable *table, const char *schema) {
    const struct rows *rows = table->rows;
    sqlite3_str *text = sqlite3_str_new(NULL);
    const char *before = "";
    sqlite3_str_appendf(text, "CREATE TABLE %s%s(", schema, rows->name);
    for (size_t i = 0; i < rows->column_count; i++) {
        if (rows->columns[i].sql != NULL) {
            sqlite3_str_appendf(text, "%s\"%w\" %s", before, rows->columns[i].sql,
                                query_type(&rows->columns[i]));
            before = ", ";
        }
    }
    sqlite3_str_appendall(text, ")");
    return sqlite3_str_finish(text);
}

static int vtable_connect(sqlite3 *db, void *binding, int argc, const char *const *argv,
                          sqlite3_vtab **view, char **error) {
    const struct vtable_binding *bound = binding;
    char *declaration = vtable_declaration(bound->table, "");
    struct vtable_view *made = sqlite3_malloc(sizeof *made);
    const struct rows *rows = bound->table->rows;
    size_t count = 0;
    int result = SQLITE_NOMEM;
    (void)argc;
    (void)argv;
    (void)error;
    if (declaration != NULL && made != NULL) {
        *made = (struct vtable_view){.query = bound->query, .table = bound->table};
        for (size_t i = 0; i < rows->column_count; i++) {
            made->columns[count] = (unsigned char)i;
            count += rows->columns[i].sql != NULL;
        }
        result = sqlite3_declare_vtab(db, declaration);
    }
    sqlite3_free(declaration);
    if (result != SQLITE_OK) {
        sqlite3_free(made);
        return result;
    }
    *view = &made->base;
    return SQLITE_OK;
}

static int vtable_disconnect(sqlite3_vtab *view) {
    sqlite3_free(view);
    return SQLITE_OK;
}

static const struct vtable *vtable_of(const sqlite3_vtab_cursor *cursor) {
    return ((const struct vtable_view *)cursor->pVtab)->table;
}

static int vtable_open(sqlite3_vtab *view, sqlite3_vtab_cursor **cursor) {
    size_t size = ((const struct vtable_view *)view)->table->cursor_size;
    *cursor = calloc(1, size); /* SQLite's own is not aligned for rows_cursor.room */
    return *cursor != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

static void vtable_end(sqlite3_vtab_cursor *cursor) {
    if (vtable_of(cursor)->end != NULL) {
        vtable_of(cursor)->end((struct vtable_cursor *)cursor);
    }
}

static int vtable_close(sqlite3_vtab_cursor *cursor) {
    vtable_end(cursor);
    free(cursor);
    return SQLITE_OK;
}

static int vtable_plan(sqlite3_vtab *view, sqlite3_index_info *info) {
    return ((const struct vtable_view *)view)->table->plan(view, info);
}

static int vtable_next(sqlite3_vtab_cursor *base) {
    struct vtable_cursor *cursor = (struct vtable_cursor *)base;
    cursor->id++;
    return vtable_of(base)->next(cursor);
}

static int vtable_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                         sqlite3_value **argv) {
    const struct vtable *table = vtable_of(base);
    struct vtable_cursor *cursor = (struct vtable_cursor *)base;
    int result;
    vtable_end(base);
    memset((char *)base + sizeof *base, 0, table->cursor_size - sizeof *base);
    result = table->begin != NULL ? table->begin(cursor, number, text, argc, argv) : SQLITE_OK;
    return result == SQLITE_OK ? vtable_next(base) : result;
}

static int vtable_at_end(sqlite3_vtab_cursor *cursor) {
    return ((const struct vtable_cursor *)cursor)->record == NULL;
}

static int vtable_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id) {
    *id = ((const struct vtable_cursor *)cursor)->id;
    return SQLITE_OK;
}

bool vtable_ask_equal(sqlite3_index_info *info, const struct vtable *table) {
    for (int i = 0; i < info->nConstraint; i++) {
        if (info->aConstraint[i].usable && info->aConstraint[i].iColumn == 0 &&
            info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ) {
            info->aConstraintUsage[i].argvIndex = 1;
            info->idxNum = 1;
            info->idxStr = sqlite3_mprintf("%s=", table->rows->columns[0].sql);
            info->needToFreeIdxStr = 1;
            return true;
        }
    }
    return false;
}

int vtable_fail(sqlite3_vtab *view, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    sqlite3_free(view->zErrMsg);
    view->zErrMsg = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    return SQLITE_ERROR;
}

/* ---- Values ---- */

void vtable_put_text(sqlite3_context *out, const char *text) {
    if (text != NULL) {
        sqlite3_result_text(out, text, -1, SQLITE_TRANSIENT);
    }
}

void vtable_put_lasting(sqlite3_context *out, const char *text) {
    if (text != NULL) {
        sqlite3_result_text(out, text, -1, SQLITE_STATIC);
    }
}

static int vtable_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int number) {
    const struct vtable_view *view = (const struct vtable_view *)base->pVtab;
    const struct rows *rows = view->table->rows;
    size_t column = view->columns[number];
    struct table_cell cell =
        rows_cell(rows, &view->query->of, ((const struct vtable_cursor *)base)->record, column);
    char hash[20];
    if (!cell.is_known) {
        return SQLITE_OK;
    }
    switch (rows->columns[column].kind) {
    case TABLE_TEXT:
        sqlite3_result_text(out, cell.text, -1, cell.is_owned ? free : SQLITE_TRANSIENT);
        break;
    case TABLE_HASH:
        snprintf(hash, sizeof hash, "%016" PRIx64, cell.number);
        vtable_put_text(out, hash);
        break;
    case TABLE_FRAME:
        vtable_put_lasting(out, callpaths_name(view->query, cell.frame));
        break;
    case TABLE_PATH:
        callpaths_put(view->query, cell.path, out);
        break;
    case TABLE_REAL:
        sqlite3_result_double(out, cell.real);
        break;
    case TABLE_SIGNED:
        sqlite3_result_int64(out, (sqlite3_int64)cell.number);
        break;
    default: /* SQL has no unsigned integers: what is larger than its largest one is that */
        sqlite3_result_int64(out,
                             cell.number <= INT64_MAX ? (sqlite3_int64)cell.number : INT64_MAX);
        break;
    }
    return SQLITE_OK;
}

const sqlite3_module vtable_module = {
    .iVersion = 1,
    .xCreate = vtable_connect,
    .xConnect = vtable_connect,
    .xBestIndex = vtable_plan,
    .xDisconnect = vtable_disconnect,
    .xDestroy = vtable_disconnect,
    .xOpen = vtable_open,
    .xClose = vtable_close,
    .xFilter = vtable_filter,
    .xNext = vtable_next,
    .xEof = vtable_at_end,
    .xColumn = vtable_column,
    .xRowid = vtable_rowid,
};

/* ---- Rows that lie in memory ----
 *
 * Their rowid is their place, from 1 on. One constraint is pushed down: that the first column
 * equals a value. So is an order that puts the same values of one column together.
 *
 * idxNum 1, idxStr "NAME=": it was, and argv[0] is the value; 2, idxStr "NAME grouped": all rows in
 * that order; 0: all rows. */

struct array_cursor {
    struct vtable_cursor cursor;
    size_t row; /* the next one */
    size_t end;
    const uint32_t *order; /* NULL: as they are */
    max_align_t room[ROWS_ROOM / sizeof(max_align_t)];
};

/* Whether the rows are to be grouped, in whatever order groups come, by what the table can put
 * together. */
static bool array_asks_grouped(sqlite3_index_info *info, const struct vtable *table) {
    int distinct = sqlite3_vtab_distinct(info);
    return table->grouped != NULL && (distinct == 1 || distinct == 2) && info->nOrderBy == 1 &&
           info->aOrderBy[0].iColumn == table->grouped_column;
}

static int array_plan(sqlite3_vtab *view, sqlite3_index_info *info) {
    const struct vtable_view *mine = (const struct vtable_view *)view;
    size_t count = rows_count(mine->table->rows, &mine->query->of);
    info->estimatedRows = (sqlite3_int64)count;
    info->estimatedCost = (double)count + 1;
    if (mine->table->rows->find != NULL && vtable_ask_equal(info, mine->table)) {
        info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
        info->estimatedRows = 1;
        info->estimatedCost = 1;
    } else if (array_asks_grouped(info, mine->table)) {
        info->idxNum = 2;
        info->idxStr = sqlite3_mprintf("%s grouped",
                                       mine->table->rows->columns[mine->table->grouped_column].sql);
        info->needToFreeIdxStr = 1;
        info->orderByConsumed = 1;
    }
    return SQLITE_OK;
}

/* Only an integer can be found: what else may equal one ('12', 12.0) SQLite finds among all. */
static int array_begin(struct vtable_cursor *cursor, int number, const char *text, int argc,
                       sqlite3_value **argv) {
    const struct vtable *table = vtable_of(&cursor->base);
    const struct query *query = vtable_query(cursor);
    struct array_cursor *mine = (struct array_cursor *)cursor;
    (void)text;
    (void)argc;
    mine->end = rows_count(table->rows, &query->of);
    if (number == 1 && sqlite3_value_type(argv[0]) == SQLITE_INTEGER) {
        size_t found = table->rows->find(&query->of, sqlite3_value_int64(argv[0]));
        mine->row = found != SIZE_MAX ? found : mine->end;
        mine->end = found != SIZE_MAX ? found + 1 : mine->end;
    }
    mine->order = number == 2 ? table->grouped(query) : NULL;
    return number == 2 && mine->order == NULL ? SQLITE_NOMEM : SQLITE_OK;
}

static int array_next(struct vtable_cursor *cursor) {
    struct array_cursor *mine = (struct array_cursor *)cursor;
    cursor->record = NULL;
    if (mine->row < mine->end) {
        size_t row = mine->order != NULL ? mine->order[mine->row] : mine->row;
        cursor->record =
            rows_record(vtable_of(&cursor->base)->rows, &vtable_query(cursor)->of, row, mine->room);
        cursor->id = (sqlite3_int64)row + 1;
        mine->row++;
    }
    return SQLITE_OK;
}

/* ---- The list ---- */

#define ARRAY                                                                                      \
    .cursor_size = sizeof(struct array_cursor), .plan = array_plan, .begin = array_begin,          \
    .next = array_next
#define ARRAY_OF(things)                                                                           \
    &(const struct vtable) {                                                                       \
        .rows = &(things), ARRAY                                                                   \
    }

static const char *const context_indices[] = {"id", "function", NULL};

static const struct vtable contexts = {.rows = &rows_contexts,
                                       ARRAY,
                                       .indices = context_indices,
                                       .grouped_column = CONTEXT_PATH,
                                       .grouped = callpaths_grouped};

/* In the order in which a written file has them: rows of the first ones are few. */
const struct vtable *const vtable_list[] = {
    ARRAY_OF(rows_summary),
    ARRAY_OF(rows_processes),
    ARRAY_OF(rows_threads),
    ARRAY_OF(rows_modules),
    &contexts,
    &vtable_frames,
    ARRAY_OF(rows_timeline),
    &vtable_samples,
    ARRAY_OF(rows_marks),
    ARRAY_OF(rows_scopes),
    ARRAY_OF(rows_foreign),
    ARRAY_OF(rows_pools),
    &vtable_mappings,
    &vtable_smaps,
    &vtable_allocations,
    NULL,
};

/* ---- What there is ---- */

const struct rows *query_table(size_t which) {
    return which < VTABLES ? vtable_list[which]->rows : NULL;
}

/* ---- People's side ---- */

void query_describe_all(FILE *out) {
    for (size_t i = 0; vtable_list[i] != NULL; i++) {
        fprintf(out, "%-14s %s\n", vtable_list[i]->rows->name, vtable_list[i]->rows->about);
    }
}

static void query_describe_rows(FILE *out, const struct rows *rows) {
    fprintf(out, "%s: %s\n", rows->name, rows->about);
    for (size_t i = 0; i < rows->column_count; i++) {
        const struct table_column *column = &rows->columns[i];
        if (column->sql != NULL) {
            fprintf(out, "    %-20s %s%s%s\n", column->sql, query_type(column),
                    column->about[0] != '\0' ? "  " : "", column->about);
        }
    }
}

void query_describe_columns(FILE *out) {
    for (size_t i = 0; vtable_list[i] != NULL; i++) {
        fputs(i != 0 ? "\n" : "", out);
        query_describe_rows(out, vtable_list[i]->rows);
    }
}

int query_describe(FILE *out, const char *name) {
    for (size_t i = 0; vtable_list[i] != NULL; i++) {
        if (strcmp(vtable_list[i]->rows->name, name) == 0) {
            query_describe_rows(out, vtable_list[i]->rows);
            return 0;
        }
    }
    return -1;
}

/* ---- Rows of a pass ---- */

enum { BATCHES = 8, BATCH_ROWS = 512, LOOK_MS = 20 };

/* Batches [read, written) are full; the one before `read` is the cursor's, the one at `written` the
 * producer's, the others are empty. */
struct rowqueue {
    rowqueue_producer produce;
    void *argument;
    size_t row_size;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t read;
    size_t written;
    bool has_ended;
    atomic_bool is_closed;
    atomic_bool is_waited_for; /* for so long that a batch that is not full will do */
    struct job_memory *memory; /* of the producer */
    bool has_failed;
    struct error error;
    size_t filled; /* rows of the producer's batch */
    size_t taken;  /* rows of the cursor's batch that it has had */
    size_t counts[BATCHES];
    char *rows;
};

static char *rowqueue_row(const struct rowqueue *queue, size_t batch, size_t row) {
    return queue->rows + (batch % BATCHES * BATCH_ROWS + row) * queue->row_size;
}

/* The batch is the cursor's to take; waits until there is an empty one. */
static void rowqueue_hand_over(struct rowqueue *queue, bool is_last) {
    pthread_mutex_lock(&queue->lock);
    queue->counts[queue->written % BATCHES] = queue->filled;
    queue->written += queue->filled != 0;
    queue->filled = 0;
    queue->has_ended = is_last;
    pthread_cond_broadcast(&queue->changed);
    while (!is_last && !atomic_load(&queue->is_closed) &&
           queue->written - queue->read >= BATCHES - 1) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    pthread_mutex_unlock(&queue->lock);
}

int rowqueue_put(struct rowqueue *queue, const void *row) {
    memcpy(rowqueue_row(queue, queue->written, queue->filled++), row, queue->row_size);
    if (queue->filled == BATCH_ROWS ||
        atomic_load_explicit(&queue->is_waited_for, memory_order_relaxed)) {
        rowqueue_hand_over(queue, false);
    }
    return atomic_load_explicit(&queue->is_closed, memory_order_relaxed);
}

const atomic_bool *rowqueue_cancel(const struct rowqueue *queue) {
    return &queue->is_closed;
}

static void rowqueue_produce(void *what) {
    struct rowqueue *queue = what;
    queue->produce(queue, queue->argument);
}

static void *rowqueue_run(void *argument) {
    struct rowqueue *queue = argument;
    queue->has_failed = job_run(rowqueue_produce, queue, &queue->memory, &queue->error) != 0;
    rowqueue_hand_over(queue, true);
    return NULL;
}

struct rowqueue *rowqueue_start(size_t row_size, rowqueue_producer produce, void *argument) {
    struct rowqueue *queue = calloc(1, sizeof *queue);
    char *rows = malloc(row_size * BATCHES * BATCH_ROWS);
    if (queue == NULL || rows == NULL) {
        free(queue);
        free(rows);
        return NULL;
    }
    queue->produce = produce;
    queue->argument = argument;
    queue->row_size = row_size;
    queue->rows = rows;
    pthread_mutex_init(&queue->lock, NULL);
    timedwait_init(&queue->changed);
    if (pthread_create(&queue->thread, NULL, rowqueue_run, queue) != 0) {
        free(rows);
        free(queue);
        return NULL;
    }
    return queue;
}

/* Gives the present batch back and takes the next full one. As rowqueue_next(). */
static int rowqueue_take_batch(struct rowqueue *queue, const atomic_bool *interrupted) {
    int result;
    pthread_mutex_lock(&queue->lock);
    while (queue->read == queue->written && !queue->has_ended && !atomic_load(interrupted)) {
        struct timespec until = timedwait_until(LOOK_MS);
        bool has_changed = pthread_cond_timedwait(&queue->changed, &queue->lock, &until) == 0;
        atomic_store(&queue->is_waited_for, !has_changed);
    }
    atomic_store(&queue->is_waited_for, false);
    result = atomic_load(interrupted) ? -1 : queue->read != queue->written;
    if (result == 1) {
        queue->read++;
        queue->taken = 0;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return result;
}

int rowqueue_next(struct rowqueue *queue, const atomic_bool *interrupted, const void **row) {
    if (queue->read == 0 || queue->taken == queue->counts[(queue->read - 1) % BATCHES]) {
        int result = rowqueue_take_batch(queue, interrupted);
        if (result != 1) {
            return result;
        }
    }
    *row = rowqueue_row(queue, queue->read - 1, queue->taken++);
    return 1;
}

const struct error *rowqueue_error(const struct rowqueue *queue) {
    return queue->has_failed ? &queue->error : NULL;
}

void rowqueue_close(struct rowqueue *queue) {
    if (queue == NULL) {
        return;
    }
    pthread_mutex_lock(&queue->lock);
    atomic_store(&queue->is_closed, true);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    job_free(&queue->memory);
    free(queue->rows);
    free(queue);
}

int vtable_next_row(struct vtable_cursor *cursor, struct rowqueue *queue) {
    int result = rowqueue_next(queue, &vtable_query(cursor)->interrupted, &cursor->record);
    if (result != 1) {
        cursor->record = NULL;
    }
    if (result == 0 && rowqueue_error(queue) != NULL) {
        return vtable_fail(cursor->base.pVtab, "%s", rowqueue_error(queue)->message);
    }
    return result >= 0 ? SQLITE_OK : SQLITE_INTERRUPT;
}

struct replay_options vtable_replay(const struct query *query, const struct rowqueue *queue) {
    struct replay_options options = {0};
    if (query->source.replay != NULL) {
        options = *query->source.replay;
    }
    options.cancel = rowqueue_cancel(queue);
    return options;
}
