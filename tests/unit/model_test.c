/* SPDX-License-Identifier: MIT */
/* model_test.c: analyze/model: sums, the peak rule, classes, threads, the path hash. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/model/model.h"
#include "tests/unit/profile_builder.h"

static struct model *load(const struct builder *builder) {
    struct error error = {""};
    struct profile *profile = profile_wrap(builder->bytes, builder_size(builder), "test", &error);
    struct model *model = profile != NULL ? model_load(profile, &error) : NULL;
    profile_close(profile); /* a model needs its profile no more */
    assert_non_null(model);
    return model;
}

static struct model *load_example(uint64_t bias) {
    struct builder *builder = builder_new();
    struct model *model;
    builder_example(builder, bias);
    model = load(builder);
    free(builder);
    return model;
}

static void sums(void **state) {
    struct model *model = load_example(0x10000000);
    const struct model_totals *totals = &model->totals;
    (void)state;
    assert_int_equal(model->context_count, 5);
    assert_int_equal(totals->context_count, 3);
    assert_int_equal(totals->allocations, 8);
    assert_int_equal(totals->total_bytes, 1550);
    assert_int_equal(totals->frees, 3);
    assert_int_equal(totals->freed_bytes, 250);
    assert_int_equal(totals->live_bytes, 1300);
    assert_int_equal(totals->live_blocks, 5);
    assert_int_equal(totals->maximum_bytes, 1300);
    assert_int_equal(totals->temporary, 1);
    assert_int_equal(model->now_ns, 2500000000);
    assert_string_equal(model->damage, "");
    model_free(model);
}

static void contexts(void **state) {
    struct model *model = load_example(0x10000000);
    const struct model_context *context = model_find(model, 12);
    const uint64_t *lifetimes;
    (void)state;
    assert_non_null(context);
    assert_int_equal(context->allocations, 5);
    assert_int_equal(context->frees, 2);
    assert_int_equal(context->live_bytes, 300);
    assert_int_equal(context->parent, 11);
    assert_int_equal(context->path, 12);
    assert_true(context->lifetimes != MODEL_NO_LIFETIMES);
    lifetimes = &model->lifetimes[context->lifetimes];
    assert_int_equal(lifetimes[0], 1);
    assert_int_equal(lifetimes[3], 1);
    assert_null(model_find(model, 11));
    assert_null(model_find(model, 1 << 30));
    assert_null(model_find(NULL, 12));
    context = model_find(model, 16);
    assert_int_equal(context->class, MODEL_MAPPING);
    assert_int_equal(context->path, 12);
    assert_string_equal(model_class_name(model, context), "mapping");
    context = model_find(model, 17);
    assert_int_equal(context->class, MODEL_POOL);
    assert_string_equal(model_class_name(model, context), "arena");
    assert_int_equal(context->live_blocks, 1);
    model_free(model);
}

/* Below the maximum: cells saved in this epoch count with what they held, others as they are. */
static void peak_rule(void **state) {
    struct builder *builder = builder_new();
    struct memtrace_node *tree = builder_tree(builder, 0);
    struct memtrace_cell *cells = builder_ledger(builder, 1, 0);
    struct memtrace_cell *others = builder_ledger(builder, 2, 0);
    struct model *model;
    (void)state;
    for (uint32_t id = 10; id < 14; id++) {
        tree[id] = (struct memtrace_node){builder_frame(0, 0x1000 + id), 0, 0};
        cells[id] = (struct memtrace_cell){1000, 10, 400, 4, 0, 900, 0, 0};
    }
    builder_header(builder)->peak_epoch = 8;
    cells[10].peak_epoch = 8; /* changed since: held 900 */
    cells[11].peak_epoch = 7; /* changed while at the maximum: holds 600 still */
    cells[12].peak_epoch = 8;
    others[12] = (struct memtrace_cell){0, 0, 500, 5, 0, -300, 8, 0};
    cells[13].peak_epoch = 8;
    others[13] = (struct memtrace_cell){0, 0, 600, 6, 0, -2000, 8, 0};
    model = load(builder);
    assert_int_equal(model_find(model, 10)->peak_bytes, 900);
    assert_int_equal(model_find(model, 11)->peak_bytes, 600);
    assert_int_equal(model_find(model, 12)->peak_bytes, 600);
    assert_int_equal(model_find(model, 12)->live_bytes, 100);
    assert_int_equal(model_find(model, 13)->peak_bytes, 0); /* never below nothing */
    assert_int_equal(model->totals.maximum_bytes, 2100);
    model_free(model);

    builder_header(builder)->peak_epoch = 9; /* at the maximum: all as they are */
    model = load(builder);
    assert_int_equal(model_find(model, 10)->peak_bytes, 600);
    model_free(model);
    free(builder);
}

