/* SPDX-License-Identifier: MIT */
/*
 * callpaths.c: allocates and frees on 2^DEPTH call paths, over and over: what the page in the
 * browser is measured with. Run by benchmarks/run gui.
 *
 *   --depth N     2^N paths (default 14)
 *   --events N    allocations and frees, at least (default 1000000)
 *   --seconds N   goes on for so long, a tenth of all paths each 100 ms (default 0)
 *
 * A twentieth of the blocks is kept, so that there is something to see at the end. Results: events.
 */
#include "../overhead/bench.h"

#include <unistd.h>

enum { HELD = 1 << 16, KEEP_EACH = 20 };

static void *held[HELD];
static uint64_t random_state = 1, allocations, frees;

static uint64_t next_random(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33;
}

BENCH_FRAME static void allocate(void) {
    size_t place = next_random() % HELD;
    void *block;
    if (held[place] != NULL && next_random() % KEEP_EACH != 0) {
        free(held[place]);
        frees++;
    }
    block = malloc(16 + next_random() % 2000);
    BENCH_KEEP(block);
    held[place] = block;
    allocations++;
}

static void two(int depth);
static void three(int depth);

/* Both calls return here, so that each function stands on the stack. */
#define FUNCTION(name, left, right)                                                                \
    BENCH_FRAME static void name(int depth) {                                                      \
        if (depth == 0) {                                                                          \
            allocate();                                                                            \
        } else {                                                                                   \
            left(depth - 1);                                                                       \
            BENCH_CALL_SITE(1);                                                                    \
            right(depth - 1);                                                                      \
        }                                                                                          \
        BENCH_CALL_SITE(2);                                                                        \
    }
static void one(int depth);
FUNCTION(one, two, three)
FUNCTION(two, one, three)
FUNCTION(three, one, two)

int main(int argc, char **argv) {
    int depth = (int)bench_option(argc, argv, "--depth", 14);
    uint64_t events = (uint64_t)bench_option(argc, argv, "--events", 1000000);
    long seconds = bench_option(argc, argv, "--seconds", 0);
    uint64_t end;
    while (allocations + frees < events) {
        one(depth);
    }
    end = bench_wall_ns() + (uint64_t)seconds * 1000000000u;
    while (bench_wall_ns() < end) {
        one(depth > 3 ? depth - 3 : depth);
        usleep(100000);
    }
    bench_result("events", (double)(allocations + frees));
    return 0;
}
