// SPDX-License-Identifier: MIT
/*
 * soak.cpp: a storm. Threads dive to random depths and leave by every door at once: exceptions,
 * jumps, out of signal handlers, by switching to fibers that go on elsewhere, through libraries
 * that come and go, by ending; timers interrupt all of it. `soak SECONDS SEED LIBRARY...`; whoever
 * computes something checks it. Run by tests/unwind/soak.
 *
 * Each marked allocation, made by mark(), tells by its size how many frames of step() lie below it.
 */
#include "subject.h"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <mutex>
#include <pthread.h>
#include <stdexcept>
#include <sys/time.h>
#include <ucontext.h>

enum { THREADS = 4, FIBERS = 6, FIBER_STACK = 256 * 1024, MARKED = 90000, MOST_LIBRARIES = 4 };

static std::atomic<bool> is_over;
static std::atomic<long> rounds, interruptions;
static std::atomic<int> loads_left{150}, threads_left{500}; // a profile keeps each apart
static const char *libraries[MOST_LIBRARIES];
static int library_count;

struct dice {
    uint64_t state;
    unsigned roll(unsigned sides) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return static_cast<unsigned>(state >> 33) % sides;
    }
};

// What one walk to and fro needs. It may go on in another thread: nothing here is a thread's.
struct journey {
    dice chance;
    int steps;   // frames of step() on the stack
    int nesting; // doors within doors
    sigjmp_buf *back;
};

typedef long door_function(journey &on, int depth);

// --- what is done at the bottom ---------------------------------------------------------------

NOINLINE static void mark(journey &on) {
    void *block = malloc(MARKED + static_cast<size_t>(on.steps));
    keep(block);
    free(block);
}

static std::atomic<unsigned char *> exchanged[64];

// Blocks change hands: what one thread allocates another checks and frees.
NOINLINE static void exchange(journey &on) {
    size_t size = 16 + on.chance.roll(2000);
    auto *fresh = static_cast<unsigned char *>(malloc(size));
    fresh[0] = static_cast<unsigned char>(size);
    fresh[1] = static_cast<unsigned char>(size >> 8);
    memset(fresh + 2, fresh[0], size - 2);
    unsigned char *old = exchanged[on.chance.roll(64)].exchange(fresh);
    if (old != nullptr) {
        size_t length = old[0] | static_cast<size_t>(old[1]) << 8;
        check(old[length - 1] == (length > 2 ? old[0] : old[1]), "a block that changed hands");
        free(old);
    }
}

// --- going down -------------------------------------------------------------------------------

static long through_a_door(journey &on);

// `depth` frames of this; each adds its depth to what comes back.
NOINLINE static long step(journey &on, int depth, door_function *bottom) {
    volatile long local = depth;
    long below;
    on.steps++;
    if (depth == 0) {
        mark(on);
        below = bottom(on, depth);
    } else {
        below = step(on, depth - 1, bottom);
    }
    if (depth % 16 == 5) {
        mark(on);
    }
    on.steps--;
    return below + local;
}

static long sum_to(int depth) {
    return static_cast<long>(depth) * (depth + 1) / 2;
}

static int some_depth(journey &on) {
    return on.chance.roll(2) ? 5 : 53; // few, so that paths repeat
}

static long nothing(journey &, int) {
    return 0;
}

// Another door, where it does not get too deep.
static long perhaps_another(journey &on, int) {
    exchange(on);
    if (on.nesting < 1) {
        on.nesting++;
        through_a_door(on);
        on.nesting--;
    }
    return 0;
}

static void door_return(journey &on) {
    int depth = some_depth(on);
    check(step(on, depth, perhaps_another) == sum_to(depth), "what a return brings");
}

// --- exceptions -------------------------------------------------------------------------------

static long throw_something(journey &on, int depth) {
    perhaps_another(on, depth);
    throw std::runtime_error("thrown below");
}

struct on_the_way {
    journey &on;
    int steps;
    ~on_the_way() {
        on.steps = steps;
        mark(on);
    }
};

NOINLINE static long with_cleanup(journey &on, int depth) {
    on_the_way cleanup{on, on.steps};
    keep(&cleanup);
    return step(on, 30, depth % 2 == 0 ? throw_something : nothing) + step(on, 3, throw_something);
}

