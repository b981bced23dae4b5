/* SPDX-License-Identifier: MIT */
/*
 * attachwalk.h: the call path of a thread of another program, from its registers and its stack, by
 * the call frame information of the program's objects. That is read before anything is stopped; a
 * walk opens no file, and asks the program for nothing but what it is given.
 *
 * Called by attachstop.c. The agent, which reads no debug information, has attachwalknone.c: there
 * each path is lost at once.
 */
#ifndef COLLECT_ATTACH_ATTACHWALK_H
#define COLLECT_ATTACH_ATTACHWALK_H

#include "collect/attach/attachmachine.h"
#include "collect/attach/attachtarget.h"

#include <stdbool.h>
#include <stdint.h>

struct attachwalk;

/* NULL: out of memory, which loses each path. */
struct attachwalk *attachwalk_open(const struct attachtarget *target);
void attachwalk_close(struct attachwalk *walk);

/* What of the stack was read: from the stack pointer on. */
struct attachwalk_stack {
    uint64_t start;
    const uint64_t *words;
    uint64_t size; /* bytes */
};

/* From where the thread stands outwards. visit: each place in the code; where a call has not
 * returned an address within the call; is_interrupted: where the handler of a signal returns to.
 * 0: as far as where the thread began; or -1: somewhere it is not known how it goes on. */
int attachwalk_outwards(struct attachwalk *walk, const struct attachregisters *registers,
                        const struct attachwalk_stack *stack,
                        void (*visit)(void *context, uint64_t pc, bool is_interrupted),
                        void *context);

#endif
