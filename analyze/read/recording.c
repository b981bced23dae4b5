/* SPDX-License-Identifier: MIT */
/* recording.c: opens recordings, finds their blocks and checks them. See recording.h. */
#include "analyze/read/recording.h"

#include "analyze/base/array.h"
#include "analyze/read/block.h"
#include "analyze/read/budget.h"
#include "analyze/read/nodecode.h"
#include "analyze/read/profile.h"
#include "analyze/read/region.h"
#include "analyze/read/sent.h"
#include "analyze/read/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool recording_is(const char *path) {
    char magic[8];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is = fd >= 0 && block_read_at(fd, magic, sizeof magic, 0) == sizeof magic &&
              memcmp(magic, MEMTRACE_RECORDING_MAGIC, sizeof magic) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is;
}

static int recording_add_block(struct recording *recording, uint64_t offset,
                               const struct memtrace_block_header *block, struct error *error) {
    /* Of tables the size is what they will take in memory, and honest ones are never all alike. Of
     * files a piece is read at a time; embedded_extract() limits all of them. */
    bool is_table = block->kind != MEMTRACE_BLOCK_EVENTS && block->kind != MEMTRACE_BLOCK_NODES &&
                    block->kind != MEMTRACE_BLOCK_FILE;
    recording->table_bytes += is_table ? block->raw_size : 0;
    if (recording->table_bytes > budget_allowed(BUDGET_RECORDING, recording->size)) {
        return budget_refuse(BUDGET_RECORDING, recording->path, recording->size, error);
    }
    if (array_grow(&recording->blocks, &recording->block_room, recording->block_count,
                   sizeof *recording->blocks) != 0) {
        return error_set(error, "out of memory while reading %s", recording->path);
    }
    recording->blocks[recording->block_count++] =
        (struct recording_entry){.offset = offset, .block = *block};
    return 0;
}

static void recording_note_damage(struct recording *recording, uint64_t offset) {
    if (recording->damaged_blocks++ == 0) {
        recording->first_damage = offset;
    }
}

/* torn: behind the last block there are bytes that no writer is going to finish. */
static void describe_damage(struct recording *recording, bool torn) {
    char *text = recording->damage;
    size_t room = sizeof recording->damage;
    int length = 0;
    text[0] = '\0';
    if (recording->damaged_blocks != 0) {
        length = snprintf(text, room, "%llu damaged block%s left out, the first at byte %llu",
                          (unsigned long long)recording->damaged_blocks,
                          recording->damaged_blocks == 1 ? "" : "s",
                          (unsigned long long)recording->first_damage);
    }
    if (torn) {
        snprintf(text + length, room - (size_t)length, "%scut off at byte %llu of %llu",
                 length != 0 ? "; " : "", (unsigned long long)recording->scanned,
                 (unsigned long long)recording->size);
    }
}

/* What stands behind an index. */
static bool read_end(const struct recording *recording, uint64_t offset,
                     struct memtrace_index_end *end) {
    return block_read_at(recording->fd, end, sizeof *end, offset) == sizeof *end &&
           memcmp(end->magic, MEMTRACE_RECORDING_MAGIC, sizeof end->magic) == 0;
}

/* Steps over the end, where the last block is the index. */
static bool recording_step_over_end(struct recording *recording) {
    const struct recording_entry *last;
    struct memtrace_index_end end;
    if (recording->block_count == 0) {
        return false;
    }
    last = &recording->blocks[recording->block_count - 1];
    if (last->block.kind != MEMTRACE_BLOCK_INDEX ||
        !read_end(recording, recording->scanned, &end) || end.index_offset != last->offset) {
        return false;
    }
    recording->scanned += sizeof end;
    return true;
}

bool recording_grows(const struct recording *recording) {
    const struct memtrace_recording_header *header = &recording->header;
    bool unknown;
    return !recording->closed && (region_alive((pid_t)header->pid, header->process_start_ticks) ||
                                  region_is_written(recording->fd, &unknown));
}

bool recording_is_unfinished(const struct recording *recording) {
    return !recording->closed && !recording_grows(recording);
}

