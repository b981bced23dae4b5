/* SPDX-License-Identifier: MIT */
/* allocationrow.c: see allocationrow.h. */
#include "analyze/query/allocationrow.h"

const struct vtable_column allocation_columns[ALLOCATION_COLUMNS] = {
    [ALLOCATION_ID] = {"id", "INTEGER", "place in the order of all events: ORDER BY id is by time"},
    [ALLOCATION_THREAD] = {"thread", "INTEGER", "that allocated it: threads.id"},
    [ALLOCATION_NUMBER] = {"number", "INTEGER", "of the thread's allocations this one, from 1 on"},
    [ALLOCATION_ADDRESS] = {"address", "INTEGER", "NULL: not recorded"},
    [ALLOCATION_SIZE] = {"size", "INTEGER", "bytes asked for"},
    [ALLOCATION_SLACK] = {"slack", "INTEGER",
                          "bytes that the allocator gave beyond that, at most 4095"},
    [ALLOCATION_USABLE] = {"usable", "INTEGER", "size and slack"},
    [ALLOCATION_ALIGNMENT] = {"alignment", "INTEGER", "asked for, bytes; NULL: nothing special"},
    [ALLOCATION_ZEROED] = {"zeroed", "INTEGER", "1: calloc"},
    [ALLOCATION_MAPPED] = {"mapped", "INTEGER", "1: glibc gave it a mapping of its own"},
    [ALLOCATION_ARENA] = {"arena", "INTEGER", "1: not from glibc's main arena"},
    [ALLOCATION_CONTEXT] = {"context", "INTEGER", "call path: contexts.id, path()"},
    [ALLOCATION_CLASS] = {"class", "TEXT", "heap or pool"},
    [ALLOCATION_POOL] = {"pool", "TEXT", "name of the pool; NULL: none"},
    [ALLOCATION_BORN] = {"born", "INTEGER", "ns since the program's start"},
    [ALLOCATION_FREED] = {"freed", "INTEGER", "ns; NULL: never"},
    [ALLOCATION_LIFETIME] = {"lifetime", "INTEGER", "ns; NULL: it was never freed"},
    [ALLOCATION_FREED_BY] = {"freed_by", "INTEGER", "thread; NULL: it was never freed"},
    [ALLOCATION_FREED_CONTEXT] = {"freed_context", "INTEGER",
                                  "call path, for path(); NULL: not recorded"},
    [ALLOCATION_TEMPORARY] = {"temporary", "INTEGER",
                              "1: freed by its thread before its next allocation"},
    [ALLOCATION_REALLOCATED] = {"reallocated", "INTEGER", "1: a realloc ended it"},
    [ALLOCATION_REALLOC_OF] = {"realloc_of", "INTEGER",
                               "id of the block that a realloc made this of; or NULL"},
    [ALLOCATION_CHAIN] = {"chain", "INTEGER",
                          "id of the first block of its chain of reallocations"},
    [ALLOCATION_CHAIN_LENGTH] = {"chain_length", "INTEGER", "blocks of the chain up to this one"},
    [ALLOCATION_CHAIN_BORN] = {"chain_born", "INTEGER",
                               "ns: when the chain's first block was allocated"},
    [ALLOCATION_FIRST_SIZE] = {"first_size", "INTEGER", "of the chain's first block"},
    [ALLOCATION_INHERITED] = {"inherited", "INTEGER", "1: a forked child was born with it"},
    [ALLOCATION_SCOPE] = {"scope", "TEXT",
                          "the innermost scope that its thread was in; NULL: none"},
    [ALLOCATION_WEIGHT] = {"weight", "INTEGER", "bytes it stands for: its size, but where sampled"},
    [ALLOCATION_COUNT] = {"count", "REAL", "allocations it stands for: 1, but where sampled"},
};

static void put_class(const struct query *query, const struct life *life, int column,
                      sqlite3_context *out) {
    const struct model *whole = query->source.whole;
    const struct model_context *context = model_find(whole, life->context);
    bool is_pool = context != NULL && context->class == MODEL_POOL;
    if (column == ALLOCATION_CLASS) {
        vtable_put_text(out, is_pool ? "pool" : "heap");
    } else if (is_pool) {
        vtable_put_text(out, model_class_name(whole, context));
    }
}

