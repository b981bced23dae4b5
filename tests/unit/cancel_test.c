/* SPDX-License-Identifier: MIT */
/*
 * cancel_test.c: replay_options.cancel, set by another thread at any moment of any pass over a
 * recording of some million events: it ends soon, says so and leaves nothing behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/blocks/detail.h"
#include "analyze/blocks/holes.h"
#include "analyze/export/export.h"
#include "analyze/filter/selection.h"
#include "analyze/replay/lives.h"
#include "analyze/window/view.h"
#include "analyze/window/wholemodel.h"
#include "tests/unit/recording_builder.h"

#include <pthread.h>
#include <time.h>

enum {
    BLOCKS = 100,
    ALLOCS = 12500, /* of each block of events; two of three are never freed */
    MOMENTS = 10,   /* of each pass at which it is cancelled */
    TRIES = 5,      /* where another process took our time */
};

#define MS INT64_C(1000000)
#ifdef __SANITIZE_ADDRESS__ /* looks at all that is freed */
#define SOON (500 * MS)
#else
#define SOON (50 * MS)
#endif
#define STEP_NS UINT64_C(4000)

static char path[] = "/tmp/memtrace-cancel-XXXXXX";

static struct recording *recording;
static struct timeorder_parts parts;
static struct model *whole;
static struct names *names;
static struct selection selection;

/* ---- The recording ---- */

static void add_block(struct recording_build *build, struct event_encoder *encoder,
                      uint64_t *number) {
    event_encoder_start(encoder, 2, *number + 1);
    for (int i = 0; i < ALLOCS; i++) {
        struct event alloc = {.kind = EVENT_ALLOC,
                              .time_ns = ++*number * STEP_NS,
                              .context = 4 + (uint32_t)(*number % 8),
                              .address = UINT64_C(0x100000000) + *number * 7919 % (1 << 22) * 64,
                              .size = *number % 1000,
                              .block = {*number, 2}};
        struct event end = {.kind = EVENT_FREE, .time_ns = alloc.time_ns, .block = alloc.block};
        assert_int_equal(event_encoder_add(encoder, &alloc), 0);
        if (*number % 3 == 0) {
            assert_int_equal(event_encoder_add(encoder, &end), 0);
        }
    }
    recording_build_encoded(build, encoder, 1);
}

static void write_recording(void) {
    struct recording_build build = {0};
    struct event_encoder *encoder = event_encoder_new(0);
    uint64_t number = 0;
    assert_non_null(encoder);
    recording_build_header(&build);
    recording_build_program(&build, "/usr/bin/example");
    recording_build_tree(&build);
    for (int i = 0; i < BLOCKS; i++) {
        add_block(&build, encoder, &number);
    }
    recording_build_index(&build);
    recording_build_write(build.bytes, build.size, path);
    event_encoder_free(encoder);
    recording_build_free(&build);
}

static int open_all(void **state) {
    struct error error = {""};
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    write_recording();
    recording = recording_open(path, &error);
    assert_non_null(recording);
    parts = (struct timeorder_parts){(const struct recording *const *)&recording, 1};
    whole = model_replay(parts, NULL, &error);
    assert_non_null(whole);
    names = names_open(whole, NULL, &error);
    selection = selection_all();
    return 0;
}

static int close_all(void **state) {
    (void)state;
    names_close(names);
    selection_free(&selection);
    model_free(whole);
    recording_close(recording);
    unlink(path);
    return 0;
}

/* ---- The passes: true if it came to its end ---- */

static bool replays(const struct replay_options *options, struct error *error) {
    struct model *model = model_replay(parts, options, error);
    model_free(model);
    return model != NULL;
}

static bool views(const struct replay_options *options, struct error *error) {
    struct model *model =
        model_view(whole, parts, whole->now_ns / 3, whole->now_ns / 2, options, error);
    model_free(model);
    return model != NULL;
}

static int count(void *context, const struct life *life) {
    size_t *lives = context;
    *lives += life->birth_order != 0;
    return 0;
}

static bool visits(const struct replay_options *options, struct error *error) {
    size_t lives = 0;
    const struct lives_visitor visitor = {.begin = count, .end = count, .context = &lives};
    return lives_visit(parts, whole, &visitor, options, error) == 0;
}

static bool visits_selected(const struct replay_options *options, struct error *error) {
    size_t lives = 0;
    const struct lives_visitor visitor = {.begin = count, .end = count, .context = &lives};
    return selection_visit(&selection, whole, parts, names, &visitor, options, error) == 0;
}

