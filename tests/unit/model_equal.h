/* SPDX-License-Identifier: MIT */
/* model_equal.h: that two models say the same, array by array. Included by unit tests, behind
 * cmocka. */
#ifndef TESTS_UNIT_MODEL_EQUAL_H
#define TESTS_UNIT_MODEL_EQUAL_H

#include "analyze/model/model.h"

#include <stdlib.h>
#include <string.h>

static inline void assert_arrays_equal(const void *left, size_t left_count, const void *right,
                                       size_t right_count, size_t size) {
    assert_int_equal(left_count, right_count);
    if (left_count != 0) {
        assert_memory_equal(left, right, left_count * size);
    }
}

/* Buckets may stand in another order. */
static inline void assert_contexts_equal(const struct model *left, const struct model *right) {
    assert_int_equal(left->context_count, right->context_count);
    for (size_t i = 0; i < left->context_count; i++) {
        struct model_context a = left->contexts[i];
        struct model_context b = right->contexts[i];
        assert_int_equal(a.lifetimes == MODEL_NO_LIFETIMES, b.lifetimes == MODEL_NO_LIFETIMES);
        if (a.lifetimes != MODEL_NO_LIFETIMES) {
            assert_memory_equal(&left->lifetimes[a.lifetimes], &right->lifetimes[b.lifetimes],
                                MEMTRACE_LIFETIME_BUCKETS * sizeof *left->lifetimes);
        }
        a.lifetimes = b.lifetimes = 0;
        assert_memory_equal(&a, &b, sizeof a);
    }
}

static inline void assert_named_parts_equal(const struct model *left, const struct model *right) {
    assert_int_equal(left->module_count, right->module_count);
    for (size_t i = 0; i < left->module_count; i++) {
        struct model_module a = left->modules[i];
        struct model_module b = right->modules[i];
        assert_string_equal(a.path, b.path);
        a.path = b.path = NULL;
        assert_memory_equal(&a, &b, sizeof a);
    }
    assert_int_equal(left->mark_count, right->mark_count);
    assert_int_equal(left->mark_total, right->mark_total);
    for (size_t i = 0; i < left->mark_count; i++) {
        struct model_mark a = left->marks[i];
        struct model_mark b = right->marks[i];
        assert_string_equal(a.name, b.name);
        a.name = b.name = NULL;
        assert_memory_equal(&a, &b, sizeof a);
    }
}

static inline void assert_models_equal(const struct model *left, const struct model *right) {
    assert_memory_equal(&left->header, &right->header, sizeof left->header);
    assert_memory_equal(&left->totals, &right->totals, sizeof left->totals);
    assert_memory_equal(&left->recording, &right->recording, sizeof left->recording);
    assert_string_equal(left->damage, right->damage);
    assert_int_equal(left->from_ns, right->from_ns);
    assert_int_equal(left->to_ns, right->to_ns);
    assert_int_equal(left->now_ns, right->now_ns);
    assert_int_equal(left->live, right->live);
    assert_arrays_equal(left->nodes, left->node_count, right->nodes, right->node_count,
                        sizeof *left->nodes);
    assert_contexts_equal(left, right);
    assert_arrays_equal(left->threads, left->thread_count, right->threads, right->thread_count,
                        sizeof *left->threads);
    assert_arrays_equal(left->foreign, left->foreign_count, right->foreign, right->foreign_count,
                        sizeof *left->foreign);
    assert_arrays_equal(left->pools, left->pool_count, right->pools, right->pool_count,
                        sizeof *left->pools);
    assert_arrays_equal(left->timeline, left->timeline_count, right->timeline,
                        right->timeline_count, sizeof *left->timeline);
    assert_named_parts_equal(left, right);
}

#endif
