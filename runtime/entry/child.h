/* SPDX-License-Identifier: MIT */
/*
 * child.h: living on in a forked child.
 *
 * At its first event a child becomes light: header, tables, columns and new nodes of the tree are
 * private memory, at the addresses where the parent has its own; the full leaves of the tree and
 * the table of modules stay shared. What it does is counted like anywhere else, and told in a
 * record in the region of its nearest ancestor that has one (record/light.h). It grows when it has
 * done something worth a region of its own, or needs one: then a file is made and mapped over the
 * private memory, and what is left of the blocks that it was born with is counted.
 *
 * Blocks that it was born with are told by the thread in their records, since a child's own threads
 * have higher numbers. One that is freed while the child is light is counted then, in a column of
 * its own, as if it had been counted at the start: it was there all the time, the maximum grows by
 * its size whenever that was.
 *
 * A light child has one thread: it grows before there is another. That thread's counts are those of
 * the record which tells of the child: so what a killed one had done is known up to its last event,
 * and its events take the usual way. Whether it has to grow is asked when it has looked at the
 * clock, and then only: child_note(). Where it has no such record, or events of more than that
 * thread, each event is noted.
 */
#ifndef RUNTIME_ENTRY_CHILD_H
#define RUNTIME_ENTRY_CHILD_H

#include "runtime/entry/runtime.h"
#include "runtime/entry/thread.h"

enum {
    /* Allocations and frees, and one more for each four nodes of its parent's tree; then it grows.
     * A region and a file of its own cost some 3 ms in the child and in who collects it: what it
     * has done by then takes as long without us, so no child costs many times what it costs alone.
     */
    CHILD_EVENTS_MOST = 100000,
    CHILD_LIVE_MOST = 16 << 20, /* bytes of its own: as long to be touched */
    CHILD_SAMPLES_MOST = 16,    /* in mode sampled: mean distances that it holds */
};

/* Back from fork in the child. Emulators of user space say that they wipe memory on fork, and do
 * not (qemu 7.2): by hand then. */
void child_wipe(void);
/* At the first event of a forked child. 0, or -1: it cannot be profiled. */
int child_start(void);
/* It cannot: an event at least is lost, which its ancestor's profile says. */
void child_tell_unprofiled(void);
INLINE int child_is_light(void) {
    return UNLIKELY(runtime.space.is_private) && *runtime.alive != 0;
}

/* Of the process or, while it is light, of its ancestor: what others read. */
struct memtrace_header *child_shared_header(void);
/* After an event of a light child whose thread is_noted, outside of it. May grow. */
void child_note(void);
/* The thread ends, or the child gets a region of its own: its counts are in its own record. */
void child_end_direct(void);
/* A region of its own is needed: now, or after what is interrupted of ours. 1: it is there. */
int child_grow(void);

/* Blocks of thread `owner`, or a part of a mapping, that a child was born with are gone, and were
 * counted as freed. 1: they were such blocks. */
int child_inherited_freed(uint32_t owner, uint32_t context, uint64_t size, uint64_t count);
void child_inherited_unmapped(uint32_t context, uint64_t size, int is_last);
int child_inherited_pool_freed(uint32_t owner, uint32_t context, uint64_t size);

/* At the end, or before exec. 1: all is handed in; 0: it has a region of its own now, to be written
 * out like any other. */
int child_hand_in(enum memtrace_state state);
void child_after_failed_exec(void);

#endif
