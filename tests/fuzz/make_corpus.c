/* SPDX-License-Identifier: MIT */
/*
 * make_corpus.c FOLDER: small recordings of random events, to begin fuzzing with and to compare
 * readers on (NN.mtr): every kind of block and event, with and without an index, plain and
 * compressed. And the payloads of their blocks alone (NN.K.payload), as payload_fuzz.c wants them.
 */
#include "analyze/window/index.h"
#include "analyze/window/recordingtables.h"
#include "tests/unit/recording_builder.h"

static void add_file(struct recording_build *build) {
    static const char path[] = "/usr/bin/example";
    struct {
        struct memtrace_embedded head;
        char rest[64];
    } file = {{.module = 1,
               .what = MEMTRACE_EMBEDDED_SYMBOLS,
               .size = 47,
               .build_id = {1, 2, 3, 4},
               .build_id_size = 20,
               .path_size = sizeof path},
              ""};
    memcpy(file.rest, path, sizeof path);
    recording_build_items(build, MEMTRACE_BLOCK_FILE, &file, sizeof file, 1);
}

static void add_tables(struct recording_build *build) {
    static const struct memtrace_recording_pool pool = {.number = 1, .name = "arena"};
    static const struct memtrace_culled culled[] = {
        {.context = 7, .thread = 2, .count = 3, .bytes = 90}};
    static const struct memtrace_mapping mapping = {.start = 4096, .end = 8192};
    static const struct memtrace_module module = {
        .id = 1, .start = 4096, .end = 1 << 20, .path = "/usr/bin/example"};
    recording_build_items(build, MEMTRACE_BLOCK_POOLS, &pool, sizeof pool, 1);
    recording_build_items(build, MEMTRACE_BLOCK_CULLED, culled, sizeof culled[0], 1);
    recording_build_items(build, MEMTRACE_BLOCK_SMAPS, &mapping, sizeof mapping, 1);
    recording_build_items(build, MEMTRACE_BLOCK_MODULES, &module, sizeof module, 1);
}

/* What the program counted, of one context and two threads, of which one freed a block of the
 * other's; and times that make no sense, too. */
static void add_losses(struct recording_build *build) {
    static const struct memtrace_gap gaps[] = {
        {1000, 2000, 5, 3}, {2000, 9000, 0, 0}, {7, 1, 1, 1}};
    static const struct memtrace_thinned thinned[] = {
        {1000, 2000, 256, 0}, {2000, 9000, UINT64_MAX, 1}, {7, 1, 1, 1}};
    struct model_context context = {.id = 7,
                                    .total_bytes = 900,
                                    .allocations = 9,
                                    .freed_bytes = 300,
                                    .frees = 3,
                                    .peak_bytes = 700,
                                    .lifetimes = MODEL_NO_LIFETIMES};
    struct model_thread threads[] = {{.id = 2, .allocations = 9, .total_bytes = 900},
                                     {.id = 3, .frees = 3, .freed_bytes = 300}};
    struct model_foreign foreign = {.freer = 3, .owner = 2, .blocks = 3, .bytes = 300};
    const struct model model = {.contexts = &context,
                                .context_count = 1,
                                .threads = threads,
                                .thread_count = 2,
                                .foreign = &foreign,
                                .foreign_count = 1,
                                .totals = {.live_bytes = 600, .maximum_bytes = 700}};
    struct varint_writer bytes = {0};
    if (recorded_pack_totals(&model, &bytes) != 0) {
        abort();
    }
    recording_build_items(build, MEMTRACE_BLOCK_GAP, gaps, sizeof gaps[0], 3);
    recording_build_items(build, MEMTRACE_BLOCK_THINNED, thinned, sizeof thinned[0], 3);
    recording_build_items(build, MEMTRACE_BLOCK_TOTALS, bytes.bytes, bytes.size, 1);
    free(bytes.bytes);
}

/* Payloads of blocks that were stored as they are. */
static void write_payloads(const struct recording_build *build, const char *folder, unsigned i) {
    for (size_t k = 0; k < build->count; k++) {
        const struct memtrace_block_header *block = &build->entries[k].block;
        unsigned char *bytes = malloc(block->stored_size + 12);
        char path[4096];
        if (bytes == NULL) {
            abort();
        }
        memcpy(bytes, &block->items, 4);
        memcpy(bytes + 4, &block->first_number, 8);
        memcpy(bytes + 12, build->bytes + build->entries[k].offset + sizeof *block,
               block->stored_size);
        snprintf(path, sizeof path, "%s/%02u.%zu.payload", folder, i, k);
        if (block->stored_size == block->raw_size &&
            (block->kind == MEMTRACE_BLOCK_EVENTS || block->kind == MEMTRACE_BLOCK_NODES)) {
            recording_build_write(bytes, block->stored_size + 12, path);
        }
        free(bytes);
    }
}

static void make(const char *folder, unsigned i) {
    struct recording_build build = {0};
    struct stream streams[2] = {stream_start(i * 2 + 1, 2, 1),
                                stream_start(i * 2 + 2, 3, i * 1000 + 1)};
    char path[4096];
    for (unsigned s = 0; s < 2; s++) {
        streams[s].precise = i % 4 == 1;
        streams[s].wild = i % 3 == 1;
        streams[s].addresses = i % 5 != 4;
    }
    recording_build_header(&build);
    recording_build_program(&build, "/usr/bin/example");
    build.raw = i % 4 != 3; /* bytes that can be changed one by one */
    recording_build_tree(&build);
    recording_build_events(&build, &streams[0], 30 + i * 20);
    recording_build_events(&build, &streams[1], 20 + i * 10);
    if (i % 2 == 0) {
        add_tables(&build);
        add_file(&build);
    }
    recording_build_events(&build, &streams[0], 20);
    if (i % 3 == 2) {
        add_losses(&build);
    }
    if (i % 12 == 11) {
        recording_build_items(&build, MEMTRACE_BLOCK_TOTALS, "", 0, 1); /* with nothing in it */
    }
    if (i % 6 != 5) {
        recording_build_index(&build);
    }
    snprintf(path, sizeof path, "%s/%02u.mtr", folder, i);
    recording_build_write(build.bytes, build.size, path);
    write_payloads(&build, folder, i);
    recording_build_free(&build);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("usage: make_corpus FOLDER\n", stderr);
        return 2;
    }
    for (unsigned i = 0; i < 24; i++) {
        make(argv[1], i);
    }
    return 0;
}
