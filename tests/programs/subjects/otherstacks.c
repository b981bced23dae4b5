/* SPDX-License-Identifier: MIT */
/*
 * otherstacks.c: allocations on stacks that are not the thread's own, or that nobody told of.
 * `otherstacks calls WHERE` makes PAIRS pairs of malloc and free in ten frames there and prints how
 * many system calls that took. `otherstacks CASE` takes blocks whose sizes otherstacks.py knows.
 */
#include "subject.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>

enum { STACK = 64 * 1024, PAGE = 4096, FRAMES = 10, PAIRS = 20000, WARM = 1000 };

NOINLINE static void take(size_t size) {
    keep(malloc(size));
}

static char *map_at(void *place, size_t size) {
    return mmap(place, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | (place != NULL ? MAP_FIXED : 0), -1, 0);
}

/* --- how many system calls ---------------------------------------------------------------------
 */

static volatile long calls;

/* Refuses them all but what ends the program. */
static void on_call(int signal, siginfo_t *info, void *context) {
    calls++;
}

static void count_calls(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGSYS);
    sigaction(SIGSYS, &action, NULL);
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL); /* a timer's thread is started with all blocked */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(77);
    }
}

NOINLINE static void pairs(long count) {
    for (long i = 0; i < count; i++) {
        void *block = malloc(32);
        keep(block);
        free(block);
    }
}

NOINLINE static void measure(void) {
    char text[32];
    pairs(WARM);
    count_calls();
    for (int i = 0; i < 2; i++) {
        pairs(PAIRS / 2);
    }
    int length = snprintf(text, sizeof text, "%ld\n", calls);
    syscall(SYS_write, 1, text, length);
    syscall(SYS_exit_group, 0);
}

static void (*below)(void); /* what descend() comes to */

NOINLINE static int descend(int depth) {
    volatile int here = depth;
    if (depth == 0) {
        below();
        return 0;
    }
    return descend(depth - 1) + here;
}

static void in_fiber(void) {
    descend(FRAMES - 2);
}

static int in_thread(void *argument) {
    in_fiber();
    return 0;
}

static void in_timer(union sigval value) {
    in_fiber();
}

static void in_handler(int signal) {
    in_fiber();
}

static ucontext_t outside, fiber;

static void run_fiber(char *stack, size_t size, void (*function)(void)) {
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_stack.ss_size = size;
    fiber.uc_link = &outside;
    makecontext(&fiber, function, 0);
    swapcontext(&outside, &fiber);
}

static void run_thread(void) {
    thrd_t thread;
    thrd_create(&thread, in_thread, NULL);
    thrd_join(thread, NULL);
}

/* The timer's own thread is the C library's. */
static void run_timer(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = in_timer};
    struct itimerspec at_once = {.it_value = {.tv_nsec = 1000}};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &at_once, NULL);
    sleep(20);
}

