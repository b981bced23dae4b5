// SPDX-License-Identifier: MIT
// Allocates in C++: main -> make_shelf -> shelf::shelf, five times 500 bytes, never freed.
#include "store.h"
#include <cstring>
#include <new>

namespace {
struct shelf {
    char *bytes;
    __attribute__((noinline)) explicit shelf(std::size_t size) : bytes(new char[size]) {
        std::memset(bytes, 1, size);
    }
};
shelf *volatile kept[5];

__attribute__((noinline)) int make_shelves() {
    int count = 0;
    for (auto &place : kept) {
        static char room[5][sizeof(shelf)];
        place = new (room[count]) shelf(500);
        count++;
    }
    return count;
}
} // namespace

int main() {
    int count = make_shelves();
#ifdef WITH_STORE
    count += store_fill() - 10;
#endif
    return count == 5 ? 0 : 1;
}
