/* SPDX-License-Identifier: MIT */
/* toprows_test.c: top/toprows: groups, callers, order, what is too much; top/topgrid: what passes.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "tests/unit/profile_builder.h"
#include "top/topgrid.h"
#include "top/toprows.h"

#include <locale.h>

/* Names are never looked for: a frame is a function. */
struct fixture {
    struct livecosts costs;
    struct toprows rows;
};

static struct livecosts_context context(uint32_t id, uint64_t live, uint64_t total) {
    return (struct livecosts_context){
        .id = id,
        .path = id,
        .now = {.live_bytes = live, .live_blocks = 1, .total_bytes = total, .allocations = 2}};
}

/*
 *  1 main -> 2 parse -> 3 alloc     100 live of 1000
 *                    -> 4 alloc       7 live of    7, by another call
 *         -> 5 alloc                 50 live of   50
 *         -> 6 other                 90 live of   90
 * The two in parse have the same frame, as that of 5.
 */
static const struct model_node tree[] = {{0, 0},      {0x1000, 0}, {0x2000, 1}, {0x3000, 2},
                                         {0x3000, 2}, {0x3000, 1}, {0x4000, 1}};
enum { NODES = sizeof tree / sizeof tree[0] };

static void open_fixture(struct fixture *fixture) {
    static struct model_node nodes[NODES];
    static struct livecosts_context contexts[4];
    memcpy(nodes, tree, sizeof tree);
    for (size_t i = 1; i < NODES; i++) { /* no class */
        nodes[i].frame += MEMTRACE_FRAME_CLASSES;
    }
    contexts[0] = context(3, 100, 1000);
    contexts[1] = context(4, 7, 7);
    contexts[2] = context(5, 50, 50);
    contexts[3] = context(6, 90, 90);
    contexts[3].live_marked = 100;
    contexts[3].allocations_before = 1;
    *fixture = (struct fixture){
        .costs = {.nodes = nodes, .node_count = NODES, .contexts = contexts, .count = 4}};
    fixture->rows.costs = &fixture->costs;
    fixture->rows.names = topnames_start(NULL, NULL);
    assert_non_null(fixture->rows.names);
}

static void close_fixture(struct fixture *fixture) {
    topnames_stop(fixture->rows.names);
    toprows_free(&fixture->rows);
}

static void row_is(const struct toprows *rows, size_t at, unsigned depth, uint32_t node,
                   uint64_t live) {
    assert_true(at < rows->count);
    assert_int_equal(rows->rows[at].depth, depth);
    assert_int_equal(rows->costs->nodes[rows->rows[at].place.node].frame,
                     rows->costs->nodes[node].frame);
    assert_int_equal(rows->rows[at].costs.now.live_bytes, live);
}

static void functions(void **state) {
    struct fixture fixture;
    struct toprows *rows = &fixture.rows;
    (void)state;
    open_fixture(&fixture);
    assert_int_equal(toprows_make(rows), 0);
    assert_int_equal(rows->count, 2);
    row_is(rows, 0, 0, 3, 157);
    row_is(rows, 1, 0, 6, 90);
    assert_int_equal(rows->rows[0].paths, 3);
    assert_int_equal(rows->totals.now.live_bytes, 247);
    assert_int_equal(rows->totals.now.total_bytes, 1147);
    assert_int_equal(rows->rows[1].costs.delta_bytes, -10);
    assert_int_equal(rows->rows[1].costs.new_blocks, 1);

    toprows_open(rows, &rows->rows[0], true);
    assert_int_equal(toprows_make(rows), 0);
    assert_int_equal(rows->count, 4);
    row_is(rows, 0, 0, 3, 157);
    row_is(rows, 1, 1, 2, 107);
    row_is(rows, 2, 1, 1, 50);
    row_is(rows, 3, 0, 6, 90);
    assert_true(rows->rows[1].can_open);
    assert_false(rows->rows[2].can_open);

    toprows_open(rows, &rows->rows[1], true);
    assert_int_equal(toprows_make(rows), 0);
    row_is(rows, 2, 2, 1, 107);
    toprows_open(rows, &rows->rows[0], false);
    assert_int_equal(toprows_make(rows), 0);
    assert_int_equal(rows->count, 2);
    close_fixture(&fixture);
}

