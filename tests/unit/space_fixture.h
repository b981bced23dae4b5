/* SPDX-License-Identifier: MIT */
/* space_fixture.h: a profile region of our own, for tests of the runtime's structures. */
#ifndef TESTS_UNIT_SPACE_FIXTURE_H
#define TESTS_UNIT_SPACE_FIXTURE_H

#include "runtime/base/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline struct space *space_fixture_open(void) {
    struct space *space = calloc(1, sizeof *space);
    char path[] = "/tmp/memtrace-unit-XXXXXX";
    int fd = mkstemp(path);
    if (space == NULL || fd < 0 || space_open(space, fd, path) != 0) {
        perror("space_fixture_open");
        abort();
    }
    return space;
}

/* The mapping stays until the test ends, as it does in a program. */
static inline void space_fixture_close(struct space *space) {
    unlink(space->path);
    space_close(space);
    free(space);
}

#endif