static bool selects(const struct replay_options *options, struct error *error) {
    struct selection large = selection_all();
    struct model *model;
    large.size.least = 500;
    model = selection_model(&large, whole, parts, names, options, error);
    model_free(model);
    selection_free(&large);
    return model != NULL;
}

static bool gathers(const struct replay_options *options, struct error *error) {
    const struct detail_wish wish = {.parts = DETAIL_LIFETIMES | DETAIL_SIZES | DETAIL_HEAP |
                                              DETAIL_BLOCKS | DETAIL_SHUTDOWN,
                                     .shutdown_ns = UINT64_MAX,
                                     .limit = 10};
    struct detail *detail = detail_gather(&wish, &selection, whole, parts, names, options, error);
    detail_free(detail);
    return detail != NULL;
}

static bool finds_holes(const struct replay_options *options, struct error *error) {
    struct holes holes;
    return holes_find(whole, parts, 0, options, &holes, error) == 0;
}

static bool exports(int (*write)(const struct export *, struct error *),
                    const struct replay_options *options, struct error *error) {
    FILE *out = fopen("/dev/null", "w");
    const struct export export = {.out = out,
                                  .name = "/dev/null",
                                  .model = whole,
                                  .whole = whole,
                                  .names = names,
                                  .parts = parts,
                                  .source = path,
                                  .progress = options};
    int result = write(&export, error);
    fclose(out);
    return result == 0;
}

static bool exports_heaptrack(const struct replay_options *options, struct error *error) {
    return exports(export_heaptrack, options, error);
}

static bool exports_massif(const struct replay_options *options, struct error *error) {
    return exports(export_massif, options, error);
}

/* ---- Cancelling ---- */

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

struct alarm {
    atomic_bool cancel;
    int64_t wait_ns;
    int64_t rang_ns;
};

static void *ring(void *context) {
    struct alarm *alarm = context;
    const struct timespec wait = {alarm->wait_ns / 1000000000, alarm->wait_ns % 1000000000};
    nanosleep(&wait, NULL);
    alarm->rang_ns = now_ns();
    atomic_store(&alarm->cancel, true);
    return NULL;
}

typedef bool pass_function(const struct replay_options *options, struct error *error);

/* How long it went on after it was cancelled; 0: it had ended before. */
static int64_t cancel_after(pass_function *pass, int64_t wait_ns) {
    struct alarm alarm = {.wait_ns = wait_ns};
    const struct replay_options options = {.cancel = &alarm.cancel};
    struct error error = {""};
    pthread_t thread;
    int64_t end_ns;
    bool ended;
    assert_int_equal(pthread_create(&thread, NULL, ring, &alarm), 0);
    ended = pass(&options, &error);
    end_ns = now_ns();
    pthread_join(thread, NULL);
    if (ended) {
        return 0;
    }
    assert_string_equal(error.message, "cancelled");
    return end_ns - alarm.rang_ns;
}

static void ends_soon(pass_function *pass) {
    struct error error = {""};
    int64_t start_ns = now_ns();
    int64_t whole_ns;
    bool was_cancelled = false;
    assert_true(pass(&(struct replay_options){0}, &error));
    whole_ns = now_ns() - start_ns;
    for (int moment = 0; moment < MOMENTS; moment++) {
        int64_t took_ns = INT64_MAX;
        for (int try = 0; try < TRIES && took_ns > SOON; try++) {
            int64_t once_ns = cancel_after(pass, whole_ns * moment / MOMENTS);
            was_cancelled |= once_ns != 0;
            took_ns = once_ns < took_ns ? once_ns : took_ns;
        }
        if (took_ns > SOON) {
            fail_msg("cancelled after %d of %d parts of %lld ms it went on for %lld ms", moment,
                     MOMENTS, (long long)(whole_ns / MS), (long long)(took_ns / MS));
        }
    }
    assert_true(was_cancelled);
}

static void a_replay(void **state) {
    (void)state;
    ends_soon(replays);
}

static void a_view(void **state) {
    (void)state;
    ends_soon(views);
}

static void a_visit(void **state) {
    (void)state;
    ends_soon(visits);
    ends_soon(visits_selected);
}

static void a_selection(void **state) {
    (void)state;
    ends_soon(selects);
}

static void details(void **state) {
    (void)state;
    ends_soon(gathers);
}

static void holes(void **state) {
    (void)state;
    ends_soon(finds_holes);
}

static void an_export(void **state) {
    (void)state;
    ends_soon(exports_heaptrack);
    ends_soon(exports_massif);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replay),    cmocka_unit_test(a_view),  cmocka_unit_test(a_visit),
        cmocka_unit_test(a_selection), cmocka_unit_test(details), cmocka_unit_test(holes),
        cmocka_unit_test(an_export),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
