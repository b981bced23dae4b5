/* SPDX-License-Identifier: MIT */
/* mapped.c: a mapping of 8 MiB, of which first 2 MiB are touched and later, when the kernel was
 * asked once, all; and some blocks. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

__attribute__((noinline)) static char *map_region(void) {
    return mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(void) {
    char *volatile block = malloc(100);
    char *region = map_region();
    if (region == MAP_FAILED) {
        return 1;
    }
    mallopt(M_MMAP_THRESHOLD, 4 * MIB);
    memset(region, 1, 2 * MIB);
    sleep(2);
    memset(region, 1, 8 * MIB);
    sleep(5);
    mallopt(M_ARENA_MAX, 2);
    block = malloc(200);
    return block == NULL;
}
