/* SPDX-License-Identifier: MIT */
/* heaptracksum_test.c: random histories of blocks, of which only sums are kept, and the events that
 * analyze/export/heaptracksum.c makes of these sums, added up as heaptrack's readers do. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/export/heaptrack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXTS = 5, FIRST = 4, NODES = FIRST + CONTEXTS, BLOCKS = 40, STEPS = 60, ROUNDS = 400 };

static uint64_t seed;

static uint64_t below(uint64_t most) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % most;
}

/* One thread's history. */
struct history {
    struct model_context contexts[CONTEXTS];
    uint64_t maximum;
};

struct block {
    uint64_t size;
    size_t context;
    bool lives;
};

static void note_peak(struct history *history, uint64_t live) {
    if (live > history->maximum) {
        history->maximum = live;
        for (size_t i = 0; i < CONTEXTS; i++) {
            history->contexts[i].peak_bytes = history->contexts[i].live_bytes;
        }
    }
}

static void make_history(struct history *history) {
    struct block blocks[BLOCKS] = {0};
    size_t newest = BLOCKS;
    uint64_t live = 0;
    *history = (struct history){0};
    for (int step = 0; step < STEPS; step++) {
        size_t i = below(BLOCKS);
        struct block *block = &blocks[i];
        struct model_context *context;
        if (!block->lives) {
            *block = (struct block){below(4) == 0 ? 0 : below(1000), below(CONTEXTS), true};
            context = &history->contexts[block->context];
            context->allocations++;
            context->total_bytes += block->size;
            context->live_blocks++;
            context->live_bytes += block->size;
            live += block->size;
            newest = i;
            note_peak(history, live);
        } else {
            context = &history->contexts[block->context];
            context->temporary += newest == i;
            context->live_blocks--;
            context->live_bytes -= block->size;
            live -= block->size;
            block->lives = false;
            newest = newest == i ? BLOCKS : newest;
        }
    }
}

/* ---- What heaptrack's readers add up ---- */

struct sums {
    uint64_t allocations;
    uint64_t total_bytes;
    uint64_t live_bytes;
    uint64_t peak_bytes;
    uint64_t temporary;
};

struct reader {
    struct {
        uint64_t size;
        size_t trace;
    } infos[4096];
    size_t info_count;
    struct sums by_trace[NODES + 1];
    struct sums all;
    uint64_t last; /* as in those readers: 0 is none, and the first info */
};

static void take_begin(struct reader *reader, uint64_t info) {
    struct sums *sums = &reader->by_trace[reader->infos[info].trace];
    uint64_t size = reader->infos[info].size;
    sums->allocations++;
    sums->total_bytes += size;
    sums->live_bytes += size;
    reader->all.allocations++;
    reader->all.live_bytes += size;
    if (reader->all.live_bytes > reader->all.peak_bytes) {
        reader->all.peak_bytes = reader->all.live_bytes;
        for (size_t i = 0; i <= NODES; i++) {
            reader->by_trace[i].peak_bytes = reader->by_trace[i].live_bytes;
        }
    }
    reader->last = info;
}

static void take_end(struct reader *reader, uint64_t info) {
    struct sums *sums = &reader->by_trace[reader->infos[info].trace];
    sums->live_bytes -= reader->infos[info].size;
    reader->all.live_bytes -= reader->infos[info].size;
    reader->all.temporary += reader->last == info;
    reader->last = 0;
}

static void take_line(struct reader *reader, const char *line) {
    uint64_t first;
    size_t trace;
    if (sscanf(line, "a %" SCNx64 " %zx", &first, &trace) == 2) {
        reader->infos[reader->info_count].size = first;
        reader->infos[reader->info_count++].trace = trace;
    } else if (sscanf(line, "+ %" SCNx64, &first) == 1) {
        assert_true(first < reader->info_count);
        take_begin(reader, first);
    } else if (sscanf(line, "- %" SCNx64, &first) == 1) {
        assert_true(first < reader->info_count);
        take_end(reader, first);
    }
}

/* ---- Both ---- */

static void check(struct model *model, const struct names *names, const struct history *history) {
    const struct export export = {.model = model, .whole = model, .names = names};
    struct heaptracktext text;
    struct reader *reader = calloc(1, sizeof *reader);
    char *bytes = NULL;
    size_t size;
    FILE *out = open_memstream(&bytes, &size);
    uint64_t allocations = 0;
    uint64_t temporary = 0;
    uint64_t live = 0;
    assert_int_equal(heaptracktext_start(&text, out, &export), 0);
    assert_int_equal(heaptrack_put_sums(&text, NULL), 0);
    fclose(out);
    for (char *line = strtok(bytes, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        take_line(reader, line);
    }
    for (size_t i = 0; i < CONTEXTS; i++) {
        const struct model_context *context = &history->contexts[i];
        const struct sums *sums = &reader->by_trace[text.traces[FIRST + i]];
        if (context->allocations != 0) {
            assert_int_equal(sums->allocations, context->allocations);
            assert_int_equal(sums->live_bytes, context->live_bytes);
            assert_int_equal(sums->peak_bytes, context->peak_bytes);
            assert_true(sums->total_bytes <= context->total_bytes);
        }
        allocations += context->allocations;
        temporary += context->temporary;
        live += context->live_bytes;
    }
    assert_int_equal(reader->all.allocations, allocations);
    assert_int_equal(reader->all.live_bytes, live);
    assert_int_equal(reader->all.peak_bytes, history->maximum);
    assert_int_equal(reader->all.temporary, temporary);
    heaptracktext_end(&text);
    free(reader);
    free(bytes);
}

static void test_sums(void **state) {
    struct model_node nodes[NODES] = {{0}};
    struct model_module modules[1] = {{.path = ""}};
    struct history history;
    struct model *model = calloc(1, sizeof *model);
    struct names *names;
    (void)state;
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        nodes[FIRST + i].frame = 0x10000 + i * 16;
    }
    model->nodes = nodes;
    model->node_count = NODES;
    model->modules = modules;
    model->module_count = 1;
    model->contexts = history.contexts;
    model->context_count = CONTEXTS;
    names = names_open(model, NULL, NULL);
    assert_non_null(names);
    for (seed = 1; seed <= ROUNDS;) {
        uint64_t round = seed;
        make_history(&history);
        for (uint32_t i = 0; i < CONTEXTS; i++) {
            history.contexts[i].id = history.contexts[i].path = FIRST + i;
            history.contexts[i].frame = nodes[FIRST + i].frame;
        }
        check(model, names, &history);
        seed = round + 1;
    }
    names_close(names);
    free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
