/* SPDX-License-Identifier: MIT */
/*
 * allocations.c: the table of single blocks: a row for each allocation of a recording,
 * reallocations included. Rows are made by a pass over the events.
 *
 * idxNum 1: no column of a block's end is used, so rows are made where blocks begin, by id.
 * idxStr, for EXPLAIN QUERY PLAN and for filter(): "births" or "lives", then for each argument a
 * space, the column's name and the operator: = < > and l (<=), g (>=), i (IN).
 */
#include "analyze/base/job.h"
#include "analyze/query/vtable.h"

#include <math.h>
#include <string.h>

/* ---- What constraints of SQL (size >= 100, thread = 2, id IN (...)) leave of the numbers of a
 * column. A constraint that a bound cannot hold exactly makes it wider, never narrower: SQLite
 * looks at every row again ---- */

#define BOUNDS_ANY ((struct selection_range){0, UINT64_MAX})

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
static struct selection_range range_of_integer(char letter, sqlite3_int64 value) {
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

/* Between two integers the bound goes to the one farther out: wider than needed by one at most. */
static struct selection_range range_of_real(char letter, double value) {
    const double most = 9.0e18;
    if (!(fabs(value) < most)) {
        return BOUNDS_ANY;
    }
    switch (letter) {
    case '=':
        return bounds_both(range_of_integer('g', (sqlite3_int64)floor(value)),
                           range_of_integer('l', (sqlite3_int64)ceil(value)));
    case '<':
    case 'l':
        return range_of_integer('l', (sqlite3_int64)ceil(value));
    default:
        return range_of_integer('g', (sqlite3_int64)floor(value));
    }
}

/* Text may be a number by SQL's rules, which are SQLite's business. */
static struct selection_range range_of(char letter, sqlite3_value *value) {
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        return range_of_integer(letter, sqlite3_value_int64(value));
    case SQLITE_FLOAT:
        return range_of_real(letter, sqlite3_value_double(value));
    default:
        return BOUNDS_ANY;
    }
}

/* What `letter value` leaves of the range. */
static struct selection_range bounds_narrow(struct selection_range range, char letter,
                                            sqlite3_value *value) {
    return bounds_both(range, range_of(letter, value));
}

/* What `IN (values)` leaves: from the least of them to the most. */
static struct selection_range bounds_narrow_in(struct selection_range range,
                                               sqlite3_value *values) {
    struct selection_range all = {UINT64_MAX, 0};
    sqlite3_value *value;
    int result = sqlite3_vtab_in_first(values, &value);
    for (; result == SQLITE_OK && value != NULL; result = sqlite3_vtab_in_next(values, &value)) {
        struct selection_range one = range_of('=', value);
        if (one.least <= one.most) {
            all.least = one.least < all.least ? one.least : all.least;
            all.most = one.most > all.most ? one.most : all.most;
        }
    }
    return result == SQLITE_DONE || result == SQLITE_OK ? bounds_both(range, all) : range;
}

/* Columns that constraints are pushed down of. */
enum allocations_bound {
    ALLOCATIONS_ID,
    ALLOCATIONS_THREAD,
    ALLOCATIONS_ADDRESS,
    ALLOCATIONS_SIZE,
    ALLOCATIONS_CONTEXT,
    ALLOCATIONS_BORN,
    ALLOCATIONS_FREED,
    ALLOCATIONS_LIFETIME,
    ALLOCATIONS_FREED_BY,
    ALLOCATIONS_BOUNDS
};

struct allocations_question {
    struct selection_range bounds[ALLOCATIONS_BOUNDS];
    bool only_births; /* no column of a block's end is needed: rows come by id */
};

/* ---- A pass over the blocks that are asked for ---- */

struct allocations_cursor {
    sqlite3_vtab_cursor base;
    struct query *query;
    struct allocations_question question;
    struct selection selection; /* the session's, narrowed; its pointers are the session's */
    uint32_t thread;            /* selection.threads, where one is asked for */
    struct rowqueue *queue;     /* NULL: nothing can be found */
    struct rowqueue *out;       /* the same, for the thread inside, as is this */
    struct scopes *scopes;
    const struct rows_allocation *row; /* NULL: at the end */
};

/* ---- The selection ---- */

static void narrow_times(struct selection_times *times, struct selection_range range) {
    times->from_ns = range.least > times->from_ns ? range.least : times->from_ns;
    if (range.most < UINT64_MAX && range.most + 1 < times->to_ns) {
        times->to_ns = range.most + 1;
    }
}