static void door_throw(journey &on) {
    int steps = on.steps, caught = 0;
    try {
        step(on, some_depth(on), on.chance.roll(2) ? with_cleanup : throw_something);
    } catch (const std::runtime_error &error) {
        on.steps = steps;
        caught++;
        mark(on);
        check(strcmp(error.what(), "thrown below") == 0, "the exception");
    }
    check(caught == 1, "caught once");
}

// --- jumps ------------------------------------------------------------------------------------

static long jump_back(journey &on, int depth) {
    perhaps_another(on, depth);
    siglongjmp(*on.back, 1);
}

static __thread sigjmp_buf *back_from_signal;

static void on_jump_signal(int) {
    siglongjmp(*back_from_signal, 1);
}

static long signal_back(journey &on, int) {
    back_from_signal = on.back;
    pthread_kill(pthread_self(), SIGUSR1);
    return 0;
}

static void door_jump(journey &on) {
    sigjmp_buf here, *outer = on.back;
    int steps = on.steps, nesting = on.nesting;
    // On a fiber a door further in may go on in another thread: a signal is for this one.
    door_function *bottom = on.chance.roll(2) ? jump_back : signal_back;
    on.back = &here;
    if (sigsetjmp(here, 1) == 0) {
        step(on, some_depth(on), bottom);
        check(0, "no jump");
    }
    on.back = outer;
    on.steps = steps;
    on.nesting = nesting;
    mark(on);
}

// --- fibers that anybody resumes --------------------------------------------------------------

struct fiber {
    ucontext_t own, resumer;
    journey on;
    std::mutex busy;
    bool started, over;
    char *stack;
};

static fiber fibers[FIBERS];

static long fiber_pause(journey &on, int) {
    auto *self = reinterpret_cast<fiber *>(reinterpret_cast<char *>(&on) - offsetof(fiber, on));
    exchange(on);
    swapcontext(&self->own, &self->resumer);
    mark(on);
    return 0;
}

static void fiber_main(unsigned high, unsigned low) {
    auto *self = reinterpret_cast<fiber *>(static_cast<uintptr_t>(high) << 32 | low);
    for (int turn = 0; turn < 20; turn++) {
        int depth = some_depth(self->on);
        check(step(self->on, depth, fiber_pause) == sum_to(depth), "what a fiber's return brings");
    }
    self->over = true;
}

