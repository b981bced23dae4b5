/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/context.c: equal paths have equal ids, from any thread, in any number. */
#include "runtime/stack/context.h"

#include "tests/unit/space_fixture.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { THREADS = 4, PATHS = 60000 };

struct world {
    struct space *space;
    struct context_tree *tree;
};

static int open_world(void **state) {
    struct world *world = calloc(1, sizeof *world);
    world->space = space_fixture_open();
    world->tree = calloc(1, sizeof *world->tree);
    context_init(world->tree, world->space, UINT32_MAX);
    *state = world;
    return 0;
}

static int close_world(void **state) {
    struct world *world = *state;
    space_fixture_close(world->space);
    room_close(&world->tree->links);
    free(world->tree);
    free(world);
    return 0;
}

static struct context_id child(struct world *world, uint32_t parent, uint64_t frame) {
    return context_child(world->tree, (struct context_id){parent}, frame, CONTEXT_INNER);
}

static void same_path_same_id(void **state) {
    struct world *world = *state;
    struct context_id main_id = child(world, 0, 0x1000);
    struct context_id left = child(world, main_id.value, 0x2000);
    struct context_id right = child(world, main_id.value, 0x3000);
    assert_int_not_equal(main_id.value, 0);
    assert_int_not_equal(left.value, right.value);
    assert_int_equal(child(world, 0, 0x1000).value, main_id.value);
    assert_int_equal(child(world, main_id.value, 0x2000).value, left.value);
    /* The same frame under another parent is another path. */
    assert_int_not_equal(child(world, left.value, 0x3000).value, right.value);
}

static void nodes_say_their_path(void **state) {
    struct world *world = *state;
    uint32_t id = 0;
    for (uint64_t depth = 1; depth <= 5000; depth++) {
        uint32_t next = child(world, id, depth << 4).value;
        struct memtrace_node node = context_read(world->tree, (struct context_id){next});
        assert_true(next > id);
        assert_int_equal(node.parent, id);
        assert_int_equal(node.frame, depth << 4);
        id = next;
    }
}

static void kinds_have_leaves_of_their_own(void **state) {
    struct world *world = *state;
    struct context_tree *tree = world->tree;
    struct context_id inner = context_child(tree, (struct context_id){0}, 0x10, CONTEXT_INNER);
    struct context_id charged = context_child(tree, inner, 0x20, CONTEXT_CHARGED);
    assert_int_not_equal(inner.value >> 10, charged.value >> 10);
    /* The kind is a hint for placing it, no part of the path. */
    assert_int_equal(context_child(tree, inner, 0x20, CONTEXT_INNER).value, charged.value);
}

static void past_the_limit_paths_are_cut(void **state) {
    struct world *world = *state;
    struct context_tree *tree = calloc(1, sizeof *tree);
    struct context_cache *cache = calloc(1, sizeof *cache);
    struct context_id last = {0}, parent, brother;
    context_init(tree, world->space, 100);
    parent = context_child(tree, (struct context_id){0}, 0x10, CONTEXT_INNER);
    for (uint64_t frame = 1; frame <= 1000; frame++) {
        last = context_child(tree, parent, frame << 8, CONTEXT_INNER);
        assert_int_equal(context_is_cut(last), frame >= 100);
    }
    assert_int_equal(context_kept(last).value, parent.value);
    /* What was there before is still found. */
    brother = context_child(tree, parent, 1 << 8, CONTEXT_INNER);
    assert_false(context_is_cut(brother));
    assert_int_not_equal(brother.value, parent.value);
    /* But not below a path that was cut: it did not lead there. */
    for (int round = 0; round < 2; round++) {
        assert_int_equal(context_child(tree, last, 1 << 8, CONTEXT_INNER).value, last.value);
        assert_int_equal(context_cached_child(tree, cache, last, 1 << 8, CONTEXT_INNER).value,
                         last.value);
    }
    assert_int_equal(context_read(tree, brother).parent, parent.value);
    free(cache);
    free(tree);
}

static void cache_agrees_with_tree(void **state) {
    struct world *world = *state;
    struct context_cache *cache = calloc(1, sizeof *cache);
    for (int round = 0; round < 2; round++) {
        for (uint64_t frame = 1; frame < 3000; frame++) {
            struct context_id parent = {0};
            assert_int_equal(
                context_cached_child(world->tree, cache, parent, frame << 4, CONTEXT_INNER).value,
                child(world, 0, frame << 4).value);
        }
    }
    free(cache);
}

