/* SPDX-License-Identifier: MIT */
/* periodic_test.c: collect/periodic: which paths, in which order, when. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "collect/periodic.h"
#include "tests/unit/profile_builder.h"

/* The example; `more` blocks of 100 bytes are live in context 12 beyond its three. */
static struct model *load(uint64_t more) {
    struct builder *builder = builder_new();
    struct profile *profile;
    struct model *model;
    builder_example(builder, 0x10000000);
    profile = profile_wrap(builder->bytes, builder_size(builder), "test", NULL);
    assert_non_null(profile);
    for (size_t i = 0; i < profile->segment_count; i++) {
        struct profile_segment *segment = &profile->segments[i];
        if (segment->kind == MEMTRACE_SEGMENT_LEDGER && segment->owner == 1) {
            struct memtrace_cell *cells = (void *)(builder->bytes + segment->offset);
            cells[12].alloc_bytes += 100 * more;
            cells[12].alloc_count += more;
        }
    }
    model = model_load(profile, NULL);
    assert_non_null(model);
    profile_close(profile);
    free(builder);
    return model;
}

static void largest_first(void **state) {
    static const uint32_t ids[] = {16, 15, 12, 17};
    struct model *model = load(0);
    struct topn_row *rows;
    size_t count;
    size_t live;
    (void)state;
    assert_int_equal(topn_choose(model, NULL, 0, &rows, &count, &live), 0);
    assert_int_equal(count, 4); /* 13 holds nothing */
    assert_int_equal(live, 4);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rows[i].context->id, ids[i]);
    }
    free(rows);
    assert_int_equal(topn_choose(model, NULL, 2, &rows, &count, &live), 0);
    assert_int_equal(count, 2);
    assert_int_equal(live, 4);
    free(rows);
    model_free(model);
}

static void intervals(void **state) {
    struct model *before = load(0);
    struct model *now = load(20);
    struct topn_row *rows;
    size_t count;
    size_t live;
    (void)state;
    assert_int_equal(topn_choose(now, before, 2, &rows, &count, &live), 0);
    assert_int_equal(rows[0].context->id, 16);
    assert_int_equal(rows[0].interval_bytes, 0);
    assert_int_equal(rows[1].context->id, 12);
    assert_int_equal(rows[1].interval_bytes, 2000);
    assert_int_equal(rows[1].interval_allocations, 20);
    assert_int_equal(rows[1].interval_frees, 0);
    free(rows);
    assert_int_equal(topn_choose(now, NULL, 2, &rows, &count, &live), 0);
    assert_int_equal(rows[1].interval_bytes, 2500);
    assert_int_equal(rows[1].interval_freed_bytes, 200);
    free(rows);
    /* The same id after an exec, which began anew: what there is now came since then. */
    assert_int_equal(topn_choose(before, now, 4, &rows, &count, &live), 0);
    assert_int_equal(rows[2].context->id, 12);
    assert_int_equal(rows[2].interval_bytes, 500);
    assert_int_equal(rows[2].interval_allocations, 5);
    free(rows);
    model_free(before);
    model_free(now);
}

static void print(const struct model *model, size_t limit, char *text, size_t capacity) {
    FILE *out = fmemopen(text, capacity, "w");
    struct topn_row *rows;
    size_t count;
    size_t live;
    assert_int_equal(topn_choose(model, NULL, limit, &rows, &count, &live), 0);
    topn_print(out, model, rows, count, NULL);
    fclose(out);
    free(rows);
}

static void largest_stands_last(void **state) {
    struct model *model = load(0);
    char expected[200];
    char text[8192] = "";
    const char *last;
    const char *third;
    (void)state;
    print(model, 0, text, sizeof text);
    last = strstr(text, "#1 live 4.0 KiB in 1 block;");
    third = strstr(text, "#3 live 300 B in 3 blocks;");
    assert_non_null(last);
    assert_non_null(third);
    assert_true(third < last);
    assert_true(strstr(text, "#4 live 32 B in 1 block;") == text);
    assert_non_null(strstr(third, "interval +500 B (5) -200 B (2); total +500 B (5) -200 B (2);"));
    assert_non_null(strstr(last, "[mapping]\n"));
    assert_non_null(strstr(text, "[arena]\n"));
    /* Innermost first; one less than the return address. */
    assert_non_null(strstr(third, "      /usr/lib/libother.so.1+0x302f\n"
                                  "      /usr/bin/example+0x201f\n"
                                  "      /usr/bin/example+0x100f\n"));
    snprintf(expected, sizeof expected, "path %016llx\n",
             (unsigned long long)model_hash(model, 12));
    assert_non_null(strstr(third, expected));
    model_free(model);
}

static void due(void **state) {
    struct memtrace_header header = {.every_ns = 1000, .churn_limit_bytes = 500, .top = 3};
    struct periodic periodic;
    (void)state;
    periodic_start(&periodic, &header);
    assert_false(periodic_due(&periodic, &(struct periodic_moment){.time_ns = 999}));
    assert_true(periodic_due(&periodic, &(struct periodic_moment){.time_ns = 1000}));
    assert_false(periodic_due(&periodic, &(struct periodic_moment){.churn_bytes = 499}));
    assert_true(periodic_due(&periodic, &(struct periodic_moment){.churn_bytes = 500}));
    assert_true(periodic_due(&periodic, &(struct periodic_moment){.requests = 1}));
    periodic_end(&periodic);
    periodic_start(&periodic, &(struct memtrace_header){.top = 3}); /* nothing was asked for */
    assert_false(periodic_due(
        &periodic, &(struct periodic_moment){.time_ns = UINT64_MAX, .churn_bytes = UINT64_MAX}));
    periodic_end(&periodic);
}

static void report(void **state) {
    struct memtrace_header header = {
        .every_ns = 1000000000, .churn_limit_bytes = 1 << 20, .top = 2};
    struct periodic_moment moment = {
        .time_ns = 2500000000, .churn_bytes = 512 << 10, .requests = 1, .resident_bytes = 8 << 20};
    struct periodic periodic;
    char *text;
    (void)state;
    periodic_start(&periodic, &header);
    text = periodic_report(&periodic, &moment, load(0));
    assert_non_null(text);
    assert_true(strstr(text,
                       "memtrace: snapshot 1, pid 4242, at 2.5 s, churn 512.0 KiB / 1.0 MiB, live "
                       "1.3 KiB, mapped 4.0 KiB, in pools 32 B, RSS 8.0 MiB, 2 of 4 live call "
                       "paths, largest last\n#2 ") == text);
    assert_int_equal(text[strlen(text) - 1], '\n');
    free(text);
    assert_int_equal(periodic.next_ns, 3000000000);
    assert_false(periodic_due(&periodic, &moment));

    moment.time_ns = 3100000000;
    moment.churn_bytes += 1000;
    text = periodic_report(&periodic, &moment, load(50));
    assert_non_null(
        strstr(text, "memtrace: snapshot 2, pid 4242, at 3.1 s, churn 1000 B / 1.0 MiB"));
    assert_non_null(strstr(text, "interval +4.9 KiB (50) -0 B (0); total +5.4 KiB (55)"));
    free(text);
    periodic_end(&periodic);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(largest_first),
        cmocka_unit_test(intervals),
        cmocka_unit_test(largest_stands_last),
        cmocka_unit_test(due),
        cmocka_unit_test(report),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
