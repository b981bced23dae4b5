/* SPDX-License-Identifier: MIT */
/*
 * allocations.c: the table of single blocks: a row for each allocation of a recording,
 * reallocations included. Rows are made by a pass over the events.
 *
 * idxNum 1: no column of a block's end is used, so rows are made where blocks begin, by id.
 * idxStr, for EXPLAIN QUERY PLAN and for begin(): "births" or "lives", then for each argument a
 * space, the column's name and the operator: = < > and l (<=), g (>=), i (IN).
 */
#include "analyze/base/job.h"
#include "analyze/query/vtable.h"

#include <math.h>
#include <string.h>

/* ---- What constraints of SQL (size >= 100, thread = 2, id IN (...)) leave of the numbers of a
 * column. A constraint that a bound cannot hold exactly makes it wider, never narrower: SQLite
 * looks at every row again ---- */

static const struct selection_range anything = {0, UINT64_MAX};
static const struct selection_range nothing = {1, 0};

static struct selection_range bounds_both(struct selection_range left,
                                          struct selection_range right) {
    return (struct selection_range){left.least > right.least ? left.least : right.least,
                                    left.most < right.most ? left.most : right.most};
}

/* One letter for an operator of SQLITE_INDEX_CONSTRAINT_*: "=", "<", "l" (<=), ">", "g" (>=); 0:
 * none that bounds. */
static char bounds_letter(unsigned char operator) {
    switch (operator) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return '=';
    case SQLITE_INDEX_CONSTRAINT_LT:
        return '<';
    case SQLITE_INDEX_CONSTRAINT_LE:
        return 'l';
    case SQLITE_INDEX_CONSTRAINT_GT:
        return '>';
    case SQLITE_INDEX_CONSTRAINT_GE:
        return 'g';
    default:
        return '\0';
    }
}

/* Numbers of the tables are integers from 0 to INT64_MAX. */
static struct selection_range bounds_of_integer(char letter, sqlite3_int64 value) {
    uint64_t number = value > 0 ? (uint64_t)value : 0;
    switch (letter) {
    case '=':
        return value >= 0 ? (struct selection_range){number, number} : nothing;
    case '<':
        return value > 0 ? (struct selection_range){0, number - 1} : nothing;
    case 'l':
        return value >= 0 ? (struct selection_range){0, number} : nothing;
    case '>':
        return (struct selection_range){value >= 0 ? number + 1 : 0, UINT64_MAX};
    default:
        return (struct selection_range){number, UINT64_MAX};
    }
}

/* Between two integers the bound goes to the one farther out: wider than needed by one at most.
 * Text may be a number by SQL's rules, which are SQLite's business. */
static struct selection_range bounds_of(char letter, sqlite3_value *value) {
    const double most = 9.0e18;
    double real = sqlite3_value_double(value);
    struct selection_range range = anything;
    if (sqlite3_value_type(value) == SQLITE_INTEGER) {
        return bounds_of_integer(letter, sqlite3_value_int64(value));
    }
    if (sqlite3_value_type(value) != SQLITE_FLOAT || !(fabs(real) < most)) {
        return anything;
    }
    if (letter == '=' || letter == '<' || letter == 'l') {
        range = bounds_of_integer('l', (sqlite3_int64)ceil(real));
    }
    if (letter != '<' && letter != 'l') {
        range = bounds_both(range, bounds_of_integer('g', (sqlite3_int64)floor(real)));
    }
    return range;
}

/* What `IN (values)` leaves: from the least of them to the most. */
static struct selection_range bounds_of_all(sqlite3_value *values) {
    struct selection_range all = {UINT64_MAX, 0};
    sqlite3_value *value;
    int result = sqlite3_vtab_in_first(values, &value);
    for (; result == SQLITE_OK && value != NULL; result = sqlite3_vtab_in_next(values, &value)) {
        struct selection_range one = bounds_of('=', value);
        if (one.least <= one.most) {
            all.least = one.least < all.least ? one.least : all.least;
            all.most = one.most > all.most ? one.most : all.most;
        }
    }
    return result == SQLITE_DONE || result == SQLITE_OK ? all : anything;
}

