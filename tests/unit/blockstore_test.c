/* SPDX-License-Identifier: MIT */
/* blockstore_test.c: blocks that fit into memory, and more, which lie in a file; no room for it. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "tests/unit/samelife.h"
#include "web/server/blockstore.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { IN_MEMORY = BLOCKSTORE_MEMORY / (int)sizeof(struct life), MORE = 10001 };

/* Something that tells each one from all others, in its first and its last member. */
static struct life life_number(size_t number) {
    struct life life = {0};
    life.block.number = number * 3;
    life.size = number * 7 + 1;
    life.birth_order = number + 1;
    life.scope = (uint32_t)number;
    return life;
}

static void fill(struct blockstore *store, size_t count) {
    blockstore_start(store);
    for (size_t i = 0; i < count; i++) {
        struct life life = life_number(i);
        assert_int_equal(blockstore_add(store, &life), 0);
    }
}

static void check(const struct blockstore *store, size_t count) {
    assert_int_equal(store->count, count);
    for (size_t i = 0; i < count; i++) {
        struct life wanted = life_number(i);
        assert_same_life(&store->lives[i], &wanted);
    }
}

static void keeps_all_of(size_t count, bool in_memory) {
    struct blockstore store;
    struct error error;
    fill(&store, count);
    assert_int_equal(blockstore_finish(&store, &error), 0);
    check(&store, count);
    blockstore_forget(&store);
    check(&store, count);
    if (in_memory) {
        assert_true(blockstore_bytes(&store) >= count * sizeof(struct life));
    } else {
        assert_int_equal(blockstore_bytes(&store), 0);
    }
    blockstore_free(&store);
}

static void test_memory(void **state) {
    (void)state;
    keeps_all_of(0, true);
    keeps_all_of(1, true);
    keeps_all_of(IN_MEMORY, true);
}

static size_t files_in(const char *folder) {
    DIR *open = opendir(folder);
    size_t count = 0;
    assert_non_null(open);
    for (struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
        count += entry->d_name[0] != '.';
    }
    closedir(open);
    return count;
}

/* The file has no name, so nobody has to remove it. */
static void test_file(void **state) {
    char folder[] = "/tmp/memtrace-test-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    setenv("TMPDIR", folder, 1);
    keeps_all_of(IN_MEMORY + 1, false);
    keeps_all_of(IN_MEMORY + MORE, false);
    assert_int_equal(files_in(folder), 0);
    rmdir(folder);
    unsetenv("TMPDIR");
}

/* How many are taken; the error says why no more. */
static size_t fill_until_failure(struct error *error) {
    struct blockstore store;
    size_t count = 0;
    struct life life = life_number(0);
    blockstore_start(&store);
    while (count < IN_MEMORY + 10 * MORE && blockstore_add(&store, &life) == 0) {
        count++;
    }
    blockstore_explain(&store, error);
    blockstore_free(&store);
    return count;
}

static void test_no_room(void **state) {
    struct rlimit usual;
    struct rlimit little;
    struct error error;
    (void)state;
    getrlimit(RLIMIT_FSIZE, &usual);
    little = (struct rlimit){BLOCKSTORE_MEMORY + 100000, usual.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &little);
    assert_uint_in_range(fill_until_failure(&error), IN_MEMORY, IN_MEMORY + 2 * MORE);
    setrlimit(RLIMIT_FSIZE, &usual);
    assert_string_equal(error.message,
                        "cannot write the temporary file of single blocks: File too large");
    setenv("TMPDIR", MEMTRACE_BINARY_DIR "/nowhere", 1);
    assert_int_equal(fill_until_failure(&error), IN_MEMORY);
    assert_string_equal(
        error.message,
        "cannot make the temporary file of single blocks: No such file or directory");
    unsetenv("TMPDIR");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