/* Frames newest first, as a walk has them: at a stride. */
enum { STRIDE = 3, LENGTH = 3000 };

/* The charged id, made as walks do: in one piece as far as nothing is there. */
static uint32_t walk_back(struct context_tree *tree, const uint64_t *frame, uint32_t count) {
    struct context_id at = {0};
    for (uint32_t i = count; i-- > 0;) {
        uint32_t child = context_find(tree, at, frame[i * STRIDE]);
        if (child == 0 && i != 0) {
            struct context_path made = context_add_path(tree, at, frame, STRIDE, i + 1);
            if (made.inner != 0) {
                at.value = made.charged != 0 ? made.charged : made.first + made.inner - 1;
                i -= made.inner - (made.charged == 0);
                continue;
            }
        }
        at = context_child(tree, at, frame[i * STRIDE], i == 0 ? CONTEXT_CHARGED : CONTEXT_INNER);
    }
    return at.value;
}

static void a_path_in_one_piece_is_the_same(void **state) {
    struct world *world = *state;
    static uint64_t frame[LENGTH * STRIDE];
    for (uint32_t i = 0; i < LENGTH; i++) {
        frame[i * STRIDE] = 0x1000 + i;
    }
    for (uint32_t count = 2; count <= LENGTH; count += count < 10 ? 1 : 997) {
        uint32_t made = walk_back(world->tree, frame, count);
        uint32_t nodes = world->tree->taken;
        struct context_id at = {0};
        for (uint32_t i = count; i-- > 0;) { /* the same one by one, and nothing is made */
            at = context_child(world->tree, at, frame[i * STRIDE],
                               i == 0 ? CONTEXT_CHARGED : CONTEXT_INNER);
            assert_int_equal(context_read(world->tree, at).frame, frame[i * STRIDE]);
        }
        assert_int_equal(at.value, made);
        assert_int_equal(world->tree->taken, nodes);
        assert_int_equal(walk_back(world->tree, frame, count), made);
    }
}

enum { PAIRS = 5000 };

/* Ids of both kinds are taken at once: wherever the leaves of the one or the other end, no id is
 * given twice, parents come before children, and kinds do not mix. */
static void pieces_fill_leaves(void **state) {
    struct context_tree *tree = ((struct world *)*state)->tree;
    unsigned char *kind = calloc(1, 1 << MEMTRACE_CONTEXT_BITS);
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < PAIRS; i++) {
        uint64_t frame[4] = {0x10, 0x20, 0x30, 0x100000 + i};
        uint32_t count = 2 + (i % 7 + 1) / 3; /* of which all but one are inner ones */
        struct context_id at = {0};
        frame[count - 1] = 0x100000 + i;
        for (uint32_t k = 0; i % 1000 == 999 && k < MEMTRACE_LEAF_ITEMS; k++, nodes++) {
            /* these begin a leaf of inner nodes alone, above that of the charged ones */
            struct context_id id =
                context_child(tree, at, 0x900000 + i + k * 0x1000, CONTEXT_INNER);
            kind[id.value]++;
        }
        for (struct context_path made; count != 0; nodes += made.inner + (made.charged != 0)) {
            made = context_add_path(tree, at, frame, 1, count);
            assert_int_not_equal(made.inner, 0);
            for (uint32_t id = made.first; id < made.first + made.inner; id++, count--) {
                struct memtrace_node node = context_read(tree, (struct context_id){id});
                assert_true(id > at.value);
                assert_true(id % MEMTRACE_LEAF_ITEMS >= MEMTRACE_FIRST_CONTEXT);
                assert_int_equal(kind[id]++, 0);
                assert_int_equal(node.parent, at.value);
                assert_int_equal(node.frame, frame[count - 1]);
                at.value = id;
            }
            if (count == 1 && made.charged == 0) {
                made.charged = context_child(tree, at, frame[0], CONTEXT_CHARGED).value;
            }
            if (made.charged != 0) {
                assert_int_equal(count--, 1);
                assert_true(made.charged > at.value);
                assert_int_equal(kind[made.charged], 0);
                kind[made.charged] = 2;
            }
        }
        assert_int_equal(tree->taken, nodes);
        assert_int_equal(tree->space->header->context_count, nodes);
    }
    for (uint32_t id = 0; id < 1 << MEMTRACE_CONTEXT_BITS; id++) { /* a leaf has one kind */
        uint32_t first = id / MEMTRACE_LEAF_ITEMS * MEMTRACE_LEAF_ITEMS + MEMTRACE_FIRST_CONTEXT;
        assert_true(kind[id] == 0 || kind[id] == kind[first]);
    }
    free(kind);
}