/* What is known from its birth on. */
static void put_birth(const struct query *query, const struct life *life, int column,
                      sqlite3_context *out) {
    switch (column) {
    case ALLOCATION_ADDRESS:
        vtable_put_unless(out, life->address, 0);
        break;
    case ALLOCATION_ALIGNMENT:
        vtable_put_unless(out, life->alignment != 0 ? UINT64_C(1) << (life->alignment & 63) : 0, 0);
        break;
    case ALLOCATION_CLASS:
    case ALLOCATION_POOL:
        put_class(query, life, column, out);
        break;
    case ALLOCATION_REALLOC_OF:
        vtable_put_unless(out, life->old_order, 0);
        break;
    case ALLOCATION_COUNT: {
        const double one = 65536; /* TALLY_ONE */
        sqlite3_result_double(out, (double)life_units(life) / one);
        break;
    }
    default:
        break;
    }
}

static uint64_t number_of(const struct life *life, int column) {
    switch (column) {
    case ALLOCATION_ID:
        return life->birth_order;
    case ALLOCATION_THREAD:
        return life->block.thread;
    case ALLOCATION_NUMBER:
        return life->block.number;
    case ALLOCATION_SIZE:
        return life->size;
    case ALLOCATION_SLACK:
        return life->slack;
    case ALLOCATION_USABLE:
        return life->size + life->slack;
    case ALLOCATION_ZEROED:
        return (life->flags & MEMTRACE_ALLOC_ZEROED) != 0;
    case ALLOCATION_MAPPED:
        return (life->flags & MEMTRACE_ALLOC_MAPPED) != 0;
    case ALLOCATION_ARENA:
        return (life->flags & MEMTRACE_ALLOC_ARENA) != 0;
    case ALLOCATION_CONTEXT:
        return life->context;
    case ALLOCATION_BORN:
        return life->birth_ns;
    case ALLOCATION_TEMPORARY:
        return life->is_temporary;
    case ALLOCATION_REALLOCATED:
        return life->is_reallocated;
    case ALLOCATION_CHAIN:
        return life->chain_order;
    case ALLOCATION_CHAIN_LENGTH:
        return life->chain_length;
    case ALLOCATION_CHAIN_BORN:
        return life->chain_birth_ns;
    case ALLOCATION_FIRST_SIZE:
        return life->chain_first_size;
    case ALLOCATION_INHERITED:
        return life->is_inherited;
    default:
        return life_bytes(life);
    }
}

static void put_end(const struct life *life, int column, sqlite3_context *out) {
    if (life->death_ns == LIFE_ALIVE) {
        return;
    }
    switch (column) {
    case ALLOCATION_FREED:
        vtable_put_number(out, life->death_ns);
        break;
    case ALLOCATION_LIFETIME:
        vtable_put_number(out, life->death_ns - life->birth_ns);
        break;
    case ALLOCATION_FREED_BY:
        vtable_put_number(out, life->death_thread);
        break;
    default:
        vtable_put_unless(out, life->death_context, 0);
        break;
    }
}

void allocation_put(const struct query *query, const struct allocations_row *row,
                    enum allocation_column column, sqlite3_context *out) {
    const struct life *life = &row->life;
    switch (column) {
    case ALLOCATION_FREED:
    case ALLOCATION_LIFETIME:
    case ALLOCATION_FREED_BY:
    case ALLOCATION_FREED_CONTEXT:
        put_end(life, column, out);
        break;
    case ALLOCATION_ADDRESS:
    case ALLOCATION_ALIGNMENT:
    case ALLOCATION_CLASS:
    case ALLOCATION_POOL:
    case ALLOCATION_REALLOC_OF:
    case ALLOCATION_COUNT:
        put_birth(query, life, column, out);
        break;
    case ALLOCATION_SCOPE:
        vtable_put_text(out, row->scope);
        break;
    default:
        vtable_put_number(out, number_of(life, column));
        break;
    }
}
