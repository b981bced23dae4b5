/* SPDX-License-Identifier: MIT */
/*
 * lifetimes.c: how long freed blocks lived: percentiles of all and by context. Of a recording from
 * sketches (model/sketch.h), of a profile from its buckets.
 */
#include "analyze/replay/accounts.h"
#include "analyze/rows/number.h"
#include "analyze/rows/table.h"

#include <stdlib.h>

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

/* ---- From a profile ---- */

/* The upper end of the bucket in which a percentile lies. */
static struct table_cell bucket_percentile(const uint64_t *buckets, uint64_t count, double percent,
                                           uint64_t run_ns) {
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

static struct lifetimes of_buckets(const uint64_t *buckets, uint64_t run_ns) {
    struct lifetimes told = {0};
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        told.freed += buckets[i];
    }
    for (size_t i = 0; i < 3; i++) {
        told.percentile[i] = bucket_percentile(buckets, told.freed, percents[i], run_ns);
    }
    return told;
}

/* ---- From a recording ---- */

/* People are not told what is finer than the clock was. */
static struct table_cell lifetime_cell(const struct report *report, const struct sketch *sketch,
                                       uint64_t lifetime_ns) {
    uint64_t finest_ns = report->model->recording.precise ? FINEST_PRECISE_NS : FINEST_NS;
    struct table_cell cell = {.is_known = sketch->count != 0, .number = lifetime_ns};
    if (lifetime_ns < finest_ns && report_is_for_people(report)) {
        cell.number = finest_ns;
        cell.note = TABLE_BELOW;
    }
    return cell;
}

static struct lifetimes of_sketch(const struct report *report, const struct sketch *sketch) {
    struct lifetimes told = {.freed = (sketch->count + ACCOUNTS_ONE / 2) / ACCOUNTS_ONE};
    for (size_t i = 0; i < 3; i++) {
        told.percentile[i] = lifetime_cell(report, sketch, sketch_percentile(sketch, percents[i]));
    }
    told.longest = lifetime_cell(report, sketch, sketch->most);
    return told;
}

/* ---- The tables ---- */

static struct lifetimes of_context(const struct report *report,
                                   const struct model_context *context) {
    struct lifetimes told = {0};
    if (report->detail != NULL) {
        const struct detail_context *detail = detail_find(report->detail, context->id);
        told = detail != NULL ? of_sketch(report, &detail->lifetimes) : told;
    } else if (context->lifetimes != MODEL_NO_LIFETIMES) {
        told = of_buckets(&report->model->lifetimes[context->lifetimes], report->model->now_ns);
    }
    told.context = context->id;
    told.path = context->path;
    return told;
}

static struct lifetimes of_all(const struct report *report) {
    const struct model *model = report->model;
    uint64_t buckets[MEMTRACE_LIFETIME_BUCKETS] = {0};
    if (report->detail != NULL) {
        return of_sketch(report, &report->detail->lifetimes);
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
    return of_buckets(buckets, model->now_ns);
}

static int most_freed_first(const void *left, const void *right) {
    const struct lifetimes *a = left;
    const struct lifetimes *b = right;
    if (a->freed != b->freed) {
        return a->freed < b->freed ? 1 : -1;
    }
    return (a->context > b->context) - (a->context < b->context);
}

static void put_note(const struct report *report, struct table *table) {
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

static void put_all(const struct report *report) {
    static const struct table_column columns[] = {
        {"freed", "blocks freed", TABLE_COUNT, 0},
        {"p50_ns", "median lifetime", TABLE_DURATION, 0},
        {"p90_ns", "90% up to", TABLE_DURATION, 0},
        {"p99_ns", "99% up to", TABLE_DURATION, 0},
        {"longest_ns", "longest", TABLE_DURATION, 0},
    };
    struct lifetimes all = of_all(report);
    struct table table = table_open_record(report, "lifetimes-all", "Lifetimes", columns, 5);
    put_note(report, &table);
    table_row(&table, (struct table_cell[]){table_number(all.freed), all.percentile[0],
                                            all.percentile[1], all.percentile[2], all.longest});
    table_close(&table);
}

static void put_contexts(const struct report *report, const struct lifetimes *told, size_t count) {
    static const struct table_column columns[] = {
        {"freed", "freed", TABLE_COUNT, 0},           {"p50_ns", "p50", TABLE_DURATION, 0},
        {"p90_ns", "p90", TABLE_DURATION, 0},         {"p99_ns", "p99", TABLE_DURATION, 0},
        {"longest_ns", "longest", TABLE_DURATION, 0}, {"hash", "hash", TABLE_HASH, 0},
        {"path", "call path", TABLE_PATH, 0},
    };
    size_t limit = report->options.limit != 0 ? report->options.limit : SIZE_MAX;
    struct table table = table_open(report, "lifetimes", "Lifetimes by call path", columns, 7);
    for (size_t i = 0; i < count && i < limit; i++) {
        table_row(&table, (struct table_cell[]){
                              table_number(told[i].freed), told[i].percentile[0],
                              told[i].percentile[1], told[i].percentile[2], told[i].longest,
                              table_number(model_hash(report->model, told[i].context)),
                              table_path(told[i].path)});
    }
    table.hidden = count - table.rows;
    table_close(&table);
}

int report_lifetimes(const struct report *report) {
    const struct model *model = report->model;
    struct lifetimes *told = calloc(model->context_count + 1, sizeof *told);
    size_t count = 0;
    if (told == NULL) {
        return -1;
    }
    for (size_t i = 0; i < model->context_count; i++) {
        if (model->contexts[i].class == MODEL_HEAP) {
            told[count] = of_context(report, &model->contexts[i]);
            count += told[count].freed != 0;
        }
    }
    qsort(told, count, sizeof *told, most_freed_first);
    put_all(report);
    put_contexts(report, told, count);
    free(told);
    return 0;
}
