/* SPDX-License-Identifier: MIT */
/* For files.py: mappings whose sizes are no whole pages, cut in the middle, in pages of whatever
 * size the kernel has. Prints what is left of them. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void *map(size_t size) {
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

__attribute__((noinline)) static size_t cut(size_t page) {
    char *whole = map(10 * page + 1); /* 11 pages, of which go the first, the sixth, the last */
    int failed = whole == MAP_FAILED || munmap(whole, 1) != 0 ||
                 munmap(whole + 5 * page, page - 7) != 0 || munmap(whole + 10 * page, 1) != 0;
    return failed ? 0 : 8 * page;
}

__attribute__((noinline)) static size_t grow(size_t page) {
    char *first = map(page + 1);
    char *moved =
        first == MAP_FAILED ? MAP_FAILED : mremap(first, page + 1, 5 * page + 2, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? 0 : 6 * page;
}

int main(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t by_cut = cut(page);
    size_t by_grow = grow(page);
    printf("page %zu, left %zu and %zu bytes\n", page, by_cut, by_grow);
    return by_cut == 0 || by_grow == 0;
}
