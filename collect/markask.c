/* SPDX-License-Identifier: MIT */
/* markask.c: see markask.h. */
#include "collect/markask.h"

#include "analyze/read/filemap.h"
#include "analyze/read/profile.h"
#include "collect/liveword.h"
#include "collect/recordask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* Where the first segment of events begins; 0: there is none yet. */
static uint64_t find_segment(const struct profile *profile) {
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        if (segment->kind == MEMTRACE_SEGMENT_EVENTS && segment->index == 0 &&
            segment->size >= PAGE) {
            return segment->offset;
        }
    }
    return 0;
}

/* Maps the places. 1; 0: there are none yet; -1: error. */
static int map(struct markask *ask, const struct region *region, struct error *error) {
    struct profile *profile = profile_open(region->path, error);
    uint64_t offset = profile != NULL ? find_segment(profile) : 0;
    bool is_open = profile != NULL;
    void *page = NULL;
    int fd;
    profile_close(profile);
    if (!is_open || offset == 0) {
        return is_open ? 0 : -1;
    }
    fd = open(region->path, O_RDWR | O_CLOEXEC);
    page = fd >= 0 ? filemap_open(fd, offset, PAGE, FILEMAP_WRITES) : NULL;
    if (page == NULL) {
        error_set(error, "cannot open %s: %s", region->path, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    ask->marks = page != NULL ? memtrace_asked_marks_in(page) : NULL;
    return page != NULL ? 1 : -1;
}

static void unmap(struct markask *ask) {
    if (ask->marks != NULL) {
        filemap_close((char *)ask->marks - MEMTRACE_ASKED_MARKS_OFFSET, PAGE);
    }
    ask->marks = NULL;
}

/* With the lock. False: all places are in use. */
static bool put(struct markask *ask, const char *text) {
    struct memtrace_asked_marks *marks = ask->marks;
    uint64_t asked = liveword_load(&marks->asked);
    if (asked - liveword_load(&marks->taken) >= MEMTRACE_ASKED_MARKS) {
        return false;
    }
    snprintf(marks->text[asked % MEMTRACE_ASKED_MARKS], MEMTRACE_ASKED_MARK_BYTES, "%s", text);
    ask->number = asked + 1;
    liveword_store(&marks->asked, ask->number);
    return true;
}

int markask_begin(struct markask *ask, const struct region *region, const char *text,
                  struct error *error) {
    int lock;
    int result = map(ask, region, error);
    if (result != 1) {
        return result;
    }
    lock = recordask_lock(region, error);
    if (lock < 0) {
        result = -1;
    } else {
        result = put(ask, text) ? 1 : 0;
        close(lock);
    }
    if (result != 1) {
        unmap(ask);
    }
    return result;
}

bool markask_is_taken(const struct markask *ask) {
    return liveword_load(&ask->marks->taken) >= ask->number;
}

void markask_end(struct markask *ask) {
    unmap(ask);
}
