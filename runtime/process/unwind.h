/* SPDX-License-Identifier: MIT */
/* unwind.h: which way stacks are walked in this process, and who may see that they are patched. */
#ifndef RUNTIME_PROCESS_UNWIND_H
#define RUNTIME_PROCESS_UNWIND_H

/* Once, from our constructor: until then stacks are verified. */
void unwind_choose(void);

#endif
