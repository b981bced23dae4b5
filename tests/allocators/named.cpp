// SPDX-License-Identifier: MIT
// named.cpp CASE: a program with allocators of its own, which know nothing of MemTrace. named.py
// names them, and knows from what is written here how often each is called and what is alive.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <new>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN extern "C" __attribute__((noinline, noclone, visibility("default")))

static char arena[1 << 24] __attribute__((aligned(4096)));
static size_t used;

static void *carve(size_t size, size_t align) {
    size_t grown = __atomic_add_fetch(&used, size + align + 15, __ATOMIC_RELAXED);
    uintptr_t at = reinterpret_cast<uintptr_t>(arena) + grown - size - 15;
    if (grown > sizeof arena) {
        return nullptr;
    }
    return reinterpret_cast<void *>(at & ~(uintptr_t)(align - 1));
}

OWN void *own_alloc(size_t size) {
    return carve(size, 16);
}

/* Not known to the compiler, which might make a copy of own_zalloc for it (Clang 18: .specialized).
 */
static const char *volatile zero_please = "zero";

OWN void *own_zalloc(const char *why, size_t number, size_t size) {
    return why[0] == 'z' ? memset(carve(number * size, 16), 0, number * size) : nullptr;
}

OWN int own_place(void **out, size_t align, size_t size) {
    if (size > 100000) {
        return 12;
    }
    *out = carve(size, align);
    return 0;
}

OWN void *own_resize(void *old, size_t size) {
    void *next = size < 100000 ? carve(size, 16) : nullptr;
    if (next != nullptr && old != nullptr) {
        memcpy(next, old, 8);
    }
    return size == 0 ? nullptr : next;
}

OWN void own_free(int level, void *block) {
    if (level == 7 && block != nullptr) {
        *static_cast<volatile char *>(block) = 1;
    }
}

static volatile int resets;
OWN void own_reset(void) {
    resets = resets + 1;
}

// Not an allocator at all, for its compiler: what it returns in other registers, and leaves alone.
struct two {
    uint64_t first, second;
};
OWN two own_two(double scale, uint64_t size) {
    return {reinterpret_cast<uint64_t>(carve(size, 16)), static_cast<uint64_t>(scale * 2)};
}
OWN double own_double(double a, double b, uint64_t size) {
    return a * b + static_cast<double>(size);
}

OWN void *own_throwing(size_t size) {
    if (size > 1000) {
        throw std::bad_alloc();
    }
    return carve(size, 16);
}

static jmp_buf back;
OWN void *own_jumping(size_t size) {
    if (size > 1000) {
        longjmp(back, 1);
    }
    return carve(size, 16);
}

static int deepest;
OWN void *own_looking(size_t size) {
    void *frames[64];
    deepest = backtrace(frames, 64);
    return carve(size, 16);
}

static void check(bool is_right, const char *what) {
    if (!is_right) {
        fprintf(stderr, "FAILED: %s\n", what);
        exit(1);
    }
}

static void kinds() {
    void *block[100];
    for (int i = 0; i < 100; i++) {
        block[i] = own_alloc(static_cast<size_t>(100 + i));
    }
    for (int i = 0; i < 50; i++) {
        own_free(7, block[i]);
    }
    own_free(7, nullptr);
    char *zero = static_cast<char *>(own_zalloc(zero_please, 30, 33));
    check(zero != nullptr && zero[0] == 0 && zero[989] == 0, "filled with zeros");
    check(own_zalloc("none", 1, 1) == nullptr, "no block");
    void *placed = nullptr;
    check(own_place(&placed, 4096, 5000) == 0, "placed");
    check(reinterpret_cast<uintptr_t>(placed) % 4096 == 0, "aligned");
    check(own_place(&placed, 4096, 200000) == 12, "too large");
    block[99] = own_resize(block[99], 700);
    check(own_resize(block[98], 200000) == nullptr, "it fails: the old one stays");
    check(own_resize(block[97], 0) == nullptr, "resized to nothing: it ends");
    void *fresh = own_resize(nullptr, 300);
    check(fresh != nullptr, "from nothing");
}

