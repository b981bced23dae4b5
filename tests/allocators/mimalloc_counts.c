/* SPDX-License-Identifier: MIT */
/*
 * mimalloc_counts.c: a program with mimalloc linked into it, which calls each of its functions, and
 * tells what mimalloc itself says of that: how many blocks were made, how many bytes were asked
 * for, how many blocks are there still. mimalloc was built with MI_STAT=2. Prints a line for work()
 * and one for aligned(), whose bytes are not those that were asked for.
 */
#include "mimalloc_work.h"

#include <mimalloc-stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct counts {
    long made, bytes, there;
};

static struct counts counts(void) {
    mi_stats_t stats = {0};
    struct counts result;
    stats.size = sizeof stats;
    stats.version = MI_STAT_VERSION;
#if MI_MALLOC_VERSION < 30000
    mi_stats_merge();
#endif
    if (!mi_stats_get(&stats)) {
        exit(1);
    }
    result =
        (struct counts){.made = stats.malloc_normal_count.total + stats.malloc_huge_count.total,
                        .bytes = stats.malloc_requested.total};
    for (size_t i = 0; i <= MI_BIN_HUGE; i++) {
        result.there += stats.malloc_bins[i].current;
    }
    return result;
}

static void report(void (*what)(mi_heap_t *), mi_heap_t *heap) {
    char text[100];
    struct counts before = counts();
    struct counts after;
    what(heap);
    after = counts();
    write(1, text,
          (size_t)snprintf(text, sizeof text, "%ld %ld %ld\n", after.made - before.made,
                           after.bytes - before.bytes, after.there - before.there));
}

int main(void) {
    mi_heap_t *heap = mi_heap_new();
    mi_free(mi_heap_malloc(heap, 1)); /* what it makes for itself then, it has made */
    report(work, heap);
    report(aligned, heap);
    return 3;
}
