/* SPDX-License-Identifier: MIT */
/* knownpieces_test.c: stream/knownpieces: the newest pieces are known, however many there were. */
#include "stream/knownpieces.h"

#include "stream/filehash.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { PIECES = 2 * KNOWNPIECES_MOST + 1 };

static char folder_path[] = "/tmp/memtrace-pieces-XXXXXX";
static int folder = -1;
static struct wire_piece pieces[PIECES];

/* A recording whose every 8 bytes are different. */
static int prepare(void **state) {
    static uint64_t words[PIECES];
    int fd;
    (void)state;
    for (uint64_t i = 0; i < PIECES; i++) {
        words[i] = i;
    }
    if (mkdtemp(folder_path) == NULL) {
        return -1;
    }
    folder = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = openat(folder, "recording", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, words, sizeof words) != (ssize_t)sizeof words) {
        return -1;
    }
    for (uint64_t i = 0; i < PIECES; i++) {
        pieces[i].size = sizeof words[0];
        if (filehash_digest(fd, i * sizeof words[0], sizeof words[0], pieces[i].digest) != 0) {
            return -1;
        }
    }
    return close(fd);
}

static int clean(void **state) {
    (void)state;
    unlinkat(folder, "recording", 0);
    close(folder);
    return rmdir(folder_path);
}

/* The ring is full twice, and one more: it stands at its start again. */
static void the_oldest_make_room(void **state) {
    struct knownpieces *known = knownpieces_new();
    size_t there = 0;
    (void)state;
    assert_non_null(known);
    for (size_t i = 0; i < PIECES; i++) {
        knownpieces_add(known, &pieces[i], "recording", i * sizeof(uint64_t));
        assert_true(i % 64 != 0 || knownpieces_has(known, folder, &pieces[i]));
    }
    for (size_t i = 0; i < PIECES; i++) {
        bool has = knownpieces_has(known, folder, &pieces[i]);
        there += has;
        if (has != (i >= PIECES - KNOWNPIECES_MOST)) {
            fail_msg("piece %zu of %d is %sknown", i, PIECES, has ? "" : "not ");
        }
    }
    assert_int_equal(there, KNOWNPIECES_MOST);
    knownpieces_free(known);
}

/* The recording was changed, or is gone: it is not there any more. */
static void looks_at_the_bytes(void **state) {
    struct knownpieces *known = knownpieces_new();
    (void)state;
    assert_non_null(known);
    knownpieces_add(known, &pieces[1], "recording", 2 * sizeof(uint64_t));
    knownpieces_add(known, &pieces[2], "another", 2 * sizeof(uint64_t));
    knownpieces_add(known, &pieces[3], "recording", 3 * sizeof(uint64_t));
    assert_false(knownpieces_has(known, folder, &pieces[1]));
    assert_false(knownpieces_has(known, folder, &pieces[2]));
    assert_true(knownpieces_has(known, folder, &pieces[3]));
    knownpieces_free(known);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_make_room),
        cmocka_unit_test(looks_at_the_bytes),
    };
    return cmocka_run_group_tests(tests, prepare, clean);
}
