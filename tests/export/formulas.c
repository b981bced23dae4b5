/* SPDX-License-Identifier: MIT */
/* formulas.c: threads, a pool and functions whose names a spreadsheet would compute; the test is
 * formulas.py. Built without debug information, so that the symbol table is what names functions.
 */
#include "memtrace/memtrace.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

__attribute__((visibility("hidden"))) void *plus_minus(void) __asm__("\"-1+cmd|'/C calc'!A0\"");

enum { NAMES = 6 };

static void *volatile kept;
static pthread_barrier_t all_there;

__attribute__((noinline)) void *plus_minus(void) {
    void *made = malloc(100);
    __asm__ volatile("");
    return made;
}

static void *work(void *name) {
    if (memtrace_name_thread != NULL) {
        memtrace_name_thread(name);
    }
    kept = plus_minus();
    pthread_barrier_wait(
        &all_there); /* a thread that comes later would take over an ended one's row */
    return NULL;
}

int main(void) {
    static const char *const names[NAMES] = {"=HYPERLINK(1)", "+1",   "-1+1",
                                             "@SUM(1)",       "\t=1", "plain=1"};
    static char place[64];
    pthread_t threads[NAMES];
    pthread_barrier_init(&all_there, NULL, NAMES);
    for (size_t i = 0; i < NAMES; i++) {
        pthread_create(&threads[i], NULL, work, (void *)names[i]);
    }
    for (size_t i = 0; i < NAMES; i++) {
        pthread_join(threads[i], NULL);
    }
    if (memtrace_alloc != NULL) {
        memtrace_alloc("=1+1", place, sizeof place);
        memtrace_mark("=2+2");
    }
    return 0;
}
