/* SPDX-License-Identifier: MIT */
/*
 * switches.c: stacks that are switched, moved to other threads, handed in by the user, used twice,
 * copied away and back. `switches NAME` runs one case, as stacks.c does.
 */
#include "depth.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK = 256 * 1024, DEPTH = 60, ROUNDS = 6 };

NOINLINE static void take(size_t size) {
    disturb();
    keep(malloc(size));
}

/* --- fibers by ucontext ------------------------------------------------------------------------
 */

struct fiber {
    ucontext_t own, resumer;
    int number, steps, over;
    long sum;
};

/* Allocates at the bottom, leaves, and must find everything as it was when it goes on: on another
 * thread, perhaps, so nothing of a thread's may be kept across the switch. */
NOINLINE static long descend(struct fiber *fiber, int depth, int round) {
    volatile long local = (long)depth * 3 + round;
    if (depth == 0) {
        take(73001 + (size_t)(fiber->number * 40 + round * 4));
        swapcontext(&fiber->own, &fiber->resumer);
        take(73003 + (size_t)(fiber->number * 40 + round * 4));
        return local;
    }
    long below = descend(fiber, depth - 1, round);
    if (depth % 20 == 0) {
        disturb();
    }
    return below + local;
}

static void fiber_main(unsigned high, unsigned low) {
    struct fiber *fiber = (struct fiber *)((uintptr_t)high << 32 | low);
    for (int round = 0; round < ROUNDS; round++) {
        fiber->sum += descend(fiber, DEPTH, round);
    }
    fiber->over = 1;
}

static void fiber_make(struct fiber *fiber, int number, void *stack) {
    memset(fiber, 0, sizeof *fiber);
    fiber->number = number;
    getcontext(&fiber->own);
    fiber->own.uc_stack.ss_sp = stack;
    fiber->own.uc_stack.ss_size = STACK;
    fiber->own.uc_link = &fiber->resumer;
    makecontext(&fiber->own, (void (*)(void))fiber_main, 2, (unsigned)((uintptr_t)fiber >> 32),
                (unsigned)(uintptr_t)fiber);
}

NOINLINE static void fiber_resume(struct fiber *fiber) {
    swapcontext(&fiber->resumer, &fiber->own);
    fiber->steps++;
}

static void fiber_check(const struct fiber *fiber) {
    long want = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int depth = 0; depth <= DEPTH; depth++) {
            want += (long)depth * 3 + round;
        }
    }
    check(fiber->over && fiber->sum == want, "what the fiber computed");
}

static struct fiber fibers[2];

static void resume_both(void) {
    while (!fibers[0].over || !fibers[1].over) {
        for (int i = 0; i < 2; i++) {
            if (!fibers[i].over) {
                fiber_resume(&fibers[i]);
                disturb();
            }
        }
    }
}

static void case_fibers_interleaved(void) {
    static char stacks[2][STACK];
    for (int i = 0; i < 2; i++) {
        fiber_make(&fibers[i], i, stacks[i]);
    }
    resume_both();
    fiber_check(&fibers[0]);
    fiber_check(&fibers[1]);
    take(73901);
}

/* Their stacks lie within the thread's own. */
NOINLINE static void fibers_inside(void) {
    char stacks[2][STACK];
    keep(stacks);
    for (int i = 0; i < 2; i++) {
        fiber_make(&fibers[i], i, stacks[i]);
    }
    resume_both();
    fiber_check(&fibers[0]);
    fiber_check(&fibers[1]);
    keep(stacks);
}

static void case_fibers_inside(void) {
    fibers_inside();
    take(73903);
}

static void *resume_once(void *fiber) {
    fiber_resume(fiber);
    disturb();
    return NULL;
}

/* A fiber that goes on by turns here and on a new thread each time. */
static void migrate(void *stack) {
    struct fiber *fiber = &fibers[0];
    fiber_make(fiber, 0, stack);
    while (!fiber->over) {
        pthread_t thread;
        pthread_create(&thread, NULL, resume_once, fiber);
        pthread_join(thread, NULL);
        if (!fiber->over) {
            fiber_resume(fiber);
        }
    }
    fiber_check(fiber);
}