static uint64_t lifetime(const struct toprows *rows, size_t at, size_t bucket) {
    return rows->rows[at].lifetimes[bucket];
}

/* A row has those of all its paths, also of the paths in rows below it; threads are counted once.
 */
static void lifetimes(void **state) {
    const uint64_t one[MEMTRACE_LIFETIME_BUCKETS] = {1, 2};
    struct fixture fixture;
    struct toprows *rows = &fixture.rows;
    (void)state;
    open_fixture(&fixture);
    for (size_t i = 0; i < 4; i++) {
        fixture.costs.contexts[i].columns = UINT64_C(1) << i / 2;
    }
    assert_int_equal(toprows_make(rows), 0);
    toprows_open(rows, &rows->rows[0], true);
    assert_int_equal(toprows_make(rows), 0);
    assert_true(toprows_wants_lifetimes(rows));
    assert_false(toprows_wants_lifetimes(rows));
    for (size_t i = 0; i < 4; i++) {
        toprows_take_lifetimes(rows, i, one);
    }
    assert_int_equal(lifetime(rows, 0, 0), 3);
    assert_int_equal(lifetime(rows, 0, 1), 6);
    assert_int_equal(lifetime(rows, 1, 0), 2);
    assert_int_equal(lifetime(rows, 2, 1), 2);
    assert_int_equal(lifetime(rows, 3, 1), 2);
    assert_int_equal(rows->rows[0].costs.columns, 3);
    assert_int_equal(rows->rows[1].costs.columns, 1);
    rows->by = TOPROWS_PATHS;
    assert_int_equal(toprows_make(rows), 0);
    assert_true(toprows_wants_lifetimes(rows));
    toprows_take_lifetimes(rows, 3, one);
    for (size_t i = 0; i < rows->count; i++) {
        assert_int_equal(lifetime(rows, i, 1), rows->rows[i].costs.now.live_bytes == 90 ? 2 : 0);
    }
    close_fixture(&fixture);
}

static void order(void **state) {
    struct fixture fixture;
    struct toprows *rows = &fixture.rows;
    (void)state;
    open_fixture(&fixture);
    rows->by = TOPROWS_PATHS;
    assert_int_equal(toprows_make(rows), 0);
    assert_int_equal(rows->count, 4);
    row_is(rows, 0, 0, 3, 100);
    row_is(rows, 1, 0, 6, 90);
    row_is(rows, 2, 0, 5, 50);
    row_is(rows, 3, 0, 4, 7);
    rows->reverse = true;
    assert_int_equal(toprows_make(rows), 0);
    row_is(rows, 0, 0, 4, 7);
    rows->reverse = false;
    rows->sort = TOPROWS_DELTA; /* 6 has become less */
    assert_int_equal(toprows_make(rows), 0);
    row_is(rows, 3, 0, 6, 90);
    toprows_open(rows, &rows->rows[0], true);
    assert_int_equal(toprows_make(rows), 0);
    row_is(rows, 1, 1, 2, 0);
    row_is(rows, 2, 1, 1, 0);
    close_fixture(&fixture);
}

