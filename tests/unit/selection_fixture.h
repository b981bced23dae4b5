/* SPDX-License-Identifier: MIT */
/*
 * selection_fixture.h: random recordings with several threads and late clocks, and views of them.
 * Included by unit tests of selections, behind cmocka.
 */
#ifndef TESTS_UNIT_SELECTION_FIXTURE_H
#define TESTS_UNIT_SELECTION_FIXTURE_H

#include "analyze/filter/selection.h"
#include "analyze/window/wholemodel.h"
#include "tests/unit/recording_random.h"

enum { SELECTION_VIEWS = 4 };

static char selection_path[] = "/tmp/memtrace-selection-XXXXXX";

/* A random recording, replayed. */
struct selection_subject {
    struct recording *recording;
    struct timeorder_parts parts;
    struct model *whole;
};

/* Frees what was built. */
static inline void selection_open_built(struct selection_subject *subject,
                                        struct recording_build *build) {
    recording_build_write(build->bytes, build->size, selection_path);
    recording_build_free(build);
    subject->recording = recording_open(selection_path, NULL);
    assert_non_null(subject->recording);
    subject->parts =
        (struct timeorder_parts){(const struct recording *const *)&subject->recording, 1};
    subject->whole = model_replay(subject->parts, NULL, NULL);
    assert_non_null(subject->whole);
}

static inline void selection_open(struct selection_subject *subject,
                                  const struct recording_random *options) {
    struct recording_build build = {0};
    recording_random(&build, options);
    selection_open_built(subject, &build);
}

static inline void selection_close(struct selection_subject *subject) {
    model_free(subject->whole);
    recording_close(subject->recording);
}

/* All recordings, and of each some views: the whole run first. */
static inline void selection_each_view(void (*check)(const struct selection_subject *,
                                                     const struct selection *)) {
    for (unsigned seed = 0; seed < 12; seed++) {
        const struct recording_random options = {.seed = seed,
                                                 .threads = 1 + seed % 5,
                                                 .is_precise = seed % 2,
                                                 .is_late = seed % 3 == 0,
                                                 .is_shared = seed == 8};
        struct selection_subject subject;
        selection_open(&subject, &options);
        for (int i = 0; i < SELECTION_VIEWS; i++) {
            struct selection selection = selection_all();
            if (i != 0) {
                selection.view.from_ns = i % 2 != 0 ? recording_random_time(&options) : 0;
                selection.view.to_ns =
                    i == 3 ? UINT64_MAX
                           : selection.view.from_ns + recording_random_time(&options) + 1;
            }
            check(&subject, &selection);
        }
        selection_close(&subject);
    }
}

static inline int selection_make_file(void **state) {
    int fd = mkstemp(selection_path);
    (void)state;
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0 ? 0 : -1;
}

static inline int selection_remove_file(void **state) {
    (void)state;
    return unlink(selection_path);
}

#endif
