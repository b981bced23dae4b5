/* SPDX-License-Identifier: MIT */
/*
 * controlled_test.c: stream/controlled.c with all that is below it, up to the mark in the
 * recording: what a receiver may do to a program, and what it may not.
 */
#include "stream/controlled.h"

#include "analyze/read/recording.h"
#include "collect/record.h"
#include "memtrace/sampled.h"
#include "tests/unit/region_build.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define STARTED UINT64_C(1700000000123456789)

struct fixture {
    struct region_build *build;
    struct controlled controlled;
    uint64_t number;
    uint64_t now_ns;
};

/* A program that is recorded, and the beginning of its recording, of which a sender sends. */
static struct fixture start(bool is_allowed) {
    struct fixture fixture = {.build = region_build_new(1, 0)};
    struct memtrace_recording_header header = {.pid = (uint32_t)getpid()};
    char path[160];
    fixture.build->header->start_realtime_ns = STARTED;
    header.process_start_ticks = fixture.build->header->process_start_ticks;
    snprintf(path, sizeof path, "%s/sent.mtr", fixture.build->folder);
    fixture.controlled =
        (struct controlled){.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600),
                            .started_ns = STARTED,
                            .is_allowed = is_allowed};
    assert_int_equal(write(fixture.controlled.fd, &header, sizeof header), sizeof header);
    setenv("MEMTRACE_REGION_DIR", fixture.build->folder, 1);
    return fixture;
}

static void end(struct fixture *fixture) {
    controlled_forget(&fixture->controlled);
    close(fixture->controlled.fd);
    region_build_free(fixture->build);
}

static int ask(struct fixture *fixture, struct programask_wish wish) {
    uint8_t bytes[WIRE_SMALL_MOST];
    struct wire_frame frame;
    size_t size = wire_put_control(bytes, ++fixture->number, &wish);
    assert_int_equal(wire_parse(bytes, size, &frame), (long)size);
    return controlled_take(&fixture->controlled, &frame);
}

/* The answer, if there is one by now. */
static bool look(struct fixture *fixture, struct programask_answer *answer) {
    uint8_t bytes[WIRE_SMALL_MOST];
    struct wire_frame frame;
    size_t size;
    fixture->now_ns += 60000000; /* it rests between two */
    controlled_look(&fixture->controlled, fixture->now_ns);
    size = controlled_put(&fixture->controlled, bytes);
    if (size == 0) {
        return false;
    }
    assert_int_equal(wire_parse(bytes, size, &frame), (long)size);
    assert_int_equal(frame.type, WIRE_ANSWER);
    assert_int_equal(frame.offset, fixture->number);
    assert_int_equal(wire_read_answer(&frame, answer), 0);
    return true;
}

/* What the program does at one of its next events. */
static void follow(const struct fixture *fixture) {
    struct memtrace_header *header = fixture->build->header;
    uint32_t mode = header->control >> MEMTRACE_CONTROL_MODE_SHIFT & 15;
    uint64_t mean = header->control & ((UINT64_C(1) << MEMTRACE_CONTROL_MEAN_BITS) - 1);
    header->mode = mode == MEMTRACE_MODE_ON ? MEMTRACE_MODE_EXACT : mode;
    fixture->build->recording->sample_bytes = mode == MEMTRACE_MODE_SAMPLED ? mean : 0;
    header->control_done = header->control;
}

static void assert_answer(struct fixture *fixture, struct programask_wish wish, bool is_done,
                          const char *text) {
    struct programask_answer answer;
    assert_int_equal(ask(fixture, wish), 0);
    assert_true(look(fixture, &answer));
    assert_string_equal(answer.text, text);
    assert_int_equal(answer.is_done, is_done);
}

static void test_modes(void **state) {
    static const struct {
        struct programask_wish wish;
        const char *text;
    } cases[] = {
        {{.what = PROGRAMASK_OFF}, "off, nothing new is recorded"},
        {{.what = PROGRAMASK_ON}, "exact, every allocation is recorded"},
        {{.what = PROGRAMASK_SAMPLE, .mean = 65536},
         "sampled, one allocation in 64.0 KiB is recorded"},
        {{.what = PROGRAMASK_EXACT}, "exact, every allocation is recorded"},
    };
    struct fixture fixture = start(true);
    struct programask_answer answer;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(ask(&fixture, cases[i].wish), 0);
        assert_false(look(&fixture, &answer));
        assert_int_equal(ask(&fixture, cases[i].wish), -1); /* one after the other */
        fixture.number--;
        follow(&fixture);
        assert_true(look(&fixture, &answer));
        assert_string_equal(answer.text, cases[i].text);
        assert_true(answer.is_done);
    }
    assert_answer(&fixture, (struct programask_wish){.what = PROGRAMASK_SAY}, true,
                  "exact, every allocation is recorded");
    end(&fixture);
}

/* Nothing of it is written to. */
static void test_refused(void **state) {
    struct fixture fixture = start(false);
    unsigned char *before = malloc(fixture.build->size);
    static const char why[] = "its sender does not allow it: it was begun without --allow-control";
    (void)state;
    assert_non_null(before);
    memcpy(before, fixture.build->bytes, fixture.build->size);
    for (uint32_t what = 1; what < PROGRAMASK_WISHES; what++) {
        assert_answer(&fixture, (struct programask_wish){what, 4096, "text"}, false, why);
    }
    fixture.controlled.is_allowed = true;
    assert_answer(&fixture, (struct programask_wish){.what = PROGRAMASK_SAMPLE}, false,
                  "a sample is one allocation in 1 byte to 1 TiB");
    assert_answer(&fixture, (struct programask_wish){PROGRAMASK_SAMPLE, UINT64_MAX, ""}, false,
                  "a sample is one allocation in 1 byte to 1 TiB");
    assert_answer(&fixture, (struct programask_wish){.what = PROGRAMASK_MARK}, false,
                  "a mark needs a text");
    assert_int_equal(ask(&fixture, (struct programask_wish){.what = PROGRAMASK_WISHES}), -1);
    assert_int_equal(ask(&fixture, (struct programask_wish){.what = 0}), -1);
    assert_memory_equal(before, fixture.build->bytes, fixture.build->size);
    free(before);
    end(&fixture);
}

