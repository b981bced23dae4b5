/* SPDX-License-Identifier: MIT */
/*
 * leaving.c: threads that end deep within their stacks, jumps from there, and programs that look at
 * their own stacks. `leaving NAME` runs one case, as stacks.c does.
 */
#include "depth.h"

#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
#include <unwind.h>

enum { DEPTH = 80, EACH = 8 };

NOINLINE static void take(size_t size) {
    disturb();
    keep(malloc(size));
}

/* --- threads that end below ---------------------------------------------------------------------
 */

static int cleaned[2];

static void clean(void *depth) {
    cleaned[0]++;
    cleaned[1] += (int)(intptr_t)depth;
    disturb();
}

/* Every EACH frames there is something to clean up; at the bottom the thread ends or waits. */
NOINLINE static void nest(int depth, void (*bottom)(void)) {
    char frame[16];
    keep(frame);
    if (depth == 0) {
        disturb();
        bottom();
    } else if (depth % EACH == 0) {
        pthread_cleanup_push(clean, (void *)(intptr_t)depth);
        nest(depth - 1, bottom);
        pthread_cleanup_pop(0);
    } else {
        nest(depth - 1, bottom);
    }
    keep(frame);
}

static void leave_thread(void) {
    take(77001);
    pthread_exit((void *)71);
}

static void *exiting(void *unused) {
    (void)unused;
    nest(DEPTH, leave_thread);
    return NULL;
}

static pthread_barrier_t ready;

static void wait_to_be_cancelled(void) {
    take(77003);
    pthread_barrier_wait(&ready);
    for (;;) {
        pause();
    }
}

static void *cancelled(void *unused) {
    (void)unused;
    nest(DEPTH, wait_to_be_cancelled);
    return NULL;
}

static void end_below(void *(*thread_main)(void *), int is_cancelled) {
    void *result;
    pthread_t thread;
    cleaned[0] = cleaned[1] = 0;
    pthread_create(&thread, NULL, thread_main, NULL);
    if (is_cancelled) {
        pthread_barrier_wait(&ready);
        pthread_cancel(thread);
    }
    pthread_join(thread, &result);
    check(result == (is_cancelled ? PTHREAD_CANCELED : (void *)71), "how the thread ended");
    check(cleaned[0] == DEPTH / EACH, "each handler has run once");
    check(cleaned[1] == DEPTH / EACH * (DEPTH + EACH) / 2, "and each with its argument");
}

static void case_thread_exit_below(void) {
    for (int i = 0; i < 20; i++) {
        end_below(exiting, 0);
    }
    take(77005);
}

static void case_cancel_below(void) {
    pthread_barrier_init(&ready, NULL, 2);
    for (int i = 0; i < 20; i++) {
        end_below(cancelled, 1);
    }
    take(77007);
}

/* --- jumps
 * ---------------------------------------------------------------------------------------- */

static sigjmp_buf back;
static int jumps;

NOINLINE static void jump_from(int depth, int how) {
    char frame[24];
    keep(frame);
    if (depth > 0) {
        jump_from(depth - 1, how);
        keep(frame);
        return;
    }
    disturb();
    if (how == 0) {
        longjmp(back, 1);
    }
    raise(SIGUSR1);
}

static void on_signal(int number) {
    (void)number;
    disturb();
    siglongjmp(back, 1);
}

/* setjmp in a loop; the jumps come from ever other depths, out of a handler every other time, where
 * that runs on a stack of its own every fourth time. */
static void case_jumps_in_a_loop(void) {
    static char other_stack[65536];
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigaltstack(&stack, NULL);
    for (volatile int i = 0; i < 200; i++) {
        struct sigaction action = {.sa_handler = on_signal,
                                   .sa_flags = i % 4 == 1 ? SA_ONSTACK : 0};
        sigaction(SIGUSR1, &action, NULL);
        if (sigsetjmp(back, 1) == 0) {
            jump_from(i * 7 % 90, i % 2);
        } else {
            jumps++;
        }
        if (i % 50 == 0) {
            take(77101 + (size_t)i);
        }
    }
    check(jumps == 200, "each jump arrived");
}

/* --- looking at one's own stack -----------------------------------------------------------------
 */

static void *wanted[DEPTH + 1];

/* Notes what it returns to as long as that is sure to stand in its slot. */
NOINLINE static void descend(int depth, void (*bottom)(void)) {
    char frame[16];
    wanted[depth] = __builtin_return_address(0);
    keep(frame);
    if (depth == 0) {
        disturb();
        disturb();
        bottom();
    } else {
        descend(depth - 1, bottom);
    }
    keep(frame);
}

NOINLINE static void look_with_backtrace(void) {
    void *seen[DEPTH + 400];
    int count, at = 0;
    disturb();
    count = backtrace(seen, DEPTH + 400);
    while (at < count && seen[at] != wanted[0]) {
        at++;
    }
    check(at < 4 && count > at + DEPTH, "backtrace() finds descend()");
    check(at + DEPTH < count && memcmp(seen + at, wanted, sizeof wanted) == 0, "what it shows");
    disturb();
    check(backtrace(seen, 10) == 10, "backtrace() of ten frames");
}

struct seen {
    int count, found;
};

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *context, void *argument) {
    struct seen *seen = argument;
    void *pc = (void *)_Unwind_GetIP(context);
    disturb(); /* while the stack is walked */
    if (seen->found <= DEPTH && pc == wanted[seen->found]) {
        seen->found++;
    } else if (seen->found > 0 && seen->found <= DEPTH) {
        seen->found = -1000; /* one between them */
    }
    seen->count++;
    return _URC_NO_REASON;
}

NOINLINE static void look_with_unwinder(void) {
    for (int i = 0; i < 3; i++) {
        struct seen seen = {0, 0};
        disturb();
        _Unwind_Backtrace(on_frame, &seen);
        check(seen.found == DEPTH + 1, "_Unwind_Backtrace shows descend() and nothing between");
    }
}

static void case_own_backtrace(void) {
    descend(DEPTH, look_with_backtrace);
    descend(DEPTH, look_with_backtrace);
    take(77201);
}

static void case_own_unwinder(void) {
    descend(DEPTH, look_with_unwinder);
    take(77203);
}

/* --- being looked at
 * ------------------------------------------------------------------------------ */

static void be_ready(void) {
    say("ready\n");
    for (;;) {
        pause();
    }
}

/* Until it is killed. */
static void case_wait_below(void) {
    descend(DEPTH, be_ready);
}

static void spin(void) {
    for (clock_t end = clock() + CLOCKS_PER_SEC / 2; clock() < end;) {
    }
}

static void case_spin_below(void) {
    descend(DEPTH, spin);
}

/* From a handler that came upon any instruction. */
static void look_in_handler(int number) {
    (void)number;
    look_with_unwinder();
}

static void raise_it(void) {
    raise(SIGUSR2);
}

static void case_backtrace_in_handler(void) {
    signal(SIGUSR2, look_in_handler);
    descend(DEPTH, raise_it);
    take(77205);
}

static const struct subject_case cases[] = {
    CASE(thread_exit_below), CASE(cancel_below),         CASE(jumps_in_a_loop), CASE(own_backtrace),
    CASE(own_unwinder),      CASE(backtrace_in_handler), CASE(wait_below),      CASE(spin_below),
};

int main(int argc, char **argv) {
    const struct subject_case *found = FIND_CASE(cases, argc, argv);
    if (found == NULL) {
        return 98;
    }
    run_deep(found->run);
    say("done\n");
    return 3;
}
