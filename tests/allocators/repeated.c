/* SPDX-License-Identifier: MIT */
/*
 * repeated.c: an allocator's functions, called again and again from the same places and now and
 * then from others, by chance. Prints what it has counted itself: blocks, their bytes, blocks that
 * ended, blocks and bytes that are left, and the most bytes that there ever were. It allocates
 * nothing else.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OWN __attribute__((noinline, noclone))

enum { SLOTS = 256, LARGEST = 5000, APART = 8192 };
static char arena[SLOTS][APART];
static uint64_t size_of[SLOTS]; /* 0: it is free */
static uint64_t begun, bytes, ended, live, live_bytes, most;

static uint32_t number(uint32_t below) {
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 33) % below;
}

/* --- the allocator, which counts ---------------------------------------------------------------
 */

static void end(uint32_t slot) {
    if (size_of[slot] != 0) {
        ended++;
        live--;
        live_bytes -= size_of[slot];
        size_of[slot] = 0;
    }
}

/* Somewhere, perhaps where there is a block yet, which ends: as a collector does it. */
static void *begin(uint64_t size) {
    uint32_t slot = number(SLOTS);
    end(slot);
    size_of[slot] = size;
    begun++;
    bytes += size;
    live++;
    live_bytes += size;
    most = live_bytes > most ? live_bytes : most;
    return arena[slot];
}

static uint32_t slot_of(const void *block) {
    return (uint32_t)(((const char *)block - arena[0]) / APART);
}

OWN void *own_take(size_t size) {
    return number(20) != 0 ? begin(size) : NULL;
}

OWN void *own_clear(size_t count, size_t size) {
    return begin(count * size);
}

OWN int own_place(void **block, size_t size) {
    if (number(20) == 0) {
        return 1;
    }
    *block = begin(size);
    return 0;
}

OWN void *own_resize(void *block, size_t size) {
    if (size != 0 && number(10) == 0) {
        return NULL;
    }
    if (block != NULL) {
        end(slot_of(block));
    }
    return size != 0 ? begin(size) : NULL;
}

OWN void own_give(void *block) {
    if (block != NULL) {
        end(slot_of(block));
    }
}

/* --- the program -------------------------------------------------------------------------------
 */

/* Perhaps none. */
static void *any(void) {
    return number(10) != 0 ? arena[number(SLOTS)] : NULL;
}

static OWN void call(uint32_t which, uint32_t times) {
    void *block;
    for (uint32_t i = 0; i < times; i++) {
        size_t size = 1 + number(number(2) != 0 ? 200 : LARGEST - 1);
        switch (which) {
        case 0:
            own_take(size);
            break;
        case 1:
            own_clear(1 + number(3), size / 3 + 1);
            break;
        case 2:
            own_place(&block, size);
            break;
        case 3:
            own_resize(any(), number(10) != 0 ? size : 0);
            break;
        case 4:
            own_give(any());
            break;
        default: /* each in its turn, from the same place */
            own_give(own_take(size));
        }
    }
}

static OWN void call_below(uint32_t depth, uint32_t which, uint32_t times) {
    if (depth != 0) {
        call_below(depth - 1, which, times);
    } else {
        call(which, times);
    }
    __asm__ volatile("" ::: "memory");
}

/* Blocks of another thread's. */
static void *give_all(void *unused) {
    for (uint32_t i = 0; i < SLOTS; i += 2) {
        own_give(arena[i]);
    }
    return unused;
}

int main(void) {
    const struct timespec tick = {.tv_nsec = 9000000};
    pthread_t thread;
    for (uint32_t i = 0; i < 6000; i++) {
        call_below(number(3) != 0 ? 3 : number(40), number(6), 1 + number(20));
        if (i % 500 == 0) {
            nanosleep(&tick, NULL); /* blocks grow older */
        }
    }
    if (pthread_create(&thread, NULL, give_all, NULL) != 0 || pthread_join(thread, NULL) != 0) {
        return 1;
    }
    dprintf(1, "%llu %llu %llu %llu %llu %llu\n", (unsigned long long)begun,
            (unsigned long long)bytes, (unsigned long long)ended, (unsigned long long)live,
            (unsigned long long)live_bytes, (unsigned long long)most);
    return 0;
}
