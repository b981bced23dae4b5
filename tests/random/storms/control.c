/* SPDX-License-Identifier: MIT */
/* control.c: frames left by longjmp, switched by ucontext, replaced by tail calls, and others whose
 * size or code is out of the ordinary. */
#include "storm.h"

#include <alloca.h>
#include <setjmp.h>
#include <ucontext.h>

/* --- longjmp ---------------------------------------------------------------------------------- */

static jmp_buf back;

NOINLINE static void dive(long depth, long round) {
    char frame[24];
    keep(frame);
    if (depth > 0) {
        dive(depth - 1, round);
    } else {
        if (round % 8 != 0) {
            allocate();
        }
        longjmp(back, 1);
    }
    keep(frame);
}

NOINLINE static void dive_wide(long depth, long round) {
    char frame[136];
    keep(frame);
    if (round % 16 == 1) {
        allocate();
    }
    if (depth > 0) {
        dive(depth - 1, round);
    }
    longjmp(back, 2);
}

NOINLINE static void surface(long round, size_t size) {
    if (round % 1000 == 999) {
        mark(size);
    }
}

static void storm_longjmp(long rounds) {
    volatile long round = 0;
    int how = setjmp(back);
    while (round < rounds) {
        round++;
        surface(round, how == 1 ? 70001 : 70003);
        if (round % 2 == 0) {
            dive(round % 7, round);
        } else {
            dive_wide(round % 5, round);
        }
    }
    mark(70005);
}

/* --- fibers ----------------------------------------------------------------------------------- */

enum { FIBERS = 3, FIBER_STACK = 65536 };
static ucontext_t scheduler, fibers[FIBERS];
static volatile int fibers_end;

NOINLINE static void fiber_yield(int which, int depth, long round) {
    char frame[40];
    keep(frame);
    if (depth > 0) {
        fiber_yield(which, depth - 1, round);
    } else {
        swapcontext(&fibers[which], &scheduler);
    }
    if (round % 3 == 0) {
        allocate();
    }
    if (round % 999 == 0) {
        mark(70101 + 2 * (size_t)which);
    }
    keep(frame);
}

static void fiber_main(int which) {
    for (long round = 1; !fibers_end; round++) {
        fiber_yield(which, (int)(round % (3 + which)), round);
    }
}

static void storm_fibers(long rounds) {
    static char stacks[FIBERS][FIBER_STACK];
    for (int i = 0; i < FIBERS; i++) {
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_sp = stacks[i];
        fibers[i].uc_stack.ss_size = FIBER_STACK;
        fibers[i].uc_link = &scheduler;
        makecontext(&fibers[i], (void (*)(void))fiber_main, 1, i);
    }
    for (long round = 0; round < rounds; round++) {
        swapcontext(&scheduler, &fibers[round % FIBERS]);
        surface(round, 70111);
    }
    fibers_end = 1;
    for (int i = 0; i < FIBERS; i++) {
        swapcontext(&scheduler, &fibers[i]);
    }
    mark(70113);
}

/* --- computed goto ---------------------------------------------------------------------------- */

/* An interpreter whose first two instructions allocate nothing. */
NOINLINE static long interpret(const unsigned char *code, long round) {
    static const void *const places[] = {&&add, &&twice, &&allocation, &&marked, &&again, &&end};
    long value = round;
    goto *places[*code];
add:
    value += 3;
    goto *places[*++code];
twice:
    value *= 2;
    goto *places[*++code];
allocation:
    allocate();
    goto *places[*++code];
marked:
    mark(70201);
    goto *places[*++code];
again:
    value += interpret(code + 1, value);
    goto *places[5];
end:
    return value;
}

static void storm_computed_goto(long rounds) {
    static const unsigned char programs[][6] = {
        {0, 1, 0, 5}, {0, 2, 4, 2, 5}, {1, 4, 4, 2, 5}, {4, 0, 4, 5}, {0, 0, 5}};
    static const unsigned char marked[] = {4, 2, 4, 3, 5};
    long sum = 0;
    for (long round = 0; round < rounds; round++) {
        sum += interpret(programs[round % 5], round);
        if (round % 1000 == 0) {
            sum += interpret(marked, round);
        }
    }
    keep(&sum);
}

/* --- alloca ----------------------------------------------------------------------------------- */

NOINLINE static void grow_frame(long round, int depth) {
    size_t size = 8 + (size_t)(round * 37 % 700);
    char *local = alloca(size);
    memset(local, 0x5a, size);
    keep(local);
    if (depth > 0) {
        grow_frame(round / 3, depth - 1);
    } else if (round % 4 == 0) {
        allocate();
    }
    if (round % 1000 == 0) {
        char more[1 + (size_t)(round % 77)];
        memset(more, 0xc0, sizeof more);
        keep(more);
        mark(70301 + 2 * (size_t)depth);
    }
    keep(local);
}

static void storm_alloca(long rounds) {
    for (long round = 0; round < rounds; round++) {
        grow_frame(round, (int)(round % 4));
    }
    mark(70311);
}

/* --- tail calls ------------------------------------------------------------------------------- */

enum { CHAIN = 500 };
typedef void link_function(long left, long round);
static link_function narrow_link, wide_link, early_link;
static link_function *volatile links[] = {narrow_link, wide_link, early_link};

static void narrow_link(long left, long round) {
    if (left == 0) {
        surface(round, 70401);
        return;
    }
    links[left % 3](left - 1, round);
}

static void wide_link(long left, long round) {
    char frame[200];
    keep(frame);
    if (left % 16 == 0) {
        allocate();
    }
    if (left == 0) {
        surface(round, 70403);
        return;
    }
    links[(left + round) % 3](left - 1, round);
}

static void early_link(long left, long round) {
    if (left % 4 == 0 && left > 0) {
        narrow_link(left - 1, round);
        return;
    }
    allocate();
    if (left > 0) {
        wide_link(left - 1, round);
    }
}

static void storm_tail_calls(long rounds) {
    for (long round = 0; round < rounds / CHAIN * 10; round++) {
        narrow_link(CHAIN / 10, round);
        surface(round, 70405);
    }
    mark(70407);
}

/* --- nested functions ---------------------------------------------------------------------------
 */

#if defined __GNUC__ && !defined __clang__
NOINLINE static void call_back(void (*function)(long), long value) {
    char frame[56];
    keep(frame);
    function(value);
    keep(frame);
}

static void storm_nested_functions(long rounds) {
    long sum = 0;
    for (volatile long round = 0; round < rounds; round++) {
        __label__ out;
        void nested(long value) {
            sum += value;
            if (value % 8 == 0) {
                allocate();
            }
            if (value % 3 == 0) {
                goto out;
            }
            surface(value, 70501);
        }
        call_back(nested, round);
    out:
        surface(round, 70503);
    }
    keep(&sum);
    mark(70505);
}
#endif

int main(int argc, char **argv) {
    static const struct storm storms[] = {
        {"longjmp", storm_longjmp},
        {"fibers", storm_fibers},
        {"alloca", storm_alloca},
        {"computed_goto", storm_computed_goto},
        {"tail_calls", storm_tail_calls},
#if defined __GNUC__ && !defined __clang__
        {"nested_functions", storm_nested_functions},
#endif
    };
    return storm_main(argc, argv, storms, sizeof storms / sizeof *storms);
}
