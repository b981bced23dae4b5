/* SPDX-License-Identifier: MIT */
/*
 * event_same.h: two events say the same. By their members: padding, and members of unions that the
 * kind of event has not, hold anything.
 *
 * Included by unit tests.
 */
#ifndef TESTS_UNIT_EVENT_SAME_H
#define TESTS_UNIT_EVENT_SAME_H

#include "analyze/read/event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static inline void assert_same_block(struct event_block a, struct event_block b) {
    assert_int_equal(a.number, b.number);
    assert_int_equal(a.thread, b.thread);
}

static inline void assert_same_by_kind(const struct event *a, const struct event *b) {
    switch (a->kind) {
    case EVENT_MAP:
        assert_int_equal(a->old_address, b->old_address);
        assert_int_equal(a->old_size, b->old_size);
        break;
    case EVENT_LOST:
        assert_int_equal(a->lost_allocs, b->lost_allocs);
        assert_int_equal(a->lost_frees, b->lost_frees);
        break;
    case EVENT_MARK:
        assert_int_equal(a->text_size, b->text_size);
        if (a->text_size != 0) {
            assert_memory_equal(a->text, b->text, a->text_size);
        }
        break;
    default:
        assert_same_block(a->old, b->old);
        break;
    }
}

static inline void assert_same(const struct event *a, const struct event *b) {
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->context, b->context);
    assert_int_equal(a->time_ns, b->time_ns);
    assert_same_block(a->block, b->block);
    assert_int_equal(a->address, b->address);
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->slack, b->slack);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->alignment, b->alignment);
    assert_int_equal(a->operation, b->operation);
    assert_int_equal(a->protection, b->protection);
    assert_int_equal(a->weight, b->weight); /* or `id`, of the same size */
    assert_same_by_kind(a, b);
}

#endif
