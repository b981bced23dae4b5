/* SPDX-License-Identifier: MIT */
/* device.c: keeps some blocks for a moment, in functions that are looked for by name. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *kept[64];

__attribute__((noinline)) static void keep_some(void) {
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        kept[i] = malloc(1000 + i);
        usleep(1000);
    }
}

int main(void) {
    keep_some();
    puts("done");
    return 0;
}
