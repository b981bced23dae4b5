/* SPDX-License-Identifier: MIT */
/*
 * tableless_library.c: frames without .eh_frame and without frame pointers. tableless.c calls it,
 * and it calls back. Its names are in another order than its functions, which the linker sorts by
 * them.
 */
#include "subject.h"

#include <alloca.h>

typedef void callback(void);

/* Needs every register that is to be saved. */
NOINLINE static void frame_z(callback *call, size_t a, size_t b, size_t c, size_t d) {
    size_t e = opaque(a) * b;
    size_t f = opaque(c) * d;
    call();
    check(e == a * b && f == c * d, "a register was not kept");
    keep(&call);
}

/* Keeps its CFA by the frame pointer, since its room is not known. */
NOINLINE static void frame_a(callback *call, size_t bytes) {
    volatile char *room = alloca(bytes);
    room[0] = 1;
    frame_z(call, bytes, 2, 3, 4);
    keep((const void *)room);
}

NOINLINE static void frame_m(callback *call, size_t depth) {
    if (depth == 0) {
        frame_a(call, opaque(200));
    } else {
        frame_m(call, depth - 1);
    }
    keep(&call);
}

NOINLINE __attribute__((visibility("default"))) void frame_b(callback *call, size_t depth) {
    volatile char room[3000];
    room[opaque(0)] = 1;
    frame_m(call, depth);
    keep((const void *)room);
}
