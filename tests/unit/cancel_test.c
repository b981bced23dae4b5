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

#include "analyze/base/job.h"
#include "analyze/blocks/detail.h"
#include "analyze/blocks/holes.h"
#include "analyze/export/export.h"
#include "analyze/filter/selection.h"
#include "analyze/model/names.h"
#include "analyze/replay/ahead.h"
#include "analyze/replay/lives.h"
#include "analyze/replay/mappinghistory.h"
#include "analyze/window/view.h"
#include "analyze/window/wholemodel.h"
#include "tests/unit/recording_builder.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum {
    BLOCKS = 100,
    ALLOCS = 12500, /* of each block of events; two of three are never freed */
#ifdef __SANITIZE_ADDRESS__
    MOMENTS = 4, /* of each pass at which it is cancelled */
#else
    MOMENTS = 10,
#endif
    TRIES = 5, /* caches may be cold */
    FRAMES = 200000,
    MAPPINGS = 1000,
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

static bool replays_alone(const struct replay_options *options, struct error *error) {
    struct replay_options alone = *options;
    alone.is_alone = true;
    return replays(&alone, error);
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

static void write_heaptrack(void *export) {
    export_heaptrack(export);
}

static void write_massif(void *export) {
    export_massif(export);
}

static bool exports(void (*write)(void *export), const struct replay_options *options,
                    struct error *error) {
    FILE *out = fopen("/dev/null", "w");
    struct export export = {.out = out,
                            .name = "/dev/null",
                            .model = whole,
                            .whole = whole,
                            .names = names,
                            .parts = parts,
                            .source = path,
                            .progress = options};
    int result = job_run(write, &export, NULL, error);
    fclose(out);
    return result == 0;
}

static bool exports_heaptrack(const struct replay_options *options, struct error *error) {
    return exports(write_heaptrack, options, error);
}

static bool exports_massif(const struct replay_options *options, struct error *error) {
    return exports(write_massif, options, error);
}

/* A model whose frames lie all over this program. */
static struct model *make_program(void) {
    static char self[4096];
    static struct model_module modules[2];
    struct model *model = calloc(1, sizeof *model);
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_non_null(model);
    assert_true(length > 0);
    modules[0].path = "";
    modules[1].path = self;
    model->modules = modules;
    model->module_count = 2;
    model->nodes = calloc(FRAMES, sizeof *model->nodes);
    assert_non_null(model->nodes);
    model->node_count = FRAMES;
    for (size_t i = 1; i < FRAMES; i++) {
        model->nodes[i].frame = UINT64_C(1) << MEMTRACE_FRAME_MODULE_SHIFT | (0x1000 + i * 8);
    }
    return model;
}

static bool settles(const struct replay_options *options, struct error *error) {
    struct model *model = make_program();
    struct names *of_program = names_open(model, NULL, error);
    int result;
    assert_non_null(of_program);
    result = names_settle(of_program, options->cancel);
    assert_true(result == 0 || result == NAMES_CANCELLED);
    names_close(of_program);
    free(model->nodes);
    free(model);
    return result == 0 ? true : (error_set(error, "cancelled"), false);
}

/* ---- Cancelling ---- */

static int64_t time_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
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
    alarm->rang_ns = time_of(CLOCK_PROCESS_CPUTIME_ID);
    atomic_store(&alarm->cancel, true);
    return NULL;
}

typedef bool pass_function(const struct replay_options *options, struct error *error);

/* How much processor time, of all threads, it still took when it was cancelled: other processes may
 * take any time. 0: it had ended before. */
static int64_t cancel_after(pass_function *pass, int64_t wait_ns) {
    struct alarm alarm = {.wait_ns = wait_ns};
    const struct replay_options options = {.cancel = &alarm.cancel};
    struct error error = {""};
    pthread_t thread;
    int64_t end_ns;
    bool ended;
    assert_int_equal(pthread_create(&thread, NULL, ring, &alarm), 0);
    ended = pass(&options, &error);
    end_ns = time_of(CLOCK_PROCESS_CPUTIME_ID);
    pthread_join(thread, NULL);
    if (ended) {
        return 0;
    }
    assert_string_equal(error.message, "cancelled");
    return end_ns - alarm.rang_ns;
}

