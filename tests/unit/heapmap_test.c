/* SPDX-License-Identifier: MIT */
/* heapmap_test.c: analyze/blocks/heapmap against an array of bytes, with and without mappings. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/blocks/heapmap.h"

#include <stdlib.h>
#include <string.h>

enum { HEAP = 64 * HEAPMAP_PAGE, BLOCKS = 400, BASE = 1 << 20 };

static uint64_t next(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Blocks one behind the other, some with large gaps. Returns their number. */
static size_t lay_blocks(uint64_t *seed, struct detail_live *blocks) {
    uint64_t at = BASE + next(seed) % 3000;
    size_t count = 0;
    while (count < BLOCKS) {
        uint64_t size = next(seed) % 8 == 0 ? next(seed) % 20000 : next(seed) % 200;
        uint32_t slack = (uint32_t)(next(seed) % 32);
        if (at + size + slack > BASE + HEAP) {
            break;
        }
        blocks[count++] = (struct detail_live){at, size, slack, (uint32_t)(1 + next(seed) % 5)};
        at += size + slack + 8;
        at += next(seed) % 4 == 0 ? next(seed) % 12000 : 0;
    }
    return count;
}

/* Which block owns each byte, plus one. */
static void paint(const struct detail *detail, uint16_t *owner) {
    memset(owner, 0, HEAP * sizeof *owner);
    for (size_t i = 0; i < detail->live_count; i++) {
        for (uint64_t at = 0; at < detail->live[i].size; at++) {
            owner[detail->live[i].address - BASE + at] = (uint16_t)(i + 1);
        }
    }
}

struct expected {
    uint64_t pages, bytes, nearly_empty, by_tenth[10], pins[6], pin_bytes[6];
};

static void count_page(const struct detail *detail, const uint16_t *owner,
                       struct expected *expected) {
    uint64_t by_context[6] = {0};
    uint64_t bytes = 0;
    for (size_t i = 0; i < HEAPMAP_PAGE; i++) {
        if (owner[i] != 0) {
            bytes++;
            by_context[detail->live[owner[i] - 1].context]++;
        }
    }
    if (bytes == 0) {
        return;
    }
    expected->pages++;
    expected->bytes += bytes;
    expected->by_tenth[bytes == HEAPMAP_PAGE ? 9 : bytes * 10 / HEAPMAP_PAGE]++;
    if (bytes < HEAPMAP_NEARLY_EMPTY) {
        expected->nearly_empty++;
        for (size_t i = 0; i < 6; i++) {
            expected->pins[i] += by_context[i] != 0;
            expected->pin_bytes[i] += by_context[i];
        }
    }
}

static void check_pages(const struct detail *detail, const struct heapmap *map) {
    static uint16_t owner[HEAP];
    struct expected expected = {0};
    uint64_t cells[64] = {0};
    uint64_t sum = 0;
    paint(detail, owner);
    for (size_t page = 0; page < HEAP / HEAPMAP_PAGE; page++) {
        count_page(detail, owner + page * HEAPMAP_PAGE, &expected);
    }
    assert_true(map->pages == expected.pages);
    assert_true(map->page_bytes == expected.bytes);
    assert_true(map->nearly_empty == expected.nearly_empty);
    assert_memory_equal(map->pages_by_tenth, expected.by_tenth, sizeof expected.by_tenth);
    for (size_t i = 0; i < map->pin_count; i++) {
        assert_true(map->pins[i].pages == expected.pins[map->pins[i].context]);
        assert_true(map->pins[i].bytes == expected.pin_bytes[map->pins[i].context]);
        sum += map->pins[i].pages;
    }
    for (size_t i = 0; i < 6; i++) {
        sum -= expected.pins[i];
    }
    assert_true(sum == 0);
    heapmap_fill(detail, BASE, HEAPMAP_PAGE, cells, 64);
    for (size_t page = 0; page < 64; page++) {
        for (size_t i = 0; i < HEAPMAP_PAGE; i++) {
            cells[page] -= owner[page * HEAPMAP_PAGE + i] != 0;
        }
        assert_true(cells[page] == 0);
    }
}

