/* SPDX-License-Identifier: MIT */
/*
 * sampled.c: what is allocated is known to the byte, so that estimates can be judged. Each case
 * ends with "done" on stdout.
 *
 *   mixed      sizes from 16 to 100,000, most freed at once, some later, some never; prints what it
 * did freed      everything is freed, by other threads, after realloc, in whatever mode is then
 *   switching  counts by threes: exact, sampled and off blocks of known sizes, by the API
 *   signals    the same by signals
 *   kinds      20,000 blocks of 1,000 bytes by each function that allocates, half of them freed
 *   large      40,000 blocks of 100,000 bytes, each freed at once
 *   missed     2,000 blocks of 1,000 bytes that are freed past us
 *   waits      prints its pid, allocates and frees what it reads the end of its input for
 */
#define _GNU_SOURCE
#include <memtrace/memtrace.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEPT = 512, BLOCKS = 60000, THREADS = 4 };

static uint64_t next(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *state >> 33;
}

static size_t size_of(uint64_t number) {
    static const size_t most[] = {1, 40, 40, 200, 200, 1000, 8000, 100000};
    return (size_t)(number / 8 % most[number % 8]);
}

/* --- mixed ------------------------------------------------------------------------------------ */

static uint64_t total, allocations, leaked;

/* Not too few blocks of any size are to be picked: of a handful nobody can tell how far it is off.
 */
static void *take(size_t size) {
    void *block = malloc(size);
    total += size;
    allocations++;
    return block;
}

static void mixed(void) {
    static void *kept[KEPT];
    static size_t sizes[KEPT];
    uint64_t state = 1;
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = 16 + size_of(next(&state));
        size_t place = next(&state) % KEPT;
        if (i % 16 != 0) {
            free(kept[place]);
            kept[place] = take(size);
            sizes[place] = size;
        } else if (take(size) != NULL) {
            leaked += size;
        }
    }
    for (int i = 0; i < KEPT; i++) {
        leaked += sizes[i];
    }
    fprintf(stderr, "truth %lu %lu %lu\n", total, allocations, leaked);
}

/* --- freed ------------------------------------------------------------------------------------ */

static void *shelf[4096];
static volatile size_t too_much = PTRDIFF_MAX;

static void *exchange(void *argument) {
    uint64_t state = (uintptr_t)argument;
    for (int i = 0; i < BLOCKS; i++) {
        void **place = &shelf[next(&state) % (sizeof shelf / sizeof shelf[0])];
        size_t size = size_of(next(&state));
        void *block = i % 3 == 0   ? calloc(1, size)
                      : i % 3 == 1 ? aligned_alloc(64, (size + 63) & ~(size_t)63)
                                   : realloc(malloc(size / 2 + 1), size + 1);
        if (i % 10 == 0 && realloc(block, too_much) != NULL) { /* it stays as it was */
            abort();
        }
        free(__atomic_exchange_n(place, block, __ATOMIC_ACQ_REL));
        if (i % 1000 == 0 && argument == (void *)1 && memtrace_sample != NULL) {
            switch (i / 1000 % 4) {
            case 0:
                memtrace_sample(4096);
                break;
            case 1:
                memtrace_stop();
                break;
            case 2:
                memtrace_start();
                break;
            default:
                memtrace_sample(0);
            }
        }
    }
    return NULL;
}

static void freed(void) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, exchange, (void *)(i + 1));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < sizeof shelf / sizeof shelf[0]; i++) {
        free(shelf[i]);
    }
}

/* --- switching -------------------------------------------------------------------------------- */

static void by_api(int mode) {
    if (mode == 0) {
        memtrace_sample(0);
        memtrace_start();
    } else if (mode == 1) {
        memtrace_sample(512 << 10);
    } else {
        memtrace_stop();
    }
}

static void by_signal(int mode) {
    raise(mode == 0 ? SIGUSR1 : mode == 1 ? SIGUSR2 : SIGHUP);
}

/* Blocks far larger than the mean are all picked, and stand for themselves. Those of the modes have
 * sizes of their own: 64 MiB + 1, + 2 and + 3; each is freed in the mode after its own. */
static void switching(void (*change)(int mode)) {
    void *before = NULL;
    for (int i = 0; i < 9; i++) {
        change(i % 3);
        void *block = malloc((64 << 20) + (size_t)i % 3 + 1);
        free(before);
        before = block;
    }
    change(0);
    free(before);
}

/* --- kinds ------------------------------------------------------------------------------------ */

/* operator new(size_t) and delete: of libstdc++, or ours. */
void *_Znwm(size_t size) __attribute__((weak));
void _ZdlPv(void *block) __attribute__((weak));

enum { EACH = 20000, EACH_BYTES = 1000 };

#define DEFINE_KIND(name, release, ...)                                                            \
    static __attribute__((noinline)) void by_##name(void) {                                        \
        for (int i = 0; i < EACH; i++) {                                                           \
            void *block = NULL;                                                                    \
            __VA_ARGS__;                                                                           \
            if (i % 2 != 0) {                                                                      \
                release(block);                                                                    \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_KIND(malloc, free, block = malloc(EACH_BYTES))
DEFINE_KIND(calloc, free, block = calloc(EACH_BYTES / 10, 10))
DEFINE_KIND(new, _ZdlPv, block = _Znwm(EACH_BYTES))
DEFINE_KIND(memalign, free, block = posix_memalign(&block, 64, EACH_BYTES) == 0 ? block : NULL)
DEFINE_KIND(realloc, free, block = realloc(NULL, EACH_BYTES))
DEFINE_KIND(resize, free, block = realloc(malloc(0), EACH_BYTES))

static void kinds(void) {
    by_malloc();
    by_calloc();
    by_memalign();
    by_realloc();
    by_resize();
    if (_Znwm != NULL) {
        by_new();
    }
}

/* Blocks nearly as large as what a thread may allocate before it looks up. */
static __attribute__((noinline)) void by_large(void) {
    for (int i = 0; i < 2 * EACH; i++) {
        void *block = malloc(100 * EACH_BYTES);
        __asm__ volatile("" : "+r"(block));
        free(block);
    }
}

void __libc_free(void *block);

static __attribute__((noinline)) void by_missed(void) {
    for (int i = 0; i < EACH / 10; i++) {
        void *block = malloc(EACH_BYTES);
        __asm__ volatile("" : "+r"(block));
        __libc_free(block);
    }
}

/* --- waits ------------------------------------------------------------------------------------ */

/* Each line of input allocates 64 MiB and so many bytes. */
static void waits(void) {
    char line[64];
    void *block = NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready\n");
    while (fgets(line, sizeof line, stdin) != NULL) {
        for (int i = 0; i < 4000; i++) { /* a few megabytes, so that a thread looks up */
            free(block);
            block = malloc(1000);
        }
        free(malloc((64 << 20) + (size_t)atoi(line)));
        printf("ready\n");
    }
    free(block);
}

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    if (strcmp(name, "mixed") == 0) {
        mixed();
    } else if (strcmp(name, "freed") == 0) {
        freed();
    } else if (strcmp(name, "switching") == 0) {
        switching(by_api);
    } else if (strcmp(name, "signals") == 0) {
        switching(by_signal);
    } else if (strcmp(name, "kinds") == 0) {
        kinds();
    } else if (strcmp(name, "large") == 0) {
        by_large();
    } else if (strcmp(name, "missed") == 0) {
        by_missed();
    } else if (strcmp(name, "waits") == 0) {
        waits();
    }
    puts("done");
    return 0;
}
