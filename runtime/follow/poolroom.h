/* SPDX-License-Identifier: MIT */
/*
 * poolroom.h: in which blocks of the heap and in which mappings the live blocks of each pool lie:
 * what the pool's allocator has taken from malloc and mmap, of which it has given out a part. Noted
 * in the region when the process ends, in programs that have pools.
 */
#ifndef RUNTIME_FOLLOW_POOLROOM_H
#define RUNTIME_FOLLOW_POOLROOM_H

/* Called by runtime.c, within the runtime. Others may allocate meanwhile. */
void poolroom_note(void);

#endif
