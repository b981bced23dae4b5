// SPDX-License-Identifier: MIT
/*
 * operators.cpp: every operator new and delete, one case each, as allocations.c. The C++ library's
 * emergency pool (allocated before main: pool.cpp) is known to counts.py.
 */
#include "subject.h"

#include <cerrno>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

static const std::align_val_t wide{4096};

NOINLINE static void case_plain() {
    void *kept = ::operator new(opaque(1001));
    void *gone = ::operator new(opaque(1003));
    allocated(1001);
    allocated(1003);
    ::operator delete(gone);
    freed(1003);
    keep(kept);
    ::operator delete(static_cast<void *>(nullptr));
    void *nothing = ::operator new(opaque(0));
    check(nothing != nullptr, "new of no bytes");
    allocated(0);
    ::operator delete(nothing);
    freed(0);
}

NOINLINE static void case_array() {
    int *numbers = new int[opaque(251)];
    allocated(251 * sizeof(int));
    keep(numbers);
    delete[] numbers;
    freed(251 * sizeof(int));
    void *kept = ::operator new[](opaque(1001));
    allocated(1001);
    keep(kept);
}

NOINLINE static void case_nothrow() {
    void *one = ::operator new(opaque(1001), std::nothrow);
    void *two = ::operator new[](opaque(1003), std::nothrow);
    allocated(1001);
    allocated(1003);
    void *none = ::operator new(opaque(SIZE_MAX - 200), std::nothrow);
    check(none == nullptr, "too large: no memory and no exception");
    none = ::operator new[](opaque(PTRDIFF_MAX), std::nothrow);
    check(none == nullptr, "too large an array");
    ::operator delete(one, std::nothrow);
    ::operator delete[](two, std::nothrow);
    freed(1001);
    freed(1003);
}

NOINLINE static void case_aligned() {
    void *one = ::operator new(opaque(8192), wide);
    void *two = ::operator new[](opaque(12288), wide);
    check((reinterpret_cast<uintptr_t>(one) & 4095) == 0, "alignment of 4096");
    check((reinterpret_cast<uintptr_t>(two) & 4095) == 0, "alignment of 4096");
    allocated(8192);
    allocated(12288);
    void *three = ::operator new(opaque(4096), wide, std::nothrow);
    void *four = ::operator new[](opaque(16384), wide, std::nothrow);
    allocated(4096);
    allocated(16384);
    ::operator delete(one, wide);
    ::operator delete[](two, wide);
    ::operator delete(three, wide, std::nothrow);
    ::operator delete[](four, wide, std::nothrow);
    freed(8192);
    freed(12288);
    freed(4096);
    freed(16384);
}

/* Alignments that posix_memalign refuses: served as any other, not refused and left to libstdc++.
 */
NOINLINE static void case_barely_aligned() {
    const std::align_val_t narrow{opaque(4)};
    void *one = ::operator new(opaque(1001), narrow);
    void *two = ::operator new[](opaque(1003), narrow);
    void *three = ::operator new(opaque(1007), narrow, std::nothrow);
    void *four = ::operator new[](opaque(1009), narrow, std::nothrow);
    allocated(1001);
    allocated(1003);
    allocated(1007);
    allocated(1009);
    ::operator delete(one, narrow);
    ::operator delete[](two, narrow);
    ::operator delete(three, narrow, std::nothrow);
    keep(four);
    freed(1001);
    freed(1003);
    freed(1007);
}

NOINLINE static void case_sized() {
    void *one = ::operator new(opaque(1001));
    void *two = ::operator new[](opaque(1003));
    void *three = ::operator new(opaque(8192), wide);
    void *four = ::operator new[](opaque(12288), wide);
    allocated(1001);
    allocated(1003);
    allocated(8192);
    allocated(12288);
    ::operator delete (one, std::size_t{1001});
    ::operator delete[](two, std::size_t{1003});
    ::operator delete (three, std::size_t{8192}, wide);
    ::operator delete[](four, std::size_t{12288}, wide);
    freed(1001);
    freed(1003);
    freed(8192);
    freed(12288);
}

NOINLINE static void case_bad_alloc() {
    want.unknown = 2; // the exception object is allocated, too; valgrind cannot throw
    for (int i = 0; i < 10; i++) {
        try {
            keep(::operator new(opaque(PTRDIFF_MAX)));
            check(false, "no exception");
        } catch (const std::bad_alloc &) {
        }
        try {
            keep(::operator new(opaque(PTRDIFF_MAX - 4096), wide));
            check(false, "no exception for an aligned new");
        } catch (const std::bad_alloc &) {
        }
    }
}

static int handler_calls;
static void *reserve;

NOINLINE static void case_new_handler() {
    want.unknown = 2;
    reserve = std::malloc(1001);
    std::set_new_handler([] {
        handler_calls++;
        std::free(reserve);
        reserve = nullptr;
        if (handler_calls == 3) {
            std::set_new_handler(nullptr);
        }
    });
    try {
        keep(::operator new(opaque(PTRDIFF_MAX)));
    } catch (const std::bad_alloc &) {
    }
    check(handler_calls == 3, "the new handler is called until it gives up");
}

// new, malloc and free may be mixed by foolish programs; glibc lets them.
NOINLINE static void case_mixed() {
    void *block = ::operator new(opaque(1001));
    keep(block);
    allocated(1001);
    std::free(block);
    freed(1001);
    block = std::malloc(1003);
    keep(block);
    allocated(1003);
    ::operator delete(block);
    freed(1003);
}

NOINLINE static void case_containers() {
    want.unknown = 1;
    std::map<int, std::string> names;
    for (int i = 0; i < 1000; i++) {
        names[i] = std::string(static_cast<size_t>(i % 60), 'x');
    }
    std::vector<std::string> list;
    for (const auto &entry : names) {
        list.push_back(entry.second);
    }
    check(list.size() == 1000, "all there");
    keep(new std::vector<int>(5000));
}

// An operator of the program's own keeps its say for its class.
struct counted {
    char payload[100];
    static void *operator new(std::size_t size) {
        allocated(size);
        return std::malloc(size);
    }
    static void operator delete(void *pointer) {
        freed(sizeof(counted));
        std::free(pointer);
    }
};

NOINLINE static void case_class_operator() {
    counted *kept = new counted;
    counted *gone = new counted;
    keep(kept);
    keep(gone);
    delete gone;
}

static const struct {
    const char *name;
    void (*run)();
} cases[] = {
    {"plain", case_plain},
    {"array", case_array},
    {"nothrow", case_nothrow},
    {"aligned", case_aligned},
    {"barely_aligned", case_barely_aligned},
    {"sized", case_sized},
    {"bad_alloc", case_bad_alloc},
    {"mixed", case_mixed},
    {"containers", case_containers},
    {"new_handler", case_new_handler},
    {"class_operator", case_class_operator},
};

int main(int argc, char **argv) {
    for (const auto &entry : cases) {
        if (argc > 1 && strcmp(entry.name, argv[1]) == 0) {
            entry.run();
            say_wanted();
            return 3;
        }
    }
    return 98;
}
