/* SPDX-License-Identifier: MIT */
/* written_pages.c: see written_pages.h. */
#define _GNU_SOURCE
#include "runtime/heap/written_pages.h"

#include "runtime/base/sys.h"

#include <fcntl.h>

static size_t bytes_of(const struct shadow_heap *heap) {
    return heap_fine_items(heap) * (sizeof(uint64_t) + sizeof(uint16_t)) +
           (SPAN_BYTES >> MEMTRACE_COARSE_SHIFT) * sizeof(struct memtrace_big_block);
}

/* What was swapped out is not in memory, but /proc/self/pagemap knows of it. An emulator's tells of
 * other addresses, and then adds pages that were not touched, at most. Where it cannot be read, all
 * may be. */
static int add_swapped(int pagemap, const uint8_t *start, size_t pages, unsigned char *page) {
    enum { BATCH = 256, SWAPPED = 62 };
    uint64_t entry[BATCH];
    size_t first = (uintptr_t)start / sys_page_bytes();
    for (size_t at = 0; at < pages; at += BATCH) {
        size_t count = pages - at < BATCH ? pages - at : BATCH;
        size_t bytes = count * sizeof *entry;
        if (sys_pread(pagemap, entry, bytes, (first + at) * sizeof *entry) != (long)bytes) {
            return -1;
        }
        for (size_t i = 0; i < count; i++) {
            page[at + i] |= (entry[i] >> SWAPPED & 1) != 0;
        }
    }
    return 0;
}

long written_pages_open(void) {
    return sys_open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0);
}

void written_pages_close(long pagemap) {
    sys_close(pagemap);
}

void written_pages_look(long pagemap, const uint8_t *start, size_t pages, unsigned char *page) {
    if (pagemap < 0 || sys_mincore((void *)(uintptr_t)start, pages * sys_page_bytes(), page) != 0) {
        __builtin_memset(page, 1, pages);
        return;
    }
    for (size_t i = 0; i < pages; i++) {
        page[i] &= 1;
    }
    if (add_swapped((int)pagemap, start, pages, page) != 0) {
        __builtin_memset(page, 1, pages);
    }
}

static void look(struct written_pages *touched, const struct shadow_heap *heap,
                 const uint8_t *leaf) {
    size_t pages = (bytes_of(heap) + sys_page_bytes() - 1) / sys_page_bytes();
    long pagemap = written_pages_open();
    touched->leaf = leaf;
    written_pages_look(pagemap, leaf, pages, touched->page);
    written_pages_close(pagemap);
}

int written_pages_at(struct written_pages *touched, const struct shadow_heap *heap,
                     const uint8_t *leaf, const void *place) {
    if (touched->leaf != leaf) {
        look(touched, heap, leaf);
    }
    return touched->page[((const uint8_t *)place - leaf) / (ptrdiff_t)sys_page_bytes()];
}
