/* SPDX-License-Identifier: MIT */
/* recordslices_test.c: collect/recordslices: the thread beside whoever records ends with it. */
#include "collect/clock.h"
#include "collect/recordslices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

enum { TRIES = 20, SOON_MS = 120 }; /* it rests for 250 ms and longer */

/* How long the end took while it rests. */
static uint64_t end_ms(const struct recordparts *parts) {
    const struct timespec pause = {.tv_nsec = 5000000};
    struct recordslices *slices = recordslices_new(parts);
    uint64_t begun_ns;
    recordslices_start(slices);
    nanosleep(&pause, NULL);
    begun_ns = clock_now_ns();
    recordslices_free(slices);
    return (clock_now_ns() - begun_ns) / 1000000;
}

/* Who rests is woken: else the end of each recording would wait for it. Once is enough: processors
 * may be wanted by others. */
static void the_end_does_not_wait(void **state) {
    static struct memtrace_recording recording;
    static struct recordparts parts = {.recording = &recording};
    uint64_t least_ms = UINT64_MAX;
    (void)state;
    for (int i = 0; i < TRIES && least_ms > SOON_MS; i++) {
        uint64_t ms = end_ms(&parts);
        least_ms = ms < least_ms ? ms : least_ms;
    }
    assert_uint_in_range(least_ms, 0, SOON_MS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_end_does_not_wait)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
