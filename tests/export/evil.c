/* SPDX-License-Identifier: MIT */
/* evil.c: a function whose name is markup and has the separators of other formats. It is built
 * without debug information, so that the symbol table is what names it. */
#include <stdlib.h>

__attribute__((visibility("hidden"))) void
evil(void) __asm__("\"</script><b>a;b'c&amp;--><!--<script>\"");

static void *volatile kept;

__attribute__((noinline)) void evil(void) {
    kept = malloc(4444);
    __asm__ volatile("");
}

void call_evil(void) {
    evil();
    __asm__ volatile("");
}
