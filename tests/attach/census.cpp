// SPDX-License-Identifier: MIT
// census.cpp THREADS: a heap of known blocks: says what it has as JSON, and waits for a line.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <pthread.h>
#include <vector>

namespace zoo {
struct Animal {
    virtual ~Animal() = default;
    virtual int legs() const {
        return 0;
    }
    char name[40];
};
struct Dog : Animal {
    int legs() const override {
        return 4;
    }
    char more[200];
};
template <typename T> struct Box : Animal { T content[30]; };
} // namespace zoo

static const int EACH = 3000, MOST = 8;
static void *kept[MOST][EACH];
static size_t count_of[64];

static void *fill(void *argument) {
    int number = (int)(size_t)argument;
    std::vector<void *> freed;
    for (int i = 0; i < EACH; i++) {
        size_t size = 8 + (size_t)i * 31 % 3000;
        if (i % 1000 == 999) {
            size = 300000; // a mapping of its own
        }
        kept[number][i] = std::malloc(size);
        std::memset(kept[number][i], 1, size);
        if (i % 3 == 0) {
            void *more = std::malloc(size);
            std::memset(more, 2, size);
            freed.push_back(more);
        }
    }
    for (void *block : freed) { // into bins, fast bins and the cache
        std::free(block);
    }
    return nullptr;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? std::atoi(argv[1]) : 0;
    size_t blocks = 0, bytes = 0, mapped = 0;
    pthread_t thread[MOST];
    std::vector<zoo::Animal *> animals;
    for (int i = 0; i < 500; i++) {
        animals.push_back(new zoo::Dog);
        animals.push_back(i % 2 == 0 ? static_cast<zoo::Animal *>(new zoo::Box<int>)
                                     : static_cast<zoo::Animal *>(new zoo::Box<double>));
    }
    fill(nullptr);
    for (int i = 1; i < threads; i++) {
        pthread_create(&thread[i], nullptr, fill, reinterpret_cast<void *>(static_cast<size_t>(i)));
    }
    for (int i = 1; i < threads; i++) {
        pthread_join(thread[i], nullptr);
    }
    for (int number = 0; number < (threads > 1 ? threads : 1); number++) {
        for (void *block : kept[number]) {
            size_t usable = malloc_usable_size(block);
            int size = 0;
            while (usable > (32u << size) - 8) {
                size++;
            }
            count_of[size]++;
            blocks++;
            bytes += usable;
            mapped += usable > 200000;
        }
    }
    std::printf("ready\n");
    std::printf(
        "{\"blocks\": %zu, \"bytes\": %zu, \"mapped\": %zu, \"dog_bytes\": %zu, \"sizes\": [",
        blocks, bytes, mapped, malloc_usable_size(dynamic_cast<void *>(animals[0])) * 500);
    for (int i = 0; i < 20; i++) {
        std::printf("%s%zu", i == 0 ? "" : ", ", count_of[i]);
    }
    std::printf("]}\n");
    std::fflush(stdout);
    std::getchar();
    std::printf("%d\n", animals[0]->legs());
    return 3;
}
