/* SPDX-License-Identifier: MIT */
/*
 * overlap_plugin.c: a library that allocates when it is opened, when it is called and, after all
 * other destructors, when it is closed. RUN, INNER, BORN and GONE name its functions; ROOM is the
 * size of their frames: only in these do the libraries differ, so that their code lies at the same
 * addresses.
 */
#include "subject.h"

#include <stdlib.h>

NOINLINE static void INNER(size_t size) {
    volatile char room[ROOM];
    room[opaque(0)] = 1;
    keep(malloc(size));
    keep((const void *)room);
}

NOINLINE __attribute__((visibility("default"))) void RUN(void) {
    volatile char room[2 * ROOM];
    room[opaque(0)] = 1;
    INNER(opaque(SIZE));
    keep((const void *)room);
}

__attribute__((constructor)) static void BORN(void) {
    INNER(opaque(SIZE + 1));
    keep(NULL);
}

/* With a priority: it comes behind what the start files have to do. */
__attribute__((destructor(150))) static void GONE(void) {
    INNER(opaque(SIZE + 2));
    keep(NULL);
}
