/* SPDX-License-Identifier: MIT */
/*
 * preexisting.h: the heap that a program had when it was attached to. Its blocks are not known one
 * by one, but how many bytes the C library has given out is, and what a block that is freed takes
 * off that.
 *
 * In the profile it is a call path of its own (MEMTRACE_FRAME_BEFORE), and so it is in recordings
 * (MEMTRACE_WORD_BEFORE). Called by reach/rebind.c, recording_switch.c, and by malloc.c where a
 * block is freed that the shadow heap does not know: never on the way of blocks that it knows, nor
 * in programs that were not attached to.
 */
#ifndef RUNTIME_ENTRY_PREEXISTING_H
#define RUNTIME_ENTRY_PREEXISTING_H

#include "runtime/base/compiler.h"
#include "runtime/entry/real.h"
#include "runtime/record/recorder.h"

#include <stdint.h>

struct preexisting {
    uint32_t is_followed; /* a block that is freed and not known is an old one */
    uint32_t context;     /* 0: there is no room for it */
    /* Bytes that are left of it; and PREEXISTING_RECORDED: a recording has told of them, and is
     * told of what is freed. In one word, so that each free is told of, or was no more in what was
     * told. */
    uint64_t left;
};
#define PREEXISTING_RECORDED (UINT64_C(1) << 63)
extern HIDDEN struct preexisting preexisting;

/* With the other contexts of the runtime's own, before anything is counted. */
void preexisting_prepare(void);
/* Whether the heap is to be looked at: once an attach. */
int preexisting_is_expected(void);
/* It has so many bytes. Frees are seen from here on, allocations will be. */
void preexisting_begin(uint64_t size);
/* A recording that begins or ends in the middle of the run. `stream`: where what is left is told;
 * threads that free have theirs. */
void preexisting_record(struct recorder_stream *stream);
void preexisting_forget_recording(void);
/* From here on blocks are not known for other reasons, too. */
void preexisting_end(void);

/* What an old block, that will be freed by `to`, takes of the heap; 0: it is not followed. */
size_t preexisting_size(const struct real *to, const void *pointer);
/* It is freed. From outside of events; slot: the caller's. */
void preexisting_freed(size_t size, uintptr_t slot);

#endif
