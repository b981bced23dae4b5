/* SPDX-License-Identifier: MIT */
/* suppressed.c: blocks that are never freed, or only after the last allocation, of functions one of
 * which suppressions name. Prints nothing: no stream needs a buffer. */
#include <stdlib.h>

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:keep_cache\n";
}

enum { CACHED = 5, FORGOTTEN = 3, LATE = 4, EARLY = 10 };

static void *volatile cache[CACHED], *volatile forgotten[FORGOTTEN], *volatile late[LATE];

__attribute__((noinline)) static void keep_cache(void) {
    for (int i = 0; i < CACHED; i++) {
        cache[i] = malloc(1000);
    }
}

__attribute__((noinline)) static void forget(void) {
    for (int i = 0; i < FORGOTTEN; i++) {
        forgotten[i] = malloc(200);
    }
}

__attribute__((noinline)) static void clean_up_late(void) {
    for (int i = 0; i < LATE; i++) {
        late[i] = malloc(300);
    }
}

__attribute__((noinline)) static void clean_up_early(void) {
    for (int i = 0; i < EARLY; i++) {
        void *volatile block = malloc(50);
        free(block);
    }
}

/* Two of the cache's blocks are freed at the end, too. */
int main(void) {
    clean_up_late();
    keep_cache();
    forget();
    clean_up_early();
    for (int i = 0; i < LATE; i++) {
        free(late[i]);
    }
    free(cache[0]);
    free(cache[1]);
    return 0;
}
