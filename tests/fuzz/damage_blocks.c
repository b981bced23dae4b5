/* SPDX-License-Identifier: MIT */
/*
 * damage_blocks.c FROM TO SEED [grow]: a recording or a compressed profile anew, with some of its
 * blocks' contents and headers hit, and with checksums and an index that are right: what reads the
 * blocks gets to see the damage. It knows what is in them: numbers in columns, texts that must end,
 * ids, blocks that stand alone. A profile that is not compressed has its segments hit. With `grow`,
 * one file of six is whole but grown, which is told on standard output: it unpacks to far more than
 * its size, in tables ("grown tables") or in events and call paths, which may be honest ("grown
 * events").
 *
 * Called by tests/fuzz/commands.py and storm.py.
 */
#include "analyze/read/block.h"
#include "analyze/read/recording.h"
#include "analyze/read/varint.h"
#include "tests/fuzz/grown.h"
#include "tests/unit/recording_builder.h"

#include <fcntl.h>
#include <stddef.h>
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

/* One byte, or a whole number of some size at a place where one may stand; mostly where one does:
 * tables have many zeros that nothing refers to. */
static void hit(unsigned char *bytes, size_t size) {
    static const size_t widths[] = {1, 1, 2, 4, 8, 8};
    static const unsigned char zeros[8];
    size_t width = widths[dice(sizeof widths / sizeof widths[0])];
    uint64_t number = odd_number();
    size_t at = 0;
    for (uint64_t tries = 1 + dice(16); tries > 0 && size >= width; tries--) {
        at = dice(size - width + 1);
        at -= width > 1 ? at % width : 0;
        if (memcmp(bytes + at, zeros, width) != 0) {
            break;
        }
    }
    if (size >= width) {
        memcpy(bytes + at, &number, width);
    }
}

/* ---- What a header says ---- */

/* A text, or all of them from there on, without an end; or a number. Half of the fields are in the
 * first kilobytes, and what says how long others are is worth a case of its own. */
static void hit_program(void *bytes) {
    struct memtrace_header *header = bytes;
    static const struct {
        size_t offset;
        size_t size;
    } texts[] = {
        {offsetof(struct memtrace_header, name), sizeof header->name},
        {offsetof(struct memtrace_header, executable), sizeof header->executable},
        {offsetof(struct memtrace_header, command), sizeof header->command},
        {offsetof(struct memtrace_header, output), sizeof header->output},
        {offsetof(struct memtrace_header, log), sizeof header->log},
    };
    size_t which = dice(sizeof texts / sizeof texts[0]);
    char *text = (char *)bytes + texts[which].offset;
    switch (dice(4)) {
    case 0:
        memset(text, 'A', texts[which].size - dice(2));
        break;
    case 1:
        memset(header->command, 'A', sizeof header->command - 1);
        header->command_bytes = dice(3) == 0 ? odd_number() : dice(16);
        break;
    case 2:
        header->command_bytes = odd_number();
        break;
    default:
        hit((unsigned char *)bytes + 8, offsetof(struct memtrace_header, executable) - 8);
        break;
    }
}

/* ---- Columns ---- */

static size_t columns_of(uint16_t kind) {
    switch (kind) {
    case MEMTRACE_BLOCK_NODES:
        return 4;
    case MEMTRACE_BLOCK_EVENTS:
        return 13;
    case MEMTRACE_BLOCK_SEGMENTS:
        return 19;
    default:
        return 0;
    }
}

/* The numbers of a column anew: one of them odd, a few, or all. */
static void hit_numbers(struct varint_writer *to, const unsigned char *bytes, size_t size) {
    size_t at = 0;
    uint64_t place = 0;
    uint64_t odd = dice(3) == 0 ? 0 : dice(size + 1);
    uint64_t one_of = dice(4) == 0 ? 1 + dice(8) : 0;
    while (at < size) {
        uint64_t number = 0;
        unsigned shift = 0;
        do {
            number |= shift < 64 ? (uint64_t)(bytes[at] & 0x7f) << shift : 0;
            shift += 7;
        } while ((bytes[at++] & 0x80) != 0 && at < size);
        bool hits = place++ == odd || (one_of != 0 && dice(one_of) == 0);
        varint_put(to, hits ? odd_number() << dice(2) : number);
    }
}

