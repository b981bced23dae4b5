/* SPDX-License-Identifier: MIT */
/*
 * damage_blocks.c FROM TO SEED: a recording or a compressed profile anew, with some of its blocks'
 * contents and headers hit, and with checksums and an index that are right: what reads the blocks
 * gets to see the damage.
 *
 * Called by tests/fuzz/commands.py.
 */
#include "analyze/read/block.h"
#include "analyze/read/recording.h"
#include "tests/unit/recording_builder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t state;

static uint64_t dice(uint64_t sides) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % sides;
}

/* Numbers at whose ends mistakes are made. */
static uint64_t odd_number(void) {
    static const uint64_t ends[] = {0,
                                    1,
                                    UINT32_MAX,
                                    UINT64_MAX,
                                    INT64_MAX,
                                    (uint64_t)1 << 63,
                                    (1 << MEMTRACE_CONTEXT_BITS) - 2,
                                    1 << MEMTRACE_CONTEXT_BITS,
                                    (1 << MEMTRACE_THREAD_BITS) - 1,
                                    1 << MEMTRACE_THREAD_BITS};
    uint64_t choice = dice(sizeof ends / sizeof ends[0] + 1);
    return choice < sizeof ends / sizeof ends[0] ? ends[choice] : dice(UINT64_MAX);
}

/* One byte, or a whole number of some size at a place where one may stand. */
static void hit(unsigned char *bytes, size_t size) {
    static const size_t widths[] = {1, 1, 2, 4, 8};
    size_t width = widths[dice(sizeof widths / sizeof widths[0])];
    uint64_t number = odd_number();
    if (size >= width) {
        size_t at = dice(size - width + 1);
        at -= width > 1 ? at % width : 0;
        memcpy(bytes + at, &number, width);
    }
}

/* Fields that stored_size, raw_size, magic and checksum do not pin down. */
static void hit_header(struct memtrace_block_header *block) {
    switch (dice(9)) {
    case 0:
        block->kind = (uint16_t)dice(20);
        break;
    case 1:
        block->first_ns = odd_number();
        break;
    case 2:
        block->last_ns = odd_number();
        break;
    case 3:
        block->items = (uint32_t)odd_number();
        break;
    case 4:
        block->stream = (uint32_t)odd_number();
        break;
    case 5:
        block->thread = (uint32_t)odd_number();
        break;
    case 6:
        block->first_number = odd_number();
        break;
    case 7:
        block->allocs = (uint32_t)odd_number();
        break;
    default:
        block->frees = (uint32_t)odd_number();
        break;
    }
}

static void copy_block(struct recording_build *build, const struct recording *recording, size_t i,
                       struct recording_buffer *buffer) {
    struct memtrace_block_header block = recording->blocks[i].block;
    if (block.kind == MEMTRACE_BLOCK_INDEX || build->count + 1 >= BUILD_BLOCKS ||
        recording_payload(recording, i, buffer, NULL) != 0) {
        return;
    }
    if (dice(3) == 0) {
        for (uint64_t hits = dice(6) + 1; hits > 0; hits--) {
            hit(buffer->bytes, buffer->size);
        }
    }
    if (dice(8) == 0) {
        hit_header(&block);
    }
    recording_build_block(build, block, buffer->bytes,
                          dice(20) == 0 ? dice(buffer->size + 1) : buffer->size);
}

/* The blocks of a compressed profile, each uncompressed, hit and put behind the header. */
static int damage_profile(const char *from, const char *to) {
    struct recording_build build = {0};
    struct recording_buffer buffer = {0};
    struct memtrace_block_header block;
    struct memtrace_header header;
    uint64_t offset = sizeof header;
    struct stat status;
    int fd = open(from, O_RDONLY);
    if (fd < 0 || fstat(fd, &status) != 0 || read(fd, &header, sizeof header) != sizeof header) {
        return 2;
    }
    if (dice(4) == 0) {
        header.whole_bytes = odd_number();
    }
    recording_build_append(&build, &header, sizeof header);
    while (block_load(fd, (uint64_t)status.st_size, offset, &block, &buffer) == BLOCK_WHOLE &&
           block_unpack(&block, &buffer) == 0) {
        offset += block_size(&block);
        for (uint64_t hits = dice(3) == 0 ? 1 + dice(6) : 0; hits > 0; hits--) {
            hit(buffer.bytes, buffer.size);
        }
        recording_build_block(&build, block, buffer.bytes, buffer.size);
    }
    recording_build_write(build.bytes, build.size, to);
    recording_buffer_free(&buffer);
    recording_build_free(&build);
    close(fd);
    return offset == (uint64_t)status.st_size ? 0 : 2;
}

int main(int argc, char **argv) {
    struct recording_build build = {0};
    struct recording_buffer buffer = {0};
    struct recording *recording = argc == 4 ? recording_open(argv[1], NULL) : NULL;
    struct memtrace_recording_header header;
    if (argc != 4) {
        return 2;
    }
    state = strtoull(argv[3], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    if (recording == NULL) {
        return damage_profile(argv[1], argv[2]);
    }
    header = recording->header;
    recording_build_append(&build, &header, sizeof header);
    for (size_t i = 0; i < recording->block_count; i++) {
        copy_block(&build, recording, i, &buffer);
    }
    if (dice(4) != 0) {
        recording_build_index(&build);
    }
    recording_build_write(build.bytes, build.size, argv[2]);
    recording_buffer_free(&buffer);
    recording_build_free(&build);
    recording_close(recording);
    return 0;
}