static void pieces_keep_to_the_limit(void **state) {
    struct world *world = *state;
    for (uint32_t limit = 10; limit < 20; limit++) {
        struct context_tree *tree = calloc(1, sizeof *tree);
        uint32_t made = 0;
        context_init(tree, world->space, limit);
        for (uint64_t i = 0; i < 10; i++) {
            uint64_t frame[] = {0x10, 0x20, 0x30, 0x40, 0x1000 + i};
            struct context_path path = context_add_path(tree, (struct context_id){0}, frame, 1, 5);
            made += path.inner + (path.charged != 0);
        }
        assert_int_equal(made, limit);
        assert_int_equal(tree->taken, limit);
        room_close(&tree->links);
        free(tree);
    }
}

struct worker {
    struct world *world;
    uint32_t *ids;
    unsigned start;
};

/* All threads make the same paths, each from another place on. */
static void *make_paths(void *argument) {
    struct worker *worker = argument;
    for (unsigned i = 0; i < PATHS; i++) {
        unsigned path = (i + worker->start) % PATHS;
        uint32_t parent = child(worker->world, 0, 0x100000 + path % 7).value;
        worker->ids[path] = child(worker->world, parent, 0x200000 + path * 16).value;
    }
    return NULL;
}

static void threads_agree(void **state) {
    struct world *world = *state;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    unsigned char *taken = calloc(1, 1 << MEMTRACE_CONTEXT_BITS);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){world, calloc(PATHS, sizeof(uint32_t)), i * PATHS / 8};
        pthread_create(&threads[i], NULL, make_paths, &workers[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned path = 0; path < PATHS; path++) {
        uint32_t id = workers[0].ids[path];
        for (unsigned i = 1; i < THREADS; i++) {
            assert_int_equal(workers[i].ids[path], id);
        }
        assert_int_equal(taken[id], 0);
        taken[id] = 1;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        free(workers[i].ids);
    }
    free(taken);
}

enum { LONG_PATHS = 4096, LEVELS = 12 };

/* All combinations of two calls on each level, in pieces that other threads make, too. */
static void *make_long_paths(void *argument) {
    struct worker *worker = argument;
    for (unsigned i = 0; i < LONG_PATHS; i++) {
        unsigned path = (i + worker->start) % LONG_PATHS;
        uint64_t frame[LEVELS * STRIDE];
        for (unsigned level = 0; level < LEVELS; level++) {
            frame[level * STRIDE] = 0x1000 * (level + 1) + (path >> level & 1);
        }
        worker->ids[path] = walk_back(worker->world->tree, frame, LEVELS);
    }
    return NULL;
}

static void threads_agree_on_pieces(void **state) {
    struct world *world = *state;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (unsigned t = 0; t < THREADS; t++) {
        /* Two at a time take the same paths at the same moment. */
        workers[t] = (struct worker){world, calloc(LONG_PATHS, sizeof(uint32_t)), t / 2 * 1000};
        assert_int_equal(pthread_create(&threads[t], NULL, make_long_paths, &workers[t]), 0);
    }
    for (unsigned t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    for (unsigned t = 1; t < THREADS; t++) {
        assert_memory_equal(workers[t].ids, workers[0].ids, LONG_PATHS * sizeof(uint32_t));
    }
    for (unsigned t = 0; t < THREADS; t++) {
        free(workers[t].ids);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_path_in_one_piece_is_the_same, open_world, close_world),
        cmocka_unit_test_setup_teardown(pieces_fill_leaves, open_world, close_world),
        cmocka_unit_test_setup_teardown(pieces_keep_to_the_limit, open_world, close_world),
        cmocka_unit_test_setup_teardown(same_path_same_id, open_world, close_world),
        cmocka_unit_test_setup_teardown(nodes_say_their_path, open_world, close_world),
        cmocka_unit_test_setup_teardown(kinds_have_leaves_of_their_own, open_world, close_world),
        cmocka_unit_test_setup_teardown(past_the_limit_paths_are_cut, open_world, close_world),
        cmocka_unit_test_setup_teardown(cache_agrees_with_tree, open_world, close_world),
        cmocka_unit_test_setup_teardown(threads_agree, open_world, close_world),
        cmocka_unit_test_setup_teardown(threads_agree_on_pieces, open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