/* One column with other numbers, its size told; false: there are none, or they are damaged. */
static bool hit_column(struct recording_buffer *buffer, uint16_t kind) {
    size_t count = columns_of(kind);
    size_t column = count != 0 ? dice(count) : 0;
    size_t start = count * sizeof(uint32_t);
    uint32_t size = 0;
    struct varint_writer made = {0};
    unsigned char *grown;
    if (count == 0 || buffer->size < start) {
        return false;
    }
    for (size_t i = 0; i <= column; i++) {
        start += size;
        memcpy(&size, buffer->bytes + i * sizeof size, sizeof size);
        if (start > buffer->size || size > buffer->size - start) {
            return false;
        }
    }
    hit_numbers(&made, buffer->bytes + start, size);
    grown = malloc(buffer->size - size + made.size + 1);
    if (grown == NULL) {
        abort();
    }
    memcpy(grown, buffer->bytes, start);
    if (made.size != 0) {
        memcpy(grown + start, made.bytes, made.size);
    }
    memcpy(grown + start + made.size, buffer->bytes + start + size, buffer->size - start - size);
    buffer->size += made.size - size;
    size = (uint32_t)made.size;
    memcpy(grown + column * sizeof size, &size, sizeof size);
    free(buffer->bytes);
    buffer->bytes = grown;
    buffer->capacity = buffer->size + 1;
    free(made.bytes);
    return true;
}

static void hit_payload(struct recording_buffer *buffer, uint16_t kind) {
    for (uint64_t hits = dice(6) + 1; hits > 0; hits--) {
        if (kind == MEMTRACE_BLOCK_PROGRAM && buffer->size >= sizeof(struct memtrace_header)) {
            hit_program(buffer->bytes);
        } else if (dice(4) == 0 || !hit_column(buffer, kind)) {
            hit(buffer->bytes, buffer->size);
        }
    }
}

/* ---- Blocks ---- */

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

/* Now and then not at all, or many times: so little of a file may ask for so much of a reader. */
static void put_block(struct recording_build *build, struct memtrace_block_header block,
                      const void *bytes, size_t size) {
    uint64_t times = dice(24);
    times = times == 0 ? 0 : times == 1 ? 100 : 1;
    for (; times > 0 && build->count + 1 < BUILD_BLOCKS; times--) {
        recording_build_block(build, block, bytes, size);
    }
}

static void copy_block(struct recording_build *build, const struct recording *recording, size_t i,
                       struct recording_buffer *buffer, bool grows) {
    struct memtrace_block_header block = recording->blocks[i].block;
    if (block.kind == MEMTRACE_BLOCK_INDEX || build->count + 1 >= BUILD_BLOCKS ||
        recording_payload(recording, i, buffer, NULL) != 0) {
        return;
    }
    if (grows) {
        recording_build_block(build, block, buffer->bytes, buffer->size);
        return;
    }
    if (dice(3) == 0) {
        hit_payload(buffer, block.kind);
    }
    if (dice(8) == 0) {
        hit_header(&block);
    }
    put_block(build, block, buffer->bytes, dice(20) == 0 ? dice(buffer->size + 1) : buffer->size);
}

/* ---- Files that grow ---- */

static void grow(struct recording_build *build) {
    static const uint16_t kinds[] = {
        MEMTRACE_BLOCK_NODES,   MEMTRACE_BLOCK_EVENTS, MEMTRACE_BLOCK_EVENTS,
        MEMTRACE_BLOCK_SMAPS,   MEMTRACE_BLOCK_SMAPS,  MEMTRACE_BLOCK_THREADS,
        MEMTRACE_BLOCK_MODULES, MEMTRACE_BLOCK_POOLS,  MEMTRACE_BLOCK_SAMPLES,
        MEMTRACE_BLOCK_CULLED,  MEMTRACE_BLOCK_NAMES,  MEMTRACE_BLOCK_GAP,
        MEMTRACE_BLOCK_THINNED, MEMTRACE_BLOCK_FILE,   MEMTRACE_BLOCK_FILE,
        MEMTRACE_BLOCK_SLICES,  MEMTRACE_BLOCK_TOTALS};
    uint16_t kind = kinds[dice(sizeof kinds / sizeof kinds[0])];
    bool is_coded = columns_of(kind) != 0;
    size_t items =
        is_coded ? (size_t)1 << (10 + dice(11)) : GROWN_MOST / grown_item(kind) >> dice(4);
    size_t times = 1 + dice(80);
    times = kind != MEMTRACE_BLOCK_EVENTS || items * times < GROWN_EVENTS ? times
                                                                          : GROWN_EVENTS / items;
    grown_recording(build, kind, items, times, dice(UINT32_MAX));
    puts(is_coded ? "grown events" : "grown tables");
}

