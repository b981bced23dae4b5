/* SPDX-License-Identifier: MIT */
/* nodecode_test.c: analyze/read/nodecode.c: nodes come back as they were, damage does no harm. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/read/nodecode.h"

#include <stdlib.h>

static void round_trip(const struct memtrace_recording_node *nodes, size_t count) {
    struct varint_writer payload = {0};
    struct memtrace_recording_node *found;
    assert_int_equal(nodecode_pack(nodes, count, &payload), 0);
    assert_int_equal(nodecode_unpack(payload.bytes, payload.size, count, &found), 0);
    assert_memory_equal(found, nodes, count * sizeof *nodes);
    free(found);
    free(payload.bytes);
}

static uint64_t next_random(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void fill(struct memtrace_recording_node *nodes, size_t count, uint64_t seed) {
    for (size_t i = 0; i < count; i++) {
        nodes[i].id = (uint32_t)next_random(&seed);
        nodes[i].parent = i != 0 ? nodes[next_random(&seed) % i].id : 0;
        nodes[i].frame = i == 0 || next_random(&seed) % 3 == 0
                             ? next_random(&seed) >> next_random(&seed) % 64
                             : nodes[next_random(&seed) % i].frame;
    }
}

static void random_trees(void **state) {
    struct memtrace_recording_node nodes[2000];
    (void)state;
    for (size_t count = 0; count < 2000; count += 1 + count / 7) {
        fill(nodes, count, count + 1);
        round_trip(nodes, count);
    }
}

static void extremes(void **state) {
    static const struct memtrace_recording_node nodes[] = {
        {.frame = UINT64_MAX, .parent = UINT32_MAX, .id = UINT32_MAX},
        {.frame = 0, .parent = 0, .id = 0},
        {.frame = UINT64_MAX, .parent = UINT32_MAX, .id = 0},
        {.frame = 1, .parent = 0, .id = UINT32_MAX},
    };
    (void)state;
    round_trip(nodes, 4);
}

/* The path to each leaf of a deep tree: a few bits a node is what makes recordings of programs
 * small whose every allocation has a call path of its own. */
static void new_paths_are_small(void **state) {
    size_t count = 20000;
    struct memtrace_recording_node *nodes = calloc(count, sizeof *nodes);
    struct varint_writer payload = {0};
    (void)state;
    for (size_t i = 0; i < count; i++) {
        nodes[i].id = (uint32_t)(4 + i);
        nodes[i].parent = (uint32_t)(i % 20 == 0 ? 4 : 3 + i);
        nodes[i].frame = UINT64_C(0x1000055512340000) + i % 7 * 64;
    }
    nodes[0].parent = 0;
    round_trip(nodes, count);
    assert_int_equal(nodecode_pack(nodes, count, &payload), 0);
    assert_true(payload.size < count * 4);
    free(payload.bytes);
    free(nodes);
}

/* Cut anywhere, damaged anywhere, with counts that lie: refused, or other nodes; nothing worse. */
static void damage(void **state) {
    struct memtrace_recording_node nodes[100];
    struct memtrace_recording_node *found;
    struct varint_writer payload = {0};
    (void)state;
    fill(nodes, 100, 5);
    assert_int_equal(nodecode_pack(nodes, 100, &payload), 0);
    for (size_t cut = 0; cut < payload.size; cut++) {
        unsigned char *copy = malloc(cut + 1);
        memcpy(copy, payload.bytes, cut);
        assert_int_equal(nodecode_unpack(copy, cut, 100, &found), -1);
        free(copy);
    }
    for (size_t i = 0; i < payload.size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            payload.bytes[i] ^= (unsigned char)(1u << bit);
            if (nodecode_unpack(payload.bytes, payload.size, 100, &found) == 0) {
                free(found);
            }
            payload.bytes[i] ^= (unsigned char)(1u << bit);
        }
    }
    assert_int_equal(nodecode_unpack(payload.bytes, payload.size, 101, &found), -1);
    assert_int_equal(nodecode_unpack(payload.bytes, payload.size, SIZE_MAX / 64, &found), -1);
    assert_int_equal(nodecode_unpack(payload.bytes, payload.size, 99, &found), 0);
    free(found);
    free(payload.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_trees),
        cmocka_unit_test(extremes),
        cmocka_unit_test(new_paths_are_small),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
