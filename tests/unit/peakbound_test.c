/* SPDX-License-Identifier: MIT */
/* peakbound_test.c: analyze/replay/peakbound: whatever order times allow, the true maximum lies
 * within the bound of the replayed one. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/replay/peakbound.h"

#include <stdlib.h>

static void one_stream_is_exact(void **state) {
    struct peakbound bound;
    (void)state;
    peakbound_start(&bound, 1);
    assert_int_equal(peakbound_error(&bound, 0), 0);
    for (uint64_t window = 0; window < 100; window++) {
        peakbound_run(&bound, 0, window);
        peakbound_change(&bound, 1000);
        peakbound_change(&bound, -900);
    }
    assert_int_equal(peakbound_error(&bound, 99 * 100 + 1000), 0);
    peakbound_free(&bound);
}

/* Two streams that rise by 1000 in one window: together, or one after the other. */
static void two_streams(void **state) {
    struct peakbound bound;
    (void)state;
    peakbound_start(&bound, 2);
    for (size_t stream = 0; stream < 2; stream++) {
        peakbound_run(&bound, stream, 5);
        peakbound_change(&bound, 1000);
        peakbound_change(&bound, -1000);
    }
    assert_int_equal(peakbound_error(&bound, 1000), 1000);
    peakbound_free(&bound);
}

/* Streams that take turns in windows far from each other have one order only. */
static void turns_are_exact(void **state) {
    struct peakbound bound;
    (void)state;
    peakbound_start(&bound, 2);
    for (uint64_t window = 0; window < 50; window++) {
        peakbound_run(&bound, window % 2, window * 3);
        peakbound_change(&bound, 500);
        peakbound_change(&bound, -400);
    }
    assert_int_equal(peakbound_error(&bound, 49 * 100 + 500), 0);
    peakbound_free(&bound);
}

struct step {
    unsigned stream;
    uint64_t window; /* as its stream's clock said it */
    int64_t change;
};

static int64_t maximum_of(const struct step *steps, size_t count) {
    int64_t live = 0;
    int64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        live += steps[i].change;
        most = live > most ? live : most;
    }
    return most;
}

/* A true order, with clocks that are up to one window late; then the order that a replay takes. */
static void random_orders(void **state) {
    enum { STREAMS = 4, STEPS = 400 };
    (void)state;
    for (unsigned seed = 0; seed < 300; seed++) {
        struct step steps[STEPS];
        uint64_t last[STREAMS] = {0};
        struct peakbound bound;
        int64_t live = 0;
        int64_t replayed = 0;
        uint64_t distance;
        int64_t truth;
        srand(seed);
        for (size_t i = 0; i < STEPS; i++) {
            uint64_t now = i / (5 + seed % 40);
            unsigned stream = (unsigned)rand() % STREAMS;
            uint64_t late = now != 0 && rand() % 2 ? now - 1 : now;
            last[stream] = late > last[stream] ? late : last[stream];
            steps[i] = (struct step){stream, last[stream], rand() % 201 - 100};
        }
        truth = maximum_of(steps, STEPS);
        peakbound_start(&bound, STREAMS);
        for (uint64_t window = 0; window <= STEPS; window++) {
            for (unsigned stream = 0; stream < STREAMS; stream++) {
                for (size_t i = 0, begun = 0; i < STEPS; i++) {
                    if (steps[i].stream != stream || steps[i].window != window) {
                        continue;
                    }
                    if (!begun++) {
                        peakbound_run(&bound, stream, window);
                    }
                    peakbound_change(&bound, steps[i].change);
                    live += steps[i].change;
                    replayed = live > replayed ? live : replayed;
                }
            }
        }
        distance = (uint64_t)(truth > replayed ? truth - replayed : replayed - truth);
        assert_true(distance <= peakbound_error(&bound, (uint64_t)replayed));
        peakbound_free(&bound);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stream_is_exact),
        cmocka_unit_test(two_streams),
        cmocka_unit_test(turns_are_exact),
        cmocka_unit_test(random_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
