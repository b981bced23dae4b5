// SPDX-License-Identifier: MIT
// hidden.cpp: a library whose operator new nobody else sees, and which knows no malloc.
#include <cstddef>
#include <new>

static char memory[1 << 16];
static std::size_t used;
static std::size_t freed;

void *operator new(std::size_t size) {
    std::size_t start = __atomic_fetch_add(&used, (size + 15) & ~(std::size_t)15, __ATOMIC_RELAXED);
    return memory + start % (sizeof memory / 2);
}

void operator delete(void *block) noexcept {
    __atomic_fetch_add(&freed, block != nullptr ? 1 : 0, __ATOMIC_RELAXED);
}

void operator delete(void *block, std::size_t) noexcept {
    operator delete(block);
}

extern "C" void hidden_work(int count) {
    for (int i = 0; i < count; i++) {
        void *block = operator new(40);
        if (i % 3 == 0) {
            operator delete(block);
        }
    }
}
