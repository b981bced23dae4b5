/* SPDX-License-Identifier: MIT */
/* tables.c: the reports that show rows of one thing: contexts, single blocks, sizes and lifetimes
 * of blocks, threads, processes, pools, marks, suppressions. */
#include "analyze/base/job.h"
#include "analyze/replay/accounts.h"
#include "analyze/report/reports.h"
#include "analyze/rows/number.h"
#include "analyze/rows/rows.h"
#include "analyze/rows/table.h"

#include <stdlib.h>
#include <string.h>

/* ---- All contexts, for programs ---- */

void report_csv(const struct report *report) {
    static const unsigned char shown[] = {
        CONTEXT_ID,          CONTEXT_HASH,       CONTEXT_CLASS_NAME,  CONTEXT_LIVE_BYTES,
        CONTEXT_LIVE_BLOCKS, CONTEXT_PEAK_BYTES, CONTEXT_TOTAL_BYTES, CONTEXT_ALLOCATIONS,
        CONTEXT_FREES,       CONTEXT_TEMPORARY,  CONTEXT_PATH,
    };
    struct rows_view view = rows_view(report, &rows_contexts, shown, sizeof shown);
    struct report all = *report;
    all.options.format = REPORT_CSV;
    all.options.limit = 0;
    all.options.path_depth = report->options.depth;
    rows_put_table(&all, "contexts", "Contexts", &view);
}

/* ---- Contexts of the heap ---- */

static bool groups_are_heap(const void *record) {
    return ((const struct model_context *)record)->class == MODEL_HEAP;
}

void report_groups(const struct report *report) {
    static const unsigned char shown[] = {
        CONTEXT_ALLOCATIONS, CONTEXT_TOTAL_BYTES, CONTEXT_AVERAGE,   CONTEXT_LIVE_BLOCKS,
        CONTEXT_LIVE_BYTES,  CONTEXT_FREES,       CONTEXT_TEMPORARY, CONTEXT_FIRST,
        CONTEXT_LAST,        CONTEXT_LIFETIME,    CONTEXT_HASH,      CONTEXT_PATH,
    };
    enum { LIVE_BLOCKS = 3, FIRST = 7, LIFETIME = 9 };
    struct rows_view view = rows_view(report, &rows_contexts, shown, sizeof shown);
    view.is_wanted = groups_are_heap;
    view.columns[LIVE_BLOCKS].heading = report_held(report->model);
    for (size_t i = FIRST; i <= LIFETIME && report->detail == NULL; i++) {
        view.columns[i].heading = NULL;
    }
    view.sort[view.sort_count++] = CONTEXT_TOTAL_BYTES;
    rows_put_table(report, "groups", "Groups: blocks of one call path", &view);
}

/* ---- Single blocks ---- */

static const char *blocks_title(enum detail_order order) {
    return order == DETAIL_LARGEST  ? "Blocks: the largest"
           : order == DETAIL_OLDEST ? "Blocks: those that lived longest"
                                    : "Blocks: the first";
}

void report_blocks(const struct report *report) {
    static const unsigned char shown[] = {
        ALLOCATION_ADDRESS,      ALLOCATION_SIZE, ALLOCATION_SLACK,  ALLOCATION_BORN,
        ALLOCATION_FREED,        ALLOCATION_AGE,  ALLOCATION_THREAD, ALLOCATION_FREED_BY,
        ALLOCATION_CHAIN_LENGTH, ALLOCATION_HASH, ALLOCATION_PATH,
    };
    const struct detail *detail = report->detail;
    struct rows_view view = rows_view(report, &rows_allocations, shown, sizeof shown);
    struct table table =
        table_open(report, "blocks", blocks_title(detail->wish.order), view.columns, view.count);
    for (size_t i = 0; i < detail->block_count; i++) {
        rows_put(&table, &view, &detail->blocks[i]);
    }
    table.hidden = detail->block_total - detail->block_count;
    table_close(&table);
}

