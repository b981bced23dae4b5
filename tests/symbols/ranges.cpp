// SPDX-License-Identifier: MIT
// ranges.cpp: functions that are inlined in several pieces, so that their debug information has
// lists of ranges.
#include <cstdlib>

static inline __attribute__((always_inline)) int leaf(int n, void **p) {
    if (n > 3) {
        p[0] = malloc(n);
        if (__builtin_expect(p[0] == nullptr, 0)) {
            abort();
        }
        return 1;
    }
    p[1] = malloc(2 * n);
    return p[1] ? 7 : 9;
}

extern "C" __attribute__((noinline)) int outer(int n, void **p) {
    if (n & 1) {
        int a = leaf(n, p);
        p++;
        return a + leaf(n + 1, p);
    }
    return leaf(n - 1, p);
}

int main(int count, char **) {
    void *p[4];
    return outer(count, p);
}
