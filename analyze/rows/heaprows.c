/* SPDX-License-Identifier: MIT */
/* heaprows.c: contexts, single allocations, and what these tell of contexts. See rows.h. */
#include "analyze/replay/accounts.h"
#include "analyze/rows/rows.h"

#include <string.h>

/* ---- Contexts ---- */

static size_t find_context(const struct rows_of *of, int64_t id) {
    const struct model_context *found =
        id >= 0 && id <= UINT32_MAX ? model_find(of->model, (uint32_t)id) : NULL;
    return found != NULL ? (size_t)(found - of->model->contexts) : SIZE_MAX;
}

const struct names_frame *rows_innermost(const struct rows_of *of, uint32_t node) {
    const struct model *model = of->whole;
    size_t count;
    for (; node != 0 && node < model->node_count; node = model->nodes[node].parent) {
        if (model->nodes[node].frame >= MEMTRACE_FRAME_CLASSES) {
            return names_frames(of->names, model->nodes[node].frame, &count);
        }
    }
    return NULL;
}

size_t rows_depth(const struct model *model, uint32_t node) {
    size_t depth = 0;
    for (; node != 0 && node < model->node_count; node = model->nodes[node].parent) {
        depth += model->nodes[node].frame >= MEMTRACE_FRAME_CLASSES;
    }
    return depth;
}

/* Of the innermost function, where there is one. */
#define FRAME_CELL(name, value)                                                                    \
    static struct table_cell context_##name(const struct rows_of *of, const void *record) {        \
        const struct model_context *context = record;                                              \
        const struct names_frame *frame = rows_innermost(of, context->path);                       \
        return frame != NULL ? (value) : table_none();                                             \
    }
FRAME_CELL(function, table_frame(frame))
FRAME_CELL(file, table_text(frame->file))
FRAME_CELL(line, table_number_if(frame->line != 0, frame->line))
FRAME_CELL(module, table_text(frame->module[0] != '\0' ? frame->module : NULL))
#undef FRAME_CELL

ROWS_CELL(context_hash, struct model_context, it, table_number(model_hash(of->model, it->id)))
ROWS_CELL(context_depth, struct model_context, it, table_number(rows_depth(of->model, it->id)))
ROWS_CELL(context_class_name, struct model_context, it, table_text(model_class_name(of->model, it)))
ROWS_CELL(context_average, struct model_context, it,
          it->allocations != 0 ? table_number(it->total_bytes / it->allocations) : table_none())

static struct table_cell context_class(const struct rows_of *of, const void *record) {
    static const char *const classes[] = {"heap", "mapping", "pool"};
    (void)of;
    return table_text(classes[((const struct model_context *)record)->class]);
}

static struct table_cell context_pool(const struct rows_of *of, const void *record) {
    bool is_pool = ((const struct model_context *)record)->class == MODEL_POOL;
    return is_pool ? context_class_name(of, record) : table_none();
}

/* What single blocks tell; none where nothing was gathered of them, or there were none. */
#define DETAIL_CELL(name, value)                                                                   \
    static struct table_cell context_##name(const struct rows_of *of, const void *record) {        \
        const struct model_context *context = record;                                              \
        const struct detail_context *detail =                                                      \
            of->detail != NULL ? detail_find(of->detail, context->id) : NULL;                      \
        return detail != NULL ? (value) : table_none();                                            \
    }
DETAIL_CELL(first, table_number_if(detail->allocations != 0, detail->first_ns))
DETAIL_CELL(last, table_number_if(detail->allocations != 0, detail->last_ns))
DETAIL_CELL(lifetime, detail->lifetimes.count != 0
                          ? table_number((uint64_t)(detail->lifetime_sum_ns * (double)ACCOUNTS_ONE /
                                                    (double)detail->lifetimes.count))
                          : table_none())
#undef DETAIL_CELL

