/* SPDX-License-Identifier: MIT */
/*
 * leaks.c: leaks of several functions, some of which suppressions name. Nothing points to a leaked
 * block, so that LeakSanitizer tells them all. Prints nothing: no stream needs a buffer.
 */
#include <stdlib.h>
#include <string.h>

#ifdef EMBEDDED
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "# by the program itself\n"
           "leak:embedded_leak\n";
}
#endif

static void *volatile sink;

static void forget(size_t size) {
    sink = malloc(size);
    memset(sink, 1, size);
    sink = NULL;
}

#define LEAK(name, size)                                                                           \
    __attribute__((noinline)) static void name(int times) {                                        \
        for (int i = 0; i < times; i++) {                                                          \
            forget((size) + (size_t)i);                                                            \
        }                                                                                          \
        __asm__ volatile("" ::: "memory");                                                         \
    }

LEAK(cache_fill, 100)
LEAK(cache_refill, 33)
LEAK(parse_line, 48)
LEAK(parser_of_lines, 20)
LEAK(embedded_leak, 70)
LEAK(no_one_names_it, 7)

int main(void) {
    cache_fill(3);
    cache_refill(5);
    parse_line(7);
    parser_of_lines(11);
    embedded_leak(13);
    no_one_names_it(17);
    memset(&sink, 0, sizeof sink);
    return 0;
}