/* Threads alive beyond the ids have records of their own, which are all "others". */
static void others_are_one(void **state) {
    struct builder *builder = builder_new();
    struct memtrace_thread_record *past;
    struct memtrace_foreign_frees *frees;
    struct model *model;
    (void)state;
    builder_example(builder, 0x10000000);
    past = builder_segment(builder, MEMTRACE_SEGMENT_THREADS, 0, 128, sizeof *past, 32);
    for (int i = 1; i <= 3; i++) {
        past[i].id = MEMTRACE_THREAD_OTHERS;
        past[i].state = MEMTRACE_THREAD_ENDED;
        past[i].counts.alloc_count = 1;
        past[i].counts.alloc_bytes = 10;
    }
    for (int i = 0; i < 2; i++) {
        frees = builder_frees(builder, MEMTRACE_THREAD_OTHERS);
        frees[9].count = 4;
        frees[9].bytes = 40;
    }
    model = load(builder);
    assert_int_equal(model->thread_count, 2);
    assert_string_equal(model->threads[0].name, "others");
    assert_int_equal(model->threads[0].total_bytes, 1580);
    assert_int_equal(model->foreign_count, 2);
    assert_int_equal(model->foreign[0].owner, 9);
    assert_int_equal(model->foreign[0].blocks, 8);
    assert_int_equal(model->foreign[0].bytes, 80);
    model_free(model);
    free(builder);
}

static void people_and_places(void **state) {
    struct model *model = load_example(0x10000000);
    struct model_place place = model_place(model, model->nodes[12].frame);
    (void)state;
    assert_int_equal(model->thread_count, 2);
    assert_string_equal(model->threads[0].name, "main");
    assert_int_equal(model->threads[0].live_bytes, 1300);
    assert_int_equal(model->threads[1].live_bytes, 0);
    assert_int_equal(model->foreign_count, 1);
    assert_int_equal(model->foreign[0].freer, 2);
    assert_int_equal(model->foreign[0].owner, 1);
    assert_int_equal(model->foreign[0].bytes, 100);
    assert_int_equal(place.module, 2);
    assert_int_equal(place.offset, 0x302f);
    place = model_place(model, MEMTRACE_FRAME_EXACT | builder_frame(2, 0x11003030));
    assert_int_equal(place.offset, 0x3030);
    assert_int_equal(place.called, place.address);
    place = model_place(model, builder_frame(77, 0x5001));
    assert_int_equal(place.module, 0);
    assert_int_equal(place.offset, 0x5000);
    assert_int_equal(model->timeline_count, 5); /* the start, three samples, the end */
    assert_int_equal(model->timeline[2].time_ns, 20);
    model_free(model);
}

/* Half of a mapping is gone: bytes are freed, the mapping is not. */
static void part_of_a_mapping(void **state) {
    struct builder *builder = builder_new();
    struct memtrace_node *tree = builder_tree(builder, 0);
    struct memtrace_cell *cells = builder_ledger(builder, 1, 0);
    struct model *model;
    (void)state;
    tree[10] = (struct memtrace_node){MEMTRACE_FRAME_MAPPING, 0, 0};
    cells[10] = (struct memtrace_cell){8192, 1, 4096, 0, 0, 0, 0, 0};
    model = load(builder);
    assert_int_equal(model_find(model, 10)->live_bytes, 4096);
    assert_int_equal(model_find(model, 10)->live_blocks, 1);
    model_free(model);
    free(builder);
}

