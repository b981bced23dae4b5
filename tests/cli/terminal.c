/* SPDX-License-Identifier: MIT */
/* terminal.c: its file, functions, threads, marks, scopes and pools have names that terminals would
 * obey: colours, a new title, other lines, text from right to left. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <memtrace/memtrace.h>

#define EVIL                                                                                       \
    "\033[31m\a\b\r\n\x7f\xc2\x9b"                                                                 \
    "2J\xe2\x80\xae"                                                                               \
    "evil"

#ifdef OTHER
/* Compiled without debug information and renamed by objcopy: what is shown is the symbol's name. */
void *other(size_t size) {
    char *block = malloc(size);
    return block != NULL ? memset(block, 1, size) : NULL;
}
#else
void *other(size_t size);

#line 1 "evil\033[2J\302\233\342\200\256.c"
static __attribute__((noinline)) void *keep(size_t size) {
    char *block = other(size);
    block[0] = 2;
    return block;
}

static void *work(void *argument) {
    (void)argument;
    pthread_setname_np(pthread_self(), "e\033[2J\302\233K\342\200\256x");
    keep(5000);
    return NULL;
}

int main(void) {
    pthread_t thread;
    char pool[1000];
    MEMTRACE_MARK(EVIL);
    uint64_t scope = MEMTRACE_SCOPE_BEGIN(EVIL);
    keep(100000);
    MEMTRACE_SCOPE_END(scope);
    MEMTRACE_ALLOC(EVIL, pool, sizeof pool);
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 0;
}
#endif
