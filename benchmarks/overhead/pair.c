/* SPDX-License-Identifier: MIT */
/*
 * pair.c: what one malloc+free pair costs, at a given depth of the call stack. Run by
 * benchmarks/run, built bare, with hooks and with frame pointers.
 *
 *   --depth N    frames from main() to the one that allocates, both included (default 10)
 *   --change K   frames left and entered again between two pairs (default 0: the pairs are made in
 *                one loop of one function, so compiler hooks do not count)
 *   --paths 2    those frames come alternately from two call sites each (default 1: the same path)
 *   --batch N --batches N    pairs in one timed batch, and batches; the median batch counts
 *   --size N     bytes of a block (default 64)
 *   --stack N    0: the first thread's own; 1: that of a fiber; 2: that of a thread of C11, which
 *                nobody tells a preloaded library of
 *   --asked N    measures N times, each when a line comes; says "ready" before (default: once, at
 *                once)
 *
 * With --change the same calls are timed without malloc and free too ("walk_ns"), so that what the
 * compiler's hooks cost can be told from what the allocation costs.
 */
#include "bench.h"

#include <threads.h>
#include <ucontext.h>

enum { OWN_STACK, FIBER, C11_THREAD, STACK_BYTES = 1 << 20 };

struct plan {
    long change, paths, batch, batches, asked;
    size_t size;
};

static volatile int allocating = 1;

static BENCH_FRAME void pairs_here(long count, size_t size) {
    for (long i = 0; i < count; i++) {
        void *block = malloc(size);
        BENCH_KEEP(block);
        free(block);
    }
}

/* Bit 0 of `path` chooses the call site of the outermost of the changing frames. */
static BENCH_FRAME void changing_frame(long left, unsigned long path, size_t size) {
    if (left <= 1) {
        if (allocating) {
            void *block = malloc(size);
            BENCH_KEEP(block);
            free(block);
        }
    } else if (path & 1) {
        changing_frame(left - 1, path >> 1, size);
        BENCH_CALL_SITE(1);
    } else {
        changing_frame(left - 1, path >> 1, size);
        BENCH_CALL_SITE(2);
    }
}

static BENCH_FRAME void changing_pairs(const struct plan *plan) {
    for (long i = 0; i < plan->batch; i++) {
        changing_frame(plan->change, plan->paths > 1 ? (unsigned long)i : 0, plan->size);
        BENCH_CALL_SITE(3);
    }
}

static BENCH_FRAME void one_batch(const struct plan *plan) {
    if (plan->change > 0)
        changing_pairs(plan);
    else
        pairs_here(plan->batch, plan->size);
    BENCH_CALL_SITE(4);
}

static BENCH_FRAME double median_pair_ns(const struct plan *plan) {
    static double pair_ns[BENCH_MAX_BATCHES];
    one_batch(plan); /* warm: caches, contexts, first pages */
    for (long i = 0; i < plan->batches; i++) {
        uint64_t start = bench_now_ns();
        one_batch(plan);
        pair_ns[i] = (double)(bench_now_ns() - start) / (double)plan->batch;
    }
    return bench_median(pair_ns, (int)plan->batches);
}

static BENCH_FRAME void measure(const struct plan *plan) {
    allocating = 1;
    bench_result("pair_ns", median_pair_ns(plan));
    if (plan->change > 0) {
        allocating = 0;
        bench_result("walk_ns", median_pair_ns(plan));
    }
}

static BENCH_FRAME void measure_when_asked(const struct plan *plan) {
    char line[16];
    if (plan->asked == 0)
        measure(plan);
    for (long i = 0; i < plan->asked; i++) {
        puts("ready");
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin))
            return;
        measure(plan);
    }
}

static BENCH_FRAME void descend(long frames, const struct plan *plan) {
    if (frames <= 0) {
        measure_when_asked(plan);
        BENCH_CALL_SITE(5);
        return;
    }
    descend(frames - 1, plan);
    BENCH_CALL_SITE(6);
}

/* What runs on another stack, which takes no arguments. */
static const struct plan *the_plan;
static long the_frames;

static void fiber_main(void) {
    descend(the_frames, the_plan);
}

static int thread_main(void *unused) {
    (void)unused;
    descend(the_frames, the_plan);
    return 0;
}

static int on_fiber(void) {
    static ucontext_t here, fiber;
    void *stack = malloc(STACK_BYTES);
    if (!stack || getcontext(&fiber) != 0)
        return 1;
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_stack.ss_size = STACK_BYTES;
    fiber.uc_link = &here;
    makecontext(&fiber, fiber_main, 0);
    return swapcontext(&here, &fiber) != 0;
}

static int on_thread(void) {
    thrd_t thread;
    if (thrd_create(&thread, thread_main, NULL) != thrd_success)
        return 1;
    return thrd_join(thread, NULL) != thrd_success;
}

int main(int argc, char **argv) {
    struct plan plan = {
        .change = bench_option(argc, argv, "--change", 0),
        .paths = bench_option(argc, argv, "--paths", 1),
        .batch = bench_option(argc, argv, "--batch", 20000),
        .batches = bench_option(argc, argv, "--batches", 25),
        .asked = bench_option(argc, argv, "--asked", 0),
        .size = (size_t)bench_option(argc, argv, "--size", 64),
    };
    if (plan.batches < 1 || plan.batches > BENCH_MAX_BATCHES || plan.batch < 1) {
        fprintf(stderr, "pair: --batches must be 1 to %d, --batch at least 1\n", BENCH_MAX_BATCHES);
        return 2;
    }
    /* Below the recursion lie main, descend(0), measure_when_asked, measure, median_pair_ns,
     * one_batch and pairs_here (or changing_pairs and the changing frames). */
    long below = plan.change > 0 ? 7 + plan.change : 7;
    the_plan = &plan;
    the_frames = bench_option(argc, argv, "--depth", 10) - below;
    switch (bench_option(argc, argv, "--stack", OWN_STACK)) {
    case FIBER:
        return on_fiber();
    case C11_THREAD:
        return on_thread();
    default:
        descend(the_frames, &plan);
        return 0;
    }
}
