/* SPDX-License-Identifier: MIT */
/* sizes.c: how large blocks are: a histogram of all, and percentiles by context. */
#include "analyze/rows/number.h"
#include "analyze/rows/style.h"
#include "analyze/rows/table.h"

#include <stdlib.h>
#include <string.h>

enum { BAR = 20 };

/* "[64 B, 128 B)" */
static const char *spell_range(size_t bucket, char *buffer, size_t size) {
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

static const char *draw_bar(uint64_t part, uint64_t most, char *buffer) {
    size_t length = most != 0 ? (size_t)((double)part / (double)most * BAR + 0.5) : 0;
    memset(buffer, '#', length);
    buffer[length] = '\0';
    return buffer;
}

static uint64_t most_allocations(const struct detail *detail) {
    uint64_t most = 0;
    for (size_t i = 0; i < DETAIL_SIZE_BUCKETS; i++) {
        most = detail->sizes[i].allocations > most ? detail->sizes[i].allocations : most;
    }
    return most;
}

static bool is_empty(const struct detail_sizes *sizes) {
    return sizes->allocations == 0 && sizes->live_blocks == 0;
}

static void put_histogram(const struct report *report) {
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
    uint64_t most = most_allocations(detail);
    struct table table = table_open(report, "sizes", "Sizes of blocks", columns, 8);
    for (size_t i = 0; i < DETAIL_SIZE_BUCKETS; i++) {
        const struct detail_sizes *sizes = &detail->sizes[i];
        char range[64];
        char bar[BAR + 2];
        if (is_empty(sizes)) {
            continue;
        }
        table_row(&table, (struct table_cell[]){
                              table_number(i != 0 ? UINT64_C(1) << (i - 1) : 0),
                              table_number(i == 0    ? 0
                                           : i == 64 ? UINT64_MAX
                                                     : (UINT64_C(1) << i) - 1),
                              table_text(spell_range(i, range, sizeof range)),
                              table_number(sizes->allocations), table_number(sizes->total_bytes),
                              table_number(sizes->live_blocks), table_number(sizes->live_bytes),
                              table_text(draw_bar(sizes->allocations, most, bar))});
    }
    table_close(&table);
}

static int most_allocating_first(const void *left, const void *right) {
    const struct detail_context *a = *(const struct detail_context *const *)left;
    const struct detail_context *b = *(const struct detail_context *const *)right;
    if (a->allocations != b->allocations) {
        return a->allocations < b->allocations ? 1 : -1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

static void put_contexts(const struct report *report, const struct detail_context *const *contexts,
                         size_t count) {
    static const struct table_column columns[] = {
        {"allocations", "allocations", TABLE_COUNT, 0}, {"least_bytes", "smallest", TABLE_BYTES, 0},
        {"p50_bytes", "p50", TABLE_BYTES, 0},           {"p90_bytes", "p90", TABLE_BYTES, 0},
        {"most_bytes", "largest", TABLE_BYTES, 0},      {"hash", "hash", TABLE_HASH, 0},
        {"path", "call path", TABLE_PATH, 0},
    };
    size_t limit = report->options.limit != 0 ? report->options.limit : SIZE_MAX;
    struct table table = table_open(report, "sizes-by-path", "Sizes by call path", columns, 7);
    table_note(&table,
               "A percentile is at most 1/%d above the true one. The histogram of one path: "
               "--path HASH.",
               1 << SKETCH_BITS);
    for (size_t i = 0; i < count && i < limit; i++) {
        const struct sketch *sizes = &contexts[i]->sizes;
        const struct model_context *context = model_find(report->model, contexts[i]->id);
        table_row(&table, (struct table_cell[]){
                              table_number(contexts[i]->allocations), table_number(sizes->least),
                              table_number(sketch_percentile(sizes, 50)),
                              table_number(sketch_percentile(sizes, 90)), table_number(sizes->most),
                              table_number(model_hash(report->model, contexts[i]->id)),
                              table_path(context != NULL ? context->path : 0)});
    }
    table.hidden = count - table.rows;
    table_close(&table);
}

int report_sizes(const struct report *report) {
    const struct detail *detail = report->detail;
    const struct detail_context **contexts = calloc(detail->context_count + 1, sizeof *contexts);
    size_t count = 0;
    if (contexts == NULL) {
        return -1;
    }
    for (size_t i = 0; i < detail->context_count; i++) {
        if (detail->contexts[i].allocations != 0) {
            contexts[count++] = &detail->contexts[i];
        }
    }
    qsort(contexts, count, sizeof *contexts, most_allocating_first);
    put_histogram(report);
    put_contexts(report, contexts, count);
    free(contexts);
    return 0;
}
