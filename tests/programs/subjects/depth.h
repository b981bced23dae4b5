/* SPDX-License-Identifier: MIT */
/*
 * depth.h: makes a subject's stacks deep, where SUBJECT_DEPTH says how many frames, and busy, with
 * SUBJECT_DISTURB: only there does MemTrace replace return addresses (it does so 16 frames from the
 * newest, when more than 32 had to be compared).
 */
#ifndef DEPTH_H
#define DEPTH_H

#include "subject.h"

#include <stdlib.h>

static int is_disturbing;

NOINLINE static void dig(int depth) {
    char frame[16];
    keep(frame);
    if (depth > 0) {
        dig(depth - 1);
    } else {
        for (int i = 0; i < 4; i++) {
            void *block = malloc(24);
            keep(block);
            free(block);
        }
    }
    keep(frame);
}

/* Allocates some frames further in, another number each time: afterwards a return address nearby,
 * sooner or later each, may be replaced. */
static inline void disturb(void) {
    static __thread unsigned turn;
    if (is_disturbing) {
        dig((int)(2 + turn++ * 5 % 13));
    }
}

NOINLINE static void sink(int frames, void (*run)(void)) {
    char frame[16];
    keep(frame);
    if (frames > 0) {
        sink(frames - 1, run);
    } else {
        run();
    }
    keep(frame);
}

/* Calls run() as deep as was asked for. */
static inline void run_deep(void (*run)(void)) {
    const char *wanted = getenv("SUBJECT_DEPTH");
    is_disturbing = getenv("SUBJECT_DISTURB") != NULL;
    if (wanted != NULL) {
        sink(atoi(wanted), run);
    } else {
        run();
    }
}

#endif
