/* SPDX-License-Identifier: MIT */
/*
 * controlled.h: what the receiver of a recording wants of its program: only where that is allowed,
 * only of the very program that the recording is of, one thing after the other.
 *
 * Called by stream/sender. Belongs to one thread; does not wait.
 */
#ifndef STREAM_CONTROLLED_H
#define STREAM_CONTROLLED_H

#include "stream/wire.h"

struct controlled {
    int fd;              /* the recording, the caller's */
    uint64_t started_ns; /* its program */
    bool is_allowed;
    bool is_asked;      /* and not answered yet */
    bool is_answered;   /* `answer` is to be said */
    uint64_t number;    /* of what is asked */
    uint64_t rested_ns; /* the next is begun then */
    struct programask_wish wish;
    struct programask ask;
    struct programask_answer answer;
};

/* The frame is a control. 0, or -1: it makes no sense, or the last one was not answered yet. */
int controlled_take(struct controlled *controlled, const struct wire_frame *frame);
/* Now and then, while is_asked. */
void controlled_look(struct controlled *controlled, uint64_t now_ns);
/* The frame of the answer, if there is one: there is room for WIRE_SMALL_MOST bytes. Its size or 0.
 */
size_t controlled_put(struct controlled *controlled, uint8_t *to);
/* Whoever asked is gone. */
void controlled_forget(struct controlled *controlled);

#endif
