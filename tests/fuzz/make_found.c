/* SPDX-License-Identifier: MIT */
/*
 * make_found.c FOLDER: files that once did harm to what read them, one of each kind; storm.py
 * --found says which commands read them. New ones are added here when something is found.
 */
#include "tests/fuzz/grown.h"
#include "tests/unit/profile_builder.h"
#include "tests/unit/recording_builder.h"

static const char *folder;

static void write_bytes(const char *name, const void *bytes, size_t size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    recording_build_write(bytes, size, path);
}

static void write_build(const char *name, struct recording_build *build) {
    write_bytes(name, build->bytes, build->size);
    recording_build_free(build);
}

static void write_builder(const char *name, struct builder *builder) {
    write_bytes(name, builder->bytes, builder_size(builder));
    free(builder);
}

/* ---- Texts that do not end where they say that they do ---- */

static void spoil_command(struct memtrace_header *header, uint64_t says, size_t letters) {
    memset(header->command, 0, sizeof header->command);
    memset(header->command, 'A', letters);
    header->command_bytes = says;
}

static void texts(void) {
    struct recording_build build = {0};
    struct builder *builder = builder_new();
    struct memtrace_header *header = builder_header(builder);
    builder_example(builder, 0x400000);
    spoil_command(header, 1, sizeof header->command - 1);
    recording_build_header(&build);
    recording_build_items(&build, MEMTRACE_BLOCK_PROGRAM, header, sizeof *header, 1);
    recording_build_tree(&build);
    write_build("arguments.mtr", &build);
    write_builder("arguments.mtp", builder);

    builder = builder_new();
    header = builder_header(builder);
    builder_example(builder, 0x400000);
    spoil_command(header, UINT64_MAX, sizeof header->command);
    memset(header->executable, 'A', sizeof header->executable);
    memset(header->name, 'A', sizeof header->name);
    recording_build_header(&build);
    recording_build_items(&build, MEMTRACE_BLOCK_PROGRAM, header, sizeof *header, 1);
    write_build("endless.mtr", &build);
    write_builder("endless.mtp", builder);
}

/* ---- Ids of what is not there ---- */

static void ids(void) {
    struct recording_build build = {0};
    struct builder *builder = builder_new();
    struct event_encoder *encoder = event_encoder_new(0);
    if (encoder == NULL) {
        abort();
    }
    recording_build_header(&build);
    recording_build_program(&build, "/usr/bin/example");
    recording_build_tree(&build);
    event_encoder_start(encoder, 2, 1);
    for (uint64_t i = 1; i <= 20; i++) {
        struct event made = {.kind = EVENT_ALLOC,
                             .time_ns = 1000 * i,
                             .context = 5,
                             .size = 100,
                             .address = 0x10000 * i,
                             .block = {i, 2}};
        struct event freed = {.kind = EVENT_FREE,
                              .time_ns = 1000 * i + 500,
                              .context = (1 << MEMTRACE_CONTEXT_BITS) - 1 - (uint32_t)i,
                              .block = {i, 2}};
        if (event_encoder_add(encoder, &made) != 0 || event_encoder_add(encoder, &freed) != 0) {
            abort();
        }
    }
    recording_build_encoded(&build, encoder, 1);
    event_encoder_free(encoder);
    write_build("freeing_path.mtr", &build);

    builder_ledger(builder, 1, 0)[12] = (struct memtrace_cell){500, 5, 100, 1, 1, 0, 0, 1};
    write_builder("no_nodes.mtp", builder);
    write_builder("nothing.mtp", builder_new());
}

/* ---- Sums that do not fit ---- */

static void sums(void) {
    static const char *const names[] = {"most.mtp", "most_again.mtp"};
    for (size_t i = 0; i < 2; i++) {
        struct builder *builder = builder_new();
        struct memtrace_cell *cells;
        builder_example(builder, 0x400000);
        cells = builder_ledger(builder, 3, 0);
        for (size_t context = 12; context < 16; context++) {
            cells[context] = (struct memtrace_cell){.alloc_bytes = INT64_MAX,
                                                    .alloc_count = INT64_MAX,
                                                    .saved_live = INT64_MAX,
                                                    .peak_epoch = 1};
        }
        builder_header(builder)->pid = 4242 + (uint32_t)i;
        builder_header(builder)->live_bytes = builder_header(builder)->maximum_bytes = INT64_MAX;
        write_builder(names[i], builder);
    }
    {
        struct builder *builder = builder_new();
        builder_example(builder, 0x400000);
        write_builder("example.mtp", builder);
    }
}

/* ---- Files that unpack to far more than their size ---- */

static void bomb(const char *name, uint16_t kind, size_t items, size_t times, uint64_t form) {
    struct recording_build build = {0};
    recording_build_header(&build);
    recording_build_program(&build, "/usr/bin/example");
    recording_build_tree(&build);
    grown_recording(&build, kind, items, times, form);
    write_build(name, &build);
}

static void bombs(void) {
    enum { ZEROS = 1, HUGE_FILE = 39, PAGES = 12 << 8 };
    struct recording_build build = {0};
    struct builder *builder = builder_new();
    bomb("smaps.mtr", MEMTRACE_BLOCK_SMAPS, 1 << 19, 40, ZEROS);
    bomb("modules.mtr", MEMTRACE_BLOCK_MODULES, (32 << 20) / sizeof(struct memtrace_module), 40,
         ZEROS);
    bomb("samples.mtr", MEMTRACE_BLOCK_SAMPLES, (14 << 20) / sizeof(struct memtrace_sample), 10,
         ZEROS);
    bomb("files.mtr", MEMTRACE_BLOCK_FILE, 16 << 20, 40, HUGE_FILE);
    bomb("events.mtr", MEMTRACE_BLOCK_EVENTS, 1 << 20, 12, ZEROS);
    builder_header(builder)->version |= MEMTRACE_FORMAT_COMPRESSED;
    recording_build_append(&build, builder->bytes, MEMTRACE_HEADER_SIZE);
    free(builder);
    grown_profile(&build, 100, PAGES, 60, MEMTRACE_SEGMENT_CELLS);
    grown_header(&build, 100);
    write_build("segments.mtp", &build);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("usage: make_found FOLDER\n", stderr);
        return 2;
    }
    folder = argv[1];
    texts();
    ids();
    sums();
    bombs();
    return 0;
}
