/* SPDX-License-Identifier: MIT */
/* profilewrite_test.c: an array that is longer than a segment is read as it was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/read/profile.h"
#include "collect/mergeprofiles.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CELLS = 2 * MEMTRACE_LEAF_ITEMS + 300 };

static void leaves_come_back(void **state) {
    static struct memtrace_cell cells[CELLS];
    char path[64];
    struct error error = {""};
    struct memtrace_header header = {0};
    struct profile *profile;
    struct profilewrite write;
    size_t seen = 0;
    FILE *out;
    (void)state;
    snprintf(path, sizeof path, "/tmp/profilewrite_test.%ld", (long)getpid());
    out = fopen(path, "w");
    assert_non_null(out);
    for (size_t i = 0; i < CELLS; i++) {
        cells[i].alloc_count = i;
    }
    write = profilewrite_begin();
    profilewrite_leaves(&write, MEMTRACE_SEGMENT_LEDGER, 1, cells, sizeof *cells, CELLS);
    profilewrite_end(&write, &header, out);
    fclose(out);
    profile = profile_open(path, &error);
    assert_non_null(profile);
    for (size_t i = 0; i < profile->segment_count; i++) {
        const struct profile_segment *segment = &profile->segments[i];
        assert_int_equal(segment->kind, MEMTRACE_SEGMENT_LEDGER);
        for (uint32_t place = 0; place < segment->item_count; place++) {
            const struct memtrace_cell *cell = profile_item(profile, segment, place);
            uint64_t id = (uint64_t)segment->index * MEMTRACE_LEAF_ITEMS + place;
            if (cell != NULL) { /* the first ones of a segment lie under its header */
                assert_int_equal(cell->alloc_count, id < CELLS ? id : 0);
                seen += id < CELLS;
            }
        }
    }
    assert_int_equal(profile->segment_count, 3);
    assert_true(seen >= CELLS - 3 * 4);
    profile_close(profile);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(leaves_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
