/* SPDX-License-Identifier: MIT */
/* beside_resolver.c: a function whose resolver allocates, which runs while the loader relocates:
 * before we are relocated, or before threads have anything of their own. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int answer(void) {
    return 42;
}

static void *resolve(void) {
    char *block = malloc(100);
    char *other = strdup("resolver");
    void *aligned = NULL;
    memset(block, 1, 100);
    free(other);
    block = realloc(block, 300);
    if (block[99] != 1) {
        return NULL;
    }
    free(block);
    other = calloc(30, 4);
    if (other[119] != 0 || malloc_usable_size(other) < 120) {
        return NULL;
    }
    free(other);
    free(memalign(64, 10));
    if (posix_memalign(&aligned, 64, 10) != 0) {
        return NULL;
    }
    free(aligned);
    free(NULL);
    return answer;
}

int resolved(void) __attribute__((ifunc("resolve")));

#ifdef WITH_MAIN
int main(void) {
    free(malloc(10));
    printf("%d\n", resolved());
    return 0;
}
#endif