/* ---- How large blocks are: a histogram of all, and percentiles by call path ---- */

enum { BAR = 20 };

/* "[64 B, 128 B)" */
static const char *sizes_spell_range(size_t bucket, char *buffer, size_t size) {
    struct number from;
    struct number to;
    if (bucket == 0) {
        snprintf(buffer, size, "0 B");
    } else if (bucket == 64) {
        snprintf(buffer, size, "%s and more", number_bytes(&from, UINT64_C(1) << 63));
    } else {
        snprintf(buffer, size, "[%s, %s)", number_bytes(&from, UINT64_C(1) << (bucket - 1)),
                 number_bytes(&to, UINT64_C(1) << bucket));
    }
    return buffer;
}

static const char *sizes_draw_bar(uint64_t part, uint64_t most, char *buffer) {
    size_t length = most != 0 ? (size_t)((double)part / (double)most * BAR + 0.5) : 0;
    memset(buffer, '#', length);
    buffer[length] = '\0';
    return buffer;
}

static void sizes_put_histogram(const struct report *report) {
    static const struct table_column columns[] = {
        {"least_bytes", NULL, TABLE_COUNT, 0},
        {"most_bytes", NULL, TABLE_COUNT, 0},
        {NULL, "size", TABLE_TEXT, 24},
        {"allocations", "allocations", TABLE_COUNT, 0},
        {"total_bytes", "bytes", TABLE_BYTES, 0},
        {"live_blocks", "live blocks", TABLE_COUNT, 0},
        {"live_bytes", "live bytes", TABLE_BYTES, 0},
        {NULL, "allocations", TABLE_TEXT, BAR},
    };
    const struct detail *detail = report->detail;
    uint64_t most = 0;
    struct table table = table_open(report, "sizes", "Sizes of blocks", columns, 8);
    for (size_t i = 0; i < DETAIL_SIZE_BUCKETS; i++) {
        most = detail->sizes[i].allocations > most ? detail->sizes[i].allocations : most;
    }
    for (size_t i = 0; i < DETAIL_SIZE_BUCKETS; i++) {
        const struct detail_sizes *sizes = &detail->sizes[i];
        char range[64];
        char bar[BAR + 2];
        if (sizes->allocations == 0 && sizes->live_blocks == 0) {
            continue;
        }
        table_row(&table, (struct table_cell[]){
                              table_number(i != 0 ? UINT64_C(1) << (i - 1) : 0),
                              table_number(i == 0    ? 0
                                           : i == 64 ? UINT64_MAX
                                                     : (UINT64_C(1) << i) - 1),
                              table_text(sizes_spell_range(i, range, sizeof range)),
                              table_number(sizes->allocations), table_number(sizes->total_bytes),
                              table_number(sizes->live_blocks), table_number(sizes->live_bytes),
                              table_text(sizes_draw_bar(sizes->allocations, most, bar))});
    }
    table_close(&table);
}

static bool sizes_has_allocated(const void *record) {
    return ((const struct detail_context *)record)->allocations != 0;
}

void report_sizes(const struct report *report) {
    static const unsigned char shown[] = {
        DETAIL_ALLOCATIONS,  DETAIL_SMALLEST, DETAIL_P50_SIZE, DETAIL_P90_SIZE,
        DETAIL_LARGEST_SIZE, DETAIL_HASH,     DETAIL_PATH,
    };
    struct rows_view view = rows_view(report, &rows_details, shown, sizeof shown);
    struct table table;
    view.is_wanted = sizes_has_allocated;
    view.sort[view.sort_count++] = DETAIL_ALLOCATIONS;
    sizes_put_histogram(report);
    table = table_open(report, "sizes-by-path", "Sizes by call path", view.columns, view.count);
    table_note(&table,
               "A percentile is at most 1/%d above the true one. The histogram of one path: "
               "--path HASH.",
               1 << SKETCH_BITS);
    rows_put_all(&table, &view);
    table_close(&table);
}

