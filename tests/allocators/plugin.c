/* SPDX-License-Identifier: MIT */
/* plugin.c: a library with an allocator of its own, which named.cpp opens while it runs. */
#include <stddef.h>

static char memory[1 << 16];
static size_t used;

__attribute__((noinline)) void *plugin_alloc(size_t size) {
    size_t start = __atomic_fetch_add(&used, (size + 15) & ~(size_t)15, __ATOMIC_RELAXED);
    return start + size <= sizeof memory ? memory + start : NULL;
}

void plugin_work(int count) {
    for (int i = 0; i < count; i++) {
        plugin_alloc(20);
    }
}
