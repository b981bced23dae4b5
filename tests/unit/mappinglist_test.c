/* SPDX-License-Identifier: MIT */
/* mappinglist_test.c: analyze/replay/mappinglist against a map of pages. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/replay/mappinglist.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { PAGES = 256, PAGE = 4096 };

struct seen {
    uint64_t pages;
    unsigned ended;
};

static int note(void *argument, const struct mapping *piece, const struct timeorder_event *by,
                bool is_last) {
    struct seen *seen = argument;
    assert_true(piece->start < piece->end);
    assert_true(mappinglist_end_ns(piece, by) >= piece->born_ns);
    seen->pages += (piece->end - piece->start) / PAGE;
    seen->ended += is_last;
    return 0;
}

/* A call on pages [start, end), with the end a byte before the page's. */
static void call(struct mappinglist *mappings, struct seen *seen, enum memtrace_map_operation what,
                 uint8_t flags, uint64_t start, uint64_t end) {
    const struct mappinglist_visitor visitor = {.ended = note, .context = seen};
    const struct timeorder_event event = {.event = {.kind = EVENT_MAP,
                                                    .operation = (uint8_t)what,
                                                    .flags = flags,
                                                    .protection = PROT_READ,
                                                    .address = start * PAGE,
                                                    .size = (end - start) * PAGE - 1}};
    assert_int_equal(mappinglist_take(mappings, &event, &visitor), 0);
}

static void holes(void **state) {
    struct mappinglist mappings = {0};
    struct seen seen = {0};
    (void)state;
    call(&mappings, &seen, MEMTRACE_MAP_MAP, 0, 100, 200);
    call(&mappings, &seen, MEMTRACE_MAP_UNMAP, 0, 120, 130); /* two pieces of one mapping */
    assert_int_equal(mappings.count, 2);
    assert_int_equal(mappings.items[0].id, mappings.items[1].id);
    call(&mappings, &seen, MEMTRACE_MAP_UNMAP, 0, 0, 100);
    assert_int_equal(seen.pages, 10);
    call(&mappings, &seen, MEMTRACE_MAP_UNMAP, 0, 190, 1000);
    call(&mappings, &seen, MEMTRACE_MAP_UNMAP, 0, 130, 190);
    assert_int_equal(seen.ended, 0);
    call(&mappings, &seen, MEMTRACE_MAP_UNMAP, 0, 0, 1000);
    assert_int_equal(seen.ended, 1);
    assert_int_equal(seen.pages, 100);
    assert_int_equal(mappings.count, 0);
}

/* ---- The pieces and what they say ---- */

enum { MOST = 8 };

struct pieces {
    struct mapping items[MOST];
    uint64_t freed_ns[MOST];
    size_t count;
};

static int keep(void *context, const struct mapping *piece, const struct timeorder_event *by,
                bool is_last) {
    struct pieces *pieces = context;
    (void)is_last;
    assert_true(pieces->count < MOST);
    pieces->items[pieces->count] = *piece;
    pieces->freed_ns[pieces->count++] = mappinglist_end_ns(piece, by);
    return 0;
}

static void map(struct mappinglist *mappings, struct pieces *pieces, uint8_t operation,
                uint64_t time_ns, uint64_t page, uint64_t pages, uint8_t flags) {
    const struct mappinglist_visitor visitor = {.ended = keep, .context = pieces};
    struct timeorder_event entry = {.thread = 3,
                                    .event = {.kind = EVENT_MAP,
                                              .operation = operation,
                                              .time_ns = time_ns,
                                              .address = page * PAGE,
                                              .size = pages * PAGE - 1, /* is rounded up */
                                              .flags = flags}};
    assert_int_equal(mappinglist_take(mappings, &entry, &visitor), 0);
}

static void check_piece(const struct mapping *piece, uint64_t id, uint64_t page, uint64_t pages,
                        uint64_t born_at) {
    assert_int_equal(piece->id, id);
    assert_int_equal(piece->thread, 3);
    assert_int_equal(piece->start, page * PAGE);
    assert_int_equal(piece->end - piece->start, pages * PAGE);
    assert_int_equal(piece->born_ns, born_at);
}