static void reset() {
    for (int i = 0; i < 70; i++) {
        own_alloc(40);
    }
    own_reset();
    own_alloc(41);
}

static void registers() {
    for (uint64_t i = 1; i <= 1000; i++) {
        double scale = 1.5 * static_cast<double>(i);
        two both = own_two(scale, i);
        check(both.first != 0 && both.second == 3 * i, "two results");
        check(own_double(scale, 2.0, i) == 4.0 * static_cast<double>(i),
              "a result of floating point");
    }
}

static void throws() {
    int caught = 0;
    for (int i = 0; i < 100; i++) {
        try {
            own_throwing(i % 2 == 0 ? 50 : 2000);
        } catch (const std::bad_alloc &) {
            caught++;
        }
        if (setjmp(back) == 0) {
            own_jumping(i % 4 == 0 ? 60 : 2000);
        } else {
            caught++;
        }
    }
    check(caught == 50 + 75, "all were caught");
}

__attribute__((noinline)) static int look_from(int depth) {
    if (depth > 0) {
        int found = look_from(depth - 1);
        __asm__ volatile("" ::: "memory");
        return found;
    }
    own_looking(10);
    __asm__ volatile("" ::: "memory");
    return deepest;
}

static void looks() {
    int first = look_from(0);
    check(look_from(20) == first + 20, "who looks from within sees all callers");
}

static void *worker(void *) {
    for (int i = 0; i < 20000; i++) {
        void *block = own_alloc(24);
        if (i % 100 != 0) {
            own_free(7, block);
        }
    }
    return nullptr;
}

static void threads() {
    pthread_t thread[4];
    for (pthread_t &one : thread) {
        pthread_create(&one, nullptr, worker, nullptr);
    }
    for (pthread_t one : thread) {
        pthread_join(one, nullptr);
    }
}

static void forks() {
    own_alloc(500);
    if (fork() == 0) {
        for (int i = 0; i < 10; i++) {
            own_alloc(600);
        }
        exit(0);
    }
    int status = 0;
    wait(&status);
    check(status == 0, "the child");
}

static volatile bool is_over;
static void *idler(void *) {
    while (!is_over) {
        own_free(7, own_alloc(16));
        used = 0;
        usleep(100);
    }
    return nullptr;
}

// A library that comes while another thread runs: again after it was closed, too.
static volatile int ended_children;
static void on_child(int) {
    ended_children = ended_children + 1;
}

static void opens() {
    pthread_t thread;
    pthread_create(&thread, nullptr, idler, nullptr);
    for (int i = 0; i < 3; i++) {
        signal(SIGCHLD, i < 2 ? on_child : SIG_IGN);
        void *handle = dlopen(getenv("PLUGIN"), RTLD_NOW);
        auto work = handle != nullptr
                        ? reinterpret_cast<void (*)(int)>(dlsym(handle, "plugin_work"))
                        : nullptr;
        check(work != nullptr, "the library");
        work(100);
        check(dlclose(handle) == 0, "closed");
    }
    is_over = true;
    pthread_join(thread, nullptr);
    check(ended_children == 0, "it has no children");
}

static volatile int ticks;
static void on_alarm(int) {
    own_free(7, own_alloc(32));
    ticks = ticks + 1;
}

static void signals() {
    struct itimerval often = {{0, 200}, {0, 200}};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, nullptr);
    while (ticks < 200) {
        own_free(7, own_alloc(48));
        if (used > sizeof arena / 2) {
            used = 0;
        }
    }
    struct itimerval never = {};
    setitimer(ITIMER_REAL, &never, nullptr);
}

int main(int argc, char **argv) {
    const struct {
        const char *name;
        void (*run)();
    } cases[] = {{"kinds", kinds},   {"reset", reset}, {"registers", registers},
                 {"throws", throws}, {"looks", looks}, {"threads", threads},
                 {"forks", forks},   {"opens", opens}, {"signals", signals}};
    for (const auto &one : cases) {
        if (argc == 2 && strcmp(argv[1], one.name) == 0) {
            one.run();
            puts("done");
            return 3;
        }
    }
    return 98;
}