#define OF(member) ROWS_FIELD(struct model_context, member)
static const struct table_column context_columns[CONTEXT_COLUMNS] = {
    [CONTEXT_ID] = {"id", NULL, TABLE_COUNT, 0, "id",
                    "of the call path: allocations.context, frames.context", OF(id)},
    [CONTEXT_PARENT] = {"parent", NULL, TABLE_COUNT, 0, "parent",
                        "id of the path without its innermost frame; see path()", OF(parent)},
    [CONTEXT_HASH] = {"hash", "hash", TABLE_HASH, 0, "hash",
                      "the same in every run of the same build, as in reports",
                      .cell = context_hash},
    [CONTEXT_CLASS] = {NULL, NULL, TABLE_TEXT, 0, "class", "heap, mapping or pool",
                       .cell = context_class},
    [CONTEXT_POOL] = {"pool", NULL, TABLE_TEXT, 0, "pool", "name of the pool; NULL: none",
                      .cell = context_pool},
    [CONTEXT_FUNCTION] = {"function", NULL, TABLE_FRAME, 0, "function",
                          "that allocated: the innermost one", .cell = context_function},
    [CONTEXT_FILE] = {"file", NULL, TABLE_TEXT, 0, "file", "its source file; NULL: unknown",
                      .cell = context_file},
    [CONTEXT_LINE] = {"line", NULL, TABLE_COUNT, 0, "line", "NULL: unknown", .cell = context_line},
    [CONTEXT_MODULE] = {"module", NULL, TABLE_TEXT, 0, "module",
                        "program or library; NULL: unknown", .cell = context_module},
    [CONTEXT_DEPTH] = {"depth", NULL, TABLE_COUNT, 0, "depth", "recorded frames",
                       .cell = context_depth},
    [CONTEXT_LIVE_BYTES] = {"live_bytes", "bytes", TABLE_BYTES, 0, "live_bytes",
                            "not freed at the end", OF(live_bytes)},
    [CONTEXT_LIVE_BLOCKS] = {"live_blocks", "blocks", TABLE_COUNT, 0, "live_blocks",
                             "not freed at the end", OF(live_blocks)},
    [CONTEXT_PEAK_BYTES] = {"peak_bytes", NULL, TABLE_BYTES, 0, "peak_bytes",
                            "held when the whole program held most", OF(peak_bytes)},
    [CONTEXT_TOTAL_BYTES] = {"total_bytes", "bytes", TABLE_BYTES, 0, "total_bytes",
                             "ever allocated", OF(total_bytes)},
    [CONTEXT_ALLOCATIONS] = {"allocations", "allocations", TABLE_COUNT, 0, "allocations",
                             "reallocations included", OF(allocations)},
    [CONTEXT_FREES] = {"frees", NULL, TABLE_COUNT, 0, "frees", "reallocations included", OF(frees)},
    [CONTEXT_FREED_BYTES] = {"freed_bytes", NULL, TABLE_BYTES, 0, "freed_bytes", "",
                             OF(freed_bytes)},
    [CONTEXT_TEMPORARY] = {"temporary", NULL, TABLE_COUNT, 0, "temporary",
                           "freed by their thread before its next allocation", OF(temporary)},
    [CONTEXT_PATH] = {"path", "call path", TABLE_PATH, 0, "path",
                      "functions, outermost first, ';' between them", OF(path)},
    [CONTEXT_TOTAL_ERROR] = {"total_bytes_error", NULL, TABLE_REAL, 0, "total_bytes_error",
                             "of a sample: its standard error; else 0", OF(total_error_bytes)},
    [CONTEXT_LIVE_ERROR] = {"live_bytes_error", NULL, TABLE_REAL, 0, "live_bytes_error",
                            "of a sample: its standard error; else 0", OF(live_error_bytes)},
    [CONTEXT_AVERAGE] = {"average_bytes", "average", TABLE_BYTES, 0, .cell = context_average},
    [CONTEXT_FIRST] = {"first_ns", "first", TABLE_DURATION, 0, .cell = context_first},
    [CONTEXT_LAST] = {"last_ns", "last", TABLE_DURATION, 0, .cell = context_last},
    [CONTEXT_LIFETIME] = {"average_lifetime_ns", "lifetime", TABLE_DURATION, 0,
                          .cell = context_lifetime},
    [CONTEXT_CLASS_NAME] = {"class", NULL, TABLE_TEXT, 0, .cell = context_class_name},
};
#undef OF

