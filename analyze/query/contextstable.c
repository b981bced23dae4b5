/* SPDX-License-Identifier: MIT */
/* contextstable.c: the table of call paths with their sums. See vtable.h. */
#include "analyze/query/vtable.h"

#include "analyze/query/callpaths.h"

enum {
    ID,
    PARENT,
    HASH,
    CLASS,
    POOL,
    FUNCTION,
    FILE_NAME,
    LINE,
    MODULE,
    DEPTH,
    LIVE_BYTES,
    LIVE_BLOCKS,
    PEAK_BYTES,
    TOTAL_BYTES,
    ALLOCATIONS,
    FREES,
    FREED_BYTES,
    TEMPORARY,
    PATH,
    TOTAL_ERROR,
    LIVE_ERROR,
};

static const struct vtable_column columns[] = {
    [ID] = {"id", "INTEGER", "of the call path: allocations.context, frames.context"},
    [PARENT] = {"parent", "INTEGER", "id of the path without its innermost frame; see path()"},
    [HASH] = {"hash", "TEXT", "the same in every run of the same build, as in reports"},
    [CLASS] = {"class", "TEXT", "heap, mapping or pool"},
    [POOL] = {"pool", "TEXT", "name of the pool; NULL: none"},
    [FUNCTION] = {"function", "TEXT", "that allocated: the innermost one"},
    [FILE_NAME] = {"file", "TEXT", "its source file; NULL: unknown"},
    [LINE] = {"line", "INTEGER", "NULL: unknown"},
    [MODULE] = {"module", "TEXT", "program or library; NULL: unknown"},
    [DEPTH] = {"depth", "INTEGER", "recorded frames"},
    [LIVE_BYTES] = {"live_bytes", "INTEGER", "not freed at the end"},
    [LIVE_BLOCKS] = {"live_blocks", "INTEGER", "not freed at the end"},
    [PEAK_BYTES] = {"peak_bytes", "INTEGER", "held when the whole program held most"},
    [TOTAL_BYTES] = {"total_bytes", "INTEGER", "ever allocated"},
    [ALLOCATIONS] = {"allocations", "INTEGER", "reallocations included"},
    [FREES] = {"frees", "INTEGER", "reallocations included"},
    [FREED_BYTES] = {"freed_bytes", "INTEGER", ""},
    [TEMPORARY] = {"temporary", "INTEGER", "freed by their thread before its next allocation"},
    [PATH] = {"path", "TEXT", "functions, outermost first, ';' between them"},
    [TOTAL_ERROR] = {"total_bytes_error", "REAL", "of a sample: its standard error; else 0"},
    [LIVE_ERROR] = {"live_bytes_error", "REAL", "of a sample: its standard error; else 0"},
};

/* ---- Places in the code ---- */

const struct names_frame *vtable_innermost(const struct query *query, uint32_t node) {
    const struct model *model = query->source.whole;
    size_t count;
    while (node != 0 && node < model->node_count) {
        uint64_t frame = model->nodes[node].frame;
        if (frame >= MEMTRACE_FRAME_CLASSES) {
            return names_frames(query->source.names, frame, &count);
        }
        node = model->nodes[node].parent;
    }
    return NULL;
}

static void put_place(const struct query *query, const struct model_context *context, int column,
                      sqlite3_context *out) {
    const struct names_frame *frame = vtable_innermost(query, context->path);
    if (frame == NULL) {
        return;
    }
    switch (column) {
    case FUNCTION:
        vtable_put_lasting(out, callpaths_name(query, frame));
        break;
    case FILE_NAME:
        vtable_put_lasting(out, frame->file);
        break;
    case LINE:
        vtable_put_unless(out, frame->line, 0);
        break;
    default:
        vtable_put_lasting(out, frame->module[0] != '\0' ? frame->module : NULL);
        break;
    }
}

/* ---- Rows ---- */

static size_t count_rows(const struct query *query) {
    return query->source.model->context_count;
}

static size_t find(const struct query *query, sqlite3_int64 id) {
    const struct model *model = query->source.model;
    const struct model_context *found =
        id >= 0 && id <= UINT32_MAX ? model_find(model, (uint32_t)id) : NULL;
    return found != NULL ? (size_t)(found - model->contexts) : SIZE_MAX;
}

static uint64_t sum_of(const struct model_context *context, int column) {
    switch (column) {
    case LIVE_BYTES:
        return context->live_bytes;
    case LIVE_BLOCKS:
        return context->live_blocks;
    case PEAK_BYTES:
        return context->peak_bytes;
    case TOTAL_BYTES:
        return context->total_bytes;
    case ALLOCATIONS:
        return context->allocations;
    case FREES:
        return context->frees;
    case FREED_BYTES:
        return context->freed_bytes;
    default:
        return context->temporary;
    }
}

static void put(const struct query *query, size_t row, int column, sqlite3_context *out) {
    static const char *const classes[] = {"heap", "mapping", "pool"};
    const struct model *model = query->source.model;
    const struct model_context *context = &model->contexts[row];
    switch (column) {
    case ID:
        vtable_put_number(out, context->id);
        break;
    case PARENT:
        vtable_put_number(out, context->parent);
        break;
    case HASH:
        vtable_put_hash(out, model_hash(model, context->id));
        break;
    case CLASS:
        vtable_put_text(out, classes[context->class]);
        break;
    case TOTAL_ERROR:
        sqlite3_result_double(out, context->total_error_bytes);
        break;
    case LIVE_ERROR:
        sqlite3_result_double(out, context->live_error_bytes);
        break;
    case POOL:
        vtable_put_text(out,
                        context->class == MODEL_POOL ? model_class_name(model, context) : NULL);
        break;
    case FUNCTION:
    case FILE_NAME:
    case LINE:
    case MODULE:
        put_place(query, context, column, out);
        break;
    case DEPTH:
        vtable_put_number(out, callpaths_depth(model, context->id));
        break;
    case PATH:
        callpaths_put(query, context->path, out);
        break;
    default:
        vtable_put_number(out, sum_of(context, column));
        break;
    }
}

static const char *const indices[] = {"id", "function", NULL};

const struct vtable vtable_contexts = {
    .name = "contexts",
    .about = "every call path that allocated, with its sums",
    VTABLE_COLUMNS(columns),
    .indices = indices,
    VTABLE_ARRAY,
    .count = count_rows,
    .put = put,
    .find = find,
    .grouped_column = PATH,
    .grouped = callpaths_grouped,
};
