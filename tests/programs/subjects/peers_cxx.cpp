// SPDX-License-Identifier: MIT
// peers_cxx.cpp CASE: those of peers.c that need C++: exceptions that leave several frames, and
// thread-local objects that allocate when a thread begins and when it ends.
#include "subject.h"

#include <cstdlib>
#include <thread>

NOINLINE static void *take(size_t size) {
    void *block = malloc(size);
    keep(block);
    return block;
}

NOINLINE static void leave() {
    take(70001);
    throw 1;
}

NOINLINE static void between() {
    leave();
    say("WRONG: between goes on\n");
}

NOINLINE static void catch_first() {
    try {
        between();
    } catch (...) {
        take(70002);
        throw;
    }
}

NOINLINE static void call_through() {
    catch_first();
    say("WRONG: call_through goes on\n");
}

NOINLINE static void catch_last() {
    try {
        call_through();
    } catch (...) {
        take(70003);
    }
}

namespace {

struct Local {
    void *block = take(10123);
    ~Local() {
        free(block);
        free(take(10333));
    }
};

thread_local Local local;

} // namespace

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "throw") == 0) {
        catch_last();
        take(70004);
    } else if (argc == 2 && strcmp(argv[1], "thread_local") == 0) {
        keep(local.block);
        std::thread([] { keep(local.block); }).join();
    } else {
        return 98;
    }
    return 3;
}