/*
 * ---- How long freed blocks lived: percentiles of all and by call path ----
 *
 * Of a recording from sketches (blocks/sketch.h), of a profile from its buckets.
 */

/* How finely times are recorded, and with --precise. */
enum { FINEST_NS = 1 << MEMTRACE_TICK_SHIFT, FINEST_PRECISE_NS = 1 << 16 };

/* What is known of the lifetimes of some blocks. */
struct lifetimes {
    uint32_t context; /* a node */
    uint32_t path;
    uint64_t freed;
    struct table_cell percentile[3];
    struct table_cell longest;
};

static const double percents[3] = {50, 90, 99};

/* The upper end of the bucket in which a percentile lies. */
static struct table_cell lifetimes_bucket_percentile(const uint64_t *buckets, uint64_t count,
                                                     double percent, uint64_t run_ns) {
    uint64_t sum = 0;
    struct table_cell cell = {.is_known = count != 0, .note = TABLE_BELOW};
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS - 1; i++) {
        sum += buckets[i];
        if ((double)sum >= (double)count * percent / 100) {
            cell.number = UINT64_C(1) << (2 * i + MEMTRACE_TICK_SHIFT);
            if (run_ns != 0 && run_ns < cell.number) { /* nothing lives longer */
                cell.number = run_ns;
            }
            return cell;
        }
    }
    cell.number = UINT64_C(1) << (2 * (MEMTRACE_LIFETIME_BUCKETS - 2) + MEMTRACE_TICK_SHIFT);
    cell.note = TABLE_ABOVE;
    return cell;
}

static struct lifetimes lifetimes_of_buckets(const uint64_t *buckets, uint64_t run_ns) {
    struct lifetimes told = {0};
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        told.freed += buckets[i];
    }
    for (size_t i = 0; i < 3; i++) {
        told.percentile[i] = lifetimes_bucket_percentile(buckets, told.freed, percents[i], run_ns);
    }
    return told;
}

struct table_cell report_median_lifetime(const struct model *model,
                                         const struct model_context *context) {
    return context->lifetimes != MODEL_NO_LIFETIMES
               ? lifetimes_of_buckets(&model->lifetimes[context->lifetimes], model->now_ns)
                     .percentile[0]
               : table_none();
}

uint64_t report_finest_lifetime(const struct model *model) {
    return model->recording.precise ? FINEST_PRECISE_NS : FINEST_NS;
}

/* People are not told what is finer than the clock was. */
static struct table_cell lifetimes_cell(const struct report *report, const struct sketch *sketch,
                                        uint64_t lifetime_ns) {
    uint64_t finest_ns = report_finest_lifetime(report->model);
    struct table_cell cell = {.is_known = sketch->count != 0, .number = lifetime_ns};
    if (lifetime_ns < finest_ns && report_is_for_people(report)) {
        cell.number = finest_ns;
        cell.note = TABLE_BELOW;
    }
    return cell;
}

static struct lifetimes lifetimes_of_sketch(const struct report *report,
                                            const struct sketch *sketch) {
    struct lifetimes told = {.freed = slice_whole_count(sketch->count)};
    for (size_t i = 0; i < 3; i++) {
        told.percentile[i] = lifetimes_cell(report, sketch, sketch_percentile(sketch, percents[i]));
    }
    told.longest = lifetimes_cell(report, sketch, sketch->most);
    return told;
}

static struct lifetimes lifetimes_of_context(const struct report *report,
                                             const struct model_context *context) {
    struct lifetimes told = {0};
    if (report->detail != NULL) {
        const struct detail_context *detail = detail_find(report->detail, context->id);
        told = detail != NULL ? lifetimes_of_sketch(report, &detail->lifetimes) : told;
    } else if (context->lifetimes != MODEL_NO_LIFETIMES) {
        told = lifetimes_of_buckets(&report->model->lifetimes[context->lifetimes],
                                    report->model->now_ns);
    }
    told.context = context->id;
    told.path = context->path;
    return told;
}