/* Steps from block to block, from where the last scan ended. */
static int recording_scan(struct recording *recording, struct recording_buffer *buffer,
                          struct error *error) {
    bool torn = false;
    while (recording->scanned < recording->size) {
        uint64_t offset = recording->scanned;
        struct memtrace_block_header block;
        enum block_status found =
            block_load(recording->fd, recording->size, offset, &block, buffer);
        if (found == BLOCK_NONE && recording_step_over_end(recording)) {
            recording->closed = true;
            continue;
        }
        if (found == BLOCK_NONE) {
            offset += 8;
            found = block_search(recording->fd, recording->size, &offset, buffer);
            if (found == BLOCK_NONE) {
                torn = true;
                break;
            }
        }
        if (found == BLOCK_ERROR) {
            return error_set(error, "cannot read %s: %s", recording->path, strerror(errno));
        }
        if (offset != recording->scanned) {
            recording_note_damage(recording, recording->scanned);
            recording->scanned = offset;
            continue;
        }
        if (recording_add_block(recording, offset, &block, error) != 0) {
            return -1;
        }
        recording->scanned += block_size(&block);
        recording->closed = false;
    }
    describe_damage(recording, torn && !recording_grows(recording));
    return 0;
}

/* Takes one of the index's blocks over. 1; 0: the index is wrong; -1: error. */
static int take_entry(struct recording *recording, const struct memtrace_index_entry *entry,
                      uint64_t index_offset, struct recording_buffer *buffer, struct error *error) {
    struct memtrace_block_header block = entry->block;
    enum block_status found = BLOCK_WHOLE;
    /* Whether it can stand where it says, given the ones before. */
    if (entry->offset != recording->scanned || !block_plausible(&entry->block) ||
        block_size(&entry->block) > index_offset - entry->offset) {
        return 0;
    }
    recording->scanned += block_size(&entry->block);
    /* Events and embedded files, the bulk of a recording, are checked when they are read. */
    if (block.kind != MEMTRACE_BLOCK_EVENTS && block.kind != MEMTRACE_BLOCK_FILE) {
        found = block_load(recording->fd, recording->size, entry->offset, &block, buffer);
    }
    if (found == BLOCK_ERROR) {
        return error_set(error, "cannot read %s: %s", recording->path, strerror(errno));
    }
    if (found == BLOCK_NONE) {
        recording_note_damage(recording, entry->offset);
        return 1;
    }
    if (memcmp(&block, &entry->block, sizeof block) != 0) {
        return 0;
    }
    return recording_add_block(recording, entry->offset, &block, error) == 0 ? 1 : -1;
}

/* Blocks by the index at the end. 1; 0: there is none, or it is no good; -1: error. */
static int recording_read_index(struct recording *recording, struct recording_buffer *buffer,
                                struct error *error) {
    const struct memtrace_index_entry *entries;
    struct recording_buffer checks = {0};
    struct memtrace_index_end end;
    struct memtrace_block_header block;
    int result = 1;
    if (recording->size < sizeof end || !read_end(recording, recording->size - sizeof end, &end) ||
        end.index_offset >= recording->size || end.index_offset % 8 != 0 ||
        block_load(recording->fd, recording->size, end.index_offset, &block, buffer) !=
            BLOCK_WHOLE ||
        block.kind != MEMTRACE_BLOCK_INDEX ||
        end.index_offset + block_size(&block) + sizeof end != recording->size ||
        block_unpack(&block, buffer) != 0) {
        return 0;
    }
    entries = (const void *)buffer->bytes;
    for (size_t i = 0; i < buffer->size / sizeof *entries && result == 1; i++) {
        result = take_entry(recording, &entries[i], end.index_offset, &checks, error);
    }
    recording_buffer_free(&checks);
    if (result != 1) {
        return result;
    }
    if (recording->scanned != end.index_offset) {
        return 0;
    }
    recording->scanned = recording->size;
    recording->closed = true;
    describe_damage(recording, false);
    return recording_add_block(recording, end.index_offset, &block, error) == 0 ? 1 : -1;
}

/* One line for everything that is not a recording this program can read. */
static int recording_check_header(const struct recording *recording, struct error *error) {
    const struct memtrace_recording_header *header = &recording->header;
    if (header->byte_order == __builtin_bswap32(MEMTRACE_BYTE_ORDER)) {
        return error_set(error,
                         "%s was written on a machine with the other byte order; read it there",
                         recording->path);
    }
    if (header->version != MEMTRACE_RECORDING_VERSION) {
        return error_set(error,
                         "%s has recording format %u, this memtrace reads format %u; use the "
                         "memtrace it was made with",
                         recording->path, header->version, MEMTRACE_RECORDING_VERSION);
    }
    if (header->byte_order != MEMTRACE_BYTE_ORDER || header->header_size != sizeof *header) {
        return error_set(error, "%s has a damaged header; the recording cannot be read",
                         recording->path);
    }
    return 0;
}

