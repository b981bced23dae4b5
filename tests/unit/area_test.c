/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/context.c: frames come out of the packed nodes as they went in, here and
 * for who reads the profile. */
#include "runtime/stack/context.h"

#include "analyze/read/profile.h"
#include "runtime/stack/context.h"
#include "tests/unit/space_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct world {
    struct space *space;
    struct context_tree *tree;
};

static int open_world(void **state) {
    struct world *world = calloc(1, sizeof *world);
    struct memtrace_header *header;
    world->space = space_fixture_open();
    world->tree = calloc(1, sizeof *world->tree);
    header = world->space->header;
    memcpy(header->magic, MEMTRACE_MAGIC, sizeof header->magic);
    header->version = MEMTRACE_FORMAT_PACKED;
    header->header_size = MEMTRACE_HEADER_SIZE;
    header->byte_order = MEMTRACE_BYTE_ORDER;
    context_init(world->tree, world->space, UINT32_MAX);
    *state = world;
    return 0;
}

static int close_world(void **state) {
    struct world *world = *state;
    space_fixture_close(world->space);
    free(world->tree);
    free(world);
    return 0;
}

/* As a rule and a walk put it together. */
static uint64_t code_of(struct areas *areas, uint64_t frame) {
    return (frame & (MEMTRACE_FRAME_ADDRESS_MASK | MEMTRACE_FRAME_EXACT)) |
           (uint64_t)area_find(areas, frame) << MEMTRACE_NODE_AREA_SHIFT;
}

static uint32_t add(struct context_tree *tree, uint32_t parent, uint64_t frame) {
    return context_child(tree, (struct context_id){parent}, code_of(&tree->areas, frame),
                         CONTEXT_INNER)
        .value;
}

/* What a reader of the profile finds there. */
static struct memtrace_node read_in_profile(const struct space *space, uint32_t id) {
    struct error error;
    struct memtrace_node node = {0};
    struct profile *profile = profile_wrap(space->base, space->header->end, "region", &error);
    assert_non_null(profile);
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        if (profile_is_tree(segment) && segment->index == id / MEMTRACE_LEAF_ITEMS) {
            assert_true(profile_node(profile, segment, id % MEMTRACE_LEAF_ITEMS, &node));
        }
    }
    profile_close(profile);
    return node;
}

static void assert_node(struct world *world, uint32_t id, uint64_t frame, uint32_t parent) {
    struct memtrace_node here = context_read(world->tree, (struct context_id){id});
    struct memtrace_node there = read_in_profile(world->space, id);
    assert_true(here.frame == frame);
    assert_true(there.frame == frame);
    assert_int_equal(here.parent, parent);
    assert_int_equal(there.parent, parent);
}

static uint64_t frame_in(uint64_t module, uint64_t address) {
    return module << MEMTRACE_FRAME_MODULE_SHIFT | address;
}

static void frames_come_back_whole(void **state) {
    const uint64_t frames[] = {
        frame_in(1, 0x401136),
        frame_in(1, 0x555555555136),
        frame_in(2, 0x7ffff7abcdef),
        frame_in(2, 0x7ffff6ffffff), /* the last byte of another area of the same module */
        frame_in(2, 0x7ffff7000000),
        frame_in(3, 0x7ffff7abcdef), /* another module, where that one was */
        frame_in(3, 0x7ffff7abcdef) | MEMTRACE_FRAME_EXACT,
        frame_in(0, 0x7fffe0001234), /* made at run time */
        frame_in(0, 0x123456),
        frame_in(4095, 0x7fffffffffff),
        MEMTRACE_FRAME_MAPPING,
        MEMTRACE_FRAME_POOL + 3,
    };
    enum { COUNT = sizeof frames / sizeof frames[0] };
    struct world *world = *state;
    uint32_t ids[COUNT];
    uint32_t parent = 0;
    for (size_t i = 0; i < COUNT; i++) {
        ids[i] = add(world->tree, parent, frames[i]);
        assert_int_equal(add(world->tree, parent, frames[i]), ids[i]);
        for (size_t k = 0; k < COUNT; k++) { /* siblings are told apart */
            assert_int_equal(add(world->tree, parent, frames[k]) == ids[i], k == i);
        }
        parent = ids[i];
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_node(world, ids[i], frames[i], i != 0 ? ids[i - 1] : 0);
    }
    assert_int_equal(world->space->header->lost[MEMTRACE_LOST_MODULES], 0);
}

