/* SPDX-License-Identifier: MIT */
/* Tests of runtime/stack/rule.c, of what reads machine code for it, and of walks over words:
 * functions of this program store the constant as a compiler pass makes them. */
#define _GNU_SOURCE
#include "runtime/stack/frame_word.h"

#include "runtime/machine/machine.h"
#include "runtime/stack/cfi.h"
#include "tests/unit/walk_fixture.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define PASS_LIKE __attribute__((noinline, no_sanitize("address", "thread", "undefined")))
#define STAY()    __asm__ volatile("" ::: "memory")
#define STORE_FRESH(word)                                                                          \
    __asm__ volatile("{movl\t$0x5a17c0de, %0|mov\tDWORD PTR %0, 0x5a17c0de}" : "=m"(word))

/* --- machine code ----------------------------------------------------------------------------- */

struct encoding {
    uint8_t bytes[12];
    size_t length;
    uint32_t base;
    int32_t displacement;
};

/* As an assembler makes them: mov dword [...], 0x5a17c0de. */
static const struct encoding encodings[] = {
    {{0xc7, 0x04, 0x24, 0xde, 0xc0, 0x17, 0x5a}, 7, MACHINE_DWARF_SP, 0},
    {{0xc7, 0x44, 0x24, 0x0c, 0xde, 0xc0, 0x17, 0x5a}, 8, MACHINE_DWARF_SP, 12},
    {{0xc7, 0x84, 0x24, 0x80, 1, 0, 0, 0xde, 0xc0, 0x17, 0x5a}, 11, MACHINE_DWARF_SP, 0x180},
    {{0xc7, 0x45, 0xec, 0xde, 0xc0, 0x17, 0x5a}, 7, MACHINE_DWARF_FP, -20},
    {{0xc7, 0x85, 0x7c, 0xff, 0xff, 0xff, 0xde, 0xc0, 0x17, 0x5a}, 10, MACHINE_DWARF_FP, -132},
};

static void finds_every_form(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++) {
        const struct encoding *it = &encodings[i];
        for (size_t before = 0; before < 9; before++) {
            uint8_t code[32];
            struct machine_store store;
            uintptr_t start = (uintptr_t)code;
            memset(code, 0x90, sizeof code);
            memcpy(code + before, it->bytes, it->length);
            assert_true(
                machine_find_store(start, start + before + it->length, FRAME_WORD_FRESH, &store));
            assert_int_equal(store.start, start + before);
            assert_int_equal(store.end, start + before + it->length);
            assert_int_equal(store.base_register, it->base);
            assert_int_equal(store.displacement, it->displacement);
            /* Cut off at either end. */
            assert_false(machine_find_store(start, start + before + it->length - 1,
                                            FRAME_WORD_FRESH, &store));
            assert_false(machine_find_store(start + before + 1, start + sizeof code,
                                            FRAME_WORD_FRESH, &store));
        }
    }
}

/* --- functions -------------------------------------------------------------------------------- */

static uint32_t below_cfa(uintptr_t pc) {
    struct dl_find_object object;
    struct cfi_row row;
    assert_int_equal(_dl_find_object((void *)pc, &object), 0);
    assert_int_equal(cfi_find(object.dlfo_eh_frame, pc - 1, &row), 0);
    return frame_word_below_cfa(object.dlfo_eh_frame, &row);
}

static PASS_LIKE uintptr_t my_return_address(void) {
    return (uintptr_t)__builtin_return_address(0);
}

static PASS_LIKE void one_word(void) {
    uint32_t word;
    uint32_t below;
    STORE_FRESH(word);
    below = below_cfa(my_return_address());
    assert_int_equal((uintptr_t)__builtin_dwarf_cfa() - below, (uintptr_t)&word);
}

static PASS_LIKE void one_word_beside(size_t bytes) {
    char room[bytes]; /* makes the frame pointer the base */
    uint32_t word;
    uint32_t below;
    __asm__ volatile("" : : "r"(room) : "memory");
    STORE_FRESH(word);
    below = below_cfa(my_return_address());
    assert_int_equal((uintptr_t)__builtin_dwarf_cfa() - below, (uintptr_t)&word);
}

static PASS_LIKE void two_words(void) {
    uint32_t word[2];
    STORE_FRESH(word[0]);
    STORE_FRESH(word[1]);
    assert_int_equal(below_cfa(my_return_address()), 0);
}

static void finds_the_word(void **state) {
    (void)state;
    one_word();
    one_word_beside(100);
    two_words();
    assert_int_equal(below_cfa((uintptr_t)finds_the_word + 8), 0);
}

/* --- walks ------------------------------------------------------------------------------------ */

/* The context as the walk finds it, and as it is without anything remembered or filled in: words
 * are made fresh again for that, through their addresses. */
static uint32_t *words[64];
static size_t word_count;

static PASS_LIKE void compare(void) {
    const uintptr_t *frame = __builtin_frame_address(0);
    struct frame caller = {.pc = frame[1], .slot = (uintptr_t)&frame[1], .fp = frame[0]};
    uint32_t quick = walk_context(&world, &walker, caller).value;
    uint32_t kept[64];
    for (size_t i = 0; i < word_count; i++) {
        kept[i] = *words[i];
        *words[i] = FRAME_WORD_FRESH;
    }
    walker.remembered.count = 0;
    assert_int_equal(walk_context(&world, &walker, caller).value, quick);
    for (size_t i = 0; i < word_count; i++) {
        assert_int_equal(*words[i], kept[i]);
    }
}

static int descend(const void *a, const void *b);
static unsigned levels;

/* libc's qsort between two of our frames, so that each level has a path of its own. */
static PASS_LIKE void level(void) {
    int pair[2] = {2, 1};
    uint32_t word;
    STORE_FRESH(word);
    words[word_count++] = &word;
    compare();
    if (levels > 0) {
        levels--;
        qsort(pair, 2, sizeof pair[0], descend);
        compare();
    }
    word_count--;
    STAY();
}

static int descend(const void *a, const void *b) {
    (void)a;
    (void)b;
    level();
    return 0;
}

static void words_tell_the_context(void **state) {
    (void)state;
    for (unsigned depth = 0; depth < 12; depth++) {
        levels = depth;
        level();
        levels = 12 - depth;
        level();
    }
}

static void handler(int number) {
    (void)number;
    levels = 1;
    level();
}

static uint32_t in_early[2];

/* Its frame has held a filled word; a signal comes before a new one is made. */
static PASS_LIKE void early(int makes_it, int which) {
    uint32_t word;
    if (makes_it) {
        STORE_FRESH(word);
        words[word_count++] = &word;
        compare();
        in_early[which] = word;
        word_count--;
        return;
    }
    raise(SIGUSR1);
    STAY();
}

static PASS_LIKE void one_caller(int makes_it) {
    early(makes_it, 0);
    STAY();
}

static PASS_LIKE void other_caller(int makes_it) {
    early(makes_it, 1);
    STAY();
}

static void a_signal_comes_before_the_word(void **state) {
    struct sigaction action = {.sa_handler = handler};
    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    one_caller(1);
    other_caller(0);
    other_caller(1);
    one_caller(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_form),
        cmocka_unit_test(finds_the_word),
        cmocka_unit_test(words_tell_the_context),
        cmocka_unit_test(a_signal_comes_before_the_word),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
