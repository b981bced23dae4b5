/* SPDX-License-Identifier: MIT */
/* marks.c: blocks of known sizes between marks, with nothing in between that looks at the clock. */
#include "memtrace/memtrace.h"

#include <stdlib.h>
#include <time.h>

static void *volatile kept[3];

static void rest(long milliseconds) {
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, NULL);
}

int main(void) {
    kept[0] = malloc(5001);
    rest(200);
    MEMTRACE_MARK("one");
    kept[1] = malloc(5003);
    MEMTRACE_MARK("two");
    free(kept[0]);
    MEMTRACE_MARK("three");
    kept[2] = malloc(5007);
    free(kept[1]);
    MEMTRACE_MARK("two"); /* again */
    return 0;
}
