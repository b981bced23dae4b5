/* SPDX-License-Identifier: MIT */
/*
 * where.c: an expression of SQL as a filter of blocks: the statement that finds their ids is run
 * once, before the pass that is filtered. See query_where() in query.h.
 */
#include "analyze/query/vtable.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Expressions stand in parentheses, on lines of their own for those that end in a comment. */
#define BEFORE       "SELECT id FROM allocations WHERE ("
#define BEFORE_TWICE "SELECT id FROM allocations WHERE (("
#define AFTER        "\n)"

enum {
    STEPS = 10000,        /* of SQLite's machine between two looks */
    STEPS_A_BLOCK = 5000, /* a subquery over a small table, for each */
    TEXT_MOST = 1 << 20,
    SPILL_MOST = 1 << 30
};
static const uint64_t steps_at_least = 50000000;

struct search {
    struct query *query;
    const struct replay_options *replay; /* NULL: nobody waits */
    pthread_mutex_t lock;                /* subqueries have passes of their own */
    uint64_t steps, steps_most;
    bool is_too_long;
};

static bool is_cancelled(const struct search *search) {
    return search->replay != NULL && replay_is_cancelled(search->replay);
}

static int look(void *context) {
    struct search *search = context;
    search->steps += STEPS;
    search->is_too_long |= search->steps > search->steps_most;
    return search->is_too_long || is_cancelled(search);
}

/* Of the passes: SQLite waits meanwhile, and takes no step. */
static void tell(void *context, uint64_t done, uint64_t total) {
    struct search *search = context;
    if (is_cancelled(search)) {
        query_interrupt(search->query);
    }
    if (search->replay != NULL && search->replay->progress != NULL) {
        pthread_mutex_lock(&search->lock);
        search->replay->progress(search->replay->context, done, total);
        pthread_mutex_unlock(&search->lock);
    }
}

/* NULL: error is set. Positions in the expression count from 1. */
static sqlite3_stmt *prepare(const struct query *query, const char *before, const char *expression,
                             const char *after, struct error *error) {
    sqlite3_stmt *statement = NULL;
    char *sql = sqlite3_mprintf("%s%s%s", before, expression, after);
    if (sql == NULL) {
        error_set(error, "out of memory");
    } else if (sqlite3_prepare_v2(query->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        query_fail(query, sql + strlen(before), sql, error);
    }
    sqlite3_free(sql);
    return statement;
}

/* In two pairs of parentheses as well as in one: so none of its own closes ours. */
static sqlite3_stmt *prepare_expression(const struct query *query, const char *expression,
                                        struct error *error) {
    sqlite3_stmt *statement = prepare(query, BEFORE, expression, AFTER, error);
    sqlite3_stmt *other = NULL;
    if (expression[strspn(expression, " \t\n")] == '\0') {
        error_set(error, "there is no expression");
    } else if (statement != NULL) {
        other = prepare(query, BEFORE_TWICE, expression, AFTER ")", error);
    }
    if (other == NULL) {
        sqlite3_finalize(statement);
        return NULL;
    }
    sqlite3_finalize(other);
    return statement;
}

static int collect(const struct search *search, sqlite3_stmt *statement,
                   struct selection_blocks *found, struct error *error) {
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
        if (selection_add_block(found, (uint64_t)sqlite3_column_int64(statement, 0)) != 0) {
            return error_set(error, "out of memory");
        }
    }
    if (step == SQLITE_DONE) {
        return 0;
    }
    return search->is_too_long    ? error_set(error, "the expression takes too many steps")
           : is_cancelled(search) ? error_set(error, "cancelled")
                                  : query_fail(search->query, "", "", error);
}

int query_where(const struct query_source *source, const char *expression,
                struct selection_blocks *found, struct error *error) {
    const struct selection all = selection_all();
    struct search search = {.replay = source->replay,
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .steps_most =
                                steps_at_least + source->whole->totals.allocations * STEPS_A_BLOCK};
    const struct replay_options replay = {.progress = tell, .context = &search};
    struct query_source asked = *source;
    sqlite3_stmt *statement;
    int result = -1;
    asked.model = source->whole;
    asked.selection = &all;
    asked.replay = &replay;
    search.query = query_open(&asked, error);
    if (search.query == NULL) {
        return -1;
    }
    query_bound(search.query, TEXT_MOST, SPILL_MOST);
    sqlite3_progress_handler(search.query->db, STEPS, look, &search);
    statement = prepare_expression(search.query, expression, error);
    if (statement != NULL) {
        result = collect(&search, statement, found, error);
    }
    sqlite3_finalize(statement);
    query_close(search.query);
    return result;
}