static void door_fiber(journey &on) {
    fiber &one = fibers[on.chance.roll(FIBERS)];
    if (!one.busy.try_lock()) {
        return;
    }
    if (!one.started) {
        auto address = reinterpret_cast<uintptr_t>(&one);
        getcontext(&one.own);
        one.own.uc_stack.ss_sp = one.stack;
        one.own.uc_stack.ss_size = FIBER_STACK;
        one.own.uc_link = &one.resumer;
        one.on.steps = 0;
        makecontext(&one.own, reinterpret_cast<void (*)()>(fiber_main), 2,
                    static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
        one.started = true;
    }
    swapcontext(&one.resumer, &one.own);
    if (one.over) {
        one.started = one.over = false;
    }
    one.busy.unlock();
}

// --- threads that end below -------------------------------------------------------------------

static long end_thread(journey &, int) {
    pthread_exit(reinterpret_cast<void *>(7));
}

static long wait_for_cancel(journey &on, int depth) {
    exchange(on);
    for (;;) {
        pause();
    }
    return depth;
}

static void *ending(void *argument) {
    journey on = *static_cast<journey *>(argument);
    on.steps = 0;
    step(on, 70, end_thread);
    return nullptr;
}

static void *cancelled(void *argument) {
    journey on = *static_cast<journey *>(argument);
    on.steps = 0;
    step(on, 70, wait_for_cancel);
    return nullptr;
}

static void door_thread(journey &on) {
    pthread_t thread;
    void *result;
    bool is_cancelled = on.chance.roll(2) == 0;
    if (threads_left-- <= 0 ||
        pthread_create(&thread, nullptr, is_cancelled ? cancelled : ending, &on) != 0) {
        return;
    }
    if (is_cancelled) {
        pthread_cancel(thread);
    }
    pthread_join(thread, &result);
    check(result == (is_cancelled ? PTHREAD_CANCELED : reinterpret_cast<void *>(7)),
          "a thread's end");
}

// --- libraries that come and go ---------------------------------------------------------------

typedef long library_function(int depth, long (*callback)(void *argument), void *argument);

static long called_back(void *argument) {
    auto &on = *static_cast<journey *>(argument);
    int depth = some_depth(on);
    check(step(on, depth, perhaps_another) == sum_to(depth), "what a callback's return brings");
    if (on.chance.roll(4) == 0) {
        throw std::runtime_error("through a library");
    }
    return 1;
}

static void door_library(journey &on) {
    int steps = on.steps, nesting = on.nesting;
    if (library_count == 0 || loads_left-- <= 0) {
        return;
    }
    void *library =
        dlopen(libraries[on.chance.roll(static_cast<unsigned>(library_count))], RTLD_NOW);
    check(library != nullptr, "dlopen");
    auto *run = reinterpret_cast<library_function *>(dlsym(library, "library_run"));
    try {
        check(run(40, called_back, &on) == 41, "what a library's return brings");
    } catch (const std::runtime_error &error) {
        check(strcmp(error.what(), "through a library") == 0, "the exception");
        on.steps = steps;
        on.nesting = nesting;
    }
    dlclose(library);
}

// --- all of them ------------------------------------------------------------------------------

static const struct {
    void (*go)(journey &on);
    unsigned of_a_hundred;
} doors[] = {
    {door_return, 30}, {door_throw, 25},  {door_jump, 25},
    {door_fiber, 15},  {door_library, 3}, {door_thread, 2},
};

static long through_a_door(journey &on) {
    unsigned chosen = on.chance.roll(100), which = 0;
    while (chosen >= doors[which].of_a_hundred) {
        chosen -= doors[which++].of_a_hundred;
    }
    doors[which].go(on);
    return 0;
}

static void *wander(void *argument) {
    static char stacks[THREADS][65536];
    size_t number = reinterpret_cast<size_t>(argument) % THREADS;
    stack_t other = {};
    other.ss_sp = stacks[number];
    other.ss_size = sizeof stacks[number];
    sigaltstack(&other, nullptr);
    journey on = {
        {reinterpret_cast<size_t>(argument) * UINT64_C(0x9e3779b97f4a7c15)}, 0, 0, nullptr};
    while (!is_over) {
        through_a_door(on);
        check(on.steps == 0 && on.nesting == 0, "everything was left");
        rounds++;
    }
    return nullptr;
}

NOINLINE static long handler_work(int depth) {
    volatile long local = depth;
    return depth == 0 ? 0 : handler_work(depth - 1) + local;
}

static void on_timer(int) {
    interruptions++;
    check(handler_work(10) == 55, "a handler's own");
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    time_t end = time(nullptr) + atoi(argv[1]);
    size_t seed = strtoul(argv[2], nullptr, 0);
    for (int i = 3; i < argc && library_count < MOST_LIBRARIES; i++) {
        libraries[library_count++] = argv[i];
    }
    struct sigaction action = {};
    action.sa_handler = on_jump_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    action.sa_handler = on_timer;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    for (int i = 0; i < FIBERS; i++) {
        fibers[i].stack = static_cast<char *>(malloc(FIBER_STACK));
        fibers[i].on.chance.state = seed * 1000 + static_cast<size_t>(i);
        fibers[i].on.nesting = 1;
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], nullptr, wander, reinterpret_cast<void *>(seed * THREADS + i));
    }
    itimerval often = {{0, 1700}, {0, 1700}};
    setitimer(ITIMER_REAL, &often, nullptr);
    while (time(nullptr) < end) {
        usleep(20000);
    }
    is_over = true;
    for (pthread_t thread : threads) {
        pthread_join(thread, nullptr);
    }
    often = {};
    setitimer(ITIMER_REAL, &often, nullptr);
    check(rounds > 100 && interruptions > 100, "it was a storm");
    say("done\n");
    return 3;
}
