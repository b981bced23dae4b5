/* SPDX-License-Identifier: MIT */
/*
 * stacks.c: allocations under interesting stacks, in C. `stacks NAME` runs one case; each
 * allocation has a size of its own above 70,000 (backtraces.py finds it by that, in gdb and in the
 * profile). Nothing is freed but where the case says so.
 */
#include "depth.h"

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <ucontext.h>

NOINLINE static void *take(size_t size) {
    disturb();
    void *block = malloc(size);
    keep(block);
    return block;
}

NOINLINE static void plain_inner(void) {
    take(70001);
    keep(malloc(70003));
}

NOINLINE static void case_plain(void) {
    take(70005);
    plain_inner();
    keep(calloc(1, 70007));
    keep(realloc(take(70009), 70011));
    plain_inner(); /* the same functions from another line: other contexts */
}

NOINLINE static int recurse(int depth) {
    if (depth == 0) {
        keep(take(70021));
        return 0;
    }
    int result = recurse(depth - 1) + 1;
    if (depth == 20) {
        keep(take(70023));
    }
    return result;
}

static void case_recursion(void) {
    check(recurse(60) == 60, "recursion");
}

NOINLINE static int deep(int depth) {
    volatile int local = depth;
    if (depth == 0) {
        keep(malloc(70031));
        return 0;
    }
    int result = deep(depth - 1) + 1;
    keep((const void *)&local);
    if (depth == 99990) {
        keep(malloc(70033));
    }
    return result;
}

static void case_deep(void) {
    check(deep(100000) == 100000, "deep recursion");
}

static int compare(const void *left, const void *right) {
    static int done;
    if (!done) {
        done = 1;
        keep(take(70041));
    }
    return *(const int *)left - *(const int *)right;
}

static void case_qsort(void) {
    int numbers[] = {5, 3, 9, 1, 7};
    qsort(numbers, 5, sizeof *numbers, compare);
    check(numbers[0] == 1 && numbers[4] == 9, "sorted");
    take(70043);
}

NOINLINE static void case_strdup(void) {
    static char text[70052];
    memset(text, 'x', 70050);
    keep(strdup(text)); /* 70,051 bytes */
    text[70050 - 10] = 0;
    keep(strndup(text, 80000)); /* 70,041 bytes */
}

NOINLINE static void use_alloca(size_t size) {
    char *local = alloca(opaque(size));
    memset(local, 1, size);
    keep(local);
    take(70061 + size);
    keep(local);
}

static void case_alloca(void) {
    use_alloca(100);
    use_alloca(10000);
    size_t size = opaque(321);
    char array[size];
    keep(array);
    keep(malloc(70063));
    keep(array);
}

NOINLINE static void variadic(int count, ...) {
    va_list list;
    va_start(list, count);
    for (int i = 0; i < count; i++) {
        take(va_arg(list, size_t));
    }
    va_end(list);
}

static void case_variadic(void) {
    variadic(2, (size_t)70071, (size_t)70073);
    double number = (double)opaque(3);
    variadic(1, (size_t)70075, number, number);
}

struct large {
    char bytes[300];
};

NOINLINE static struct large give_large(struct large in) {
    take(70081);
    in.bytes[0]++;
    return in;
}

NOINLINE static __int128 give_wide(__int128 in) {
    take(70083);
    return in * 3;
}

NOINLINE static long double give_long_double(long double in) {
    take(70085);
    return in * 2.0L;
}

NOINLINE static _Complex double give_complex(_Complex double in) {
    take(70087);
    return in * in;
}

typedef float vector __attribute__((vector_size(16)));
NOINLINE static vector give_vector(vector in) {
    take(70089);
    return in + in;
}

static void case_returns(void) {
    struct large large = {{1}};
    check(give_large(large).bytes[0] == 2, "large struct");
    check(give_wide((__int128)1 << 100) == ((__int128)3 << 100), "__int128");
    check(give_long_double(1.5L) == 3.0L, "long double");
    check(__real__ give_complex(2.0) == 4.0, "complex");
    check(give_vector((vector){1, 2, 3, 4})[3] == 8.0f, "vector");
}

