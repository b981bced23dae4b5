/* SPDX-License-Identifier: MIT */
/*
 * signals.c: handlers that allocate, called between two instructions of a function that has not yet
 * prepared for any allocation, on stack memory where a former activation of the same function left
 * what the runtime then knew of it: called from another place, so that believing it shows.
 */
#include "storm.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __clang__
#define NO_ALLOC __attribute__((annotate("memtrace_no_alloc")))
#else
#define NO_ALLOC __attribute__((memtrace_no_alloc))
#endif

/* --- siglongjmp out of handlers --------------------------------------------------------------- */

static sigjmp_buf back;

static void jump_out(int number) {
    static long calls;
    (void)number;
    if (++calls % 2 == 0) {
        allocate();
    }
    if (calls % 1000 == 0) {
        mark(71001);
    }
    siglongjmp(back, 1);
}

NOINLINE static void raise_below(long depth) {
    char frame[32];
    keep(frame);
    if (depth > 0) {
        raise_below(depth - 1);
    } else {
        raise(SIGUSR1);
    }
    keep(frame);
}

static void storm_siglongjmp(long rounds) {
    signal(SIGUSR1, jump_out);
    for (volatile long round = 0; round < rounds; round++) {
        if (sigsetjmp(back, 1) == 0) {
            raise_below(round % 6);
        }
        if (round % 1000 == 0) {
            mark(71003);
        }
    }
    mark(71005);
}

/* --- a copy interrupted by a fault --------------------------------------------------------------
 */

static char *page;
static size_t page_size;
static volatile size_t fault_size;

static void on_fault(int number) {
    (void)number;
    mark(fault_size);
    mprotect(page, page_size, PROT_READ | PROT_WRITE);
}

/* memcpy allocates nothing, so only the rare path has to be prepared for an allocation. */
NOINLINE static void copy(const char *from, size_t size, int rare) {
    memcpy(page, from, size);
    if (rare) {
        mark(71101);
    }
}

NOINLINE static void copy_rarely(const char *from) {
    copy(from, (size_t)opaque(64), 1);
    keep(from);
}

NOINLINE static void copy_often(const char *from) {
    copy(from, (size_t)opaque(64), 0);
    keep(from);
}

static void storm_interrupted_copy(long rounds) {
    static const char text[64] = "text";
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    page = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGSEGV, on_fault);
    for (long round = 0; round < rounds / 20; round++) {
        copy_rarely(text);
        mprotect(page, page_size, PROT_NONE);
        fault_size = 71103;
        copy_often(text);
        fault_size = 71105;
        mprotect(page, page_size, PROT_NONE);
        copy_rarely(text);
    }
    mark(71107);
}

/* --- an early path interrupted ------------------------------------------------------------------
 */

enum how { LATE, TRAP, RAISE, BELOW, NESTED, TOLD };
static volatile int handler_nests;
static void (*volatile poke)(void);

static void trap(void) {
    __asm__ volatile("int3");
}

/* Allocates nothing, by all that is known of it. */
NOINLINE static long trap_below(long depth) {
    char frame[48];
    keep(frame);
    if (depth == 0) {
        trap();
        return 1;
    }
    return trap_below(depth - 1) + frame[opaque(0)] * 0 + 1;
}

/* The programmer knows that this never allocates; the compiler does not. */
NO_ALLOC NOINLINE static void poke_quietly(void) {
    char frame[16];
    keep(frame);
    poke();
    keep(frame);
}

NOINLINE static long interrupted(enum how how, size_t size) {
    if (how == TRAP) {
        trap();
        return 1;
    }
    if (how == RAISE) {
        raise(SIGTRAP);
        return 2;
    }
    if (how == BELOW || how == NESTED) {
        return trap_below(3);
    }
    if (how == TOLD) {
        poke_quietly();
        return 3;
    }
    mark(size);
    return 4;
}

/* The handler's own early path may be interrupted once more. */
NOINLINE static void handle(int nested) {
    if (nested) {
        trap();
        return;
    }
    mark(71201);
}

static void on_trap(int number) {
    int nested = handler_nests;
    (void)number;
    handle(0);
    handler_nests = 0;
    if (nested) {
        handle(1);
    }
    mark(71203);
}

NOINLINE static void known_before(void) {
    long result = interrupted(LATE, 71205);
    keep(&result);
}

NOINLINE static void interrupt(enum how how) {
    long result;
    handler_nests = how == NESTED;
    result = interrupted(how, 0);
    keep(&result);
}

static void storm_stale_word(long rounds) {
    struct sigaction action = {.sa_handler = on_trap, .sa_flags = SA_NODEFER};
    sigaction(SIGTRAP, &action, NULL);
    poke = trap;
    for (long round = 0; round < rounds / 100; round++) {
        known_before();
        interrupt(TRAP);
        known_before();
        interrupt(RAISE);
        known_before();
        interrupt(BELOW);
        known_before();
        interrupt(NESTED);
        known_before();
        interrupt(TOLD);
        mark(71207);
    }
}

int main(int argc, char **argv) {
    static const struct storm storms[] = {{"siglongjmp", storm_siglongjmp},
                                          {"interrupted_copy", storm_interrupted_copy},
                                          {"stale_word", storm_stale_word}};
    return storm_main(argc, argv, storms, sizeof storms / sizeof *storms);
}