const struct rows rows_contexts = {
    .name = "contexts",
    .about = "every call path that allocated, with its sums",
    ROWS_COLUMNS(context_columns),
    ROWS_ARRAY(contexts, context_count),
    .find = find_context,
};

/* ---- Allocations ---- */

ROWS_CELL(allocation_usable, struct life, life, table_number(life->size + life->slack))
ROWS_CELL(allocation_alignment, struct life, life,
          table_number_if(life->alignment != 0, UINT64_C(1) << (life->alignment & 63)))
ROWS_CELL(allocation_zeroed, struct life, life,
          table_number((life->flags & MEMTRACE_ALLOC_ZEROED) != 0))
ROWS_CELL(allocation_mapped, struct life, life,
          table_number((life->flags & MEMTRACE_ALLOC_MAPPED) != 0))
ROWS_CELL(allocation_arena, struct life, life,
          table_number((life->flags & MEMTRACE_ALLOC_ARENA) != 0))
ROWS_CELL(allocation_lifetime, struct life, life,
          table_number_if(life->death_ns != LIFE_ALIVE, life->death_ns - life->birth_ns))
ROWS_CELL(allocation_freed_by, struct life, life,
          table_number_if(life->death_ns != LIFE_ALIVE, life->death_thread))
ROWS_CELL(allocation_freed_context, struct life, life,
          table_number_if(life->death_ns != LIFE_ALIVE && life->death_context.node != 0,
                          life->death_context.node))
ROWS_CELL(allocation_weight, struct life, life, table_number(life_bytes(life)))
ROWS_CELL(allocation_count, struct life, life,
          table_real((double)life_units(life) / (double)ACCOUNTS_ONE))
ROWS_CELL(allocation_hash, struct life, life, table_number(model_hash(of->model, life->context)))

static const struct model_context *heaprows_context_of(const struct rows_of *of,
                                                       const void *record) {
    return model_find(of->whole, ((const struct life *)record)->context);
}

static struct table_cell allocation_class(const struct rows_of *of, const void *record) {
    const struct model_context *context = heaprows_context_of(of, record);
    return table_text(context != NULL && context->class == MODEL_POOL ? "pool" : "heap");
}

static struct table_cell allocation_pool(const struct rows_of *of, const void *record) {
    const struct model_context *context = heaprows_context_of(of, record);
    return context != NULL && context->class == MODEL_POOL
               ? table_text(model_class_name(of->whole, context))
               : table_none();
}

/* It may be shown when the pass that it came from is over. */
static struct table_cell allocation_scope(const struct rows_of *of, const void *record) {
    const char *scope = ((const struct rows_allocation *)record)->scope;
    (void)of;
    return scope != NULL ? table_made_text(strdup(scope)) : table_none();
}

static struct table_cell allocation_age(const struct rows_of *of, const void *record) {
    const struct life *life = record;
    uint64_t until_ns = life->death_ns == LIFE_ALIVE ? of->detail->end_ns : life->death_ns;
    return table_number(until_ns > life->birth_ns ? until_ns - life->birth_ns : 0);
}

static struct table_cell allocation_path(const struct rows_of *of, const void *record) {
    const struct model_context *context = heaprows_context_of(of, record);
    return table_path(context != NULL ? context->path : 0);
}