NOINLINE static void *tail_end(size_t size) {
    void *block = malloc(size);
    keep(block);
    return block;
}

NOINLINE static void *tail_middle(size_t size) {
    return tail_end(size + 1);
}

NOINLINE static void *tail_malloc(size_t size) {
    return malloc(size);
}

static void case_tail_calls(void) {
    keep(tail_middle(70090));
    keep(tail_malloc(70093));
    keep(take(70095));
}

static void *(*volatile pointer_to_take)(size_t) = take;

static void case_function_pointers(void) {
    keep(pointer_to_take(70101));
    void *(*volatile direct)(size_t) = malloc;
    keep(direct(70103));
}

static inline __attribute__((always_inline)) void *inline_inner(size_t size) {
    void *block = malloc(size);
    keep(block);
    return block;
}

static inline __attribute__((always_inline)) void *inline_outer(size_t size) {
    void *block = inline_inner(size);
    keep(take(size + 2));
    return block;
}

static void case_inlined(void) {
    keep(inline_outer(70111));
    keep(inline_inner(70115));
}

static jmp_buf back;

NOINLINE static void jump(int depth, size_t size) {
    char frame[64];
    keep(frame);
    if (depth > 0) {
        jump(depth - 1, size);
        keep(frame);
        return;
    }
    take(size);
    longjmp(back, 1);
}

static void case_longjmp(void) {
    volatile int round = 0;
    if (setjmp(back) != 0) {
        take(70121 + (size_t)round);
    }
    while (round < 5) {
        round++;
        take(70131 + (size_t)round);
        jump(7, 70141 + (size_t)round);
    }
    take(70151);
}

static sigjmp_buf back_from_signal;

static void jump_out(int number) {
    (void)number;
    take(70161);
    siglongjmp(back_from_signal, 1);
}

NOINLINE static void raise_below(int depth) {
    char frame[64];
    keep(frame);
    if (depth > 0) {
        raise_below(depth - 1);
    } else {
        raise(SIGUSR1);
    }
    keep(frame);
}

static void case_siglongjmp(void) {
    signal(SIGUSR1, jump_out);
    if (sigsetjmp(back_from_signal, 1) == 0) {
        raise_below(5);
    }
    take(70163);
}

static void on_signal(int number) {
    (void)number;
    take(number == SIGUSR1 ? 70171 : 70173);
}

/* A fault is a signal between two instructions of the very function. */
NOINLINE static void fault(volatile int *nowhere) {
    take(70175);
    *nowhere = 1;
    take(70177);
}

static int *volatile good_place;
static sigjmp_buf after_fault;

static void on_fault(int number) {
    (void)number;
    take(70179);
    siglongjmp(after_fault, 1);
}

static void case_signal(void) {
    signal(SIGUSR1, on_signal);
    raise_below(3);
    signal(SIGSEGV, on_fault);
    if (sigsetjmp(after_fault, 1) == 0) {
        fault(good_place);
    }
    take(70181);
}

static void case_sigaltstack(void) {
    stack_t stack = {.ss_sp = malloc(69632), .ss_size = 69632};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise_below(4);
    action.sa_handler = jump_out;
    sigaction(SIGUSR1, &action, NULL);
    if (sigsetjmp(back_from_signal, 1) == 0) {
        raise_below(2);
    }
    take(70191);
}

NOINLINE static void in_thread(size_t size) {
    take(size);
}

static void *thread_main(void *argument) {
    in_thread((size_t)argument);
    return NULL;
}

static void *thread_exits(void *argument) {
    in_thread((size_t)argument);
    pthread_exit(NULL);
}

static void case_threads(void) {
    pthread_t thread;
    for (size_t i = 0; i < 3; i++) {
        pthread_create(&thread, NULL, i == 1 ? thread_exits : thread_main, (void *)(70201 + 2 * i));
        pthread_join(thread, NULL);
    }
    take(70209);
}

