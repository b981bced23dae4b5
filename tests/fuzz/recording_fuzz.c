/* SPDX-License-Identifier: MIT */
/*
 * recording_fuzz.c: libFuzzer's target: any bytes as a recording, as they are and with checksums
 * put right, so that what lies behind them is met, too. Everything in it is read. No crash, no
 * hang, bounded memory. tests/fuzz/run runs it.
 */
#include "analyze/model/model.h"
#include "analyze/read/block.h"
#include "analyze/read/embedded.h"
#include "analyze/read/recording.h"
#include "analyze/window/wholemodel.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A recording of all events, or a bug. */
static void decode(const struct memtrace_block_header *block,
                   const struct recording_buffer *buffer) {
    struct event_decoder decoder;
    struct event event;
    uint64_t count = 0;
    unsigned sum = 0;
    int result;
    if (event_decoder_start(&decoder, block, buffer->bytes, buffer->size) != 0) {
        return;
    }
    while ((result = event_decoder_next(&decoder, &event)) == 1) {
        for (uint32_t i = 0; event.kind == EVENT_MARK && i < event.text_size; i++) {
            sum += (unsigned char)event.text[i];
        }
        count++;
    }
    if (count > block->items || (result == -1) != (decoder.error[0] != '\0') ||
        sum > UINT8_MAX * buffer->size) {
        abort();
    }
    event_decoder_end(&decoder);
}

static void read_blocks(const struct recording *recording) {
    struct recording_buffer buffer = {0};
    struct memtrace_node *nodes;
    size_t count;
    for (size_t i = 0; i < recording->block_count; i++) {
        const struct memtrace_block_header *block = &recording->blocks[i].block;
        if (recording_payload(recording, i, &buffer, NULL) == 0 &&
            block->kind == MEMTRACE_BLOCK_EVENTS) {
            decode(block, &buffer);
        }
    }
    recording_buffer_free(&buffer);
    if (recording_nodes(recording, &nodes, &count, NULL) == 0) {
        for (size_t i = 0; i < count; i++) {
            if (nodes[i].parent > i || (nodes[i].parent == i && i != 0)) {
                abort();
            }
        }
        free(nodes);
    }
}

static void read_embedded(const struct recording *recording) {
    struct embedded *files;
    size_t count;
    if (embedded_list(recording, &files, &count, NULL) == 0) {
        for (size_t i = 0; i < count; i++) {
            if (files[i].path[0] != '/' || files[i].build_id_size > sizeof files[i].build_id) {
                abort();
            }
        }
        free(files);
    }
}

static void use(int fd, const void *bytes, size_t size, bool replay) {
    char path[64];
    struct error error;
    struct recording *recording;
    if (pwrite(fd, bytes, size, 0) != (ssize_t)size || ftruncate(fd, (off_t)size) != 0) {
        abort();
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    recording = recording_open(path, &error);
    if (recording != NULL) {
        struct timeorder_parts whole = {(const struct recording *const *)&recording, 1};
        struct model *model = replay ? model_replay(whole, NULL, &error) : NULL;
        model_free(model);
        read_blocks(recording);
        read_embedded(recording);
        recording_refresh(recording, &error);
        recording_close(recording);
    }
}

/* Headers and checksums as a writer's, whatever the payloads hold. */
static void repair(unsigned char *bytes, size_t size) {
    struct memtrace_recording_header *header = (void *)bytes;
    size_t offset = sizeof *header;
    if (size < sizeof *header) {
        return;
    }
    memcpy(header->magic, MEMTRACE_RECORDING_MAGIC, sizeof header->magic);
    header->version = MEMTRACE_RECORDING_VERSION;
    header->header_size = sizeof *header;
    header->byte_order = MEMTRACE_BYTE_ORDER;
    while (size - offset >= sizeof(struct memtrace_block_header)) {
        struct memtrace_block_header block;
        size_t room = size - offset - sizeof block;
        memcpy(&block, bytes + offset, sizeof block);
        block.magic = MEMTRACE_BLOCK_MAGIC;
        block.header_size = sizeof block;
        if (block.stored_size > room) {
            block.stored_size = (uint32_t)(room & ~(size_t)7);
        }
        if (block.raw_size < block.stored_size) {
            block.raw_size = block.stored_size;
        }
        block.checksum = block_checksum(&block, bytes + offset + sizeof block);
        memcpy(bytes + offset, &block, sizeof block);
        offset += sizeof block + (block.stored_size + 7) / 8 * 8;
        if (offset > size) {
            return;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = -1;
    unsigned char *copy = malloc(size + 1);
    if (fd < 0) {
        fd = memfd_create("recording_fuzz", MFD_CLOEXEC);
    }
    if (copy == NULL) {
        abort();
    }
    use(fd, data, size, false);
    memcpy(copy, data, size);
    repair(copy, size);
    use(fd, copy, size, true);
    free(copy);
    return 0;
}