#define OF(member) ROWS_FIELD(struct life, member)
static const struct table_column allocation_columns[ALLOCATION_COLUMNS] = {
    [ALLOCATION_ID] =
        {NULL, NULL, TABLE_COUNT, 0, "id",
         "place in the order of all events: by time of one thread; of all, ORDER BY born",
         OF(birth_order)},
    [ALLOCATION_THREAD] = {"thread", "thread", TABLE_COUNT, 7, "thread",
                           "that allocated it: threads.id", OF(block.thread)},
    [ALLOCATION_NUMBER] = {NULL, NULL, TABLE_COUNT, 0, "number",
                           "of the thread's allocations this one, from 1 on", OF(block.number)},
    [ALLOCATION_ADDRESS] = {"address", "address", TABLE_ADDRESS, 0, "address", "NULL: not recorded",
                            OF(address), .none = TABLE_ZERO},
    [ALLOCATION_SIZE] = {"size", "size", TABLE_BYTES, 0, "size", "bytes asked for", OF(size)},
    [ALLOCATION_SLACK] = {"slack", NULL, TABLE_BYTES, 0, "slack",
                          "bytes that the allocator gave beyond that, at most 4095", OF(slack)},
    [ALLOCATION_USABLE] = {NULL, NULL, TABLE_BYTES, 0, "usable", "size and slack",
                           .cell = allocation_usable},
    [ALLOCATION_ALIGNMENT] = {NULL, NULL, TABLE_BYTES, 0, "alignment",
                              "asked for, bytes; NULL: nothing special",
                              .cell = allocation_alignment},
    [ALLOCATION_ZEROED] = {NULL, NULL, TABLE_COUNT, 0, "zeroed", "1: calloc",
                           .cell = allocation_zeroed},
    [ALLOCATION_MAPPED] = {NULL, NULL, TABLE_COUNT, 0, "mapped",
                           "1: glibc gave it a mapping of its own", .cell = allocation_mapped},
    [ALLOCATION_ARENA] = {NULL, NULL, TABLE_COUNT, 0, "arena", "1: not from glibc's main arena",
                          .cell = allocation_arena},
    [ALLOCATION_CONTEXT] = {NULL, NULL, TABLE_COUNT, 0, "context", "call path: contexts.id, path()",
                            OF(context)},
    [ALLOCATION_CLASS] = {NULL, NULL, TABLE_TEXT, 0, "class", "heap or pool",
                          .cell = allocation_class},
    [ALLOCATION_POOL] = {NULL, NULL, TABLE_TEXT, 0, "pool", "name of the pool; NULL: none",
                         .cell = allocation_pool},
    [ALLOCATION_BORN] = {"birth_ns", "born", TABLE_DURATION, 0, "born",
                         "ns since the program's start", OF(birth_ns)},
    [ALLOCATION_FREED] = {"death_ns", "freed", TABLE_DURATION, 0, "freed", "ns; NULL: never",
                          OF(death_ns), .none = TABLE_MOST},
    [ALLOCATION_LIFETIME] = {NULL, NULL, TABLE_DURATION, 0, "lifetime",
                             "ns; NULL: it was never freed", .cell = allocation_lifetime},
    [ALLOCATION_FREED_BY] = {"freed_by", "by", TABLE_COUNT, 4, "freed_by",
                             "thread; NULL: it was never freed", .cell = allocation_freed_by},
    [ALLOCATION_FREED_CONTEXT] = {NULL, NULL, TABLE_COUNT, 0, "freed_context",
                                  "call path, for path(); NULL: not recorded",
                                  .cell = allocation_freed_context},
    [ALLOCATION_TEMPORARY] = {NULL, NULL, TABLE_COUNT, 0, "temporary",
                              "1: freed by its thread before its next allocation",
                              OF(is_temporary)},
    [ALLOCATION_REALLOCATED] = {NULL, NULL, TABLE_COUNT, 0, "reallocated", "1: a realloc ended it",
                                OF(is_reallocated)},
    [ALLOCATION_REALLOC_OF] = {NULL, NULL, TABLE_COUNT, 0, "realloc_of",
                               "id of the block that a realloc made this of; or NULL",
                               OF(old_order), .none = TABLE_ZERO},
    [ALLOCATION_CHAIN] = {NULL, NULL, TABLE_COUNT, 0, "chain",
                          "id of the first block of its chain of reallocations", OF(chain_order)},
    [ALLOCATION_CHAIN_LENGTH] = {"chain_length", NULL, TABLE_COUNT, 0, "chain_length",
                                 "blocks of the chain up to this one", OF(chain_length)},
    [ALLOCATION_CHAIN_BORN] = {NULL, NULL, TABLE_DURATION, 0, "chain_born",
                               "ns: when the chain's first block was allocated",
                               OF(chain_birth_ns)},
    [ALLOCATION_FIRST_SIZE] = {NULL, NULL, TABLE_BYTES, 0, "first_size",
                               "of the chain's first block", OF(chain_first_size)},
    [ALLOCATION_INHERITED] =
        {NULL, NULL, TABLE_COUNT, 0, "inherited",
         "1: a forked child was born with it, or it was there when recording began",
         OF(is_inherited)},
    [ALLOCATION_SCOPE] = {NULL, NULL, TABLE_TEXT, 0, "scope",
                          "the innermost scope that its thread was in; NULL: none",
                          .cell = allocation_scope},
    [ALLOCATION_WEIGHT] = {NULL, NULL, TABLE_BYTES, 0, "weight",
                           "bytes it stands for: its size, but where sampled",
                           .cell = allocation_weight},
    [ALLOCATION_COUNT] = {NULL, NULL, TABLE_REAL, 0, "count",
                          "allocations it stands for: 1, but where sampled",
                          .cell = allocation_count},
    [ALLOCATION_AGE] = {"age_ns", "age", TABLE_DURATION, 0, .cell = allocation_age},
    [ALLOCATION_HASH] = {"hash", NULL, TABLE_HASH, 0, .cell = allocation_hash},
    [ALLOCATION_PATH] = {"path", "call path", TABLE_PATH, 0, .cell = allocation_path},
};
#undef OF