/* ---- A pass over the blocks that are asked for ---- */

/* SQLite's numbers of columns are their places in rows_allocations: those that SQL has come first.
 */
#define BIT(column) (UINT64_C(1) << (column))

struct allocations_cursor {
    struct vtable_cursor cursor;
    struct query *query;
    struct selection_range bounds[ALLOCATION_COLUMNS]; /* of columns whose constraints are taken */
    bool only_births;           /* no column of a block's end is needed: rows come by id */
    struct selection selection; /* the session's, narrowed; its pointers are the session's */
    uint32_t thread;            /* selection.threads, where one is asked for */
    struct rowqueue *queue;     /* NULL: nothing can be found */
    struct rowqueue *out;       /* the same, for the thread inside, as is this */
    struct scopes *scopes;
};

/* ---- The selection ---- */

/* Only if one thread is asked for that the session's filters let through. */
static void allocations_narrow_thread(struct allocations_cursor *pass,
                                      struct selection_range range) {
    struct selection *selection = &pass->selection;
    bool is_in = selection->thread_count == 0;
    if (range.least != range.most || range.least > UINT32_MAX) {
        return;
    }
    for (size_t i = 0; i < selection->thread_count; i++) {
        is_in |= selection->threads[i] == range.least;
    }
    if (is_in) {
        pass->thread = (uint32_t)range.least;
        selection->threads = &pass->thread;
        selection->thread_count = 1;
    }
}

/* Whatever the selection can skip by itself. When only births matter, what comes behind the last
 * one is not looked at: the view ends there. */
static void allocations_narrow(struct allocations_cursor *pass) {
    struct selection_range context = pass->bounds[ALLOCATION_CONTEXT];
    struct selection_range born = pass->bounds[ALLOCATION_BORN];
    struct selection *selection = &pass->selection;
    struct selection_times *times = &selection->born;
    const struct model *whole = pass->query->source.whole;
    selection->size = bounds_both(selection->size, pass->bounds[ALLOCATION_SIZE]);
    times->from_ns = born.least > times->from_ns ? born.least : times->from_ns;
    if (born.most < UINT64_MAX && born.most + 1 < times->to_ns) {
        times->to_ns = born.most + 1;
    }
    allocations_narrow_thread(pass, pass->bounds[ALLOCATION_THREAD]);
    if (context.least == context.most && context.least < whole->node_count &&
        selection->path == 0) {
        selection->path = model_hash(whole, (uint32_t)context.least);
    }
    if (pass->only_births && times->to_ns < selection->view.to_ns) {
        selection->view.to_ns = times->to_ns;
    }
}

/* ---- The pass ---- */

static bool allocations_is_wanted(const struct allocations_cursor *pass, const struct life *life) {
    const struct selection_range *bounds = pass->bounds;
    if (!selection_is_within(life->birth_order, bounds[ALLOCATION_ID]) ||
        !selection_is_within(life->block.thread, bounds[ALLOCATION_THREAD]) ||
        !selection_is_within(life->address, bounds[ALLOCATION_ADDRESS]) ||
        !selection_is_within(life->size, bounds[ALLOCATION_SIZE]) ||
        !selection_is_within(life->context, bounds[ALLOCATION_CONTEXT]) ||
        !selection_is_within(life->birth_ns, bounds[ALLOCATION_BORN])) {
        return false;
    }
    if (life->death_ns == LIFE_ALIVE) { /* these are NULL then */
        return selection_is_any(bounds[ALLOCATION_FREED]) &&
               selection_is_any(bounds[ALLOCATION_LIFETIME]) &&
               selection_is_any(bounds[ALLOCATION_FREED_BY]);
    }
    return selection_is_within(life->death_ns, bounds[ALLOCATION_FREED]) &&
           selection_is_within(life->death_ns - life->birth_ns, bounds[ALLOCATION_LIFETIME]) &&
           selection_is_within(life->death_thread, bounds[ALLOCATION_FREED_BY]);
}

