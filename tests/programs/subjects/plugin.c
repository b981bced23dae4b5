/* SPDX-License-Identifier: MIT */
/* plugin.c: a small library that plugins.c loads; PLUGIN names its function, SIZE its block. */
#include <stdlib.h>

__attribute__((noinline)) static void *PLUGIN_INNER(void) {
    void *block = malloc(SIZE);
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}

__attribute__((visibility("default"))) void *plugin_run(void) {
    void *block = PLUGIN_INNER();
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}
