// SPDX-License-Identifier: MIT
// subject.cpp: what the tests of exports record: two threads, recursion, templates, inlined
// functions, leaks, temporary allocations, and a name that is no friend of any format.
#include "memtrace/memtrace.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static void *volatile kept[64];
static size_t kept_count;

static void keep(void *block) {
    kept[kept_count++] = block;
}

__attribute__((noinline)) static void leak(size_t size) {
    keep(malloc(size));
}

__attribute__((noinline)) static void recurse(int depth) {
    if (depth == 0) {
        leak(3001);
        return;
    }
    recurse(depth - 1);
    leak(17);
}

/* Mutual recursion is not one call. */
static void ping(int depth);
__attribute__((noinline)) static void pong(int depth) {
    ping(depth);
    __asm__ volatile("");
}
__attribute__((noinline)) static void ping(int depth) {
    if (depth != 0) {
        pong(depth - 1);
    }
    leak(101);
    __asm__ volatile("");
}

template <typename Key, typename Value> struct table {
    std::map<Key, std::vector<Value>> rows;
    __attribute__((noinline)) void add(const Key &key, const Value &value) {
        rows[key].push_back(value);
    }
};

__attribute__((noinline)) static void temporaries() {
    for (int i = 0; i < 1000; i++) {
        void *block = malloc(64 + (size_t)i);
        __asm__ volatile("" : : "r"(block) : "memory");
        free(block);
    }
}

static inline __attribute__((always_inline)) void *inlined(size_t size) {
    return malloc(size);
}

static void handler(int) {
    leak(4003);
}

extern "C" void call_evil(void); // evil.c

int main(int argc, char **) {
    if (argc > 1) { // long enough for a timeline
        usleep(250000);
        MEMTRACE_MARK("half </script>");
        usleep(250000);
    }
    table<int, std::string> rows;
    std::thread other([] {
        temporaries();
        leak(70000);
    });
    other.join();
    for (int i = 0; i < 200; i++) {
        rows.add(i % 10, std::string(100, 'x'));
    }
    keep(inlined(5555));
    recurse(5);
    ping(3);
    call_evil();
    std::signal(SIGUSR1, handler); // a frame that did not call the next one
    std::raise(SIGUSR1);
    void *peak = malloc(1000000);
    __asm__ volatile("" : : "r"(peak) : "memory");
    free(peak);
    return 0;
}