static int allocations_take_life(void *context, const struct life *life) {
    struct allocations_cursor *pass = context;
    struct rows_allocation row = {.life = *life};
    if (pass->only_births && life->birth_order > pass->bounds[ALLOCATION_ID].most) {
        return 1; /* births come in order */
    }
    if (!allocations_is_wanted(pass, life)) {
        return 0;
    }
    if (life->scope != SCOPES_NONE) {
        row.scope = scopes_name(pass->scopes, life->scope);
    }
    atomic_fetch_add_explicit(&pass->query->rows, 1, memory_order_relaxed);
    return rowqueue_put(pass->out, &row);
}

static void allocations_produce(struct rowqueue *queue, void *argument) {
    struct allocations_cursor *pass = argument;
    const struct query_source *source = &pass->query->source;
    struct lives_visitor visitor = {.context = pass};
    struct replay_options options = vtable_replay(pass->query, queue);
    struct error error;
    pass->out = queue;
    pass->scopes = scopes_new();
    visitor.scopes = pass->scopes;
    if (pass->only_births && pass->selection.view.to_ns != UINT64_MAX) {
        options.until_ns = pass->selection.view.to_ns;
    }
    if (pass->only_births) {
        visitor.begin = allocations_take_life;
    } else {
        visitor.end = allocations_take_life;
    }
    atomic_fetch_add(&pass->query->passes, 1);
    if (selection_visit(&pass->selection, source->whole, source->parts, source->names, &visitor,
                        &options, &error) == -1) {
        job_fail_as(&error);
    }
}

/* ---- What is pushed down ---- */

/* Takes a constraint if it is of use. How much of the rows it leaves, about. */
static double allocations_take_constraint(sqlite3_index_info *info, int i, int *argument,
                                          sqlite3_str *text) {
    const double of_one = 0.01;
    const double of_many = 0.3;
    const uint64_t bounded = BIT(ALLOCATION_ID) | BIT(ALLOCATION_THREAD) | BIT(ALLOCATION_ADDRESS) |
                             BIT(ALLOCATION_SIZE) | BIT(ALLOCATION_CONTEXT) | BIT(ALLOCATION_BORN) |
                             BIT(ALLOCATION_FREED) | BIT(ALLOCATION_LIFETIME) |
                             BIT(ALLOCATION_FREED_BY);
    int column = info->aConstraint[i].iColumn < 0 ? ALLOCATION_ID : info->aConstraint[i].iColumn;
    char letter = bounds_letter(info->aConstraint[i].op);
    if (!info->aConstraint[i].usable || (bounded & BIT(column)) == 0 || letter == '\0') {
        return 1;
    }
    if (letter == '=' && sqlite3_vtab_in(info, i, 1)) {
        letter = 'i'; /* all values at once: one pass */
    }
    info->aConstraintUsage[i].argvIndex = ++*argument;
    sqlite3_str_appendf(text, " %s%c", rows_allocations.columns[column].sql, letter);
    return letter == '=' ? of_one : of_many;
}

/* Each question takes a pass over the events, however few rows it finds: this table is best the
 * outermost one of a join. */
