// SPDX-License-Identifier: MIT
// split.cpp: one call that is inlined, built with -gsplit-dwarf, and again with -DOTHER.
#include <cstdlib>

#ifndef OTHER
#define LEAF  inlined_leaf
#define OUTER outer
#define SIZE  1001
#else
#define LEAF  inlined_other
#define OUTER other
#define SIZE  2002
#endif

static inline __attribute__((always_inline)) void *LEAF(size_t size) {
    return malloc(size);
}

__attribute__((noinline)) void *OUTER(size_t size) {
    void *block = LEAF(size);
    *static_cast<volatile char *>(block) = 1;
    return block;
}

#ifndef OTHER
void *other(size_t size);

int main() {
    return outer(SIZE) == other(2002);
}
#endif