static int read_header(struct recording *recording, struct error *error) {
    struct memtrace_recording_header *header = &recording->header;
    struct stat status;
    ssize_t count;
    if (fstat(recording->fd, &status) != 0) {
        return error_set(error, "cannot read %s: %s", recording->path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return error_set(error, "%s is %s, not a recording", recording->path,
                         S_ISDIR(status.st_mode) ? "a folder" : "a special file");
    }
    recording->size = (uint64_t)status.st_size;
    count = block_read_at(recording->fd, header, sizeof *header, 0);
    if (count < 0) {
        return error_set(error, "cannot read %s: %s", recording->path, strerror(errno));
    }
    if (count < 8 || memcmp(header->magic, MEMTRACE_RECORDING_MAGIC, 8) != 0) {
        return error_set(error, "%s is not a MemTrace recording%s", recording->path,
                         count == 0 ? ", it is empty" : "");
    }
    if ((size_t)count < sizeof *header) {
        return error_set(error, "%s is cut off inside its header, at byte %zd of %zu",
                         recording->path, count, sizeof *header);
    }
    return recording_check_header(recording, error);
}

/* A file that was made of damaged ones is no better than they are. */
static void note_origin(struct recording *recording) {
    recording->is_broken = recording->damage[0] != '\0';
    if (!recording->is_broken && (recording->program.flags & MEMTRACE_FLAG_INCOMPLETE) != 0) {
        snprintf(recording->damage, sizeof recording->damage, "%s", PROFILE_INCOMPLETE);
    }
}

/* The last PROGRAM block that can be read, its strings made safe. */
static int recording_take_program(struct recording *recording, struct recording_buffer *buffer,
                                  struct error *error) {
    struct memtrace_header *program = &recording->program;
    for (size_t i = recording->block_count; i-- > 0;) {
        if (recording->blocks[i].block.kind != MEMTRACE_BLOCK_PROGRAM ||
            recording_payload(recording, i, buffer, error) != 0 || buffer->size < sizeof *program) {
            continue;
        }
        memcpy(program, buffer->bytes, sizeof *program);
        profile_end_strings(program);
        return 0;
    }
    return error_set(error, "%s does not say which program it belongs to%s%s", recording->path,
                     recording->damage[0] != '\0' ? ": " : "", recording->damage);
}

/* The blocks that are not in the file any more. 1: there are some; 0; -1: error. */
static int take_sent(struct recording *recording, bool takes_rest, struct error *error) {
    struct sent sent = {0};
    int result = 0;
    if (sent_read(&sent, recording->fd) != 0) {
        result = error_set(error, "cannot read %s: %s", recording->path, strerror(errno));
    } else if (sent.count != 0 && !takes_rest) {
        result = error_set(error,
                           "%s is only the rest of a recording: its first %.1f MiB (%llu bytes) "
                           "were sent to %s and freed here; read what was received there",
                           recording->path, (double)sent.last.end / (1 << 20),
                           (unsigned long long)sent.last.end, sent.last.to);
    }
    for (size_t i = 0; result == 0 && i < sent.count; i++) {
        result =
            recording_add_block(recording, sent.entries[i].offset, &sent.entries[i].block, error);
    }
    if (result == 0 && sent.count != 0) {
        recording->sent_blocks = sent.count;
        recording->scanned = sent.last.end;
        result = 1;
    }
    sent_free(&sent);
    return result;
}

static int recording_read_structure(struct recording *recording, bool takes_rest,
                                    struct error *error) {
    struct recording_buffer buffer = {0};
    int known = take_sent(recording, takes_rest, error);
    int result = known > 0 ? recording_scan(recording, &buffer, error) : known;
    if (known == 0) {
        result = recording_read_index(recording, &buffer, error);
    }
    if (known == 0 && result == 0) {
        recording->block_count = 0;
        recording->table_bytes = 0;
        recording->damaged_blocks = 0;
        recording->scanned = sizeof recording->header;
        result = recording_scan(recording, &buffer, error);
    }
    if (result >= 0) {
        result = recording_take_program(recording, &buffer, error);
    }
    note_origin(recording);
    recording_buffer_free(&buffer);
    return result;
}

static struct recording *recording_open_file(const char *path, bool takes_rest,
                                             struct error *error) {
    struct recording *recording;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        error_set(error, "cannot open %s: %s", path, strerror(errno));
        return NULL;
    }
    recording = calloc(1, sizeof *recording);
    if (recording == NULL || (recording->path = strdup(path)) == NULL) {
        free(recording);
        close(fd);
        error_set(error, "out of memory while opening %s", path);
        return NULL;
    }
    trust_note_data(fd);
    recording->fd = fd;
    recording->scanned = sizeof recording->header;
    if (read_header(recording, error) != 0 ||
        recording_read_structure(recording, takes_rest, error) != 0) {
        recording_close(recording);
        return NULL;
    }
    return recording;
}