static int allocations_plan(sqlite3_vtab *view, sqlite3_index_info *info) {
    const struct query *query = ((const struct vtable_view *)view)->query;
    const uint64_t ends = BIT(ALLOCATION_FREED) | BIT(ALLOCATION_LIFETIME) |
                          BIT(ALLOCATION_FREED_BY) | BIT(ALLOCATION_FREED_CONTEXT) |
                          BIT(ALLOCATION_TEMPORARY) | BIT(ALLOCATION_REALLOCATED);
    bool only_births = (info->colUsed & ends) == 0 && !selection_asks_ends(query->source.selection);
    sqlite3_str *text = sqlite3_str_new(query->db);
    double rows = (double)query->source.whole->totals.allocations + 1;
    int argument = 0;
    info->estimatedCost = rows * 4;
    sqlite3_str_appendall(text, only_births ? "births" : "lives");
    for (int i = 0; i < info->nConstraint; i++) {
        rows *= allocations_take_constraint(info, i, &argument, text);
    }
    info->idxNum = only_births;
    info->estimatedRows = (sqlite3_int64)rows + 1;
    info->estimatedCost += rows;
    info->orderByConsumed = only_births && info->nOrderBy == 1 && !info->aOrderBy[0].desc &&
                            info->aOrderBy[0].iColumn <= ALLOCATION_ID;
    info->idxStr = sqlite3_str_finish(text);
    info->needToFreeIdxStr = 1;
    return info->idxStr != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

/* The column that a word of idxStr ("size>") names; its letter is the word's last one. */
static size_t allocations_named_column(const char *word, size_t length) {
    size_t column = 0;
    while (strlen(rows_allocations.columns[column].sql) != length - 1 ||
           strncmp(rows_allocations.columns[column].sql, word, length - 1) != 0) {
        column++;
    }
    return column;
}

/* false: no number is within some bounds. */
static bool allocations_read_bounds(struct allocations_cursor *mine, const char *text, int argc,
                                    sqlite3_value **argv) {
    const char *word = strchr(text, ' ');
    bool is_possible = true;
    for (size_t i = 0; i < ALLOCATION_COLUMNS; i++) {
        mine->bounds[i] = anything;
    }
    for (int i = 0; i < argc && word != NULL; i++) {
        size_t length = strcspn(++word, " ");
        struct selection_range *range = &mine->bounds[allocations_named_column(word, length)];
        char letter = word[length - 1];
        *range = bounds_both(*range,
                             letter == 'i' ? bounds_of_all(argv[i]) : bounds_of(letter, argv[i]));
        is_possible &= range->least <= range->most;
        word = strchr(word, ' ');
    }
    return is_possible;
}

/* ---- Cursors ---- */

static int allocations_begin(struct vtable_cursor *cursor, int number, const char *text, int argc,
                             sqlite3_value **argv) {
    struct allocations_cursor *mine = (struct allocations_cursor *)cursor;
    mine->query = vtable_query(cursor);
    mine->only_births = number == 1;
    mine->selection = *mine->query->source.selection;
    if (mine->query->source.parts.count == 0) {
        return vtable_fail(cursor->base.pVtab, "a profile has no single allocations, only sums of "
                                               "call paths: make a recording with `memtrace "
                                               "record`");
    }
    if (!allocations_read_bounds(mine, text, argc, argv)) {
        return SQLITE_OK;
    }
    allocations_narrow(mine);
    mine->queue = rowqueue_start(sizeof(struct rows_allocation), allocations_produce, mine);
    return mine->queue != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

static int allocations_next(struct vtable_cursor *cursor) {
    struct rowqueue *queue = ((struct allocations_cursor *)cursor)->queue;
    int result = queue != NULL ? vtable_next_row(cursor, queue) : SQLITE_OK;
    if (cursor->record != NULL) {
        cursor->id =
            (sqlite3_int64)((const struct rows_allocation *)cursor->record)->life.birth_order;
    }
    return result;
}

static void allocations_end(struct vtable_cursor *cursor) {
    rowqueue_close(((struct allocations_cursor *)cursor)->queue);
}

static const char *const allocations_indices[] = {"id", "context", "born", "size", NULL};

const struct vtable vtable_allocations = {
    .rows = &rows_allocations,
    .indices = allocations_indices,
    .cursor_size = sizeof(struct allocations_cursor),
    .plan = allocations_plan,
    .begin = allocations_begin,
    .next = allocations_next,
    .end = allocations_end,
};