static void case_fiber_moves(void) {
    static char stack[STACK];
    migrate(stack);
    take(73905);
}

static void case_fiber_moves_inside(void) {
    char stack[STACK];
    migrate(stack);
    take(73907);
}

/* --- a switch in assembly, as boost.context's ------------------------------------------------- */

/* Leaves this stack, noting where it was in *from, for the one noted in `to`. */
void switch_stack(void **from, void *to);
void switch_start(void); /* the first frame of a new stack: calls rbx(r12) */
__asm__(".text\n"
        ".globl switch_stack\n"
        ".type switch_stack, @function\n"
        "switch_stack:\n"
        "    .cfi_startproc\n"
        "    pushq %rbp\n    .cfi_adjust_cfa_offset 8\n    .cfi_rel_offset rbp, 0\n"
        "    pushq %rbx\n    .cfi_adjust_cfa_offset 8\n    .cfi_rel_offset rbx, 0\n"
        "    pushq %r12\n    .cfi_adjust_cfa_offset 8\n    .cfi_rel_offset r12, 0\n"
        "    pushq %r13\n    .cfi_adjust_cfa_offset 8\n    .cfi_rel_offset r13, 0\n"
        "    pushq %r14\n    .cfi_adjust_cfa_offset 8\n    .cfi_rel_offset r14, 0\n"
        "    pushq %r15\n    .cfi_adjust_cfa_offset 8\n    .cfi_rel_offset r15, 0\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    .cfi_def_cfa_offset 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size switch_stack, . - switch_stack\n"
        ".globl switch_start\n"
        ".type switch_start, @function\n"
        "switch_start:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n"
        "    movq %r12, %rdi\n"
        "    call *%rbx\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size switch_start, . - switch_start\n");

struct strand {
    void *own, *resumer;
    int number, over;
    long sum;
};

NOINLINE static long follow(struct strand *strand, int depth, int round) {
    volatile long local = (long)depth + round;
    if (depth == 0) {
        take(74001 + (size_t)(strand->number * 40 + round * 4));
        switch_stack(&strand->own, strand->resumer);
        take(74003 + (size_t)(strand->number * 40 + round * 4));
        return local;
    }
    return follow(strand, depth - 1, round) + local;
}

static void strand_main(struct strand *strand) {
    for (int round = 0; round < ROUNDS; round++) {
        strand->sum += follow(strand, DEPTH, round);
    }
    strand->over = 1;
    switch_stack(&strand->own, strand->resumer);
}

static void strand_make(struct strand *strand, int number, char *stack) {
    void **top = (void **)(stack + STACK) - 9; /* so that calls are aligned */
    *strand = (struct strand){.number = number, .own = top};
    memset(top, 0, 9 * sizeof *top);
    top[3] = strand;               /* r12 */
    top[4] = (void *)strand_main;  /* rbx */
    top[6] = (void *)switch_start; /* "returned" to */
}

static void case_assembly_switch(void) {
    static char stacks[2][STACK] __attribute__((aligned(16)));
    struct strand strands[2];
    strand_make(&strands[0], 0, stacks[0]);
    strand_make(&strands[1], 1, stacks[1]);
    for (int round = 0; round <= ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            switch_stack(&strands[i].resumer, strands[i].own);
            disturb();
        }
    }
    check(strands[0].over && strands[1].over && strands[0].sum == strands[1].sum, "the strands");
    check(strands[0].sum ==
              ROUNDS * DEPTH * (DEPTH + 1) / 2 + (DEPTH + 1) * ROUNDS * (ROUNDS - 1) / 2,
          "their sums");
    take(74901);
}

/* --- threads on stacks of the user's -----------------------------------------------------------
 */