static struct lifetimes lifetimes_of_all(const struct report *report) {
    const struct model *model = report->model;
    uint64_t buckets[MEMTRACE_LIFETIME_BUCKETS] = {0};
    if (report->detail != NULL) {
        return lifetimes_of_sketch(report, &report->detail->lifetimes);
    }
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *context = &model->contexts[i];
        for (size_t k = 0;
             context->class == MODEL_HEAP && context->lifetimes != MODEL_NO_LIFETIMES &&
             k < MEMTRACE_LIFETIME_BUCKETS;
             k++) {
            buckets[k] += model->lifetimes[context->lifetimes + k];
        }
    }
    return lifetimes_of_buckets(buckets, model->now_ns);
}

static int lifetimes_most_freed_first(const void *left, const void *right) {
    const struct lifetimes *a = left;
    const struct lifetimes *b = right;
    if (a->freed != b->freed) {
        return a->freed < b->freed ? 1 : -1;
    }
    return (a->context > b->context) - (a->context < b->context);
}

static void lifetimes_note(const struct report *report, struct table *table) {
    if (report->detail != NULL) {
        table_note(
            table,
            "Of blocks that were freed. A percentile is at most 1/%d above the true one, "
            "times of events are accurate to about %s: shorter lifetimes are shown as below that.",
            1 << SKETCH_BITS, report->model->recording.precise ? "65 us" : "4 ms");
    } else {
        table_note(table, "Of blocks that were freed. A profile keeps lifetimes in steps of a "
                          "factor of 4, from 4.2 ms on: \"<16.8 ms\" is 4.2 ms to 16.8 ms.");
    }
}

static void lifetimes_put_all(const struct report *report) {
    static const struct table_column columns[] = {
        {"freed", "blocks freed", TABLE_COUNT, 0},
        {"p50_ns", "median lifetime", TABLE_DURATION, 0},
        {"p90_ns", "90% up to", TABLE_DURATION, 0},
        {"p99_ns", "99% up to", TABLE_DURATION, 0},
        {"longest_ns", "longest", TABLE_DURATION, 0},
    };
    struct lifetimes all = lifetimes_of_all(report);
    struct table table = table_open_record(report, "lifetimes-all", "Lifetimes", columns, 5);
    lifetimes_note(report, &table);
    table_row(&table, (struct table_cell[]){table_number(all.freed), all.percentile[0],
                                            all.percentile[1], all.percentile[2], all.longest});
    table_close(&table);
}

void report_lifetimes(const struct report *report) {
    static const struct table_column columns[] = {
        {"freed", "freed", TABLE_COUNT, 0},           {"p50_ns", "p50", TABLE_DURATION, 0},
        {"p90_ns", "p90", TABLE_DURATION, 0},         {"p99_ns", "p99", TABLE_DURATION, 0},
        {"longest_ns", "longest", TABLE_DURATION, 0}, {"hash", "hash", TABLE_HASH, 0},
        {"path", "call path", TABLE_PATH, 0},
    };
    const struct model *model = report->model;
    struct lifetimes *told = job_array(model->context_count + 1, sizeof *told);
    size_t count = 0;
    struct table table;
    for (size_t i = 0; i < model->context_count; i++) {
        if (model->contexts[i].class == MODEL_HEAP) {
            told[count] = lifetimes_of_context(report, &model->contexts[i]);
            count += told[count].freed != 0;
        }
    }
    qsort(told, count, sizeof *told, lifetimes_most_freed_first);
    lifetimes_put_all(report);
    table = table_open(report, "lifetimes", "Lifetimes by call path", columns, 7);
    for (size_t i = 0; i < count && table_has_room(&table); i++) {
        table_row(&table, (struct table_cell[]){table_number(told[i].freed), told[i].percentile[0],
                                                told[i].percentile[1], told[i].percentile[2],
                                                told[i].longest,
                                                table_number(model_hash(model, told[i].context)),
                                                table_path(told[i].path)});
    }
    table.hidden = count - table.rows;
    table_close(&table);
    job_release(told);
}

