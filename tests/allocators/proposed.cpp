// SPDX-License-Identifier: MIT
// proposed.cpp: functions whose attributes say that they allocate. Some get their memory from
// malloc, some from what is not known here, some have their own: built.py knows which.
#include "builtother.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

#define ALLOCATES(...) __attribute__((malloc, alloc_size(__VA_ARGS__)))
#define KEPT           __attribute__((noinline))

static char arena[1 << 20];
static size_t used;

static char *carve(size_t size) {
    if (used + size > sizeof arena) {
        abort(); // never returns, so whatever it calls brings no memory
    }
    used += (size + 15) & ~(size_t)15;
    return arena + used - ((size + 15) & ~(size_t)15);
}

// Its own.
ALLOCATES(1) static void *own_take(size_t size) {
    return memset(carve(size), 0, size);
}
struct own_pool {
    ALLOCATES(3, 4) KEPT void *take(double, size_t size, size_t count) {
        return carve(size * count);
    }
};
ALLOCATES(1) KEPT static void *own_pages(size_t size) {
    void *pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages != MAP_FAILED ? pages : nullptr;
}

// malloc's, by another function.
static void *checked(void *block) {
    return block != nullptr ? block : (abort(), nullptr);
}
ALLOCATES(1) KEPT static void *of_malloc(size_t size) {
    return checked(malloc(size + 16));
}

// Of something that is not known here.
void *(*volatile by_pointer)(size_t) = own_take;
ALLOCATES(1) KEPT static void *of_somewhere(size_t size) {
    return somewhere(size);
}
ALLOCATES(1) KEPT static void *of_pointer(size_t size) {
    return by_pointer(size);
}

// They do not tell enough.
__attribute__((malloc)) KEPT static void *no_size(int kind) {
    return carve(kind == 0 ? 16 : 32);
}
__attribute__((alloc_size(2))) KEPT static void *older(void *block, size_t size) {
    return size <= 16 ? block : carve(size);
}

int main() {
    own_pool pool;
    void *last = nullptr;
    for (size_t i = 1; i <= 10; i++) {
        own_take(i);
        pool.take(0.5, i, 3);
        last = own_pages(4096 * i);
        free(of_malloc(i));
        of_somewhere(i);
        of_pointer(i);
        older(no_size(0), i);
    }
    printf("done %d\n", last != nullptr);
    return 0;
}
