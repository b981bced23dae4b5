/* SPDX-License-Identifier: MIT */
/* attachwalknone.c: attachwalk.h for the agent. */
#include "collect/attach/attachwalk.h"

#include <stddef.h>

struct attachwalk *attachwalk_open(const struct attachtarget *target) {
    (void)target;
    return NULL;
}

void attachwalk_close(struct attachwalk *walk) {
    (void)walk;
}

int attachwalk_outwards(struct attachwalk *walk, const struct attachregisters *registers,
                        const struct attachwalk_stack *stack,
                        void (*visit)(void *context, uint64_t pc, bool is_interrupted),
                        void *context) {
    (void)walk, (void)registers, (void)stack, (void)visit, (void)context;
    return -1;
}
