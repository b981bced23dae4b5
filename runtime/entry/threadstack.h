/* SPDX-License-Identifier: MIT */
/* threadstack.h: where the calling thread's own stack lies. Noted by thread_note_stack() on threads
 * that pthread_create() made, asked of the kernel on the main thread; not known on others. */
#ifndef RUNTIME_ENTRY_THREADSTACK_H
#define RUNTIME_ENTRY_THREADSTACK_H

#include "runtime/stack/step.h"

/* As far as it is known: else high is 0. */
const struct stack_bounds *threadstack_known(void);
/* The same; looks for it on the main thread. */
const struct stack_bounds *threadstack_find(void);

#endif