/* ---- Profiles ---- */

/* Many of the words that are not 0 become the same odd number: sums of them do not fit. */
static void hit_words(uint64_t *words, size_t count) {
    uint64_t one_of = 1 + dice(8);
    uint64_t number = odd_number() >> dice(2);
    for (size_t i = 0; i < count; i++) {
        words[i] = words[i] != 0 && dice(one_of) == 0 ? number : words[i];
    }
}

/* Segments of a profile as it is in memory: their kinds (a profile without nodes, or without
 * costs), headers, and numbers inside. */
static int damage_segments(const char *from, const char *to, size_t size) {
    unsigned char *bytes = malloc(size);
    int fd = open(from, O_RDONLY);
    static const uint16_t kinds[] = {MEMTRACE_SEGMENT_NODES,   MEMTRACE_SEGMENT_TREE,
                                     MEMTRACE_SEGMENT_CELLS,   MEMTRACE_SEGMENT_LEDGER,
                                     MEMTRACE_SEGMENT_THREADS, MEMTRACE_SEGMENT_MODULES};
    /* Of a kind that is not there at all. */
    uint16_t without = dice(3) == 0 ? kinds[dice(sizeof kinds / sizeof kinds[0])] : 0;
    if (bytes == NULL || fd < 0 || read(fd, bytes, size) != (ssize_t)size) {
        return 2;
    }
    close(fd);
    if (dice(3) == 0) {
        hit_program(bytes);
    }
    for (size_t at = MEMTRACE_HEADER_SIZE; at + MEMTRACE_PAGE_SIZE <= size;
         at += MEMTRACE_PAGE_SIZE) {
        struct memtrace_segment *segment = (void *)(bytes + at);
        if (segment->magic != MEMTRACE_SEGMENT_MAGIC || segment->size > size - at) {
            continue;
        }
        if (dice(12) == 0) {
            hit((unsigned char *)segment + 4, sizeof *segment - 4);
        } else if (without != 0 && segment->kind == without) {
            segment->kind = UINT16_MAX;
        } else if (dice(6) == 0) {
            hit_words((uint64_t *)(segment + 1),
                      (segment->size - sizeof *segment) / sizeof(uint64_t));
        } else if (dice(3) == 0) {
            for (uint64_t hits = dice(50); hits > 0; hits--) {
                hit((unsigned char *)(segment + 1), segment->size - sizeof *segment);
            }
        }
    }
    recording_build_write(bytes, size, to);
    free(bytes);
    return 0;
}

/* The blocks of a compressed profile, each uncompressed, hit and put behind the header. */
static int damage_profile(const char *from, const char *to, bool grows) {
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
    if ((header.version & MEMTRACE_FORMAT_COMPRESSED) == 0) {
        close(fd);
        return damage_segments(from, to, (size_t)status.st_size);
    }
    if (!grows && dice(4) == 0) {
        header.whole_bytes = odd_number();
    }
    if (!grows && dice(3) == 0) {
        hit_program(&header);
    }
    recording_build_append(&build, &header, sizeof header);
    while (block_load(fd, (uint64_t)status.st_size, offset, &block, &buffer) == BLOCK_WHOLE &&
           block_unpack(&block, &buffer) == 0) {
        offset += block_size(&block);
        if (grows) {
            recording_build_block(&build, block, buffer.bytes, buffer.size);
            continue;
        }
        if (dice(3) == 0) {
            hit_payload(&buffer, block.kind);
        }
        put_block(&build, block, buffer.bytes, buffer.size);
    }
    if (grows) {
        puts("grown tables");
        grown_profile(&build, header.whole_bytes / MEMTRACE_PAGE_SIZE + 1 + dice(100),
                      GROWN_MOST / MEMTRACE_PAGE_SIZE >> dice(4), 1 + dice(40), dice(2) * dice(16));
        grown_header(&build, dice(2) * dice(256));
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
    struct recording *recording = argc >= 4 ? recording_open(argv[1], NULL) : NULL;
    struct memtrace_recording_header header;
    bool grows;
    if (argc < 4) {
        return 2;
    }
    state = strtoull(argv[3], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    grows = argc > 4 && dice(6) == 0;
    if (recording == NULL) {
        return damage_profile(argv[1], argv[2], grows);
    }
    header = recording->header;
    recording_build_append(&build, &header, sizeof header);
    for (size_t i = 0; i < recording->block_count; i++) {
        copy_block(&build, recording, i, &buffer, grows);
    }
    if (grows) {
        grow(&build);
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