static void ends_soon(pass_function *pass) {
    struct error error = {""};
    int64_t start_ns = time_of(CLOCK_MONOTONIC);
    int64_t whole_ns;
    bool was_cancelled = false;
    assert_true(pass(&(struct replay_options){0}, &error));
    whole_ns = time_of(CLOCK_MONOTONIC) - start_ns;
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
    ends_soon(replays_alone);
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

static void names_of_a_program(void **state) {
    (void)state;
    ends_soon(settles);
}

/* ---- The same by counts, which no other process and no machine changes ---- */

struct words {
    atomic_bool cancel;
    unsigned before, after;
};

/* The last word comes in any case. */
static void take_word(void *context, uint64_t done, uint64_t total) {
    struct words *words = context;
    words->before += !atomic_load(&words->cancel);
    words->after += atomic_load(&words->cancel) && done < total;
    atomic_store(&words->cancel, true);
}

/* Cancelled at its first word of progress: it never comes to another one, which would be said after
 * some ten milliseconds of events. */
static void ends_before_the_next_word(pass_function *pass) {
    struct words words = {0};
    const struct replay_options options = {
        .progress = take_word, .context = &words, .cancel = &words.cancel};
    struct error error = {""};
    assert_false(pass(&options, &error));
    assert_string_equal(error.message, "cancelled");
    assert_int_equal(words.before, 1);
    assert_int_equal(words.after, 0);
}

static void words_of_progress(void **state) {
    (void)state;
    ends_before_the_next_word(replays);
    ends_before_the_next_word(replays_alone);
    ends_before_the_next_word(visits);
    ends_before_the_next_word(visits_selected);
    ends_before_the_next_word(selects);
    ends_before_the_next_word(gathers);
    ends_before_the_next_word(finds_holes);
    ends_before_the_next_word(exports_heaptrack);
    ends_before_the_next_word(exports_massif);
}

struct lives_seen {
    atomic_bool cancel;
    size_t until; /* lives, then it is cancelled */
    size_t before, after;
};

static int see_life(void *context, const struct life *life) {
    struct lives_seen *seen = context;
    (void)life;
    if (atomic_load(&seen->cancel)) {
        seen->after++;
    } else if (++seen->before == seen->until) {
        atomic_store(&seen->cancel, true);
    }
    return 0;
}

/* Wherever it is cancelled, what is shown after it is of the same batch of events. */
static void lives_after_it(void **state) {
    (void)state;
    for (size_t moment = 0; moment < MOMENTS; moment++) {
        struct lives_seen seen = {.until = 1 + moment * BLOCKS * ALLOCS / MOMENTS};
        const struct lives_visitor visitor = {.begin = see_life, .context = &seen};
        const struct replay_options options = {.cancel = &seen.cancel};
        struct error error = {""};
        assert_int_not_equal(lives_visit(parts, whole, &visitor, &options, &error), 0);
        assert_string_equal(error.message, "cancelled");
        assert_int_equal(seen.before, seen.until);
        assert_uint_in_range(seen.after, 0, AHEAD_EVENTS);
    }
}

/* Cancelled before they begin: nothing is looked at, and nothing comes of it. */
static void nothing_is_begun(void **state) {
    static pass_function *const passes[] = {replays, replays_alone, views,       visits,
                                            selects, gathers,       finds_holes, settles};
    (void)state;
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        struct words words = {.cancel = true};
        const struct replay_options options = {
            .progress = take_word, .context = &words, .cancel = &words.cancel};
        struct error error = {""};
        assert_false(passes[i](&options, &error));
        assert_string_equal(error.message, "cancelled");
        assert_int_equal(words.after, 0);
    }
}

/* Too quick for a clock: none is looked up after the moment. */
static void callers_of_mappings(void **state) {
    static struct mapping_seen seen[MAPPINGS];
    struct mappinghistory history = {.items = seen, .count = MAPPINGS};
    struct mappinglist mappings = {0};
    atomic_bool cancel = true;
    struct replay_options options = {.cancel = &cancel};
    (void)state;
    for (uint64_t i = 0; i < MAPPINGS; i++) {
        const uint64_t start = (i + 1) << 20;
        const struct mapping mapping = {.start = start, .end = start + 4096, .context = 4};
        seen[i] = (struct mapping_seen){.start = start, .end = start + 8192, .is_there = true};
        mappinglist_add(&mappings, &mapping);
    }
    seen[1].is_there = false;
    assert_int_equal(mappinghistory_name_callers(&history, &mappings, whole, &options),
                     REPLAY_CANCELLED);
    assert_int_equal(seen[MAPPINGS - 1].node, 0);
    cancel = false;
    assert_int_equal(mappinghistory_name_callers(&history, &mappings, whole, &options), 0);
    for (size_t i = 0; i < MAPPINGS; i++) {
        assert_int_equal(seen[i].node, i != 1 ? model_find(whole, 4)->path : 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replay),          cmocka_unit_test(a_view),
        cmocka_unit_test(a_visit),           cmocka_unit_test(a_selection),
        cmocka_unit_test(details),           cmocka_unit_test(holes),
        cmocka_unit_test(an_export),         cmocka_unit_test(names_of_a_program),
        cmocka_unit_test(words_of_progress), cmocka_unit_test(lives_after_it),
        cmocka_unit_test(nothing_is_begun),  cmocka_unit_test(callers_of_mappings),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