const struct rows rows_allocations = {
    .name = "allocations",
    .about = "every allocation of a recording, reallocations included",
    ROWS_COLUMNS(allocation_columns),
};

/* ---- What single blocks tell of contexts ---- */

static size_t count_details(const struct rows_of *of) {
    return of->detail->context_count;
}

static const void *detail_at(const struct rows_of *of, size_t row, void *room) {
    (void)room;
    return &of->detail->contexts[row];
}

static const struct model_context *context_of_detail(const struct rows_of *of,
                                                     const struct detail_context *detail) {
    static const struct model_context none;
    const struct model_context *context = model_find(of->model, detail->id);
    return context != NULL ? context : &none;
}

ROWS_CELL(detail_p50, struct detail_context, detail,
          table_number(sketch_percentile(&detail->sizes, 50)))
ROWS_CELL(detail_p90, struct detail_context, detail,
          table_number(sketch_percentile(&detail->sizes, 90)))
ROWS_CELL(detail_live_bytes, struct detail_context, detail,
          table_number(context_of_detail(of, detail)->live_bytes))
ROWS_CELL(detail_live_blocks, struct detail_context, detail,
          table_number(context_of_detail(of, detail)->live_blocks))
ROWS_CELL(detail_hash, struct detail_context, detail,
          table_number(model_hash(of->model, detail->id)))
ROWS_CELL(detail_path, struct detail_context, detail,
          table_path(context_of_detail(of, detail)->path))

#define OF(member) ROWS_FIELD(struct detail_context, member)
static const struct table_column detail_columns[DETAIL_COLUMNS] = {
    [DETAIL_ALLOCATIONS] = {"allocations", "allocations", TABLE_COUNT, 0, OF(allocations)},
    [DETAIL_SMALLEST] = {"least_bytes", "smallest", TABLE_BYTES, 0, OF(sizes.least)},
    [DETAIL_P50_SIZE] = {"p50_bytes", "p50", TABLE_BYTES, 0, .cell = detail_p50},
    [DETAIL_P90_SIZE] = {"p90_bytes", "p90", TABLE_BYTES, 0, .cell = detail_p90},
    [DETAIL_LARGEST_SIZE] = {"most_bytes", "largest", TABLE_BYTES, 0, OF(sizes.most)},
    [DETAIL_SLACK] = {"slack_bytes", "slack", TABLE_BYTES, 0, OF(slack_bytes)},
    [DETAIL_LIVE_BYTES] = {"live_bytes", "live bytes", TABLE_BYTES, 0, .cell = detail_live_bytes},
    [DETAIL_LIVE_BLOCKS] = {"live_blocks", "blocks", TABLE_COUNT, 0, .cell = detail_live_blocks},
    [DETAIL_HASH] = {"hash", "hash", TABLE_HASH, 0, .cell = detail_hash},
    [DETAIL_PATH] = {"path", "call path", TABLE_PATH, 0, .cell = detail_path},
};
#undef OF

const struct rows rows_details = {
    .name = "details",
    .about = "what single blocks tell of the call path that allocated them",
    ROWS_COLUMNS(detail_columns),
    .count = count_details,
    .record = detail_at,
};
