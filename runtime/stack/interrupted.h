/* SPDX-License-Identifier: MIT */
/* interrupted.h: what did the signal handler interrupt that is running now? */
#ifndef RUNTIME_STACK_INTERRUPTED_H
#define RUNTIME_STACK_INTERRUPTED_H

#include "runtime/stack/step.h"

/* Whether a handler runs that interrupted an instruction of the runtime's own: steps outwards from
 * `frame`, as far as there is unwind information. */
int interrupted_inside(struct rules *rules, struct stack_bounds stack, struct frame frame);

#endif
