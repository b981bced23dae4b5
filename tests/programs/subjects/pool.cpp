// SPDX-License-Identifier: MIT
/* pool.cpp: prints what libstdc++ allocates before main, by a malloc of its own: its emergency
 * pool. */
#include <cstddef>
#include <cstdio>
#include <new>

static size_t allocated_bytes;

extern "C" void *__libc_malloc(size_t size);

extern "C" void *malloc(size_t size) {
    allocated_bytes += size;
    return __libc_malloc(size);
}

int main(int argc, char **) {
    size_t before_main = allocated_bytes;
    if (argc > 1) {
        throw std::bad_alloc(); /* so that the library is needed */
    }
    std::printf("%zu\n", before_main);
    return 0;
}