/* ---- Threads, and who freed whose blocks ---- */

static void threads_put(const struct report *report) {
    struct report all = *report;
    struct rows_view view = rows_view(report, &rows_threads, NULL, 0);
    all.options.limit = 0;
    rows_view_column(&view, "live_bytes")->heading = report_held(report->model);
    rows_put_table(&all, "threads", "Threads", &view);
}

void report_threads(const struct report *report) {
    static const unsigned char shown[] = {FOREIGN_OWNER,      FOREIGN_OWNER_NAME, FOREIGN_FREER,
                                          FOREIGN_FREER_NAME, FOREIGN_BLOCKS,     FOREIGN_BYTES};
    struct rows_view view = rows_view(report, &rows_foreign, shown, sizeof shown);
    view.sort[view.sort_count++] = FOREIGN_BYTES;
    threads_put(report);
    if (report->model->foreign_count != 0 || !report_is_for_people(report)) {
        rows_put_table(report, "cross-thread-frees", "Who freed whose blocks", &view);
    }
}

/* ---- Processes ---- */

void report_processes(const struct report *report) {
    static const unsigned char shown[] = {
        PROCESS_PID,         PROCESS_PID_TEXT,    PROCESS_PARENT, PROCESS_IMAGE, PROCESS_NAME,
        PROCESS_STARTED,     PROCESS_DURATION,    PROCESS_END,    PROCESS_PEAK,  PROCESS_LIVE_BYTES,
        PROCESS_ALLOCATIONS, PROCESS_TOTAL_BYTES, PROCESS_LOST,   PROCESS_FILE,
    };
    struct report all = *report;
    struct rows_view view = rows_view(report, &rows_processes, shown, sizeof shown);
    all.options.limit = 0;
    rows_put_table(&all, "processes", "Processes", &view);
}

/* ---- Pools: what each has given out, and what it holds for that ---- */

/* The columns that pools have where nothing is known of what they hold, and those besides. */
static const unsigned char pools_given[] = {POOL_NAME, POOL_ALLOCATIONS, POOL_TOTAL_BYTES,
                                            POOL_LIVE_BLOCKS, POOL_LIVE_BYTES};
static const unsigned char pools_held[] = {
    POOL_NAME,  POOL_LIVE_BLOCKS, POOL_LIVE_BYTES,    POOL_HELD_BYTES, POOL_HELD_BACK,
    POOL_SHARE, POOL_HEAP_BYTES,  POOL_MAPPING_BYTES, POOL_POOL_BYTES, POOL_OUTSIDE_BYTES};

static bool pools_are_held_known(const struct rows_of *of) {
    struct rows_cursor cursor = rows_begin(&rows_pools, of);
    const void *record;
    while ((record = rows_next(&cursor)) != NULL) {
        if (rows_cell(&rows_pools, of, record, POOL_HELD_BYTES).is_known) {
            return true;
        }
    }
    return false;
}

/* Those that hold or have most first. */
void report_pools(const struct report *report) {
    const struct rows_of of = rows_of_report(report);
    bool is_known = pools_are_held_known(&of);
    struct rows_view view = rows_view(report, &rows_pools, is_known ? pools_held : pools_given,
                                      is_known ? sizeof pools_held : sizeof pools_given);
    view.sort[view.sort_count++] = is_known ? POOL_HELD_BYTES : POOL_TOTAL_BYTES;
    rows_put_table(report, "pools", "Pools", &view);
}