static void run_handler(void) {
    stack_t stack = {.ss_sp = map_at(NULL, STACK), .ss_size = STACK};
    struct sigaction action = {.sa_handler = in_handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

static void run_clone(void) {
    int child = clone(in_thread, map_at(NULL, STACK) + STACK, CLONE_VM | SIGCHLD, NULL);
    waitpid(child, NULL, 0);
}

static int calls_on(const char *where) {
    below = measure;
    if (strcmp(where, "own") == 0) {
        in_fiber();
    } else if (strcmp(where, "fiber") == 0) {
        run_fiber(map_at(NULL, STACK), STACK, in_fiber);
    } else if (strcmp(where, "thread") == 0) {
        run_thread();
    } else if (strcmp(where, "timer") == 0) {
        run_timer();
    } else if (strcmp(where, "handler") == 0) {
        run_handler();
    } else if (strcmp(where, "clone") == 0) {
        run_clone();
    }
    return 0; /* clone's parent; else this is not reached */
}

/* --- stacks that become smaller ----------------------------------------------------------------
 */

/* start_on(top, function, back): goes on in the function, whose return slot, at top - 8, holds
 * `back`: nobody called it. It ends by leave(). */
void start_on(char *top, void (*function)(void), const void *back);
void leave(void);
/* A function whose frame is a page, an address in it, and the one behind the call in it. */
void pretended(void);
extern const char in_pretended[], behind_call[];
static void *left __attribute__((used));
__asm__(".text\n"
        ".type start_on, @function\n"
        "start_on:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, left(%rip)\n"
        "    movq %rdi, %rsp\n"
        "    pushq %rdx\n"
        "    xorl %ebp, %ebp\n"
        "    jmp *%rsi\n"
        ".size start_on, . - start_on\n"
        ".type leave, @function\n"
        "leave:\n"
        "    movq left(%rip), %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size leave, . - leave\n"
        ".type pretended, @function\n"
        "pretended:\n"
        "    .cfi_startproc\n"
        "    subq $4088, %rsp\n"
        "    .cfi_def_cfa_offset 4096\n"
        "    nop\n"
        "in_pretended:\n"
        "    nop\n"
        "    call abort@PLT\n"
        "behind_call:\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size pretended, . - pretended\n");

static size_t size;

NOINLINE static void alone(void) {
    take(size);
    take(size + 2);
    leave();
}

NOINLINE static void deep_alone(void) {
    below = alone; /* as good as any: what matters is that frames lie between */
    descend(FRAMES);
    leave();
}

/* By a system call that nobody sees, or by the C library. */
static void unmap(void *place, size_t bytes, int is_seen) {
    if (is_seen) {
        munmap(place, bytes);
    } else {
        syscall(SYS_munmap, place, bytes);
    }
}

/* What the outermost function of a stack finds in its return slot, and what is a page further on,
 * in the stack above it. */
static const struct {
    const void *back, *beyond;
    int must_be_seen;
} ends[] = {{NULL, NULL, 0},
            {"no code", NULL, 0},
            {behind_call, NULL, 0},
            {in_pretended, behind_call, 0},
            /* As if it had been called: then the other stack goes only in a way that is seen. */
            {behind_call, behind_call, 1}};

/* The same frames at the same addresses twice, and twice when the stack above is gone. */
static void run_and_unmap(void (*function)(void), int end, int is_seen) {
    char *stack = map_at(NULL, 2 * STACK);
    char *top = stack + STACK;
    *(const void **)(top + PAGE - sizeof(void *)) = ends[end].beyond;
    for (int gap = 0; gap < 2; gap++) {
        start_on(top, function, ends[end].back);
        start_on(top, function, ends[end].back);
        if (gap == 0) {
            unmap(top, STACK, is_seen);
        }
        size += 4;
    }
}

static void case_neighbour(void) {
    for (int is_seen = 0; is_seen < 2; is_seen++) {
        for (int end = 0; end < (int)(sizeof ends / sizeof *ends); end++) {
            if (is_seen || !ends[end].must_be_seen) {
                size = 71001 + (size_t)(is_seen * 1000 + end * 100);
                run_and_unmap(alone, end, is_seen);
                run_and_unmap(deep_alone, end, is_seen);
            }
        }
    }
}

NOINLINE static void once(void) {
    take(size);
    leave();
}

/* The same frames at the same addresses, but for who is said to have called the first. */
static void case_caller(void) {
    char *stack = map_at(NULL, 2 * STACK);
    for (int i = 0; i < 6; i++) {
        size = 72001 + (size_t)(i % 2) * 4;
        start_on(stack + STACK, once, i % 2 ? behind_call : NULL);
    }
}

static void fiber_main(void) {
    descend(FRAMES);
}

static void take_two(void) {
    take(size);
    take(size + 2);
}

/* A fiber's stack is freed, and the next one at the same place is smaller, or larger. */
static void case_smaller(void) {
    char *place = map_at(NULL, 2 * STACK);
    below = take_two;
    size = 73001;
    for (int round = 0; round < 12; round++) {
        size_t pages = round % 2 ? 3 : 2 * STACK / PAGE;
        syscall(SYS_munmap, place, 2 * STACK);
        map_at(place, pages * PAGE);
        run_fiber(place, pages * PAGE, fiber_main);
        /* And at the very addresses of the small one. */
        run_fiber(place, 3 * PAGE, fiber_main);
    }
}

/* --- who was interrupted -----------------------------------------------------------------------
 */

static void on_interruption(int signal) {
    take(size);
    take(size + 2);
}

/* Two functions alike, each interrupted within itself. */
#define INTERRUPTED(name)                                                                          \
    NOINLINE static void name(int pid, int thread) {                                               \
        long result;                                                                               \
        __asm__ volatile("syscall"                                                                 \
                         : "=a"(result)                                                            \
                         : "a"(SYS_tgkill), "D"(pid), "S"(thread), "d"(SIGUSR1)                    \
                         : "rcx", "r11", "memory");                                                \
        keep(&result);                                                                             \
    }
INTERRUPTED(first_interrupted)
INTERRUPTED(second_interrupted)

static void case_interrupted(void) {
    stack_t stack = {.ss_sp = map_at(NULL, STACK), .ss_size = STACK};
    struct sigaction action = {.sa_handler = on_interruption, .sa_flags = SA_ONSTACK};
    void (*functions[])(int, int) = {first_interrupted, second_interrupted};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 12; i++) {
        size = 74001 + (size_t)(i % 2) * 4;
        functions[i % 2](getpid(), gettid());
    }
}

/* --- threads that nobody told of ----------------------------------------------------------------
 */

NOINLINE static int descend_far(int depth) {
    volatile char room[512];
    room[0] = (char)depth;
    if (depth == 0) {
        take(75001);
        take(75003);
        return room[0];
    }
    if (depth % 100 == 0) { /* not everywhere: the stack is found out by and by, or in one go */
        take(75005);
    }
    return descend_far(depth - 1) + room[0];
}

static int far_in_thread(void *argument) {
    if (argument != NULL) {
        take(75007);
    }
    descend_far(400);
    /* And a fiber whose stack lies within this one's. */
    char stack[STACK];
    size = 75009;
    below = take_two;
    run_fiber(stack, STACK, fiber_main);
    return 0;
}

static void case_threads(void) {
    for (int i = 0; i < 4; i++) {
        thrd_t thread;
        thrd_create(&thread, far_in_thread, i % 2 ? &thread : NULL);
        thrd_join(thread, NULL);
    }
}

int main(int count, char **arguments) {
    static const struct subject_case cases[] = {CASE(neighbour), CASE(caller), CASE(smaller),
                                                CASE(interrupted), CASE(threads)};
    if (count == 3 && strcmp(arguments[1], "calls") == 0) {
        return calls_on(arguments[2]);
    }
    const struct subject_case *found = FIND_CASE(cases, count, arguments);
    if (found == NULL) {
        return 2;
    }
    found->run();
    return 3;
}
