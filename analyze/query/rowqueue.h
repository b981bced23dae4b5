/* SPDX-License-Identifier: MIT */
/*
 * rowqueue.h: a pass over events hands out rows when it comes to them, a cursor asks for the next
 * one. So the pass runs in a thread of its own, a few batches ahead, and ends when nobody wants
 * rows any more. Memory: those batches, whatever the pass finds.
 *
 * Called by the tables of analyze/query that need passes. start, next and close belong to one
 * thread; put to the producer.
 */
#ifndef ANALYZE_QUERY_ROWQUEUE_H
#define ANALYZE_QUERY_ROWQUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct rowqueue;

/* Runs in the thread inside, calls rowqueue_put() for each row and returns soon after that does not
 * return 0, or after rowqueue_cancel() became true. Its value is rowqueue_result(). */
typedef int (*rowqueue_producer)(struct rowqueue *queue, void *argument);

/* NULL: no memory or no thread. */
struct rowqueue *rowqueue_start(size_t row_size, rowqueue_producer produce, void *argument);

/* 0; 1: nobody wants more. */
int rowqueue_put(struct rowqueue *queue, const void *row);
const atomic_bool *rowqueue_cancel(const struct rowqueue *queue);

/* 1: *row is there until the next call; 0: that was all; -1: *interrupted became true meanwhile. */
int rowqueue_next(struct rowqueue *queue, const atomic_bool *interrupted, const void **row);
/* After rowqueue_next() returned 0. */
int rowqueue_result(const struct rowqueue *queue);

/* Also before the end. NULL is allowed. */
void rowqueue_close(struct rowqueue *queue);

#endif
