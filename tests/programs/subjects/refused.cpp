// SPDX-License-Identifier: MIT
/*
 * refused.cpp: small requests of operator new until there is no more memory, in a program whose
 * heap lies below 32 MiB (no PIE, no address randomisation): "HEAP GIVEN NULLS THROWN".
 */
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sys/resource.h>

static void *volatile kept;
static long given, nulls, thrown;

static void ask_until_refused() {
    struct rlimit limit;
    for (int i = 0; i < 1000; i++) {
        kept = ::operator new(100);
    }
    getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = 4096;
    setrlimit(RLIMIT_DATA, &limit);
    while (thrown == 0 && nulls == 0 && given < 2000000) {
        try {
            void *block = ::operator new(100);
            asm("" : "+r"(block)); // it may be NULL, whatever the compiler thinks
            (block == nullptr ? nulls : given)++;
        } catch (const std::bad_alloc &) {
            thrown++;
        }
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_DATA, &limit);
}

// So deep that its calls are below the peak, as most are.
__attribute__((noinline)) static void deep(int depth) {
    depth == 0 ? ask_until_refused() : deep(depth - 1);
    asm volatile("" ::: "memory");
}

int main() {
    void *first = malloc(64);
    char *large = static_cast<char *>(malloc(64 << 20));
    large[0] = 1;
    kept = large;
    free(large);
    deep(60);
    std::printf("%d %ld %ld %ld\n", reinterpret_cast<unsigned long>(first) < 32ul << 20, given,
                nulls, thrown);
}
