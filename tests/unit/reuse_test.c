/* SPDX-License-Identifier: MIT */
/* reuse_test.c: what of a recording is asked for, sent or known, between reuse.c and a receiver
 * that is played here. */
#include "stream/reuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { PIECES = 100, PIECE = 5000, BETWEEN = 80, LACKING_MOST = 32 };

/* A file of pieces, behind what would be the headers of their blocks. */
static void make(struct reuse *reuse) {
    *reuse = (struct reuse){.fd = memfd_create("recording", 0)};
    for (unsigned i = 0; i < PIECES; i++) {
        unsigned char bytes[BETWEEN + PIECE];
        struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_FILE, .stored_size = PIECE};
        memset(bytes, (int)i, sizeof bytes);
        assert_int_equal(write(reuse->fd, bytes, sizeof bytes), sizeof bytes);
        reuse_note(reuse, (uint64_t)i * sizeof bytes, &block);
        block.kind = MEMTRACE_BLOCK_EVENTS; /* is never asked for */
        reuse_note(reuse, (uint64_t)i * sizeof bytes + 1, &block);
    }
    assert_int_equal(reuse->count, PIECES);
}

struct receiver {
    bool has[PIECES], was_asked[PIECES];
    unsigned known, lacking; /* lacking: asked for, and not sent yet */
};

static unsigned number_of(uint64_t offset) {
    assert_int_equal(offset % (BETWEEN + PIECE), BETWEEN);
    return (unsigned)(offset / (BETWEEN + PIECE));
}

/* Takes the frame; puts the answer, if it has one. */
static size_t hear(struct receiver *receiver, const uint8_t *frame, size_t size, uint64_t next,
                   uint8_t *answer) {
    struct wire_frame parsed;
    struct wire_piece piece;
    assert_int_equal(wire_parse(frame, size, &parsed), (long)size);
    assert_int_equal(wire_read_piece(&parsed, &piece), 0);
    assert_int_equal(piece.size, PIECE);
    unsigned number = number_of(parsed.offset);
    if (parsed.type == WIRE_KNOWN) {
        assert_true(receiver->has[number] && receiver->was_asked[number]);
        assert_int_equal(parsed.offset, next);
        receiver->known++;
        return 0;
    }
    assert_int_equal(parsed.type, WIRE_ASK);
    assert_false(receiver->was_asked[number]);
    receiver->was_asked[number] = true;
    receiver->lacking += !receiver->has[number];
    assert_true(receiver->lacking <= LACKING_MOST);
    return wire_put_has(answer, parsed.offset, receiver->has[number]);
}

/* Sends all from here on; an answer comes after so many further turns. Bytes that were sent. */
static uint64_t play(struct reuse *reuse, struct receiver *receiver, uint64_t next, unsigned late) {
    uint8_t answers[PIECES][WIRE_SMALL_MOST];
    uint8_t frame[WIRE_SMALL_MOST];
    size_t sizes[PIECES];
    unsigned put = 0;
    unsigned taken = 0;
    unsigned turns = 0;
    uint64_t sent = 0;
    uint64_t end = (uint64_t)PIECES * (BETWEEN + PIECE);
    while (next < end) {
        uint64_t known;
        uint64_t before = next;
        size_t size = reuse_put(reuse, next, frame, &known);
        if (size != 0) {
            size_t answer = hear(receiver, frame, size, next, answers[put % PIECES]);
            sizes[put % PIECES] = answer;
            put += answer != 0;
            next += known;
        } else {
            uint64_t bytes = reuse_sendable(reuse, next, end - next < 3000 ? end - next : 3000);
            next += bytes;
            sent += bytes;
            for (unsigned i = 0; i < PIECES; i++) {
                uint64_t behind = (uint64_t)(i + 1) * (BETWEEN + PIECE);
                receiver->lacking -= receiver->was_asked[i] && !receiver->has[i] &&
                                     behind > before && behind <= next;
            }
        }
        if (taken < put && ++turns % (late + 1) == 0) {
            struct wire_frame parsed;
            assert_true(wire_parse(answers[taken % PIECES], sizes[taken % PIECES], &parsed) > 0);
            assert_int_equal(reuse_take(reuse, &parsed), 0);
            taken++;
        }
    }
    assert_int_equal(next, end);
    return sent;
}

static void test_all_combinations(void **state) {
    (void)state;
    for (unsigned late = 0; late < 40; late += 13) {
        for (unsigned seed = 0; seed < 5; seed++) {
            struct receiver receiver = {0};
            struct reuse reuse;
            unsigned there = 0;
            make(&reuse);
            reuse_begin(&reuse, 0);
            srand(seed);
            for (unsigned i = 0; i < PIECES; i++) {
                receiver.has[i] = seed == 0 || (seed != 1 && rand() % 2 != 0);
                there += receiver.has[i];
            }
            uint64_t sent = play(&reuse, &receiver, 0, late);
            assert_int_equal(receiver.known, there);
            assert_int_equal(sent, PIECES * (BETWEEN + PIECE) - (uint64_t)there * PIECE);
            close(reuse.fd);
            reuse_end(&reuse);
        }
    }
}

/* A new connection asks again, but for what came before it, or has begun to. */
static void test_goes_on(void **state) {
    (void)state;
    struct receiver receiver = {0};
    struct reuse reuse;
    uint64_t from = 10 * (BETWEEN + PIECE) + BETWEEN + 1;
    make(&reuse);
    reuse_begin(&reuse, 0);
    uint64_t known;
    uint8_t frame[WIRE_SMALL_MOST];
    assert_true(reuse_put(&reuse, 0, frame, &known) != 0);
    memset(receiver.has, true, sizeof receiver.has);
    reuse_begin(&reuse, from);
    play(&reuse, &receiver, from, 3);
    assert_false(receiver.was_asked[10]);
    assert_int_equal(receiver.known, PIECES - 11);
    close(reuse.fd);
    reuse_end(&reuse);
}

/* It wants all of it anew; answers of before are still to come. */
static void test_stops(void **state) {
    (void)state;
    struct receiver receiver = {0};
    struct reuse reuse;
    struct wire_frame parsed;
    uint8_t frame[WIRE_SMALL_MOST];
    uint64_t known;
    make(&reuse);
    reuse_begin(&reuse, 0);
    assert_true(reuse_put(&reuse, 0, frame, &known) != 0);
    reuse_stop(&reuse, 0);
    size_t size = wire_put_has(frame, BETWEEN, true);
    assert_int_equal(wire_parse(frame, size, &parsed), (long)size);
    assert_int_equal(reuse_take(&reuse, &parsed), 0);
    assert_int_equal(play(&reuse, &receiver, 0, 0), PIECES * (BETWEEN + PIECE));
    assert_int_equal(receiver.known, 0);
    close(reuse.fd);
    reuse_end(&reuse);
}

/* An answer to what was not asked. */
static void test_senseless(void **state) {
    (void)state;
    struct reuse reuse;
    struct wire_frame parsed;
    uint8_t frame[WIRE_SMALL_MOST];
    uint64_t known;
    make(&reuse);
    reuse_begin(&reuse, 0);
    assert_true(reuse_put(&reuse, 0, frame, &known) != 0);
    size_t size = wire_put_has(frame, 17, true);
    assert_int_equal(wire_parse(frame, size, &parsed), (long)size);
    assert_int_equal(reuse_take(&reuse, &parsed), -1);
    close(reuse.fd);
    reuse_end(&reuse);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_combinations),
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_senseless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