/* The dearest are shown, in order, and the rest is summed up. */
static void too_many(void **state) {
    enum { MANY = 3 * TOPROWS_MOST };
    struct fixture fixture;
    struct toprows *rows = &fixture.rows;
    struct livecosts_context *contexts = calloc(MANY, sizeof *contexts);
    uint64_t rest = 0;
    (void)state;
    open_fixture(&fixture);
    for (size_t i = 0; i < MANY; i++) {
        uint64_t live = i * 7919 % MANY; /* each from 0 to MANY - 1, in no order */
        contexts[i] = context(3, live, live);
        contexts[i].id = (uint32_t)i + 1;
        rest += live < MANY - TOPROWS_MOST ? live : 0;
    }
    fixture.costs.contexts = contexts;
    fixture.costs.count = MANY;
    rows->by = TOPROWS_PATHS;
    assert_int_equal(toprows_make(rows), 0);
    assert_int_equal(rows->count, TOPROWS_MOST + 1);
    for (size_t i = 0; i < TOPROWS_MOST; i++) {
        assert_int_equal(rows->rows[i].costs.now.live_bytes, MANY - 1 - i);
    }
    assert_int_equal(rows->rows[TOPROWS_MOST].rest, MANY - TOPROWS_MOST);
    assert_int_equal(rows->rows[TOPROWS_MOST].costs.now.live_bytes, rest);
    close_fixture(&fixture);
    free(contexts);
}

static void numbers(void **state) {
    struct topnumber buffer;
    (void)state;
    assert_string_equal(topnumber_bytes(&buffer, 1023), "1023");
    assert_string_equal(topnumber_bytes(&buffer, 1024), "1.0K");
    assert_string_equal(topnumber_bytes(&buffer, 1048575), "1.0M");
    assert_string_equal(topnumber_bytes(&buffer, 812.0 * 1048576), "812.0M");
    assert_string_equal(topnumber_change(&buffer, 4300000), "+4.1M");
    assert_string_equal(topnumber_change(&buffer, -27), "-27");
    assert_string_equal(topnumber_change(&buffer, 0), "0");
    assert_string_equal(topnumber_count(&buffer, 999), "999");
    assert_string_equal(topnumber_count(&buffer, 310200), "310.2k");
    assert_string_equal(topnumber_share(&buffer, 1, 8), "12%");
    assert_string_equal(topnumber_share(&buffer, 0, 0), "-");
    assert_string_equal(topnumber_clock(&buffer, UINT64_C(7987) * 1000000000), "2:13:07");
}

static void grid_is(const struct topgrid *grid, size_t row, const char *wanted) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    topgrid_write(grid, row, out);
    fclose(out);
    text[size - 1] = '\0';
    assert_string_equal(text, wanted);
    free(text);
}

static void grid(void **state) {
    struct topgrid grid = {0};
    struct topgrid_pen pen;
    (void)state;
    assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
    assert_int_equal(topgrid_reset(&grid, 8, 5), 0);
    pen = topgrid_pen(&grid, 0);
    topgrid_put(&pen, "a\x1b[1m\xc2\x9b\xe2\x80\xae\xff"); /* ESC, CSI, RLO, no character */
    grid_is(&grid, 0, "a?[1m???");
    pen = topgrid_pen(&grid, 1);
    topgrid_put(&pen, "ae\xcc\x81z\xcc\x81\xcc\x81"); /* acutes take no column */
    assert_int_equal(pen.column, 3);
    grid_is(&grid, 1, "ae\xcc\x81z\xcc\x81\xcc\x81");
    pen = topgrid_pen(&grid, 2);
    topgrid_put(&pen, "1234567\xe6\xbc\xa2x"); /* two columns, of which one is there */
    grid_is(&grid, 2, "1234567");
    pen = topgrid_pen(&grid, 3);
    topgrid_put(&pen, "123456\xe6\xbc\xa2x");
    grid_is(&grid, 3, "123456\xe6\xbc\xa2");
    pen = topgrid_pen(&grid, 4);
    topgrid_right(&pen, 5, "abc");
    topgrid_right(&pen, 8, "\xe6\xbc\xa2");
    grid_is(&grid, 4, "  abc \xe6\xbc\xa2");
    pen = topgrid_pen(&grid, 5); /* below the screen */
    topgrid_put(&pen, "abc");
    topgrid_fill(&pen);
    topgrid_free(&grid);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(functions), cmocka_unit_test(lifetimes),
                                       cmocka_unit_test(order),     cmocka_unit_test(too_many),
                                       cmocka_unit_test(numbers),   cmocka_unit_test(grid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
