/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/go_table.c: libraries with a table of functions as Go's linker makes it
 * (go_table_subject.S). Real programs of Go are run by tests/programs/go.py. */
#define _GNU_SOURCE
#include "runtime/stack/go_table.h"

#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct go_tables tables;

struct library {
    void *handle;
    struct memtrace_module module;
};

static struct library open_library(const char *kind, uint32_t id) {
    struct library library = {.module.id = id};
    struct dl_find_object object;
    snprintf(library.module.path, sizeof library.module.path, "%s/tests/unit/go_table_%s.so",
             MEMTRACE_BINARY_DIR, kind);
    library.handle = dlopen(library.module.path, RTLD_NOW | RTLD_LOCAL);
    if (library.handle == NULL) {
        fail_msg("%s", dlerror());
    }
    assert_int_equal(_dl_find_object(dlsym(library.handle, "first"), &object), 0);
    library.module.start = (uintptr_t)object.dlfo_map_start;
    library.module.end = (uintptr_t)object.dlfo_map_end;
    library.module.bias = object.dlfo_link_map->l_addr;
    return library;
}

/* How many of the addresses [from, to) lie in outermost functions. */
static size_t outermost(const struct library *library, const char *from, const char *to) {
    uintptr_t end = (uintptr_t)dlsym(library->handle, to);
    size_t count = 0;
    for (uintptr_t at = (uintptr_t)dlsym(library->handle, from); at < end; at++) {
        count += (size_t)go_table_is_outermost(&tables, &library->module, at);
    }
    return count;
}

static void is_known(const char *kind, uint32_t id) {
    struct library library = open_library(kind, id);
    uintptr_t first = (uintptr_t)dlsym(library.handle, "first");
    uintptr_t behind = (uintptr_t)dlsym(library.handle, "behind");
    assert_int_equal(outermost(&library, "first", "second"), 0);
    assert_int_equal(outermost(&library, "second", "third"), 32);
    assert_int_equal(outermost(&library, "third", "behind"), 0);
    assert_int_equal(go_table_is_outermost(&tables, &library.module, first - 1), 0);
    assert_int_equal(go_table_is_outermost(&tables, &library.module, behind), 0);
    assert_int_equal(go_table_is_outermost(&tables, &library.module, library.module.start), 0);
    assert_int_equal(go_table_is_outermost(&tables, &library.module, library.module.end), 0);
}

static void section_of_its_own(void **state) {
    (void)state;
    is_known("own", 1);
}

static void among_other_data(void **state) {
    (void)state;
    is_known("among", 2);
}

static void tells_nothing(void **state) {
    struct library newer = open_library("newer", 3);
    struct library other = open_library("other", 4);
    (void)state;
    assert_int_equal(outermost(&newer, "first", "behind"), 0);
    assert_int_equal(outermost(&other, "first", "behind"), 0);
}

/* Another file than the one that was loaded, or none. */
static void no_file(void **state) {
    struct library library = open_library("own", 5);
    (void)state;
    snprintf(library.module.path, sizeof library.module.path, "/proc/self/exe");
    assert_int_equal(outermost(&library, "first", "behind"), 0);
    library.module.id = 6;
    snprintf(library.module.path, sizeof library.module.path, MEMTRACE_BINARY_DIR "/no/such/file");
    assert_int_equal(outermost(&library, "first", "behind"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(section_of_its_own),
        cmocka_unit_test(among_other_data),
        cmocka_unit_test(tells_nothing),
        cmocka_unit_test(no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