static void hash(void **state) {
    struct model *here = load_example(0x10000000);
    struct model *there = load_example(0x7f0000000000);
    (void)state;
    for (size_t i = 0; i < here->context_count; i++) {
        uint64_t value = model_hash(here, here->contexts[i].id);
        assert_true(value == model_hash(there, there->contexts[i].id));
        for (size_t other = 0; other < i; other++) {
            assert_true(value != model_hash(here, here->contexts[other].id));
        }
    }
    model_free(here);
    model_free(there);
}

/* A page of cells of 64 contexts, beside a leaf of the same column that has them, too. */
static void cells_in_groups(void **state) {
    struct builder *builder = builder_new();
    struct memtrace_cell *group;
    struct model *model;
    (void)state;
    builder_example(builder, 0x10000000);
    group = builder_segment(builder, MEMTRACE_SEGMENT_CELLS, 1, 0, sizeof *group,
                            MEMTRACE_GROUP_FIRST + MEMTRACE_GROUP_ITEMS);
    group[MEMTRACE_GROUP_FIRST + 12].alloc_count = 7;
    group[MEMTRACE_GROUP_FIRST + 12].alloc_bytes = 700;
    group = builder_segment(builder, MEMTRACE_SEGMENT_CELLS, 2, 3, sizeof *group,
                            MEMTRACE_GROUP_FIRST + MEMTRACE_GROUP_ITEMS);
    group[MEMTRACE_GROUP_FIRST + 63].alloc_count = 1; /* of a context whose node is not there yet */
    model = load(builder);
    assert_int_equal(model_find(model, 12)->allocations, 12);
    assert_int_equal(model_find(model, 12)->live_bytes, 1000);
    model_free(model);
    free(builder);
}

static void no_stacks(void **state) {
    struct builder *builder = builder_new();
    struct memtrace_thread_record *threads = builder_threads(builder);
    struct model *model;
    (void)state;
    threads[1] = (struct memtrace_thread_record){
        .id = 1, .state = MEMTRACE_THREAD_ALIVE, .counts = {10, 1000, 4, 300}};
    builder_header(builder)->stacks = MEMTRACE_STACKS_NONE;
    builder_header(builder)->maximum_bytes = 800;
    model = load(builder);
    assert_int_equal(model->totals.maximum_bytes, 800);
    assert_int_equal(model->totals.live_bytes, 700);
    assert_int_equal(model->totals.allocations, 10);
    model_free(model);
    free(builder);
}

static void damage(void **state) {
    struct builder *builder = builder_new();
    struct model *model;
    (void)state;
    builder_example(builder, 0);
    ((struct memtrace_node *)(builder->bytes + MEMTRACE_HEADER_SIZE + 8192))[12].parent = 12;
    model = load(builder);
    assert_non_null(strstr(model->damage, "context 12 has an impossible parent"));
    assert_int_equal(model->nodes[12].parent, 0);
    model_free(model);
    free(builder);
}

/* A process may write them more than once while it ends. */
static void the_last_rooms_of_pools_count(void **state) {
    struct builder *builder = builder_new();
    struct model *model;
    (void)state;
    for (uint32_t count = 3; count > 1; count--) {
        struct memtrace_pool_room *rooms =
            builder_segment(builder, MEMTRACE_SEGMENT_POOL_ROOM, 0, 0, sizeof *rooms,
                            MEMTRACE_POOL_ROOM_FIRST + count);
        for (uint32_t i = 0; i < count; i++) {
            rooms[MEMTRACE_POOL_ROOM_FIRST + i].live_blocks = 10 * count + i;
        }
    }
    model = load(builder);
    assert_int_equal(model->pool_room_count, 2);
    assert_int_equal(model->pool_rooms[0].live_blocks, 20);
    assert_int_equal(model->pool_rooms[1].live_blocks, 21);
    model_free(model);
    free(builder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),
        cmocka_unit_test(contexts),
        cmocka_unit_test(peak_rule),
        cmocka_unit_test(hash),
        cmocka_unit_test(cells_in_groups),
        cmocka_unit_test(the_last_rooms_of_pools_count),
        cmocka_unit_test(no_stacks),
        cmocka_unit_test(others_are_one),
        cmocka_unit_test(people_and_places),
        cmocka_unit_test(damage),
        cmocka_unit_test(part_of_a_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
