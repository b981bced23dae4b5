/* SPDX-License-Identifier: MIT */
/* markstables.c: the tables of what the program said of itself: markers, and the scopes that two of
 * them make. See vtable.h. */
#include "analyze/query/vtable.h"

#include <stdlib.h>

static const struct vtable_column marker_columns[] = {
    {"time", "INTEGER", "ns since the program's start"},
    {"thread", "INTEGER", "threads.id"},
    {"kind", "TEXT", "mark, scope begin, scope end, snapshot, on, off or sample"},
    {"name", "TEXT", "NULL: it has none"},
    {"scope", "INTEGER", "of scopes: which; NULL: none"},
};

static const char *kind_name(uint32_t what) {
    static const char *const names[] = {
        [MEMTRACE_MARK_POINT] = "mark",
        [MEMTRACE_MARK_SCOPE_BEGIN] = "scope begin",
        [MEMTRACE_MARK_SCOPE_END] = "scope end",
        [MEMTRACE_MARK_SNAPSHOT] = "snapshot",
        [MEMTRACE_MARK_ON] = "on",
        [MEMTRACE_MARK_OFF] = "off",
        [MEMTRACE_MARK_SAMPLE] = "sample",
    };
    return what < sizeof names / sizeof names[0] ? names[what] : NULL;
}

static size_t count_markers(const struct query *query) {
    return query->source.model->mark_count;
}

static void put_marker(const struct query *query, size_t row, int column, sqlite3_context *out) {
    const struct model_mark *mark = &query->source.model->marks[row];
    bool is_scope =
        mark->what == MEMTRACE_MARK_SCOPE_BEGIN || mark->what == MEMTRACE_MARK_SCOPE_END;
    switch (column) {
    case 0:
        vtable_put_number(out, mark->time_ns);
        break;
    case 1:
        vtable_put_number(out, mark->thread);
        break;
    case 2:
        vtable_put_text(out, kind_name(mark->what));
        break;
    case 3:
        vtable_put_text(out, mark->name[0] != '\0' ? mark->name : NULL);
        break;
    default:
        if (is_scope) {
            vtable_put_number(out, mark->id);
        }
        break;
    }
}

const struct vtable vtable_markers = {
    .name = "markers",
    .about = "what the program said of itself: memtrace_mark(), scopes, snapshots, on and off",
    VTABLE_COLUMNS(marker_columns),
    VTABLE_ARRAY,
    .count = count_markers,
    .put = put_marker,
};

/* ---- Scopes ---- */

static const struct vtable_column scope_columns[] = {
    {"id", "INTEGER", "markers.scope"},
    {"name", "TEXT", ""},
    {"thread", "INTEGER", "that began it"},
    {"begun", "INTEGER", "ns since the program's start"},
    {"ended", "INTEGER", "ns; NULL: it never did"},
    {"duration", "INTEGER", "ns; NULL: it never ended"},
    {"ended_by", "INTEGER", "thread; NULL: it never ended"},
};

static size_t count_scopes(const struct query *query) {
    return query->scope_count;
}

static void put_scope(const struct query *query, size_t row, int column, sqlite3_context *out) {
    const struct model *model = query->source.model;
    const struct vtable_scope *scope = &query->scopes[row];
    const struct model_mark *begin = &model->marks[scope->begin];
    const struct model_mark *end = scope->end != SIZE_MAX ? &model->marks[scope->end] : NULL;
    switch (column) {
    case 0:
        vtable_put_number(out, begin->id);
        break;
    case 1:
        vtable_put_text(out, begin->name);
        break;
    case 2:
        vtable_put_number(out, begin->thread);
        break;
    case 3:
        vtable_put_number(out, begin->time_ns);
        break;
    default:
        if (end != NULL) {
            vtable_put_number(out, column == 4   ? end->time_ns
                                   : column == 5 ? end->time_ns - begin->time_ns
                                                 : end->thread);
        }
        break;
    }
}

const struct vtable vtable_scopes = {
    .name = "scopes",
    .about = "scopes (memtrace_scope_begin() to memtrace_scope_end()) by their beginning",
    VTABLE_COLUMNS(scope_columns),
    VTABLE_ARRAY,
    .count = count_scopes,
    .put = put_scope,
};

/* The latest open scope with this id that begun no later than `end`. */
static struct vtable_scope *find_open(const struct query *query, size_t *open, size_t count,
                                      const struct model_mark *end, size_t *place) {
    const struct model_mark *marks = query->source.model->marks;
    while (count > 0) {
        struct vtable_scope *scope = &query->scopes[open[--count]];
        if (marks[scope->begin].id == end->id) {
            *place = count;
            return scope;
        }
    }
    return NULL;
}

int vtable_pair_scopes(struct query *query) {
    const struct model *model = query->source.model;
    size_t *open = calloc(model->mark_count + 1, sizeof *open);
    size_t open_count = 0;
    query->scopes = calloc(model->mark_count + 1, sizeof *query->scopes);
    if (open == NULL || query->scopes == NULL) {
        free(open);
        return -1;
    }
    for (size_t i = 0; i < model->mark_count; i++) {
        const struct model_mark *mark = &model->marks[i];
        size_t place;
        if (mark->what == MEMTRACE_MARK_SCOPE_BEGIN) {
            open[open_count++] = query->scope_count;
            query->scopes[query->scope_count++] = (struct vtable_scope){i, SIZE_MAX};
        } else if (mark->what == MEMTRACE_MARK_SCOPE_END) {
            struct vtable_scope *scope = find_open(query, open, open_count, mark, &place);
            if (scope != NULL) {
                scope->end = i;
                for (open_count--; place < open_count; place++) {
                    open[place] = open[place + 1];
                }
            }
        }
    }
    free(open);
    return 0;
}
