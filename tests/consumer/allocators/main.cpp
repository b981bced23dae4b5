// SPDX-License-Identifier: MIT
// Takes 100 blocks of 24 bytes, lets each second one grow to 48 and gives each fourth one back; and
// 300 ints of an arena, which is cleared, and 5 doubles.
#include "pool.h"

#include <cstdio>

template <typename T> class Arena {
  public:
    T *take(size_t count) {
        used += count;
        return things + used - count;
    }
    void clear() {
        used = 0;
    }

  private:
    T things[1000];
    size_t used = 0;
};

static Arena<int> ints;
static Arena<double> doubles;

int main() {
    pool *pool = pool_open();
    void *block[100];
    for (int i = 0; i < 100; i++) {
        block[i] = pool_alloc(pool, 24);
        *ints.take(3) = i;
        block[i] = i % 2 == 0 ? pool_grow(pool, block[i], 48) : block[i];
    }
    for (int i = 0; i < 100; i += 4) {
        pool_free(pool, block[i]);
    }
    ints.clear();
    *doubles.take(5) = 1;
    puts("done");
    return 0;
}
