/* SPDX-License-Identifier: MIT */
/*
 * heaptrack_fuzz.c: libFuzzer's target: any bytes as a data file of heaptrack, imported. What comes
 * out is a recording without a flaw: each block is whole, nodes stand before events that use them,
 * and only what began ends. tests/fuzz/run runs it.
 */
#include "analyze/read/framenames.h"
#include "collect/transform/importer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char from[64];
static char to[64];
static int input;

static void check(bool holds) {
    if (!holds) {
        abort();
    }
}

struct counts {
    uint64_t begins;
    uint64_t ends;
    uint64_t newest; /* number of the block that began last */
};

static void check_event(const struct event *event, const struct memtrace_node *nodes, size_t count,
                        struct counts *counts) {
    if (event->kind == EVENT_ALLOC) {
        check(event->context != 0 && event->context < count && nodes[event->context].frame != 0);
        check(event->block.number == ++counts->newest && event->old.number == 0);
        counts->begins++;
    } else if (event->kind == EVENT_FREE) {
        check(event->block.number != 0 && event->block.number <= counts->newest);
        counts->ends++;
    } else {
        check(event->kind == EVENT_LOST && event->lost_allocs == 0 && event->lost_frees == 0);
    }
}

static void check_events(const struct recording *recording, const struct importer_result *result) {
    struct recording_buffer buffer = {0};
    struct memtrace_node *nodes;
    struct counts counts = {0};
    size_t count;
    check(recording_nodes(recording, &nodes, &count, NULL) == 0);
    for (size_t i = 0; i < recording->block_count; i++) {
        const struct memtrace_block_header *block = &recording->blocks[i].block;
        struct event_decoder decoder;
        struct event event;
        int next = 0;
        check(recording_payload(recording, i, &buffer, NULL) == 0);
        if (block->kind != MEMTRACE_BLOCK_EVENTS) {
            continue;
        }
        check(event_decoder_start(&decoder, block, buffer.bytes, buffer.size) == 0);
        while ((next = event_decoder_next(&decoder, &event)) == 1) {
            check_event(&event, nodes, count, &counts);
        }
        check(next == 0);
        event_decoder_end(&decoder);
    }
    check(counts.begins == result->begins && counts.ends == result->ends);
    recording_buffer_free(&buffer);
    free(nodes);
}

static void check_recording(const struct importer_result *result) {
    struct recording *recording = recording_open(to, NULL);
    struct framenames names;
    const struct recording *parts[1];
    check(recording != NULL && recording->closed && recording->damaged_blocks == 0);
    check_events(recording, result);
    parts[0] = recording;
    check(framenames_read(&names, parts, 1, NULL) == 0);
    framenames_free(&names);
    recording_close(recording);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    input = memfd_create("heaptrack", 0);
    snprintf(from, sizeof from, "/proc/self/fd/%d", input);
    snprintf(to, sizeof to, "/dev/shm/memtrace-fuzz-%d.mtr", (int)getpid());
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct importer_result result;
    struct error error = {""};
    if (ftruncate(input, 0) != 0 || pwrite(input, data, size, 0) != (ssize_t)size) {
        return 0;
    }
    if (importer_run(from, to, NULL, &result, &error) == 0) {
        check_recording(&result);
    } else {
        check(error.message[0] != '\0');
    }
    unlink(to);
    return 0;
}
