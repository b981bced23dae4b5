/* SPDX-License-Identifier: MIT */
/* thousand.c: 1,000 blocks of 100 to 1,099 bytes, every other one freed; 3 is its exit status. By
 * -DMALLOC=... -DFREE=... the blocks come from functions of other names. */
#include <stdlib.h>
#include <unistd.h>

#if defined(TAKEN) /* by its address, of which a program at a fixed place has one of its own */
static void *(*volatile taken)(size_t);
#define MALLOC(size) (taken = malloc, taken(size))
#define FREE         free
#elif !defined(MALLOC)
#define MALLOC malloc
#define FREE   free
#else
void *MALLOC(size_t size);
void FREE(void *block);
#endif

static void *volatile block;

int main(void) {
    for (size_t i = 0; i < 1000; i++) {
        block = MALLOC(100 + i);
        if (block == NULL) {
            return 1;
        }
        if (i % 2 != 0) {
            FREE(block);
        }
    }
    return write(1, "done\n", 5) == 5 ? 3 : 1;
}