void report_json_pools(struct jsonwriter *json, const struct report *report) {
    static const unsigned char shown[] = {
        POOL_NAME,        POOL_ALLOCATIONS, POOL_TOTAL_BYTES,   POOL_FREES,
        POOL_LIVE_BLOCKS, POOL_LIVE_BYTES,  POOL_HELD_BYTES,    POOL_HELD_BACK,
        POOL_HEAP_BYTES,  POOL_HEAP_BLOCKS, POOL_MAPPING_BYTES, POOL_MAPPINGS,
        POOL_POOL_BYTES,  POOL_POOL_BLOCKS, POOL_OUTSIDE_BYTES, POOL_OUTSIDE_BLOCKS};
    struct report all = *report;
    struct rows_view view = rows_view(report, &rows_pools, shown, sizeof shown);
    struct table table;
    all.options.limit = 0;
    table = table_begin_member(&all, json, "by_pool", NULL, view.columns, view.count);
    rows_put_all(&table, &view);
    table_end_member(&table);
}

bool report_has_pools(const struct report *report) {
    const struct rows_of of = rows_of_report(report);
    return rows_count(&rows_pools, &of) != 0;
}

/* ---- Marks ---- */

void report_marks(const struct report *report) {
    struct rows_view view = rows_view(report, &rows_marks, NULL, 0);
    struct table table = table_open(report, "marks", "Marks", view.columns, view.count);
    rows_put_all(&table, &view);
    table.hidden = report->model->mark_total - table.rows;
    table_close(&table);
}

/* ---- Which leaks were left out, and because of what ---- */

const char *report_left_out(const struct suppressions *suppressions,
                            char buffer[static REPORT_LEFT_OUT_SIZE]) {
    const char *owner = NULL;
    bool are_several = false;
    bool is_named = false;
    struct number bytes;
    buffer[0] = '\0';
    if (suppressions == NULL || suppressions->blocks == 0) {
        return buffer;
    }
    for (size_t i = 0; i < suppressions->count; i++) {
        const struct suppression *item = &suppressions->items[i];
        if (item->blocks != 0) {
            is_named |= item->owner == NULL;
            are_several |= owner != NULL && item->owner != NULL && strcmp(owner, item->owner) != 0;
            owner = item->owner != NULL ? item->owner : owner;
        }
    }
    number_bytes(&bytes, suppressions->bytes);
    if (is_named) {
        snprintf(buffer, REPORT_LEFT_OUT_SIZE, "; %s that is suppressed not counted", bytes.text);
    } else {
        snprintf(buffer, REPORT_LEFT_OUT_SIZE, "; %s of %s not counted", bytes.text,
                 are_several ? "common libraries'" : owner);
    }
    return buffer;
}

void report_suppressed(const struct report *report) {
    static const struct table_column columns[] = {
        {"blocks", "blocks", TABLE_COUNT, 0},    {"bytes", "bytes", TABLE_BYTES, 0},
        {"paths", "call paths", TABLE_COUNT, 0}, {"pattern", "pattern", TABLE_TEXT, 32},
        {"origin", "from", TABLE_TEXT, 0},
    };
    const struct suppressions *list = report->suppressions;
    struct number bytes;
    struct number blocks;
    struct table table;
    if (list->blocks == 0 && report_is_for_people(report)) {
        return;
    }
    table =
        table_open(report, "suppressed", "Suppressed: leaks that are left out above", columns, 5);
    table_note(&table, "%s in %s.", number_bytes(&bytes, list->bytes),
               number_items(&blocks, list->blocks, "block"));
    for (size_t i = 0; i < list->count; i++) {
        const struct suppression *item = &list->items[i];
        char pattern[512];
        char origin[512];
        if (item->contexts != 0) {
            snprintf(pattern, sizeof pattern, "%s%s%s", item->pattern,
                     item->caller != NULL ? " called by " : "",
                     item->caller != NULL ? item->caller : "");
            snprintf(origin, sizeof origin, item->line != 0 ? "%s:%u" : "%s", item->origin,
                     item->line);
            table_row(&table,
                      (struct table_cell[]){table_number(item->blocks), table_number(item->bytes),
                                            table_number(item->contexts), table_text(pattern),
                                            table_text(origin)});
        }
    }
    table_close(&table);
}
