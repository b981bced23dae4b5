/* SPDX-License-Identifier: MIT */
/*
 * realigned.c: a function that aligns its stack to 64 bytes and keeps its CFA in a word of its
 * frame. Two callers enter it from stack pointers 16 bytes apart, by turns: all that is newer than
 * that word is the same, addresses included, and all that is older than these callers; what the
 * first wrote to the stack stays where the second does not look. The size of a block says who
 * called. `realigned guards` ends with how many guards stand in newer frames than such a one's.
 */
#include "subject.h"

#include <alloca.h>
#include <stdalign.h>
#include <stdlib.h>

enum { SIZE = 60001, TURNS = 40, SHIFTS = 4, BLOCKS = 3 };

static const void *frame;
static size_t size;

NOINLINE static void inner(volatile char *room) {
    room[0] = 1;
    keep(malloc(size));
    keep((const void *)room);
}

/* The room, of a size that is not known, makes it find its callers' stack by a word. */
NOINLINE static void realigned(size_t bytes) {
    alignas(64) volatile char local[64];
    volatile char *room = alloca(bytes);
    frame = (const void *)local;
    for (int i = 0; i < BLOCKS; i++) {
        inner(room);
    }
    keep((const void *)local);
}

NOINLINE static void first(void) {
    volatile char room[32];
    keep((const void *)room);
    size = SIZE;
    realigned(opaque(100));
    keep((const void *)room);
}

NOINLINE static void second(void) {
    volatile char room[48];
    keep((const void *)room);
    size = SIZE + 1;
    realigned(opaque(100));
    keep((const void *)room);
}

/* Frames newer than the one that is taken anew, and what stood in their return slots. */
enum { CHAIN = 4 };
static volatile uintptr_t *slots[CHAIN];
static uintptr_t returns_to[CHAIN];

/* The allocation is the first one from here: a guard among these frames spares the next one a look
 * at the word. Returns how many there are. */
NOINLINE static int chain(int depth) {
    int guards = 0;
    slots[depth] = (uintptr_t *)__builtin_frame_address(0) + 1;
    returns_to[depth] = *slots[depth];
    if (depth > 0) {
        guards = chain(depth - 1);
        keep(&guards);
        return guards;
    }
    keep(malloc(SIZE));
    for (int i = 0; i < CHAIN; i++) {
        guards += *slots[i] != returns_to[i];
    }
    return guards;
}

NOINLINE static int realigned_guards(size_t bytes) {
    alignas(64) volatile char local[64];
    volatile char *room = alloca(bytes);
    int guards = chain(CHAIN - 1);
    keep((const void *)room);
    keep((const void *)local);
    return guards;
}

static void (*volatile const callers[])(void) = {first, second};

/* How often one caller led to the same place as the other before. */
NOINLINE static int take_turns(size_t shift) {
    volatile char *room = alloca(16 * shift + 16);
    int same = 0;
    for (int i = 0; i < TURNS; i++) {
        const void *place = frame;
        callers[i % 2]();
        same += place == frame;
    }
    room[0] = 1;
    keep((const void *)room);
    return same;
}

/* Deep enough for guards. */
NOINLINE static int deep_guards(int depth) {
    int guards = depth > 0 ? deep_guards(depth - 1) : realigned_guards(opaque(100));
    keep(&guards);
    return guards;
}

NOINLINE static int deep(int depth) {
    int same = 0;
    if (depth > 0) {
        same = deep(depth - 1);
        keep(&same);
        return same;
    }
    for (size_t shift = 0; shift < SHIFTS; shift++) {
        same += take_turns(opaque(shift));
    }
    return same;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "guards") == 0) {
        return deep_guards(60);
    }
    check(deep(60) >= (SHIFTS - 1) * (TURNS - 1), "the callers lead to places apart");
    return 3;
}
