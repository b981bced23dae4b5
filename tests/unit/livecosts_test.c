/* SPDX-License-Identifier: MIT */
/* livecosts_test.c: analyze/profile/livecosts: equal to a model of the same profile, look by look.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/profile/livecosts.h"
#include "tests/unit/profile_builder.h"

static struct profile *open_profile(const struct builder *builder) {
    struct profile *profile = profile_wrap(builder->bytes, builder_size(builder), "test", NULL);
    assert_non_null(profile);
    return profile;
}

static const struct livecosts_context *find(const struct livecosts *costs, uint32_t id) {
    assert_true(id < costs->node_count && costs->places[id] != 0);
    return &costs->contexts[costs->places[id] - 1];
}

static void equal_model(const struct livecosts *costs, const struct profile *profile) {
    struct model *model = model_load(profile, NULL);
    assert_non_null(model);
    assert_int_equal(costs->count, model->context_count);
    for (size_t i = 0; i < model->context_count; i++) {
        const struct model_context *wanted = &model->contexts[i];
        const struct livecosts_context *found = find(costs, wanted->id);
        assert_int_equal(found->path, wanted->path);
        assert_int_equal(found->class, wanted->class);
        assert_int_equal(found->now.live_bytes, wanted->live_bytes);
        assert_int_equal(found->now.live_blocks, wanted->live_blocks);
        assert_int_equal(found->now.maximum_bytes, wanted->peak_bytes);
        assert_int_equal(found->now.total_bytes, wanted->total_bytes);
        assert_int_equal(found->now.allocations, wanted->allocations);
        assert_int_equal(found->now.temporary, wanted->temporary);
    }
    for (size_t i = 0; i < model->node_count; i++) {
        assert_int_equal(costs->nodes[i].frame, model->nodes[i].frame);
        assert_int_equal(costs->nodes[i].parent, model->nodes[i].parent);
    }
    assert_int_equal(costs->totals.live_bytes, model->totals.live_bytes);
    assert_int_equal(costs->totals.maximum_bytes, model->totals.maximum_bytes);
    assert_int_equal(costs->totals.allocations, model->totals.allocations);
    model_free(model);
}

/* The columns of the first thread, where builder_example() put them. */
static struct memtrace_cell *cells_of(const struct builder *builder,
                                      const struct profile *profile) {
    for (size_t i = 0; i < profile->segment_count; i++) {
        if (profile->segments[i].kind == MEMTRACE_SEGMENT_LEDGER) {
            return (struct memtrace_cell *)(uintptr_t)(builder->bytes +
                                                       profile->segments[i].offset);
        }
    }
    return NULL;
}

static void looks(void **state) {
    struct builder *builder = builder_new();
    struct livecosts costs = {0};
    struct profile *profile;
    struct memtrace_cell *cells;
    (void)state;
    builder_example(builder, 0x10000000);
    profile = open_profile(builder);
    cells = cells_of(builder, profile);
    assert_int_equal(livecosts_look(&costs, profile), 0);
    equal_model(&costs, profile);
    assert_int_equal(find(&costs, 12)->total_before, 0);
    livecosts_mark(&costs);

    cells[12].alloc_bytes += 700;
    cells[12].alloc_count += 7;
    assert_int_equal(livecosts_look(&costs, profile), 0);
    equal_model(&costs, profile);
    assert_int_equal(find(&costs, 12)->now.total_bytes - find(&costs, 12)->total_before, 700);
    assert_int_equal(find(&costs, 12)->now.allocations - find(&costs, 12)->allocations_before, 7);
    assert_int_equal(find(&costs, 12)->now.live_bytes - find(&costs, 12)->live_marked, 700);
    assert_int_equal(find(&costs, 13)->now.total_bytes, find(&costs, 13)->total_before);
    profile_close(profile);
    livecosts_free(&costs);
    free(builder);
}

/* Nodes and leaves that come later. */
static void growth(void **state) {
    struct builder *builder = builder_new();
    struct livecosts costs = {0};
    struct profile *profile;
    struct memtrace_node *tree;
    struct memtrace_cell *cells;
    (void)state;
    builder_example(builder, 0x10000000);
    profile = open_profile(builder);
    assert_int_equal(livecosts_look(&costs, profile), 0);
    profile_close(profile);
    tree = builder_tree(builder, 1);
    cells = builder_ledger(builder, 1, 1);
    tree[20] = (struct memtrace_node){builder_frame(1, 0x10003030), 11, 0};
    cells[20].alloc_bytes = 44;
    cells[20].alloc_count = 1;
    profile = open_profile(builder);
    assert_int_equal(livecosts_look(&costs, profile), 0);
    equal_model(&costs, profile);
    assert_int_equal(find(&costs, MEMTRACE_LEAF_ITEMS + 20)->now.live_bytes, 44);
    profile_close(profile);
    livecosts_free(&costs);
    free(builder);
}

static void models(void **state) {
    struct builder *builder = builder_new();
    struct livecosts costs = {0};
    struct profile *profile;
    struct model *model;
    (void)state;
    builder_example(builder, 0x10000000);
    profile = open_profile(builder);
    model = model_load(profile, NULL);
    assert_int_equal(livecosts_take(&costs, model), 0);
    equal_model(&costs, profile);
    model_free(model);
    profile_close(profile);
    livecosts_free(&costs);
    free(builder);
}

struct known_lifetimes {
    const struct livecosts *costs;
    const struct model *model;
    size_t count;
};

static void take_lifetimes(void *context, size_t place,
                           const uint64_t buckets[MEMTRACE_LIFETIME_BUCKETS]) {
    struct known_lifetimes *known = context;
    const struct model *model = known->model;
    size_t i = 0;
    known->count++;
    while (find(known->costs, model->contexts[i].id) != &known->costs->contexts[place]) {
        i++;
        assert_true(i < model->context_count);
    }
    if (model->contexts[i].lifetimes == MODEL_NO_LIFETIMES) {
        fail_msg("context %u has none", (unsigned)model->contexts[i].id);
    }
    assert_memory_equal(buckets, &model->lifetimes[model->contexts[i].lifetimes],
                        MEMTRACE_LIFETIME_BUCKETS * sizeof *buckets);
}

/* Of those contexts whose blocks were freed, and nothing of the others: no bar of zeros for them.
 */
static void lifetimes(void **state) {
    struct builder *builder = builder_new();
    struct livecosts costs = {0};
    struct known_lifetimes known = {.costs = &costs};
    struct profile *profile;
    struct model *model;
    size_t wanted = 0;
    (void)state;
    builder_example(builder, 0x10000000);
    profile = open_profile(builder);
    model = model_load(profile, NULL);
    known.model = model;
    assert_int_equal(livecosts_look(&costs, profile), 0);
    assert_int_equal(livecosts_lifetimes(&costs, profile, take_lifetimes, &known), 0);
    for (size_t i = 0; i < model->context_count; i++) {
        wanted += model->contexts[i].lifetimes != MODEL_NO_LIFETIMES;
    }
    assert_uint_in_range(wanted, 1, model->context_count - 1);
    assert_int_equal(known.count, wanted);
    model_free(model);
    profile_close(profile);
    livecosts_free(&costs);
    free(builder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(looks), cmocka_unit_test(growth),
                                       cmocka_unit_test(models), cmocka_unit_test(lifetimes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