/* Only if one thread is asked for that the session's filters let through. */
static void narrow_thread(struct allocations_cursor *pass, struct selection_range range) {
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
    const struct selection_range *bounds = pass->question.bounds;
    struct selection *selection = &pass->selection;
    const struct model *whole = pass->query->source.whole;
    selection->size = bounds_both(selection->size, bounds[ALLOCATIONS_SIZE]);
    narrow_times(&selection->born, bounds[ALLOCATIONS_BORN]);
    narrow_thread(pass, bounds[ALLOCATIONS_THREAD]);
    if (bounds[ALLOCATIONS_CONTEXT].least == bounds[ALLOCATIONS_CONTEXT].most &&
        bounds[ALLOCATIONS_CONTEXT].least < whole->node_count && selection->path == 0) {
        selection->path = model_hash(whole, (uint32_t)bounds[ALLOCATIONS_CONTEXT].least);
    }
    if (pass->question.only_births && selection->born.to_ns < selection->view.to_ns) {
        selection->view.to_ns = selection->born.to_ns;
    }
}

/* ---- The pass ---- */

static bool allocations_is_wanted(const struct allocations_cursor *pass, const struct life *life) {
    const struct selection_range *bounds = pass->question.bounds;
    bool has_ended = life->death_ns != LIFE_ALIVE;
    if (!selection_is_within(life->birth_order, bounds[ALLOCATIONS_ID]) ||
        !selection_is_within(life->block.thread, bounds[ALLOCATIONS_THREAD]) ||
        !selection_is_within(life->address, bounds[ALLOCATIONS_ADDRESS]) ||
        !selection_is_within(life->size, bounds[ALLOCATIONS_SIZE]) ||
        !selection_is_within(life->context, bounds[ALLOCATIONS_CONTEXT]) ||
        !selection_is_within(life->birth_ns, bounds[ALLOCATIONS_BORN])) {
        return false;
    }
    if (!has_ended) { /* these are NULL then */
        return selection_is_any(bounds[ALLOCATIONS_FREED]) &&
               selection_is_any(bounds[ALLOCATIONS_LIFETIME]) &&
               selection_is_any(bounds[ALLOCATIONS_FREED_BY]);
    }
    return selection_is_within(life->death_ns, bounds[ALLOCATIONS_FREED]) &&
           selection_is_within(life->death_ns - life->birth_ns, bounds[ALLOCATIONS_LIFETIME]) &&
           selection_is_within(life->death_thread, bounds[ALLOCATIONS_FREED_BY]);
}

