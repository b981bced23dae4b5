// SPDX-License-Identifier: MIT
/*
 * exceptions.cpp: exceptions thrown and caught deep within a stack, over and over: by every door a
 * hundred frames up, nested, rethrown, carried to another thread, through the C library, while
 * destructors and handlers allocate. No exception object may be left. `exceptions NAME` runs one.
 */
#include "depth.h"

#include <algorithm>
#include <exception>
#include <malloc.h>
#include <stdexcept>
#include <thread>

enum { DEPTH = 100 };

NOINLINE static void take(size_t size) {
    disturb();
    keep(malloc(size));
}

struct cleanup {
    int *count;
    bool allocates;
    ~cleanup() {
        ++*count;
        if (allocates) {
            disturb();
        }
    }
};

struct thrown : std::runtime_error {
    int depth;
    static int alive;
    explicit thrown(int from) : std::runtime_error("thrown"), depth(from) {
        alive++;
    }
    thrown(const thrown &other) : std::runtime_error(other), depth(other.depth) {
        alive++;
    }
    ~thrown() override {
        alive--;
    }
};
int thrown::alive;

// How far up it is caught, and what is done about it there.
struct plan {
    int caught_at, rethrown_at, allocating;
    int cleanups, caught;
};

NOINLINE static int dive(int depth, plan &how) {
    cleanup each{&how.cleanups, how.allocating != 0 && depth % how.allocating == 0};
    if (depth == 0) {
        disturb();
        throw thrown(how.caught_at);
    }
    if (depth == how.rethrown_at) {
        try {
            return dive(depth - 1, how) + 1;
        } catch (thrown &error) {
            disturb();
            how.caught++;
            throw;
        }
    }
    if (depth == how.caught_at) {
        try {
            return dive(depth - 1, how) + 1;
        } catch (const std::runtime_error &error) {
            how.caught++;
            return static_cast<const thrown &>(error).depth;
        }
    }
    int below = dive(depth - 1, how) + 1;
    keep(&each);
    return below;
}

// From where it is caught it returns through the rest, one more a frame.
static void throw_and_check(int caught_at, int rethrown_at, int allocating) {
    plan how{caught_at, rethrown_at, allocating, 0, 0};
    int alive = thrown::alive;
    check(dive(DEPTH, how) == DEPTH, "what came back");
    check(how.cleanups == DEPTH + 1, "each destructor once");
    check(how.caught == 1 + (rethrown_at > 0), "caught by the right frames");
    check(thrown::alive == alive, "no exception is left");
}

static void case_any_frame() {
    for (int caught_at = 1; caught_at <= DEPTH; caught_at += caught_at < 8 ? 1 : 6) {
        throw_and_check(caught_at, 0, 0);
        throw_and_check(caught_at, 0, 25);
        throw_and_check(caught_at, caught_at / 2, 33);
    }
    take(78001);
}

// A handler throws anew, below it another one does.
NOINLINE static void nested(int levels) {
    try {
        throw_and_check(3 + levels * 5 % 60, levels % 3, 40);
        throw thrown(levels);
    } catch (const thrown &first) {
        disturb();
        if (levels > 0) {
            try {
                nested(levels - 1);
            } catch (const thrown &second) {
                check(second.depth == levels - 1, "the inner one");
            }
        }
        check(first.depth == levels, "the outer one is what it was");
        throw thrown(levels);
    }
}

static void case_nested() {
    try {
        nested(8);
    } catch (const thrown &last) {
        check(last.depth == 8, "the last one");
    }
    check(thrown::alive == 0, "no exception is left");
    take(78003);
}

static std::exception_ptr carried;

static void case_carried() {
    for (int round = 0; round < 20; round++) {
        std::thread([round] {
            try {
                plan how{-1, round % 3 * 20, 3, 0, 0};
                dive(DEPTH, how);
            } catch (...) {
                disturb();
                carried = std::current_exception();
            }
        }).join();
        try {
            disturb();
            std::rethrow_exception(carried);
        } catch (const thrown &error) {
            check(error.depth == -1, "what was carried");
        }
        carried = nullptr;
        check(thrown::alive == 0, "no exception is left");
    }
    take(78005);
}

static int dive_in_compare(const void *, const void *) {
    plan how{-1, 0, 4, 0, 0};
    return dive(40, how);
}

static void case_through_qsort() {
    int numbers[] = {3, 2, 1};
    for (int round = 0; round < 50; round++) {
        try {
            qsort(numbers, 3, sizeof *numbers, dive_in_compare);
        } catch (const thrown &) {
            continue;
        }
        check(0, "qsort came back");
    }
    check(thrown::alive == 0, "no exception is left");
    take(78007);
}

// The heap of the C library is as full after three hundred as it was after a hundred.
static void case_no_leak() {
    size_t before = 0;
    for (int round = 0; round < 300; round++) {
        int caught_at = 1 + round * 37 % DEPTH;
        throw_and_check(caught_at, round % 2 * caught_at / 2, 50);
        if (round == DEPTH) {
            before = mallinfo2().uordblks;
        }
    }
    check(mallinfo2().uordblks == before, "no memory is left");
    take(78009);
}

static void at_terminate() {
    take(78011);
    try {
        std::rethrow_exception(std::current_exception());
    } catch (const thrown &error) {
        check(error.depth == -1, "what terminates");
    }
    say("done\n");
    exit(3);
}

NOINLINE static void without_exceptions(int depth) noexcept {
    plan how{-1, 10, 5, 0, 0};
    keep(&depth);
    dive(DEPTH, how);
}

static void case_terminate() {
    std::set_terminate(at_terminate);
    plan how{-1, 0, 3, 0, 0};
    dive(DEPTH, how);
}

static void case_terminate_noexcept() {
    std::set_terminate(at_terminate);
    without_exceptions(1);
}

static void case_terminate_in_thread() {
    std::set_terminate(at_terminate);
    std::thread(case_terminate).join();
}

static const struct {
    const char *name;
    void (*run)();
} cases[] = {
    {"any_frame", case_any_frame},
    {"nested", case_nested},
    {"carried", case_carried},
    {"through_qsort", case_through_qsort},
    {"no_leak", case_no_leak},
    {"terminate", case_terminate},
    {"terminate_noexcept", case_terminate_noexcept},
    {"terminate_in_thread", case_terminate_in_thread},
};

int main(int argc, char **argv) {
    for (const auto &entry : cases) {
        if (argc > 1 && strcmp(entry.name, argv[1]) == 0) {
            run_deep(entry.run);
            say("done\n");
            return 3;
        }
    }
    return 98;
}