/* Another process with its number, another program of the process, or none at all. */
static void test_others(void **state) {
    static const char gone[] = "its program has ended, or runs where it cannot be reached: as "
                               "another user or on another machine";
    const struct programask_wish off = {.what = PROGRAMASK_OFF};
    struct fixture fixture = start(true);
    struct memtrace_header *header = fixture.build->header;
    uint64_t other = header->process_start_ticks + 1;
    (void)state;
    assert_int_equal(pwrite(fixture.controlled.fd, &other, sizeof other,
                            offsetof(struct memtrace_recording_header, process_start_ticks)),
                     sizeof other);
    assert_answer(&fixture, off, false, gone);
    other--;
    assert_int_equal(pwrite(fixture.controlled.fd, &other, sizeof other,
                            offsetof(struct memtrace_recording_header, process_start_ticks)),
                     sizeof other);
    fixture.controlled.started_ns++;
    assert_answer(&fixture, off, false, gone);
    fixture.controlled.started_ns--;
    header->state = MEMTRACE_STATE_EXECED;
    assert_answer(&fixture, off, false, gone);
    header->state = MEMTRACE_STATE_RUNNING;
    assert_int_equal(header->control, 0);
    assert_int_equal(ftruncate(fixture.controlled.fd, 10), 0);
    assert_answer(&fixture, off, false, "its sender cannot read the recording any more");
    end(&fixture);
}

/* The marks of a recording, one behind the other. */
static void read_marks(const char *path, char *all, size_t room) {
    struct error error = {""};
    struct recording_buffer buffer = {0};
    struct recording *recording = recording_open(path, &error);
    assert_non_null(recording);
    all[0] = '\0';
    for (size_t i = 0; i < recording->block_count; i++) {
        const struct memtrace_block_header *block = &recording->blocks[i].block;
        struct event_decoder decoder;
        struct event event;
        if (block->kind != MEMTRACE_BLOCK_EVENTS || block->stream != 0) {
            continue;
        }
        assert_int_equal(recording_payload(recording, i, &buffer, &error), 0);
        assert_int_equal(event_decoder_start(&decoder, block, buffer.bytes, buffer.size), 0);
        while (event_decoder_next(&decoder, &event) == 1) {
            size_t length = strlen(all);
            assert_int_equal(event.kind, EVENT_MARK);
            assert_true(event.time_ns > 0);
            snprintf(all + length, room - length, "%.*s;", (int)event.text_size, event.text);
        }
        event_decoder_end(&decoder);
    }
    recording_buffer_free(&buffer);
    recording_close(recording);
}

static void test_marks(void **state) {
    struct fixture fixture = start(true);
    struct programask_wish wish = {.what = PROGRAMASK_MARK, .text = "a\x1b[31m\xc2\x9b\xff mark"};
    struct memtrace_asked_marks *marks = memtrace_asked_marks_in(fixture.build->segments[0]);
    struct programask_answer answer;
    struct record_result result;
    struct error error = {""};
    struct claim claim;
    struct record *record;
    char all[4096];
    (void)state;
    for (int i = 0; i < MEMTRACE_ASKED_MARKS; i++) { /* nobody collects: they wait */
        assert_int_equal(ask(&fixture, wish), 0);
        assert_false(look(&fixture, &answer));
        controlled_forget(&fixture.controlled);
        memset(wish.text, 'b' + i, sizeof wish.text - 1); /* as long as can be */
    }
    assert_int_equal(ask(&fixture, wish), 0);
    assert_false(look(&fixture, &answer));
    assert_int_equal(marks->asked, MEMTRACE_ASKED_MARKS); /* there is no place for it */
    assert_string_equal(marks->text[0], "a?[31m?? mark");
    assert_int_equal(claim_open(fixture.build->path, &claim, &error), CLAIM_OK);
    record = record_open(&claim, &error);
    assert_non_null(record);
    assert_int_equal(record_start(record, &error), 0);
    while (!look(&fixture, &answer)) {
        usleep(1000);
    }
    assert_true(answer.is_done);
    assert_int_equal(strncmp(answer.text, "marked \"eeee", 12), 0);
    record_finish(record, &result);
    claim_release(&claim);
    assert_int_equal(marks->asked, MEMTRACE_ASKED_MARKS + 1);
    assert_int_equal(marks->taken, marks->asked);
    read_marks(fixture.build->output, all, sizeof all);
    assert_int_equal(strncmp(all, "a?[31m?? mark;bbb", 17), 0);
    assert_int_equal(strlen(all), 14 + 4 * 256);
    assert_string_equal(all + strlen(all) - 3, "ee;");
    end(&fixture);
}

static void test_marks_refused(void **state) {
    const struct programask_wish wish = {.what = PROGRAMASK_MARK, .text = "mark"};
    struct fixture fixture = start(true);
    (void)state;
    fixture.build->recording->state = MEMTRACE_RECORD_STOPPED;
    assert_answer(&fixture, wish, false, "its recording has stopped, and takes no marks");
    fixture.build->recording->state = MEMTRACE_RECORD_NONE;
    assert_answer(&fixture, wish, false, "it is not recorded: marks stand in recordings");
    end(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modes),         cmocka_unit_test(test_refused),
        cmocka_unit_test(test_others),        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_marks_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
