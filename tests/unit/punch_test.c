/* SPDX-License-Identifier: MIT */
/*
 * punch_test.c: stream/punch.c: what of a file is freed, what its pages name, and that a recorder
 * goes on with it (collect/recordfile).
 */
#include "stream/punch.h"

#include "collect/recordfile.h"
#include "tests/unit/event_stream.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { BLOCKS = 40, PAYLOAD = 100000 };

struct subject {
    char path[64];
    struct memtrace_recording_header header;
    struct memtrace_header program;
    struct recordfile file; /* still open */
    unsigned char *bytes;   /* of the file, as it was */
    struct punch punch;
    int fd;
};

static void append(struct subject *subject, enum memtrace_block_kind kind, const void *bytes,
                   size_t size) {
    struct memtrace_block_header block = {.kind = (uint16_t)kind, .items = 1};
    assert_int_equal(recordfile_append(&subject->file, &block, bytes, size, NULL), 0);
}

static void begin(struct subject *subject) {
    static unsigned char payload[PAYLOAD];
    struct stream stream = stream_start(5, 2, 1);
    int fd;
    *subject =
        (struct subject){.path = "/tmp/memtrace-punch-XXXXXX",
                         .header = {.version = MEMTRACE_RECORDING_VERSION,
                                    .header_size = sizeof subject->header,
                                    .byte_order = MEMTRACE_BYTE_ORDER,
                                    .pid = 1 << 30, /* no process has it */
                                    .process_start_ticks = 7},
                         .program = {.version = MEMTRACE_FORMAT_VERSION, .start_monotonic_ns = 9}};
    memcpy(subject->header.magic, MEMTRACE_RECORDING_MAGIC, sizeof subject->header.magic);
    fd = mkstemp(subject->path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(recordfile_create(&subject->file, subject->path, RECORDFILE_REPLACE,
                                       &subject->header, NULL),
                     0);
    append(subject, MEMTRACE_BLOCK_PROGRAM, &subject->program, sizeof subject->program);
    for (int i = 0; i < BLOCKS; i++) {
        for (size_t at = 0; at < PAYLOAD; at++) {
            payload[at] = (unsigned char)(stream_random(&stream) >> 24);
        }
        append(subject, MEMTRACE_BLOCK_SMAPS, payload, PAYLOAD);
    }
    subject->fd = open(subject->path, O_RDONLY | O_CLOEXEC);
    subject->bytes = malloc(subject->file.size);
    assert_non_null(subject->bytes);
    assert_int_equal(pread(subject->fd, subject->bytes, subject->file.size, 0), subject->file.size);
}

/* What is below `acked` is there. */
static void free_below(struct subject *subject, uint64_t acked) {
    struct error error = {""};
    assert_int_equal(punch_open(&subject->punch, subject->fd), 0);
    punch_name(&subject->punch, "receiver:1");
    for (size_t i = 0; i < subject->file.index_count; i++) {
        const struct memtrace_index_entry *entry = &subject->file.index[i];
        assert_int_equal(punch_note(&subject->punch, entry->offset, &entry->block), 0);
    }
    assert_int_equal(punch_free(&subject->punch, acked, 1, &error), 0);
    assert_string_equal(error.message, "");
}

static void end(struct subject *subject) {
    punch_close(&subject->punch);
    recordfile_release(&subject->file);
    close(subject->fd);
    unlink(subject->path);
    free(subject->bytes);
}

/* The receiver has a part of a block: that block is still to be sent, so no page names it, and all
 * bytes of it are here. */
static void only_what_is_there(void **state) {
    (void)state;
    for (size_t k = 15; k < BLOCKS; k += 12) {
        struct subject subject;
        struct sent sent = {0};
        struct recording *rest;
        begin(&subject);
        uint64_t place = subject.file.index[k].offset;
        uint64_t size = subject.file.size;
        unsigned char *now = malloc(size);
        assert_non_null(now);
        free_below(&subject, place + PAYLOAD / 2);
        assert_int_equal(sent_read(&sent, subject.fd), 0);
        assert_int_equal(sent.last.end, place);
        assert_true(sent.last.hashed <= place + PAYLOAD / 2);
        uint64_t here = sent.last.hashed < place ? sent.last.hashed : place;
        assert_int_equal(pread(subject.fd, now, size, 0), size);
        assert_memory_equal(now + here, subject.bytes + here, size - here);
        struct stat status;
        assert_int_equal(fstat(subject.fd, &status), 0);
        assert_true((uint64_t)status.st_blocks * 512 < size - k * PAYLOAD + (2 << 20));
        rest = recording_open_rest(subject.path, NULL);
        assert_non_null(rest);
        assert_int_equal(rest->sent_blocks, k);
        assert_int_equal(rest->block_count, BLOCKS + 1);
        recording_close(rest);
        sent_free(&sent);
        free(now);
        end(&subject);
    }
}

/* A recorder that goes on behind blocks whose bytes are gone keeps them all. */
static void goes_on(void **state) {
    struct subject subject;
    struct recordfile file;
    struct recording *there;
    (void)state;
    begin(&subject);
    uint64_t size = subject.file.size;
    free_below(&subject, size);
    assert_int_equal(
        recordfile_resume(&file, subject.path, &subject.header, &subject.program, &there, NULL), 1);
    assert_int_equal(there->sent_blocks, BLOCKS + 1);
    assert_int_equal(file.index_count, BLOCKS + 1);
    assert_int_equal(file.size, size);
    recording_close(there);
    recordfile_release(&file);
    end(&subject);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_there),
        cmocka_unit_test(goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