static void numbers_are_few_and_final(void **state) {
    struct areas *areas = &((struct world *)*state)->tree->areas;
    uint32_t number = area_find(areas, frame_in(1, 0x7f0012345678));
    assert_int_equal(area_find(areas, frame_in(1, 0x7f0012ffffff)), number);
    assert_int_not_equal(area_find(areas, frame_in(1, 0x7f0013000000)), number);
    assert_int_not_equal(area_find(areas, frame_in(2, 0x7f0012345678)), number);
    assert_int_equal(area_find(areas, frame_in(1, 0x7f0012000000)), number);
    assert_int_equal(area_find(areas, MEMTRACE_FRAME_UNKNOWN), 0);
}

/* More areas than numbers: what is there stays right, the rest belongs to no module, and is
 * counted. */
static void without_room_frames_have_no_module(void **state) {
    struct world *world = *state;
    const uint64_t late = frame_in(4095, 0x7f0000abcdef);
    uint32_t first = add(world->tree, 0, frame_in(1, 0x7f0000123456));
    uint32_t last;
    for (uint64_t i = 0; i < AREA_LIMIT; i++) {
        area_find(&world->tree->areas, frame_in(2 + i % 1000, (0x7f0000 + i) << 24));
    }
    assert_int_not_equal(world->space->header->lost[MEMTRACE_LOST_MODULES], 0);
    assert_int_equal(area_find(&world->tree->areas, late), AREA_NONE);
    last = add(world->tree, first, late);
    assert_node(world, first, frame_in(1, 0x7f0000123456), 0);
    assert_node(world, last, MEMTRACE_AREA_UNKNOWN | 0xabcdef, first);
}

/* A light child's areas are not its ancestor's, until it has a profile of its own. */
static void a_light_child_writes_later(void **state) {
    struct world *world = *state;
    struct areas *areas = &world->tree->areas;
    const uint64_t frame = frame_in(7, 0x7f4400001234);
    uint32_t of_before = add(world->tree, 0, frame_in(1, 0x7f0000123456));
    uint32_t number;
    uint32_t id;
    world->space->is_private = 1;
    number = area_find(areas, frame);
    world->space->is_private = 0;
    id = context_child(world->tree, (struct context_id){0},
                       (frame & MEMTRACE_FRAME_ADDRESS_MASK) | (uint64_t)number
                                                                   << MEMTRACE_NODE_AREA_SHIFT,
                       CONTEXT_INNER)
             .value;
    assert_true(context_read(world->tree, (struct context_id){id}).frame == frame);
    assert_true(read_in_profile(world->space, id).frame == (MEMTRACE_AREA_UNKNOWN | 0x1234));
    area_write_all(areas);
    assert_node(world, id, frame, 0);
    assert_node(world, of_before, frame_in(1, 0x7f0000123456), 0);
}

/* The bit that says of a context that it is cut lies, in a packed node, where areas are. */
static void a_cut_context_is_no_others_child(void **state) {
    struct world *world = *state;
    struct context_cache *cache = calloc(1, sizeof *cache);
    const uint64_t bit = CONTEXT_CUT >> (MEMTRACE_NODE_AREA_SHIFT - MEMTRACE_NODE_PARENT_SHIFT);
    const uint64_t other = (bit | 1) << MEMTRACE_NODE_AREA_SHIFT | 0x1234;
    const uint64_t frame = UINT64_C(1) << MEMTRACE_NODE_AREA_SHIFT | 0x1234;
    struct context_id parent = {add(world->tree, 0, 0x500)};
    struct context_id cut = {parent.value | CONTEXT_CUT};
    context_cached_child(world->tree, cache, parent, other, CONTEXT_INNER);
    assert_int_equal(context_cached_child(world->tree, cache, cut, frame, CONTEXT_INNER).value,
                     cut.value);
    assert_int_not_equal(
        context_cached_child(world->tree, cache, parent, other, CONTEXT_INNER).value, cut.value);
    free(cache);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frames_come_back_whole, open_world, close_world),
        cmocka_unit_test_setup_teardown(numbers_are_few_and_final, open_world, close_world),
        cmocka_unit_test_setup_teardown(without_room_frames_have_no_module, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(a_light_child_writes_later, open_world, close_world),
        cmocka_unit_test_setup_teardown(a_cut_context_is_no_others_child, open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
