/* SPDX-License-Identifier: MIT */
/*
 * before.h: the heap that a program had when it was attached to. Its blocks are not known one by
 * one, but how many bytes the C library has given out is, and what a block that is freed takes off
 * that.
 *
 * In the profile it is a call path of its own (MEMTRACE_FRAME_BEFORE), and so it is in recordings
 * (MEMTRACE_WORD_BEFORE). Called by attach_words.c, recording_switch.c, and by malloc.c where a
 * block is freed that the shadow heap does not know: never on the way of blocks that it knows, nor
 * in programs that were not attached to.
 */
#ifndef RUNTIME_ENTRY_BEFORE_H
#define RUNTIME_ENTRY_BEFORE_H

#include "runtime/base/compiler.h"
#include "runtime/entry/real.h"
#include "runtime/record/recorder.h"

#include <stdint.h>

struct before {
    uint32_t is_followed; /* a block that is freed and not known is an old one */
    uint32_t context;     /* 0: there is no room for it */
    /* Bytes that are left of it; and BEFORE_RECORDED: a recording has told of them, and is told of
     * what is freed. In one word, so that each free is told of, or was no more in what was told. */
    uint64_t left;
};
#define BEFORE_RECORDED (UINT64_C(1) << 63)
extern HIDDEN struct before before;

/* With the other contexts of the runtime's own, before anything is counted. */
void before_prepare(void);
/* Looks at the heap. Frees are seen from here on, allocations will be. Once an attach. */
void before_begin(void);
/* A recording that begins or ends in the middle of the run. `stream`: where what is left is told;
 * threads that free have theirs. */
void before_record(struct recorder_stream *stream);
void before_forget_recording(void);
/* From here on blocks are not known for other reasons, too. */
void before_end(void);

/* What an old block, that will be freed by `to`, takes of the heap; 0: it is not followed. */
size_t before_size(const struct real *to, const void *pointer);
/* It is freed. From outside of events; slot: the caller's. */
void before_freed(size_t size, uintptr_t slot);

#endif
