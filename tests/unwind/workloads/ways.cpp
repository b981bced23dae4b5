// SPDX-License-Identifier: MIT
/*
 * ways.cpp SEED ROUNDS: random stacks of frames of every shape, each left in one of many ways, with
 * allocations all the while: realigned and growing frames, callbacks from C, virtual and indirect
 * calls, signal handlers on either stack, fibers, threads, exceptions and longjmp.
 */
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <ucontext.h>
#include <vector>

#define NOINLINE __attribute__((noipa)) /* not into itself, either */

static thread_local std::minstd_rand choose;
static thread_local jmp_buf *landing;

NOINLINE static void go(int depth);

NOINLINE static void allocate() {
    std::vector<std::string> words(choose() % 4, std::string(20 + choose() % 50, 'w'));
    std::map<unsigned, std::string> map;
    for (auto &word : words) {
        map.emplace(static_cast<unsigned>(choose()), word + "more");
    }
    free(strdup("a copy, made by the C library"));
}

NOINLINE static void plain(int depth) {
    go(depth - 1);
    allocate();
}

NOINLINE static void growing(int depth) {
    char *block = static_cast<char *>(alloca(16 + choose() % 900));
    memset(block, depth, 16);
    go(depth - 1);
    allocate();
    __asm__ volatile("" : : "r"(block) : "memory");
}

NOINLINE static void realigned(int depth) {
    alignas(128) char block[256];
    char *more = static_cast<char *>(alloca(16 + choose() % 100));
    __asm__ volatile("" : : "r"(block), "r"(more) : "memory");
    go(depth - 1);
    allocate();
}

NOINLINE static void huge(int depth) {
    char block[20000];
    __asm__ volatile("" : : "r"(block) : "memory");
    go(depth - 1);
    allocate();
}

NOINLINE static void deep(int depth) {
    char block[24];
    __asm__ volatile("" : : "r"(block) : "memory");
    if (depth == 0) {
        allocate();
    } else {
        deep(depth - 1);
    }
    __asm__ volatile("" : : "r"(block) : "memory");
}

/* The same newer frames in the same places, called from other places. */
NOINLINE static void again(int depth) {
    int below = static_cast<int>(choose() % 60);
    deep(below);
    deep(below);
    go(depth - 1);
    deep(below);
}

/* What it calls stands in the same place wherever it was called: only the frame pointer tells. */
NOINLINE static void level(char *lowest) {
    char *here = static_cast<char *>(__builtin_frame_address(0));
    char *block = static_cast<char *>(alloca(static_cast<size_t>(here - lowest)));
    __asm__ volatile("" : : "r"(block) : "memory");
    deep(2);
    __asm__ volatile("" : : "r"(block) : "memory");
}

/* The return address of each call stays behind in the block that is made for the next. */
NOINLINE static void levelled(int depth) {
    auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) & ~uintptr_t{15};
    auto lowest = reinterpret_cast<char *>(here - 2048);
    for (int i = 0; i < 4; i++) {
        __asm__ volatile("" : : "r"(alloca(48)) : "memory");
        level(lowest);
        __asm__ volatile("" : : "r"(alloca(96)) : "memory");
        level(lowest);
    }
    go(depth - 1);
}

static int compared_at;
static int compare(const void *a, const void *b) {
    if (compared_at++ % 9 == 0) {
        go(1); /* more would never end: each may sort again */
    }
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

NOINLINE static void by_qsort(int depth) {
    int numbers[12];
    for (int &number : numbers) {
        number = static_cast<int>(choose());
    }
    qsort(numbers, 12, sizeof numbers[0], compare);
    go(depth - 1);
}

NOINLINE static void by_function(int depth) {
    auto text = std::make_shared<std::string>(100, 'f');
    std::function<void()> call = [text, depth] { go(depth - 1); };
    call();
}

struct guarded {
    ~guarded() {
        allocate();
    }
};

NOINLINE static void catching(int depth) {
    try {
        guarded object;
        go(depth - 1);
        if (choose() % 2 == 0) {
            throw std::runtime_error("thrown " + std::to_string(depth));
        }
    } catch (const std::runtime_error &) {
        allocate();
        if (choose() % 3 == 0) {
            throw;
        }
    }
}

/* What lies between must have nothing to destroy: plain C frames. */
NOINLINE static void jump(int depth) {
    char *block = static_cast<char *>(alloca(40));
    free(malloc(30));
    if (depth == 0) {
        longjmp(*landing, 1);
    }
    jump(depth - 1);
    __asm__ volatile("" : : "r"(block) : "memory");
}

NOINLINE static void jumping(int depth) {
    jmp_buf place;
    jmp_buf *before = landing;
    landing = &place;
    if (setjmp(place) == 0) {
        jump(depth % 40);
    }
    landing = before;
    allocate();
    go(depth - 1);
}

static void on_signal(int, siginfo_t *, void *) {
    allocate();
    try {
        go(2); /* too few for a fiber, which must not leave the signal stack */
    } catch (const std::runtime_error &) {
        allocate(); /* nothing may be thrown through raise() */
    }
}

NOINLINE static void by_signal(int depth) {
    raise(choose() % 2 == 0 ? SIGUSR1 : SIGUSR2);
    go(depth - 1);
}

static ucontext_t main_context, fiber_context;
static int fiber_depth;

static void fiber() {
    try {
        go(fiber_depth);
    } catch (...) {
        allocate();
    }
}

NOINLINE static void by_fiber(int depth) {
    static char stack[8 << 20];
    static bool busy;
    if (!busy && depth > 2) {
        busy = true;
        fiber_depth = depth / 2;
        getcontext(&fiber_context);
        fiber_context.uc_stack.ss_sp = stack;
        fiber_context.uc_stack.ss_size = sizeof stack;
        fiber_context.uc_link = &main_context;
        makecontext(&fiber_context, fiber, 0);
        swapcontext(&main_context, &fiber_context);
        busy = false;
    }
    allocate();
}

NOINLINE static void by_thread(int depth) {
    unsigned seed = static_cast<unsigned>(choose());
    std::thread([depth, seed] {
        choose.seed(seed);
        try {
            plain(depth % 30);
        } catch (...) {
            allocate();
        }
    }).join();
}

NOINLINE static void go(int depth) {
    using way = void(int);
    static way *const ways[] = {plain,    growing,     realigned, huge,    again,    levelled,
                                by_qsort, by_function, catching,  jumping, by_signal};
    static way *const rare[] = {by_fiber, by_thread};
    allocate();
    if (depth > 0) {
        (choose() % 100 == 0 ? rare[choose() % 2] : ways[choose() % 11])(depth);
    }
}

static void handle(int signal, int flags) {
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | flags;
    sigaction(signal, &action, nullptr);
}

int main(int, char **arguments) {
    static char other_stack[1 << 20];
    stack_t stack = {};
    stack.ss_sp = other_stack;
    stack.ss_size = sizeof other_stack;
    sigaltstack(&stack, nullptr);
    handle(SIGUSR1, 0);
    handle(SIGUSR2, SA_ONSTACK);
    choose.seed(static_cast<unsigned>(atoi(arguments[1])));
    for (int round = atoi(arguments[2]); round > 0; round--) {
        try {
            go(static_cast<int>(choose() % 120));
        } catch (const std::exception &) {
            allocate();
        }
    }
    return 0;
}
