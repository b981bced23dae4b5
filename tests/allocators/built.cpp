// SPDX-License-Identifier: MIT
// built.cpp CASE: allocators of a program that is built with MemTrace, in the ways in which
// compilers take functions apart: built.py names them. What they do is known from what is written
// here.
#include "builtother.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

static char arena[1 << 22] __attribute__((aligned(64)));
static size_t used;

static inline char *carve(size_t size) {
    size_t at = used;
    used += (size + 15) & ~(size_t)15;
    if (used > sizeof arena) {
        abort();
    }
    return arena + at;
}

// Goes wherever it is called.
static inline __attribute__((always_inline)) void *take_inlined(unsigned size) {
    return carve(size);
}
static inline void *take_small(size_t size) {
    return size != 0 ? carve(size) : nullptr;
}

// Its arguments are others when it returns, and it returns in many places.
static void *take_changing(const char *why, size_t size, short count) {
    if (size == 0) {
        return nullptr;
    }
    size *= (size_t)count;
    why += size;
    if (why == nullptr) {
        return arena;
    }
    size = (size + 63) & ~(size_t)63;
    count = -1;
    if (size > 1000) {
        return carve(size + 100);
    }
    for (;;) {
        if (size % 64 == 0) {
            return carve(size);
        }
    }
}

// A method, a template's, one that is overloaded, one that is virtual.
template <typename T> class pool {
  public:
    T *take(unsigned count) {
        return reinterpret_cast<T *>(carve(count * sizeof(T)));
    }
    void give(const T *) {
        given++;
    }
    unsigned given = 0;
};

struct source {
    virtual ~source() = default;
    virtual void *get(size_t size) = 0;
    void *get(size_t size, double scale) {
        return get(static_cast<size_t>(static_cast<double>(size) * scale));
    }
};
struct arena_source final : source {
    void *get(size_t size) override {
        return carve(size);
    }
};

namespace {
struct guard {
    int *count;
    ~guard() {
        ++*count;
    }
};
} // namespace
static int destroyed;

// Leaves in every way: with a block, with none, by an exception of its own or of what it calls.
static void *leave(int how) {
    if (how == 3) {
        throw std::runtime_error("inside");
    }
    return how == 2 ? nullptr : carve(32);
}
static void *take_or_throw(size_t size, int how) {
    guard it{&destroyed};
    if (how == 1) {
        throw std::bad_alloc();
    }
    void *block = leave(how);
    return block != nullptr && size != 0 ? block : nullptr;
}
static void *resize_or_throw(void *old, size_t size, int how) {
    guard it{&destroyed};
    if (how == 1) {
        throw std::bad_alloc();
    }
    char *block = static_cast<char *>(leave(how));
    if (block != nullptr && old != nullptr) {
        memcpy(block, old, 8);
    }
    return size != 0 ? block : nullptr;
}
static int place_or_throw(char **out, size_t size, int how) {
    if (how == 1) {
        throw std::bad_alloc();
    }
    if (how == 2) {
        return -1;
    }
    *out = carve(size);
    out = nullptr; // another thing by now
    return 0;
}

// Calls itself: each of its calls is one.
static void *take_deep(size_t size) {
    return size > 10 ? take_deep(size - 1) : carve(size);
}

static void give(void *) {
}

static void inlined() {
    for (unsigned i = 1; i <= 100; i++) {
        take_inlined(i);
        take_small(i);
        take_small(0);
    }
    take_inlined(7);
    take_small(9);
}

static void changing() {
    const char *why = "why";
    for (size_t i = 0; i < 50; i++) {
        take_changing(why, 40 * i, static_cast<short>(i % 3 + 1));
    }
}

static void methods() {
    pool<int> ints;
    pool<double> doubles;
    arena_source own;
    source *any = &own;
    for (unsigned i = 1; i <= 20; i++) {
        int *one = ints.take(i);
        doubles.take(i);
        any->get(i);
        any->get(i, 2.5);
        if (i % 2 == 0) {
            ints.give(one);
        }
    }
}

static void leaving() {
    void *block = nullptr;
    char *placed;
    for (int i = 0; i < 400; i++) {
        try {
            take_or_throw(40, i % 4);
        } catch (const std::exception &) {
            destroyed += 100000;
        }
        try {
            void *other = resize_or_throw(block, 50, i % 4);
            block = other != nullptr ? other : block;
        } catch (const std::exception &) {
            destroyed += 100000;
        }
        try {
            if (place_or_throw(&placed, 60, i % 3) == 0 && placed < arena) {
                abort();
            }
        } catch (const std::exception &) {
            destroyed += 100000;
        }
    }
    give(block);
    printf("destroyed %d\n", destroyed);
}

static void deep() {
    take_deep(29);
}

static void other() {
    for (int i = 1; i <= 30; i++) {
        void *block = other_take((size_t)i);
        other_outer((size_t)i);
        other_static((size_t)i);
        if (i <= 12) {
            other_give(block);
        }
    }
    other_clear();
    other_take(1000);
}

// What is taken in each case, so that no time is lost where nobody counts.
static void all() {
    inlined();
    changing();
    methods();
    leaving();
    deep();
    other();
}

int main(int, char **words) {
    const struct {
        const char *name;
        void (*run)();
    } cases[] = {{"inlined", inlined}, {"changing", changing}, {"methods", methods},
                 {"leaving", leaving}, {"deep", deep},         {"other", other},
                 {"all", all}};
    for (const auto &one : cases) {
        if (strcmp(words[1], one.name) == 0) {
            one.run();
            printf("done %zu\n", used);
            return 0;
        }
    }
    return 2;
}
