/* SPDX-License-Identifier: MIT */
/* permitted.c: large blocks whose pages may be read, written or executed, of which so much is
 * touched. Says on stdout where each lies ("ADDRESS SIZE" a line, "ready"); for each line on stdin
 * it does the next thing, and says "done": gives back the pages of the last one. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20, PAGE = 4096 };

/* The whole pages of a block but for the last two, which stay as they are, with what malloc wrote.
 */
static char *pages_of(char *block) {
    return (char *)(((uintptr_t)block + PAGE - 1) / PAGE * PAGE);
}

static char *make(size_t size, size_t touched, int protection) {
    char *block = malloc(size);
    char *pages = pages_of(block);
    madvise(pages, size - 2 * PAGE,
            MADV_NOHUGEPAGE); /* small ones, so that it is known how many are resident */
    memset(pages, 1, touched);
    if (mprotect(pages, size - 2 * PAGE, protection) != 0) {
        exit(1);
    }
    printf("%p %zu\n", (void *)block, size);
    return block;
}

int main(void) {
    char line[16];
    char *last;
    setvbuf(stdout, NULL, _IOLBF, 0);
    mallopt(M_MMAP_THRESHOLD, MIB);
    make(8 * MIB, 2 * MIB, PROT_READ);
    make(6 * MIB, 5 * MIB, PROT_READ | PROT_WRITE | PROT_EXEC);
    make(9 * MIB, 7 * MIB, PROT_NONE);
    last = make(12 * MIB, 4 * MIB, PROT_READ | PROT_EXEC);
    puts("ready");
    if (fgets(line, sizeof line, stdin) != NULL) {
        madvise(pages_of(last), 12 * MIB - 2 * PAGE, MADV_DONTNEED);
        puts("done");
    }
    return fgets(line, sizeof line, stdin) != NULL;
}
