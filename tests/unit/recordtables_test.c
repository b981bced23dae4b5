/* SPDX-License-Identifier: MIT */
/*
 * recordtables_test.c: collect/recordtables.c where the region grows between two looks at it.
 */
#include "analyze/read/recording.h"
#include "collect/recordtables.h"
#include "tests/unit/region_build.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { POOLS = 64 }; /* of 64 bytes: a page */

struct fixture {
    struct region_build *build;
    struct profile *profile;
    struct recordtables tables;
    struct recordfile file;
};

static void start(struct fixture *fixture) {
    struct memtrace_recording_header header = {.version = MEMTRACE_RECORDING_VERSION,
                                               .header_size = sizeof header,
                                               .byte_order = MEMTRACE_BYTE_ORDER};
    struct error error = {""};
    memcpy(header.magic, MEMTRACE_RECORDING_MAGIC, sizeof header.magic);
    fixture->build = region_build_new(2, 0);
    fixture->build->header->end -= REGION_SEGMENT_BYTES; /* room for pools */
    memset(fixture->build->bytes + fixture->build->header->end, 0, sizeof(struct memtrace_segment));
    fixture->profile = profile_open(fixture->build->path, &error);
    assert_string_equal(error.message, "");
    assert_int_equal(recordtables_open(&fixture->tables, fixture->profile), 0);
    assert_int_equal(recordfile_create(&fixture->file, fixture->build->output, RECORDFILE_REPLACE,
                                       &header, &error),
                     0);
}

static void end(struct fixture *fixture) {
    recordfile_release(&fixture->file);
    recordtables_close(&fixture->tables);
    profile_close(fixture->profile);
    region_build_free(fixture->build);
}

/* As the program does for the first pool; others have their place then. */
static struct memtrace_pool *make_segment(struct fixture *fixture) {
    struct memtrace_pool *pools = (void *)(fixture->build->bytes + fixture->build->header->end);
    region_build_segment(fixture->build, MEMTRACE_SEGMENT_POOLS, 0, sizeof *pools, POOLS);
    return pools;
}

static void look_again(struct fixture *fixture) {
    assert_int_equal(profile_refresh(fixture->profile, NULL), 0);
    recordtables_refresh(&fixture->tables);
}

static void write_pools(struct fixture *fixture) {
    struct error error = {""};
    assert_int_equal(recordtables_write_pools(&fixture->tables, &fixture->file, 1, &error), 0);
}

/* What makes the file one that can be opened. */
static struct recording *finish(struct fixture *fixture) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_PROGRAM, .items = 1};
    struct error error = {""};
    struct recording *recording;
    recordfile_append(&fixture->file, &block, fixture->build->header,
                      sizeof *fixture->build->header, &error);
    recordfile_close(&fixture->file, &error);
    recording = recording_open(fixture->build->output, &error);
    assert_string_equal(error.message, "");
    return recording;
}

/* Numbers and names of all that the file has. */
static void assert_pools(struct fixture *fixture, const char *wanted) {
    struct recording *recording = finish(fixture);
    struct recording_buffer buffer = {0};
    char found[64] = "";
    for (size_t i = 0; i < recording->block_count; i++) {
        const struct memtrace_recording_pool *pools;
        if (recording->blocks[i].block.kind != MEMTRACE_BLOCK_POOLS) {
            continue;
        }
        assert_int_equal(recording_payload(recording, i, &buffer, NULL), 0);
        pools = (const void *)buffer.bytes;
        for (uint32_t item = 0; item < recording->blocks[i].block.items; item++) {
            snprintf(found + strlen(found), sizeof found - strlen(found), "%u%.8s ",
                     (unsigned)pools[item].number, pools[item].name);
        }
    }
    recording_buffer_free(&buffer);
    recording_close(recording);
    assert_string_equal(found, wanted);
}

/* The program has a first pool, which we see counted before we see where its name is. */
static void a_pool_between_two_looks(void **state) {
    struct fixture fixture;
    struct memtrace_pool *pools;
    (void)state;
    start(&fixture);
    pools = make_segment(&fixture);
    strcpy(pools[1].name, "a");
    fixture.build->header->pool_count = 1;
    write_pools(&fixture);
    look_again(&fixture);
    write_pools(&fixture);
    assert_pools(&fixture, "1a ");
    end(&fixture);
}

static void each_pool_once(void **state) {
    struct fixture fixture;
    struct memtrace_pool *pools;
    (void)state;
    start(&fixture);
    pools = make_segment(&fixture);
    look_again(&fixture);
    write_pools(&fixture);
    strcpy(pools[1].name, "a");
    strcpy(pools[2].name, "b");
    fixture.build->header->pool_count = 2;
    write_pools(&fixture);
    write_pools(&fixture);
    strcpy(pools[3].name, "c");
    fixture.build->header->pool_count = 3;
    write_pools(&fixture);
    assert_pools(&fixture, "1a 2b 3c ");
    end(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_between_two_looks),
        cmocka_unit_test(each_pool_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
