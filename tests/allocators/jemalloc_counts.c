/* SPDX-License-Identifier: MIT */
/* jemalloc_counts.c: a program with jemalloc linked into it, which tells what jemalloc itself says
 * of work(): how many blocks were asked for, and how many of them are there still. With an argument
 * it does so again for each line that it reads, and ends with its input (tests/attach). */
#include <jemalloc/jemalloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t number(const char *name) {
    uint64_t value = 0;
    size_t size = sizeof value;
    if (mallctl(name, &value, &size, NULL, 0) != 0) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return value;
}

static size_t blocks_there(void) {
    unsigned bins = 0, sizes = 0;
    size_t size = sizeof bins, sum = 0;
    char name[64];
    mallctl("arenas.nbins", &bins, &size, NULL, 0);
    mallctl("arenas.nlextents", &sizes, &size, NULL, 0);
    for (unsigned i = 0; i < bins; i++) {
        snprintf(name, sizeof name, "stats.arenas.4096.bins.%u.curregs", i);
        sum += number(name);
    }
    for (unsigned i = 0; i < sizes; i++) {
        snprintf(name, sizeof name, "stats.arenas.4096.lextents.%u.curlextents", i);
        sum += number(name);
    }
    return sum;
}

static void *volatile kept[4000];

__attribute__((noinline)) static void work(void) {
    for (int i = 0; i < 3000; i++) {
        kept[i] = malloc((size_t)(1 + i % 700));
    }
    for (int i = 0; i < 3000; i += 3) {
        free(kept[i]);
    }
    for (int i = 1; i < 3000; i += 3) { /* always to another place, which jemalloc counts */
        kept[i] = realloc(kept[i], 30000);
    }
    for (int i = 0; i < 200; i++) {
        kept[3000 + i] = calloc((size_t)i + 1, 100);
    }
    for (int i = 0; i < 50; i++) {
        void *block = NULL;
        if (posix_memalign(&block, 256, (size_t)(1000 + i)) == 0) {
            kept[3300 + i] = block;
        }
        kept[3400 + i] = aligned_alloc(64, 640);
        kept[3500 + i] = mallocx(100, MALLOCX_ALIGN(32));
    }
    for (int i = 0; i < 25; i++) {
        sdallocx(kept[3500 + i], 100, MALLOCX_ALIGN(32));
        kept[3600 + i] = strdup("what the C library takes for the program");
    }
}

struct counts {
    uint64_t requests;
    size_t there;
};

/* Of large blocks, none of which is freed and had again, how often it made one: jemalloc 5.3.1
 * counts their requests twice. */
static struct counts counts(void) {
    uint64_t epoch = 1;
    mallctl("thread.tcache.flush", NULL, NULL, NULL, 0); /* its counts reach the arena */
    mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
    return (struct counts){.requests = number("stats.arenas.4096.small.nrequests") +
                                       number("stats.arenas.4096.large.nmalloc"),
                           .there = blocks_there()};
}

static void tell(void) {
    struct counts before = counts();
    struct counts after;
    work();
    after = counts();
    printf("%lu %lu\n", (unsigned long)(after.requests - before.requests),
           (unsigned long)(after.there - before.there));
    fflush(stdout);
}

int main(int argc, char **argv) {
    char line[16];
    (void)argv;
    if (argc == 1) {
        tell();
        return 3;
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        tell();
    }
    return 3;
}