static void cleanup(void *argument) {
    in_thread((size_t)argument);
}

static void *cancelled(void *argument) {
    (void)argument;
    pthread_cleanup_push(cleanup, (void *)(size_t)70211);
    take(70213);
    for (;;) {
        pause();
    }
    pthread_cleanup_pop(0);
    return NULL;
}

static void case_cancel(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, cancelled, NULL);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    take(70215);
}

static ucontext_t scheduler, fibers[2];
static int fiber_done[2];

NOINLINE static void fiber_step(int which, int step) {
    take(70221 + (size_t)(which * 10 + step * 2));
    swapcontext(&fibers[which], &scheduler);
    take(70251 + (size_t)(which * 10 + step * 2));
}

static void fiber_main(int which) {
    for (int step = 0; step < 3; step++) {
        fiber_step(which, step);
    }
    fiber_done[which] = 1;
}

static void case_fibers(void) {
    static char stacks[2][65536];
    for (int i = 0; i < 2; i++) {
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_sp = stacks[i];
        fibers[i].uc_stack.ss_size = sizeof stacks[i];
        fibers[i].uc_link = &scheduler;
        makecontext(&fibers[i], (void (*)(void))fiber_main, 1, i);
    }
    while (!fiber_done[0] || !fiber_done[1]) {
        for (int i = 0; i < 2; i++) {
            if (!fiber_done[i]) {
                swapcontext(&scheduler, &fibers[i]);
            }
        }
        keep(malloc(24));
    }
    take(70271);
}

static void at_exit(void) {
    take(70281);
}

__attribute__((constructor)) static void before_main(void) {
    if (getenv("SUBJECT_CONSTRUCTOR") != NULL) {
        take(70283);
    }
}

__attribute__((destructor)) static void after_main(void) {
    if (getenv("SUBJECT_CONSTRUCTOR") != NULL) {
        take(70287);
    }
}

static void case_exits(void) {
    atexit(at_exit);
    take(70285);
}

static pthread_key_t key;

static void key_gone(void *value) {
    take((size_t)value);
}

static void *thread_with_key(void *argument) {
    pthread_setspecific(key, argument);
    return NULL;
}

static void case_thread_keys(void) {
    pthread_t thread;
    pthread_key_create(&key, key_gone);
    pthread_create(&thread, NULL, thread_with_key, (void *)(size_t)70291);
    pthread_join(thread, NULL);
    take(70293);
}

#if defined(__x86_64__)
/* Has a frame word, as the compiler's pass makes them, and writes over it. */
NOINLINE static void scribble(uint32_t value, size_t size) {
    uint32_t word;
    __asm__ volatile("movl $0x5a17c0de, %0" : "=m"(word));
    __asm__ volatile("movl %1, %0" : "+m"(word) : "r"(value));
    keep(malloc(size));
    keep(&word);
    check(value == 0x5a17c0de || word == value, "what is no word is left alone");
}

static void case_scribbled(void) {
    scribble(0x5a17c0de, 70301);
    scribble(0, 70303);
    scribble(0x4d4d4d4d, 70305);
    scribble(UINT32_MAX, 70307);
    scribble(1 << 24, 70309);
    scribble((1 << 24) - 1, 70311); /* a context that there is not */
}
#else
static void case_scribbled(void) {
    take(70301);
}
#endif

static const struct subject_case cases[] = {
    CASE(plain),     CASE(recursion), CASE(deep),    CASE(qsort),      CASE(strdup),
    CASE(alloca),    CASE(variadic),  CASE(returns), CASE(tail_calls), CASE(function_pointers),
    CASE(inlined),   CASE(longjmp),   CASE(signal),  CASE(siglongjmp), CASE(sigaltstack),
    CASE(threads),   CASE(cancel),    CASE(fibers),  CASE(exits),      CASE(thread_keys),
    CASE(scribbled),
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
