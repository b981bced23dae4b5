/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/debug_frame.c: two libraries of the same code, one with .eh_frame and one
 * with .debug_frame alone, say the same of every byte of it. */
#define _GNU_SOURCE
#include "runtime/stack/debug_frame.h"

#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LIBRARY(kind) MEMTRACE_BINARY_DIR "/tests/unit/with_" kind "_frame.so"

static struct debug_frames frames;
static struct memtrace_module module = {.id = 1};

struct library {
    struct dl_find_object object;
    uintptr_t code; /* where the same function lies in both */
    size_t before, after;
};

static void open_library(const char *path, struct library *library) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const ElfW(Ehdr) * header;
    const ElfW(Phdr) * program;
    if (handle == NULL) {
        fail_msg("%s", dlerror());
    }
    library->code = (uintptr_t)dlsym(handle, "cfi_read");
    assert_int_equal(_dl_find_object((void *)library->code, &library->object), 0);
    header = library->object.dlfo_map_start;
    program = (const ElfW(Phdr) *)((uintptr_t)header + header->e_phoff);
    for (size_t i = 0; i < header->e_phnum; i++) {
        if (program[i].p_type == PT_LOAD && (program[i].p_flags & PF_X) != 0) {
            uintptr_t start = library->object.dlfo_link_map->l_addr + program[i].p_vaddr;
            library->before = library->code - start;
            library->after = start + program[i].p_memsz - library->code;
        }
    }
    module.start = (uintptr_t)library->object.dlfo_map_start;
    module.end = (uintptr_t)library->object.dlfo_map_end;
    module.bias = library->object.dlfo_link_map->l_addr;
    snprintf(module.path, sizeof module.path, "%s", path);
}

static void assert_register(const struct cfi_register *one, const struct cfi_register *other) {
    assert_int_equal(one->place, other->place);
    assert_int_equal(one->offset, other->offset);
}

/* An entry of the PLT is a jump through a word, for Ubuntu's compilers behind an endbr64. */
static int is_stub(const uint8_t *code) {
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    code += memcmp(code, endbr64, sizeof endbr64) == 0 ? sizeof endbr64 : 0;
    code += *code == 0xf2; /* bnd */
    return *code == 0xff;
}

/* Whether both know the place, and say the same of it. */
static int is_same(const struct library *eh, const struct library *debug, size_t offset) {
    struct cfi_row expected;
    struct cfi_row row;
    int known = cfi_find(eh->object.dlfo_eh_frame, eh->code + offset, &expected);
    if (known == 0 && is_stub((const uint8_t *)expected.start)) {
        return 0; /* a stub, which the linker describes in .eh_frame only */
    }
    assert_int_equal(debug_frame_find(&frames, &module, debug->code + offset, &row), known);
    if (known != 0) {
        return 0;
    }
    assert_int_equal(row.start - debug->code, expected.start - eh->code);
    assert_int_equal(row.end - debug->code, expected.end - eh->code);
    assert_int_equal(row.cfa_expression != NULL, expected.cfa_expression != NULL);
    assert_int_equal(row.cfa_register, expected.cfa_register);
    assert_int_equal(row.cfa_offset, expected.cfa_offset);
    assert_register(&row.frame_pointer, &expected.frame_pointer);
    assert_register(&row.return_address, &expected.return_address);
    assert_false(row.may_catch || row.signal_frame);
    return 1;
}

static void same_as_eh_frame(void **state) {
    struct library eh;
    struct library debug;
    struct cfi_row row;
    size_t same = 0;
    (void)state;
    open_library(LIBRARY("eh"), &eh);
    open_library(LIBRARY("debug"), &debug);
    if (debug.object.dlfo_eh_frame != NULL) { /* of the start files */
        assert_int_not_equal(cfi_find(debug.object.dlfo_eh_frame, debug.code, &row), 0);
    }
    assert_int_equal(eh.before, debug.before);
    assert_int_equal(eh.after, debug.after);
    for (size_t i = 0; i < eh.before + eh.after; i++) {
        same += (size_t)is_same(&eh, &debug, i - eh.before);
    }
    assert_true(same > 10000);
    assert_int_equal(frames.count, 1);
}

/* An .eh_frame that is loaded, without the table by which it is searched. */
static void without_table(void **state) {
    struct library eh;
    struct library bare;
    size_t same = 0;
    (void)state;
    open_library(LIBRARY("eh"), &eh);
    open_library(LIBRARY("bare"), &bare);
    assert_null(bare.object.dlfo_eh_frame);
    assert_int_equal(eh.before, bare.before);
    module.id = 20;
    for (size_t i = 0; i < eh.before + eh.after; i++) {
        same += (size_t)is_same(&eh, &bare, i - eh.before);
    }
    assert_true(same > 10000);
    assert_int_equal(frames.count, 2);
}

/* Loaded again, it is a module of its own; its file is known. */
static void one_file(void **state) {
    struct library debug;
    struct cfi_row row;
    (void)state;
    open_library(LIBRARY("debug"), &debug);
    module.id = 2;
    assert_int_equal(debug_frame_find(&frames, &module, debug.code, &row), 0);
    assert_int_equal(frames.count, 1);
    assert_int_equal(debug_frame_find(&frames, &module, module.start, &row), -1);
    assert_int_equal(debug_frame_find(&frames, &module, debug.code + debug.after, &row), -1);
}

/* A file that is another by now, that has no such section, or that is no file. */
static void not_used(void **state) {
    static const char *const paths[] = {LIBRARY("eh"), MEMTRACE_BINARY_DIR "/no/such/file",
                                        "/dev/zero", "library.so"};
    struct library library;
    struct cfi_row row;
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        open_library(LIBRARY("debug"), &library);
        snprintf(module.path, sizeof module.path, "%s", paths[i]);
        module.id = 3 + (uint32_t)i;
        assert_int_equal(debug_frame_find(&frames, &module, library.code, &row), -1);
    }
    open_library(LIBRARY("eh"), &library);
    module.id = 10;
    assert_int_equal(debug_frame_find(&frames, &module, library.code, &row), -1);
    assert_int_equal(frames.count, 1);
}

/* Who comes while the file is read is told so, and may ask again. */
static void busy(void **state) {
    struct library debug;
    struct cfi_row row;
    (void)state;
    open_library(LIBRARY("debug"), &debug);
    module.id = 11;
    assert_int_equal(trylock_take(&frames.lock), 1);
    assert_int_equal(debug_frame_find(&frames, &module, debug.code, &row), 1);
    trylock_release(&frames.lock);
    assert_int_equal(debug_frame_find(&frames, &module, debug.code, &row), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_eh_frame), cmocka_unit_test(one_file),
        cmocka_unit_test(not_used),         cmocka_unit_test(busy),
        cmocka_unit_test(without_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