static int allocations_take_life(void *context, const struct life *life) {
    struct allocations_cursor *pass = context;
    struct rows_allocation row = {.life = *life};
    if (pass->question.only_births &&
        life->birth_order > pass->question.bounds[ALLOCATIONS_ID].most) {
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
    if (pass->question.only_births && pass->selection.view.to_ns != UINT64_MAX) {
        options.until_ns = pass->selection.view.to_ns;
    }
    if (pass->question.only_births) {
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

static bool allocations_can_be_any(const struct allocations_question *question) {
    for (size_t i = 0; i < ALLOCATIONS_BOUNDS; i++) {
        if (question->bounds[i].least > question->bounds[i].most) {
            return false;
        }
    }
    return true;
}

/* ---- The table ---- */

/* Of which column a bound is. */
static const int bound_columns[ALLOCATIONS_BOUNDS] = {
    [ALLOCATIONS_ID] = ALLOCATION_ID,
    [ALLOCATIONS_THREAD] = ALLOCATION_THREAD,
    [ALLOCATIONS_ADDRESS] = ALLOCATION_ADDRESS,
    [ALLOCATIONS_SIZE] = ALLOCATION_SIZE,
    [ALLOCATIONS_CONTEXT] = ALLOCATION_CONTEXT,
    [ALLOCATIONS_BORN] = ALLOCATION_BORN,
    [ALLOCATIONS_FREED] = ALLOCATION_FREED,
    [ALLOCATIONS_LIFETIME] = ALLOCATION_LIFETIME,
    [ALLOCATIONS_FREED_BY] = ALLOCATION_FREED_BY,
};

/* ---- What is pushed down ---- */

static bool allocations_asks_of_ends(const struct query *query, const sqlite3_index_info *info) {
    const sqlite3_uint64 ends =
        UINT64_C(1) << ALLOCATION_FREED | UINT64_C(1) << ALLOCATION_LIFETIME |
        UINT64_C(1) << ALLOCATION_FREED_BY | UINT64_C(1) << ALLOCATION_FREED_CONTEXT |
        UINT64_C(1) << ALLOCATION_TEMPORARY | UINT64_C(1) << ALLOCATION_REALLOCATED;
    return (info->colUsed & ends) != 0 || selection_asks_ends(query->source.selection);
}

/* The column of a constraint as a bound, or ALLOCATIONS_BOUNDS: none. */
static enum allocations_bound allocations_bound_of(int column) {
    enum allocations_bound bound = 0;
    while (bound < ALLOCATIONS_BOUNDS &&
           bound_columns[bound] != (column < 0 ? ALLOCATION_ID : column)) {
        bound++;
    }
    return bound;
}

/* Takes a constraint if it is of use. How much of the rows it leaves, about. */
static double allocations_take_constraint(sqlite3_index_info *info, int i, int *argument,
                                          sqlite3_str *text) {
    const double of_one = 0.01;
    const double of_many = 0.3;
    enum allocations_bound bound = allocations_bound_of(info->aConstraint[i].iColumn);
    char letter = bounds_letter(info->aConstraint[i].op);
    if (!info->aConstraint[i].usable || bound == ALLOCATIONS_BOUNDS || letter == '\0') {
        return 1;
    }
    if (letter == '=' && sqlite3_vtab_in(info, i, 1)) {
        letter = 'i'; /* all values at once: one pass */
    }
    info->aConstraintUsage[i].argvIndex = ++*argument;
    sqlite3_str_appendf(text, " %s%c", rows_allocations.columns[bound_columns[bound]].sql, letter);
    return letter == '=' ? of_one : of_many;
}

/* Each question takes a pass over the events, however few rows it finds: this table is best the
 * outermost one of a join. */
static int allocations_best_index(sqlite3_vtab *view, sqlite3_index_info *info) {
    const struct query *query = ((const struct vtable_view *)view)->query;
    bool only_births = !allocations_asks_of_ends(query, info);
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

/* The bound that a word of idxStr ("size>") names; its letter is the word's last one. */
static enum allocations_bound allocations_named_bound(const char *word, size_t length) {
    enum allocations_bound bound = 0;
    while (bound < ALLOCATIONS_BOUNDS) {
        const char *name = rows_allocations.columns[bound_columns[bound]].sql;
        if (strlen(name) == length - 1 && strncmp(name, word, length - 1) == 0) {
            break;
        }
        bound++;
    }
    return bound;
}

static struct allocations_question allocations_question_of(int number, const char *text, int argc,
                                                           sqlite3_value **argv) {
    struct allocations_question question = {.only_births = number == 1};
    const char *word = strchr(text, ' ');
    for (size_t i = 0; i < ALLOCATIONS_BOUNDS; i++) {
        question.bounds[i] = BOUNDS_ANY;
    }
    for (int i = 0; i < argc && word != NULL; i++) {
        size_t length = strcspn(++word, " ");
        struct selection_range *range = &question.bounds[allocations_named_bound(word, length)];
        char letter = word[length - 1];
        *range = letter == 'i' ? bounds_narrow_in(*range, argv[i])
                               : bounds_narrow(*range, letter, argv[i]);
        word = strchr(word, ' ');
    }
    return question;
}

/* ---- Cursors ---- */

static void allocations_end(struct allocations_cursor *cursor) {
    rowqueue_close(cursor->queue);
    *cursor = (struct allocations_cursor){.base = cursor->base};
}

static int allocations_close(sqlite3_vtab_cursor *base) {
    allocations_end((struct allocations_cursor *)base);
    return vtable_close(base);
}

static int allocations_next(sqlite3_vtab_cursor *base) {
    struct allocations_cursor *cursor = (struct allocations_cursor *)base;
    const void *row = NULL;
    int result =
        cursor->queue != NULL ? vtable_next_row(base->pVtab, cursor->queue, &row) : SQLITE_OK;
    cursor->row = row;
    return result;
}

static int allocations_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                              sqlite3_value **argv) {
    struct allocations_cursor *cursor = (struct allocations_cursor *)base;
    struct query *query = ((struct vtable_view *)base->pVtab)->query;
    allocations_end(cursor);
    cursor->query = query;
    cursor->question = allocations_question_of(number, text, argc, argv);
    cursor->selection = *query->source.selection;
    if (query->source.parts.count == 0) {
        return vtable_fail(base->pVtab, "a profile has no single allocations, only sums of call "
                                        "paths: make a recording with `memtrace record`");
    }
    if (allocations_can_be_any(&cursor->question)) {
        allocations_narrow(cursor);
        cursor->queue = rowqueue_start(sizeof(struct rows_allocation), allocations_produce, cursor);
        if (cursor->queue == NULL) {
            return SQLITE_NOMEM;
        }
    }
    return allocations_next(base);
}

static int allocations_at_end(sqlite3_vtab_cursor *cursor) {
    return ((const struct allocations_cursor *)cursor)->row == NULL;
}

static int allocations_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int number) {
    const struct allocations_cursor *cursor = (const struct allocations_cursor *)base;
    vtable_put(cursor->query, &rows_allocations, cursor->row, number, out);
    return SQLITE_OK;
}

static int allocations_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *id) {
    *id = (sqlite3_int64)((const struct allocations_cursor *)cursor)->row->life.birth_order;
    return SQLITE_OK;
}

static const sqlite3_module allocations_module =
    VTABLE_MODULE(allocations, allocations_close, allocations_column);

static const char *const allocations_indices[] = {"id", "context", "born", "size", NULL};

const struct vtable vtable_allocations = {
    .rows = &rows_allocations,
    .indices = allocations_indices,
    .module = &allocations_module,
    .cursor_size = sizeof(struct allocations_cursor),
};
