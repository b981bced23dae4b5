/* SPDX-License-Identifier: MIT */
/* touched.c: see touched.h. */
#define _GNU_SOURCE
#include "runtime/heap/touched.h"

#include "runtime/base/sys.h"

#include <fcntl.h>

static size_t bytes_of(const struct shadow_heap *heap) {
    return heap_fine_items(heap) * (sizeof(uint64_t) + sizeof(uint16_t)) +
           (SPAN_BYTES >> MEMTRACE_COARSE_SHIFT) * sizeof(struct memtrace_big_block);
}

/* What was swapped out is not in memory, but /proc/self/pagemap knows of it. An emulator's tells of
 * other addresses, and then adds pages that were not touched, at most. */
static void add_swapped(struct touched *touched, size_t pages) {
    enum { BATCH = 256, SWAPPED = 62 };
    uint64_t entry[BATCH];
    size_t first = (uintptr_t)touched->leaf / sys_page_bytes();
    long fd = sys_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
    for (size_t at = 0; fd >= 0 && at < pages; at += BATCH) {
        size_t count = pages - at < BATCH ? pages - at : BATCH;
        long size = sys_pread((int)fd, entry, count * sizeof *entry, (first + at) * sizeof *entry);
        for (size_t i = 0; size > 0 && i < (size_t)size / sizeof *entry; i++) {
            touched->page[at + i] |= (entry[i] >> SWAPPED & 1) != 0;
        }
    }
    if (fd >= 0) {
        sys_close((int)fd);
    }
}

static void look(struct touched *touched, const struct shadow_heap *heap, const uint8_t *leaf) {
    size_t bytes = bytes_of(heap);
    size_t pages = (bytes + sys_page_bytes() - 1) / sys_page_bytes();
    touched->leaf = leaf;
    if (sys_mincore((void *)(uintptr_t)leaf, bytes, touched->page) != 0) {
        __builtin_memset(touched->page, 1, pages);
        return;
    }
    for (size_t i = 0; i < pages; i++) {
        touched->page[i] &= 1;
    }
    add_swapped(touched, pages);
}

int touched_at(struct touched *touched, const struct shadow_heap *heap, const uint8_t *leaf,
               const void *place) {
    if (touched->leaf != leaf) {
        look(touched, heap, leaf);
    }
    return touched->page[((const uint8_t *)place - leaf) / (ptrdiff_t)sys_page_bytes()];
}