static void end_in_pieces(void **state) {
    struct pieces pieces = {.count = 0};
    struct mappinglist mappings = {0};
    (void)state;
    map(&mappings, &pieces, MEMTRACE_MAP_MAP, 1, 100, 10, 0);
    map(&mappings, &pieces, MEMTRACE_MAP_MAP, 2, 110, 5, 0);
    map(&mappings, &pieces, MEMTRACE_MAP_UNMAP, 3, 103, 2, 0);       /* out of the middle */
    map(&mappings, &pieces, MEMTRACE_MAP_UNMAP, 4, 108, 4, 0);       /* over the border of two */
    map(&mappings, &pieces, MEMTRACE_MAP_MAP, 5, 100, 1, MAP_FIXED); /* over the first page */
    map(&mappings, &pieces, MEMTRACE_MAP_UNMAP, 6, 500, 1, 0);       /* what is not mapped */
    assert_int_equal(pieces.count, 4);
    check_piece(&pieces.items[0], 1, 103, 2, 1);
    check_piece(&pieces.items[1], 1, 108, 2, 1);
    check_piece(&pieces.items[2], 2, 110, 2, 2);
    check_piece(&pieces.items[3], 1, 100, 1, 1);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pieces.freed_ns[i], i == 0 ? 3 : i < 3 ? 4 : 5);
    }
    assert_int_equal(mappings.count, 4);
    check_piece(&mappings.items[0], 3, 100, 1, 5);
    check_piece(&mappings.items[1], 1, 101, 2, 1);
    check_piece(&mappings.items[2], 1, 105, 3, 1);
    check_piece(&mappings.items[3], 2, 112, 3, 2);
}

/* mremap and brk do not say how memory may be used; the flags of mremap are none of mmap's. */
static void moved_ones_keep_their_protection(void **state) {
    struct pieces pieces = {.count = 0};
    const struct mappinglist_visitor visitor = {.ended = keep, .context = &pieces};
    struct mappinglist mappings = {0};
    struct timeorder_event mapped = {.event = {.kind = EVENT_MAP,
                                               .operation = MEMTRACE_MAP_MAP,
                                               .address = 100 * PAGE,
                                               .size = 10 * PAGE,
                                               .protection = PROT_READ | PROT_EXEC,
                                               .flags = MAP_PRIVATE}};
    struct timeorder_event moved = {.event = {.kind = EVENT_MAP,
                                              .operation = MEMTRACE_MAP_REMAP,
                                              .address = 200 * PAGE,
                                              .size = 20 * PAGE,
                                              .old_address = 100 * PAGE,
                                              .old_size = 10 * PAGE,
                                              .flags = MREMAP_MAYMOVE}};
    (void)state;
    assert_int_equal(mappinglist_take(&mappings, &mapped, &visitor), 0);
    assert_int_equal(mappinglist_take(&mappings, &moved, &visitor), 0);
    map(&mappings, &pieces, MEMTRACE_MAP_BREAK, 3, 300, 1, 0);
    assert_int_equal(pieces.count, 1);
    assert_int_equal(mappings.count, 2);
    assert_int_equal(pieces.items[0].protection, PROT_READ | PROT_EXEC);
    assert_int_equal(mappings.items[0].protection, PROT_READ | PROT_EXEC);
    assert_int_equal(mappings.items[0].flags, MAP_PRIVATE);
    assert_int_equal(mappings.items[0].end, 220 * PAGE);
    assert_int_equal(mappings.items[1].protection, PROT_READ | PROT_WRITE);
}

static bool refuse(void *context, struct mapping *mapping) {
    (void)context;
    return mapping->context != 0;
}

static void refused(void **state) {
    const struct mappinglist_visitor visitor = {.made = refuse, .ended = note};
    const struct timeorder_event event = {
        .event = {.kind = EVENT_MAP, .operation = MEMTRACE_MAP_MAP, .address = PAGE, .size = PAGE}};
    struct mappinglist mappings = {0};
    (void)state;
    assert_int_equal(mappinglist_take(&mappings, &event, &visitor), 0);
    assert_int_equal(mappings.count, 0);
}

/* Whatever is mapped and unmapped, every page that was there ends once. */
static void random_changes(void **state) {
    bool mapped[PAGES] = {false};
    struct mappinglist mappings = {0};
    (void)state;
    srand(3);
    for (int i = 0; i < 20000; i++) {
        uint64_t start = (uint64_t)rand() % PAGES;
        uint64_t end = start + 1 + (uint64_t)rand() % 16;
        bool is_map = rand() % 2;
        struct seen seen = {0};
        uint64_t there = 0;
        end = end < PAGES ? end : PAGES;
        for (uint64_t page = start; page < end; page++) {
            there += mapped[page];
            mapped[page] = is_map;
        }
        call(&mappings, &seen, is_map ? MEMTRACE_MAP_MAP : MEMTRACE_MAP_UNMAP,
             is_map ? MAP_FIXED : 0, start, end);
        assert_int_equal(seen.pages, there);
        for (size_t k = 1; k < mappings.count; k++) {
            assert_true(mappings.items[k - 1].end <= mappings.items[k].start);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holes),
        cmocka_unit_test(end_in_pieces),
        cmocka_unit_test(moved_ones_keep_their_protection),
        cmocka_unit_test(refused),
        cmocka_unit_test(random_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