struct recording *recording_open(const char *path, struct error *error) {
    return recording_open_file(path, false, error);
}

struct recording *recording_open_rest(const char *path, struct error *error) {
    return recording_open_file(path, true, error);
}

void recording_close(struct recording *recording) {
    if (recording != NULL) {
        close(recording->fd);
        free(recording->blocks);
        free(recording->path);
        free(recording);
    }
}

int recording_refresh(struct recording *recording, struct error *error) {
    struct recording_buffer buffer = {0};
    size_t before = recording->block_count;
    struct stat status;
    int result;
    if (fstat(recording->fd, &status) != 0) {
        return error_set(error, "cannot read %s: %s", recording->path, strerror(errno));
    }
    if ((uint64_t)status.st_size < recording->scanned) {
        return error_set(error, "%s became shorter while it was read", recording->path);
    }
    recording->size = (uint64_t)status.st_size;
    result = recording_scan(recording, &buffer, error);
    if (result == 0 && recording->block_count != before) {
        result = recording_take_program(recording, &buffer, error);
    }
    note_origin(recording);
    recording_buffer_free(&buffer);
    return result;
}

int recording_payload(const struct recording *recording, size_t i, struct recording_buffer *buffer,
                      struct error *error) {
    const struct recording_entry *entry = &recording->blocks[i];
    struct memtrace_block_header block;
    enum block_status found;
    errno = 0; /* so that ENOMEM tells want of memory from damage */
    found = block_load(recording->fd, recording->size, entry->offset, &block, buffer);
    if (found == BLOCK_ERROR) {
        return error_set(error, "cannot read %s: %s", recording->path, strerror(errno));
    }
    if (found == BLOCK_NONE || memcmp(&block, &entry->block, sizeof block) != 0 ||
        block_unpack(&block, buffer) != 0) {
        return error_set(error, "%s: the block at byte %llu is damaged", recording->path,
                         (unsigned long long)entry->offset);
    }
    return 0;
}

static bool is_node(const struct memtrace_recording_node *node) {
    return node->id >> MEMTRACE_CONTEXT_BITS == 0 && node->parent < node->id && node->frame != 0;
}

/* Made at once: what no node was put into is never touched, so a few nodes with high ids, as parts
 * of a rotated recording have them, take as much memory as they need. Damaged blocks are left out.
 */
int recording_nodes(const struct recording *recording, struct memtrace_node **nodes, size_t *count,
                    struct error *error) {
    struct recording_buffer buffer = {0};
    /* By block; NULL: it has none. */
    struct memtrace_recording_node **read = calloc(recording->block_count + 1, sizeof *read);
    int result = read != NULL ? 0 : -1;
    *nodes = NULL;
    *count = 0;
    for (size_t i = 0; result == 0 && i < recording->block_count; i++) {
        size_t items = recording->blocks[i].block.items;
        if (recording->blocks[i].block.kind != MEMTRACE_BLOCK_NODES ||
            recording_payload(recording, i, &buffer, error) != 0 ||
            nodecode_unpack(buffer.bytes, buffer.size, items, &read[i]) != 0) {
            continue;
        }
        for (size_t j = 0; j < items; j++) {
            if (is_node(&read[i][j]) && read[i][j].id >= *count) {
                *count = (size_t)read[i][j].id + 1;
            }
        }
    }
    recording_buffer_free(&buffer);
    if (*count != 0) {
        *nodes = calloc(*count, sizeof **nodes);
        result = *nodes != NULL ? 0 : -1;
    }
    for (size_t i = 0; read != NULL && i < recording->block_count; i++) {
        size_t items = result == 0 && read[i] != NULL ? recording->blocks[i].block.items : 0;
        for (size_t j = 0; j < items; j++) {
            const struct memtrace_recording_node *node = &read[i][j];
            if (is_node(node)) {
                (*nodes)[node->id] =
                    (struct memtrace_node){.frame = node->frame, .parent = node->parent};
            }
        }
        free(read[i]);
    }
    free(read);
    return result == 0 ? 0 : error_set(error, "out of memory while reading %s", recording->path);
}
