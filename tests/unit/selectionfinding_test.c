/* SPDX-License-Identifier: MIT */
/*
 * selectionfinding_test.c: of random mappings that come, grow and go, which blocks lie in those
 * that are chosen is what looking at each of them says, also where one lies where another one
 * reached.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/filter/selection.h"
#include "analyze/replay/mappinghistory.h"
#include "tests/unit/selection_fixture.h"

#include <sys/mman.h>

enum { MOMENTS = 6, SLOTS = 12, SLOT = 1 << 16, PAGE = 4096, BLOCKS = 3000 };

static unsigned below(unsigned *seed, unsigned limit) {
    return (unsigned)rand_r(seed) / 7 % limit;
}

/* Of most slots some pages; a name makes the next one another mapping. */
static void put_moment(struct recording_build *build, unsigned *seed, uint64_t time_ns) {
    static const char names[] = "\0one\0two";
    static const uint32_t places[] = {0, 1, 5};
    struct memtrace_mapping mappings[SLOTS];
    unsigned char payload[sizeof mappings + sizeof names];
    uint32_t count = 0;
    size_t size;
    for (unsigned slot = 1; slot <= SLOTS; slot++) {
        unsigned pages = below(seed, 3) == 0 ? 0 : 1 + below(seed, SLOT / PAGE * 3);
        uint64_t start = (uint64_t)slot * SLOT + (uint64_t)below(seed, 8) * PAGE;
        bool is_free = count == 0 || mappings[count - 1].end <= start;
        if (pages != 0 && is_free) {
            mappings[count++] = (struct memtrace_mapping){
                .start = start,
                .end = start + (uint64_t)pages * PAGE,
                .resident_bytes = (uint64_t)below(seed, 4) * PAGE,
                .protection = PROT_READ | (below(seed, 2) != 0 ? PROT_WRITE : PROT_EXEC),
                .name = places[below(seed, 3)]};
        }
    }
    size = count * sizeof mappings[0];
    memcpy(payload, mappings, size);
    memcpy(payload + size, names, sizeof names);
    recording_build_block(
        build,
        (struct memtrace_block_header){
            .kind = MEMTRACE_BLOCK_SMAPS, .items = count, .first_ns = time_ns, .last_ns = time_ns},
        payload, size + sizeof names);
}

static struct recording *make(unsigned *seed) {
    struct recording_build build = {0};
    struct recording *recording;
    recording_build_header(&build);
    for (uint64_t i = 1; i <= MOMENTS; i++) {
        put_moment(&build, seed, i * 1000);
    }
    recording_build_program(&build, "/usr/bin/example");
    recording_build_write(build.bytes, build.size, selection_path);
    recording_build_free(&build);
    recording = recording_open(selection_path, NULL);
    assert_non_null(recording);
    return recording;
}

static bool is_wanted(const struct selection_mappings *asked, const struct mapping_seen *seen) {
    int bit = asked->permissions == NULL     ? PROT_READ
              : asked->permissions[1] == 'w' ? PROT_WRITE
                                             : PROT_EXEC;
    return (seen->protection & bit) != 0 &&
           selection_is_within(seen->peak_resident_bytes, asked->peak_resident);
}

static bool lies_in(const struct mapping_seen *seen, const struct life *life) {
    uint64_t end = life->address + (life->size != 0 ? life->size : 1);
    return life->address < seen->most && seen->least < end && life->birth_ns < seen->there_to_ns &&
           seen->there_from_ns < life->death_ns;
}

static unsigned check_blocks(const struct selection_mappings *asked,
                             const struct mappinghistory *history, unsigned *seed) {
    unsigned inside = 0;
    for (int i = 0; i < BLOCKS; i++) {
        uint64_t birth = below(seed, (MOMENTS + 1) * 1000);
        const struct life life = {
            .address = 1 + below(seed, (SLOTS + 4) * SLOT),
            .size = below(seed, 4) == 0 ? below(seed, 3 * SLOT) : below(seed, 100),
            .birth_ns = birth,
            .death_ns = below(seed, 3) == 0 ? LIFE_ALIVE : birth + below(seed, 2000)};
        bool wanted = false;
        for (size_t k = 0; k < history->count; k++) {
            const struct mapping_seen *seen = &history->items[k];
            wanted |= is_wanted(asked, seen) && lies_in(seen, &life);
        }
        assert_int_equal(selection_is_in_mappings(asked, &life), wanted);
        inside += wanted;
    }
    return inside;
}

static void chosen_mappings_have_their_blocks(void **state) {
    static const char *const permissions[] = {NULL, ".w.", "r?xp"};
    unsigned telling = 0;
    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        unsigned seed = round + 1;
        struct recording *recording = make(&seed);
        const struct timeorder_parts parts = {(const struct recording *const *)&recording, 1};
        struct selection selection = selection_all();
        struct mappinghistory history;
        unsigned inside;
        selection.mappings.permissions = permissions[round % 3];
        selection.mappings.peak_resident.least = (uint64_t)(1 + round % 2) * PAGE;
        mappinghistory_read(parts, UINT64_MAX, &history);
        assert_int_equal(selection_find_mappings(&selection.mappings, parts, NULL), 0);
        for (size_t i = 0; i < history.count; i++) {
            assert_int_equal(selection_has_mapping(&selection.mappings, i + 1),
                             is_wanted(&selection.mappings, &history.items[i]));
        }
        inside = check_blocks(&selection.mappings, &history, &seed);
        telling += inside > BLOCKS / 20 && inside < BLOCKS - BLOCKS / 20;
        recording_close(recording);
    }
    assert_true(telling > 30);
}

static void without_mappings_it_is_refused(void **state) {
    struct recording_build build = {0};
    struct selection selection = selection_all();
    struct recording *recording;
    struct timeorder_parts parts;
    struct error error;
    (void)state;
    recording_build_header(&build);
    recording_build_program(&build, "/usr/bin/example");
    recording_build_write(build.bytes, build.size, selection_path);
    recording_build_free(&build);
    recording = recording_open(selection_path, NULL);
    parts = (struct timeorder_parts){(const struct recording *const *)&recording, 1};
    selection.mappings.permissions = "rw-p";
    assert_int_equal(selection_find_mappings(&selection.mappings, parts, &error), -1);
    assert_string_equal(error.message,
                        "the recording has no mappings of the process: it was too short");
    recording_close(recording);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(chosen_mappings_have_their_blocks),
                                       cmocka_unit_test(without_mappings_it_is_refused)};
    return cmocka_run_group_tests(tests, selection_make_file, selection_remove_file);
}