NOINLINE static long count_down(int depth, size_t size) {
    volatile long local = depth;
    if (depth == 0) {
        take(size);
        return 0;
    }
    long below = count_down(depth - 1, size);
    if (depth == DEPTH / 2) {
        take(size + 2);
    }
    return below + local;
}

static void *on_given_stack(void *size) {
    return (void *)count_down(DEPTH, (size_t)size);
}

/* The second thread finds on its stack what the first one left there. */
static void case_user_stacks(void) {
    char *memory = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    for (size_t i = 0; i < 4; i++) {
        pthread_t thread;
        void *sum;
        pthread_attr_setstack(&attributes, memory, STACK - (i / 2) * 4096);
        pthread_create(&thread, &attributes, on_given_stack, (void *)(75001 + 4 * i));
        pthread_join(thread, &sum);
        check((long)sum == DEPTH * (DEPTH + 1) / 2, "on the user's stack");
    }
    pthread_attr_destroy(&attributes);
    munmap(memory, STACK);
    take(75901);
}

/* --- slices of a stack copied away and back, as greenlet does -----------------------------------
 */

struct slice {
    jmp_buf inside;
    char *copy, *low;
    size_t size;
    int number, started, over;
    long sum;
};

static char *slice_base; /* the slices lie below */
static jmp_buf outside;

NOINLINE static void slice_leave(struct slice *slice) {
    if (setjmp(slice->inside) == 0) {
        slice->low = (char *)__builtin_frame_address(0) - 512;
        slice->size = (size_t)(slice_base - slice->low);
        slice->copy = realloc(slice->copy, slice->size);
        memcpy(slice->copy, slice->low, slice->size);
        longjmp(outside, 1);
    }
}

NOINLINE static long slice_descend(struct slice *slice, int depth, int round) {
    volatile long local = (long)depth * 5 + round + slice->number;
    if (depth == 0) {
        take(76001 + (size_t)(slice->number * 40 + round * 4));
        slice_leave(slice);
        take(76003 + (size_t)(slice->number * 40 + round * 4));
        return local;
    }
    long below = slice_descend(slice, depth - 1, round);
    if (depth % 16 == 0) {
        disturb();
    }
    return below + local;
}

NOINLINE static void slice_body(struct slice *slice) {
    for (int round = 0; round < ROUNDS; round++) {
        slice->sum += slice_descend(slice, DEPTH + slice->number * 7, round);
    }
    slice->over = 1;
    longjmp(outside, 1);
}

/* From below the place that is to be overwritten. */
NOINLINE static void slice_restore(struct slice *slice) {
    char room[4096];
    keep(room);
    if ((char *)__builtin_frame_address(0) > slice->low - 4096) {
        slice_restore(slice);
    }
    memcpy(slice->low, slice->copy, slice->size);
    longjmp(slice->inside, 1);
}

NOINLINE static void slice_enter(struct slice *slice) {
    slice_base = (char *)__builtin_frame_address(0) - 64;
    if (setjmp(outside) == 0) {
        if (slice->started++ == 0) {
            char gap[256]; /* what is below the base is the slice's */
            keep(gap);
            slice_body(slice);
            keep(gap);
        }
        slice_restore(slice);
    }
}

static void case_copied_slices(void) {
    struct slice slices[2] = {{.number = 0}, {.number = 1}};
    while (!slices[0].over || !slices[1].over) {
        for (int i = 0; i < 2; i++) {
            if (!slices[i].over) {
                slice_enter(&slices[i]);
                disturb();
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        long want = 0;
        for (int round = 0; round < ROUNDS; round++) {
            for (int depth = 0; depth <= DEPTH + i * 7; depth++) {
                want += (long)depth * 5 + round + i;
            }
        }
        check(slices[i].sum == want, "what the slice computed");
        free(slices[i].copy);
    }
    take(76901);
}

static const struct subject_case cases[] = {
    CASE(fibers_interleaved), CASE(fibers_inside), CASE(fiber_moves),   CASE(fiber_moves_inside),
    CASE(assembly_switch),    CASE(user_stacks),   CASE(copied_slices),
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