static void check_regions(const struct detail *detail, const struct heapmap *map) {
    uint64_t blocks = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < map->region_count; i++) {
        const struct heapmap_region *region = &map->regions[i];
        assert_true(region->start % HEAPMAP_PAGE == 0 && region->end % HEAPMAP_PAGE == 0);
        assert_true(region->live_bytes <= region->end - region->start);
        blocks += region->blocks;
        bytes += region->live_bytes;
    }
    for (size_t i = 0; i < detail->live_count; i++) {
        bytes -= detail->live[i].size;
    }
    assert_true(blocks == detail->live_count && bytes == 0);
}

static void random_heaps(void **state) {
    static struct detail_live blocks[BLOCKS];
    (void)state;
    for (uint64_t round = 1; round < 60; round++) {
        uint64_t seed = round * UINT64_C(0x9e3779b97f4a7c15);
        struct detail detail = {.live = blocks, .live_count = lay_blocks(&seed, blocks)};
        struct smaps smaps = {0};
        struct heapmap map;
        uint64_t holes = 0;
        uint64_t bytes = 0;
        map = heapmap_make(&detail, &smaps);
        for (size_t i = 1; i < detail.live_count; i++) {
            uint64_t end = blocks[i - 1].address + blocks[i - 1].size + blocks[i - 1].slack;
            uint64_t gap = blocks[i].address - end;
            holes += gap >= HEAPMAP_HOLE_LEAST;
            bytes += gap >= HEAPMAP_HOLE_LEAST ? gap : 0;
        }
        assert_true(map.region_count == (detail.live_count != 0));
        assert_true(map.all_holes == holes && map.all_hole_bytes == bytes);
        for (size_t i = 1; i < map.hole_count; i++) {
            assert_true(map.holes[i - 1].end - map.holes[i - 1].start >=
                        map.holes[i].end - map.holes[i].start);
        }
        check_pages(&detail, &map);
        check_regions(&detail, &map);
    }
}

/* A hole lies in one mapping, however large it is; between two there is none. */
static void mappings(void **state) {
    struct smaps_mapping list[] = {{.start = 0x10000000, .end = 0x30000000, .name = "[heap]"},
                                   {.start = 0x30000000, .end = 0x30010000, .name = ""}};
    struct smaps smaps = {.mappings = list, .count = 2};
    struct detail_live blocks[] = {{0x10000010, 100, 12, 4},
                                   {0x2fff0000, 100, 12, 4},
                                   {0x30000010, 100, 12, 5},
                                   {0x50000000, 10, 0, 5},
                                   {0x50100000 + 9, 10, 0, 5}};
    struct detail detail = {.live = blocks, .live_count = 5};
    struct heapmap map;
    (void)state;
    map = heapmap_make(&detail, &smaps);
    assert_int_equal(map.region_count, 3);
    assert_string_equal(map.regions[0].name, "[heap]");
    assert_null(map.regions[2].name);
    assert_int_equal(map.regions[2].blocks, 2); /* not 1 MiB apart */
    assert_int_equal(map.all_holes, 2);
    assert_true(map.holes[0].start == 0x10000010 + 112 && map.holes[0].end == 0x2fff0000);
    assert_null(smaps_find(&smaps, 0x30010000));
    assert_null(smaps_find(&smaps, 0xfffffff));
    assert_ptr_equal(smaps_find(&smaps, 0x30000000), &list[1]);
}

/* What a damaged file may say: blocks over each other, at the end of all addresses. */
static void impossible(void **state) {
    struct detail_live blocks[] = {{16, 5000, 4095, 1},
                                   {16, 100, 0, 2},
                                   {3000, 9000, 0, 3},
                                   {(UINT64_C(1) << 48) - 8, UINT64_C(1) << 47, 0, 3}};
    struct detail detail = {.live = blocks, .live_count = 4};
    struct smaps smaps = {0};
    struct heapmap map;
    (void)state;
    map = heapmap_make(&detail, &smaps);
    assert_true(map.page_bytes == 12000 - 16 + (UINT64_C(1) << 47));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_heaps), cmocka_unit_test(mappings),
                                       cmocka_unit_test(impossible)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
