/* SPDX-License-Identifier: MIT */
/* paths.c: the dearest call paths, one below the other. */
#include "analyze/report/calltree.h"
#include "analyze/rows/number.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <inttypes.h>
#include <stdlib.h>

enum { HEAD_INDENT = 9 };

struct ranked {
    const struct model_context *context;
    struct cost cost;
};

static int dearest_first(const void *left, const void *right) {
    const struct ranked *a = left;
    const struct ranked *b = right;
    if (a->cost.main != b->cost.main) {
        return a->cost.main < b->cost.main ? 1 : -1;
    }
    return (a->context->id > b->context->id) - (a->context->id < b->context->id);
}

/* Nothing lives longer than the run, however coarse the bucket. */
static uint64_t median_bound(uint64_t bucket_ns, const struct model *model) {
    return model->now_ns != 0 && model->now_ns < bucket_ns ? model->now_ns : bucket_ns;
}

/* How long half of the freed blocks lived at most; 0: none was freed. */
static uint64_t median_lifetime(const struct model *model, const struct model_context *context) {
    const uint64_t *buckets;
    uint64_t all = 0;
    uint64_t sum = 0;
    if (context->lifetimes == MODEL_NO_LIFETIMES) {
        return 0;
    }
    buckets = &model->lifetimes[context->lifetimes];
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS; i++) {
        all += buckets[i];
    }
    for (size_t i = 0; i < MEMTRACE_LIFETIME_BUCKETS - 1; i++) {
        sum += buckets[i];
        if (sum * 2 >= all) {
            return all != 0 ? median_bound(UINT64_C(1) << (2 * i + MEMTRACE_TICK_SHIFT), model) : 0;
        }
    }
    return 0;
}

/* Rank, share, cost, and what else is known of a path. */
static void put_head(const struct report *report, enum metric metric, size_t rank,
                     const struct ranked *ranked, struct cost total) {
    const struct model_context *context = ranked->context;
    uint64_t median = median_lifetime(report->model, context);
    struct number numbers[6];
    fprintf(report->out, "%s%4zu.%s %s%6s %11s%s  %s", style_on(report, STYLE_DIM), rank,
            style_off(report), style_on(report, style_share(ranked->cost.main, total.main)),
            number_percent(&numbers[0], ranked->cost.main, total.main),
            metric_main_text(metric, &numbers[1], ranked->cost), style_off(report),
            number_items(&numbers[2], context->allocations, "allocation"));
    if (metric != METRIC_CUMULATIVE && context->total_bytes != ranked->cost.main) {
        fprintf(report->out, " of %s in total", number_bytes(&numbers[3], context->total_bytes));
    }
    if (context->live_blocks != 0) {
        fprintf(report->out, ", %s in %s %s", number_bytes(&numbers[4], context->live_bytes),
                number_count(&numbers[5], context->live_blocks),
                metric == METRIC_SHUTDOWN ? "freed at shutdown or never"
                                          : report_held(report->model));
    }
    if (median != 0) {
        fprintf(report->out, ", median lifetime under %s", number_duration(&numbers[3], median));
    }
    fprintf(report->out, "  %s%016" PRIx64 "%s\n", style_on(report, STYLE_DIM),
            model_hash(report->model, context->id), style_off(report));
}

static void put_path(const struct report *report, enum metric metric, size_t rank,
                     const struct ranked *ranked, struct cost total) {
    struct report head = *report;
    char *text = NULL;
    size_t size = 0;
    head.out = open_memstream(&text, &size);
    if (head.out == NULL) {
        put_head(report, metric, rank, ranked, total); /* however wide */
    } else {
        put_head(&head, metric, rank, ranked, total);
        if (fclose(head.out) == 0) {
            style_lines(report, text, HEAD_INDENT);
        }
        free(text);
    }
    style_path(report, pathwalk_folded(report, ranked->context->path), report->options.depth);
}

static struct ranked *rank(const struct report *report, enum metric metric, size_t *count) {
    const struct model *model = report->model;
    struct ranked *ranked = calloc(model->context_count + 1, sizeof *ranked);
    *count = 0;
    for (size_t i = 0; ranked != NULL && i < model->context_count; i++) {
        struct cost cost = metric_cost(metric, &model->contexts[i]);
        if (model->contexts[i].class == MODEL_HEAP && cost.main != 0) {
            ranked[(*count)++] = (struct ranked){&model->contexts[i], cost};
        }
    }
    if (ranked != NULL) {
        qsort(ranked, *count, sizeof *ranked, dearest_first);
    }
    return ranked;
}

/* How many of them are dear enough. */
static size_t count_shown(const struct report *report, const struct ranked *ranked, size_t count,
                          struct cost total) {
    double least = (double)total.main / 100.0 * report->options.min_percent;
    size_t limit = report->options.limit != 0 ? report->options.limit : SIZE_MAX;
    size_t shown = 0;
    while (shown < count && shown < limit && (double)ranked[shown].cost.main >= least) {
        shown++;
    }
    return shown;
}

static void draw_paths(const struct report *report, enum metric metric, const struct ranked *ranked,
                       size_t shown, size_t count) {
    struct cost total = metric_total(metric, report->model);
    struct number number;
    fprintf(report->out, "\n%sTop call paths by %s%s\n", style_on(report, STYLE_HEADING),
            metric == METRIC_TEMPORARY ? "temporary allocations" : metric_word(metric),
            style_off(report));
    for (size_t i = 0; i < shown; i++) {
        put_path(report, metric, i + 1, &ranked[i], total);
    }
    if (count == 0) {
        fputs("nothing\n", report->out);
    } else if (shown < count) {
        fprintf(report->out, "%s      (%s not shown)%s\n", style_on(report, STYLE_DIM),
                number_items(&number, count - shown, "smaller path"), style_off(report));
    }
}

static void list_paths(const struct report *report, enum metric metric, const struct ranked *ranked,
                       size_t shown, size_t count) {
    const struct model *model = report->model;
    struct cost total = metric_total(metric, model);
    struct report_title title;
    const struct table_column columns[] = {
        {"percent", "share", TABLE_PERCENT, 0},
        {"cost", metric_main_heading(metric), metric_main_kind(metric), 0},
        {metric_side_key(metric), metric_side_heading(metric), metric_side_kind(metric), 0},
        {"hash", "hash", TABLE_HASH, 0},
        {"path", "call path", TABLE_PATH, 0},
    };
    struct table table =
        table_open(report, metric_name(metric), report_title(report, metric, &title), columns, 5);
    for (size_t i = 0; i < shown; i++) {
        const struct model_context *context = ranked[i].context;
        table_row(&table, (struct table_cell[]){table_share(ranked[i].cost.main, total.main),
                                                table_number(ranked[i].cost.main),
                                                table_number(ranked[i].cost.side),
                                                table_number(model_hash(model, context->id)),
                                                table_path(context->path)});
    }
    table.hidden = count - shown;
    table_close(&table);
}

int report_paths(const struct report *report, enum metric metric) {
    size_t count;
    struct ranked *ranked = rank(report, metric, &count);
    size_t shown;
    if (ranked == NULL) {
        return -1;
    }
    shown = count_shown(report, ranked, count, metric_total(metric, report->model));
    if (report->options.format == REPORT_TEXT) {
        draw_paths(report, metric, ranked, shown, count);
    } else {
        list_paths(report, metric, ranked, shown, count);
    }
    free(ranked);
    return 0;
}
