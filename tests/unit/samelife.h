/* SPDX-License-Identifier: MIT */
/* samelife.h: lives are compared by their members, since the padding between them may be anything.
 * Included behind cmocka.h. */
#ifndef TESTS_UNIT_SAMELIFE_H
#define TESTS_UNIT_SAMELIFE_H

#include "analyze/replay/lives.h"

static inline void assert_same_life(const struct life *a, const struct life *b) {
    assert_int_equal(a->block.number, b->block.number);
    assert_int_equal(a->block.thread, b->block.thread);
    assert_int_equal(a->chain.number, b->chain.number);
    assert_int_equal(a->chain.thread, b->chain.thread);
    assert_int_equal(a->address, b->address);
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->weight, b->weight);
    assert_int_equal(a->birth_ns, b->birth_ns);
    assert_int_equal(a->death_ns, b->death_ns);
    assert_int_equal(a->birth_order, b->birth_order);
    assert_int_equal(a->death_order, b->death_order);
    assert_int_equal(a->context, b->context);
    assert_int_equal(a->stream, b->stream);
    assert_int_equal(a->death_thread, b->death_thread);
    assert_int_equal(a->death_context.node, b->death_context.node);
    assert_int_equal(a->slack, b->slack);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->alignment, b->alignment);
    assert_int_equal(a->is_inherited, b->is_inherited);
    assert_int_equal(a->is_temporary, b->is_temporary);
    assert_int_equal(a->is_reallocated, b->is_reallocated);
    assert_int_equal(a->old_order, b->old_order);
    assert_int_equal(a->chain_length, b->chain_length);
    assert_int_equal(a->chain_order, b->chain_order);
    assert_int_equal(a->chain_first_size, b->chain_first_size);
    assert_int_equal(a->chain_birth_ns, b->chain_birth_ns);
    assert_int_equal(a->scope, b->scope);
}

#endif
