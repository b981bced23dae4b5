/* SPDX-License-Identifier: MIT */
/* Allocates in C: main -> store_fill -> keep_bytes, ten blocks of 1,000 bytes, never freed. */
#include "store.h"
#include <stdlib.h>
#include <string.h>

static void *volatile kept[10];

__attribute__((noinline)) static int keep_bytes(int slot, size_t size) {
    kept[slot] = malloc(size);
    memset(kept[slot], slot, size);
    return kept[slot] != NULL;
}

__attribute__((noinline)) int store_fill(void) {
    int count = 0;
    for (int slot = 0; slot < 10; slot++)
        count += keep_bytes(slot, 1000); /* no call is the last thing done: no tail calls */
    return count;
}
