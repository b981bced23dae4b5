/* SPDX-License-Identifier: MIT */
/* recording.c: opens recordings, finds their blocks and checks them. See recording.h. */
#include "analyze/read/recording.h"

#include "analyze/base/scope.h"
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
    SCOPE_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd >= 0 && block_read_at(fd, magic, sizeof magic, 0) == sizeof magic &&
           memcmp(magic, MEMTRACE_RECORDING_MAGIC, sizeof magic) == 0;
}

static void recording_add_block(struct recording *recording, uint64_t offset,
                                const struct memtrace_block_header *block) {
    /* Of tables the size is what they will take in memory, and honest ones are never all alike. Of
     * files a piece is read at a time; embedded_extract() limits all of them. */
    bool is_table = block->kind != MEMTRACE_BLOCK_EVENTS && block->kind != MEMTRACE_BLOCK_NODES &&
                    block->kind != MEMTRACE_BLOCK_FILE;
    recording->table_bytes += is_table ? block->raw_size : 0;
    if (recording->table_bytes > budget_allowed(BUDGET_RECORDING, recording->size)) {
        budget_refuse(BUDGET_RECORDING, recording->path, recording->size);
    }
    job_grow(&recording->blocks, &recording->block_room, recording->block_count,
             sizeof *recording->blocks);
    recording->blocks[recording->block_count++] =
        (struct recording_entry){.offset = offset, .block = *block};
}

noreturn static void recording_fail(const struct recording *recording) {
    job_fail("cannot read %s: %s", recording->path, strerror(errno));
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
static void recording_scan(struct recording *recording, struct recording_buffer *buffer) {
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
            recording_fail(recording);
        }
        if (offset != recording->scanned) {
            recording_note_damage(recording, recording->scanned);
            recording->scanned = offset;
            continue;
        }
        recording_add_block(recording, offset, &block);
        recording->scanned += block_size(&block);
        recording->closed = false;
    }
    describe_damage(recording, torn && !recording_grows(recording));
}

/* Takes one of the index's blocks over. false: the index is wrong. */
static bool take_entry(struct recording *recording, const struct memtrace_index_entry *entry,
                       uint64_t index_offset, struct recording_buffer *buffer) {
    struct memtrace_block_header block = entry->block;
    enum block_status found = BLOCK_WHOLE;
    /* Whether it can stand where it says, given the ones before. */
    if (entry->offset != recording->scanned || !block_plausible(&entry->block) ||
        block_size(&entry->block) > index_offset - entry->offset) {
        return false;
    }
    recording->scanned += block_size(&entry->block);
    /* Events and embedded files, the bulk of a recording, are checked when they are read. */
    if (block.kind != MEMTRACE_BLOCK_EVENTS && block.kind != MEMTRACE_BLOCK_FILE) {
        found = block_load(recording->fd, recording->size, entry->offset, &block, buffer);
    }
    if (found == BLOCK_ERROR) {
        recording_fail(recording);
    }
    if (found == BLOCK_NONE) {
        recording_note_damage(recording, entry->offset);
        return true;
    }
    if (memcmp(&block, &entry->block, sizeof block) != 0) {
        return false;
    }
    recording_add_block(recording, entry->offset, &block);
    return true;
}

/* Blocks by the index at the end. false: there is none, or it is no good. */
static bool recording_read_index(struct recording *recording, struct recording_buffer *buffer) {
    const struct memtrace_index_entry *entries;
    struct memtrace_index_end end;
    struct memtrace_block_header block;
    size_t count;
    if (recording->size < sizeof end || !read_end(recording, recording->size - sizeof end, &end) ||
        end.index_offset >= recording->size || end.index_offset % 8 != 0 ||
        block_load(recording->fd, recording->size, end.index_offset, &block, buffer) !=
            BLOCK_WHOLE ||
        block.kind != MEMTRACE_BLOCK_INDEX ||
        end.index_offset + block_size(&block) + sizeof end != recording->size ||
        block_unpack(&block, buffer) != 0) {
        return false;
    }
    count = buffer->size / sizeof *entries;
    entries = (const void *)buffer->bytes; /* they stay while other blocks are checked */
    for (size_t i = 0; i < count; i++) {
        if (!take_entry(recording, &entries[i], end.index_offset, buffer)) {
            return false;
        }
    }
    if (recording->scanned != end.index_offset) {
        return false;
    }
    recording->scanned = recording->size;
    recording->closed = true;
    describe_damage(recording, false);
    recording_add_block(recording, end.index_offset, &block);
    return true;
}

/* One line for everything that is not a recording this program can read. */
static void recording_read_header(struct recording *recording) {
    struct memtrace_recording_header *header = &recording->header;
    const char *path = recording->path;
    recording->size = block_read_header(recording->fd, path, "recording", "",
                                        MEMTRACE_RECORDING_MAGIC, header, sizeof *header);
    if (header->byte_order == __builtin_bswap32(MEMTRACE_BYTE_ORDER)) {
        job_fail("%s was written on a machine with the other byte order; read it there", path);
    }
    if (header->version != MEMTRACE_RECORDING_VERSION) {
        job_fail("%s has recording format %u, this memtrace reads format %u; use the memtrace it "
                 "was made with",
                 path, header->version, MEMTRACE_RECORDING_VERSION);
    }
    if (header->byte_order != MEMTRACE_BYTE_ORDER || header->header_size != sizeof *header) {
        job_fail("%s has a damaged header; the recording cannot be read", path);
    }
}

/* The last PROGRAM block that can be read, its strings made safe. And a file that was made of
 * damaged ones is no better than they are. */
static void recording_take_program(struct recording *recording, struct recording_buffer *buffer) {
    struct memtrace_header *program = &recording->program;
    size_t i = recording->block_count;
    while (i > 0 && (recording->blocks[i - 1].block.kind != MEMTRACE_BLOCK_PROGRAM ||
                     !recording_take(recording, i - 1, buffer) || buffer->size < sizeof *program)) {
        i--;
    }
    if (i == 0) {
        job_fail("%s does not say which program it belongs to%s%s", recording->path,
                 recording->damage[0] != '\0' ? ": " : "", recording->damage);
    }
    memcpy(program, buffer->bytes, sizeof *program);
    region_end_strings(program);
}

static void recording_note_origin(struct recording *recording) {
    recording->is_broken = recording->damage[0] != '\0';
    if (!recording->is_broken && (recording->program.flags & MEMTRACE_FLAG_INCOMPLETE) != 0) {
        snprintf(recording->damage, sizeof recording->damage, "%s", PROFILE_INCOMPLETE);
    }
}

/* What opening and refreshing have, and leave behind, too, if they fail. */
struct opening {
    const char *path;
    bool takes_rest;
    struct recording *recording;
    struct recording_buffer buffer;
    struct sent sent;
};

/* The blocks that are not in the file any more. false: there are none. */
static bool take_sent(struct opening *opening) {
    struct recording *recording = opening->recording;
    const struct sent *sent = &opening->sent;
    if (sent_read(&opening->sent, recording->fd) != 0) {
        recording_fail(recording);
    }
    if (sent->count == 0) {
        return false;
    }
    if (!opening->takes_rest) {
        job_fail("%s is only the rest of a recording: its first %.1f MiB (%llu bytes) were sent to "
                 "%s and freed here; read what was received there",
                 recording->path, (double)sent->last.end / (1 << 20),
                 (unsigned long long)sent->last.end, sent->last.to);
    }
    for (size_t i = 0; i < sent->count; i++) {
        recording_add_block(recording, sent->entries[i].offset, &sent->entries[i].block);
    }
    recording->sent_blocks = sent->count;
    recording->scanned = sent->last.end;
    return true;
}

static void recording_undo(void *what) {
    close(((const struct recording *)what)->fd);
}

static void recording_open_in_job(void *what) {
    struct opening *opening = what;
    struct recording *recording = opening->recording = job_alloc(sizeof *recording);
    int fd = open(opening->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        job_fail("cannot open %s: %s", opening->path, strerror(errno));
    }
    recording->fd = fd;
    job_undo(recording_undo, recording);
    recording->path = job_string(opening->path);
    recording->scanned = sizeof recording->header;
    trust_note_data(fd);
    recording_read_header(recording);
    if (take_sent(opening)) {
        recording_scan(recording, &opening->buffer);
    } else if (!recording_read_index(recording, &opening->buffer)) {
        recording->block_count = 0;
        recording->table_bytes = 0;
        recording->damaged_blocks = 0;
        recording->scanned = sizeof recording->header;
        recording_scan(recording, &opening->buffer);
    }
    recording_take_program(recording, &opening->buffer);
    recording_note_origin(recording);
}

static struct recording *recording_open_file(const char *path, bool takes_rest,
                                             struct error *error) {
    struct opening opening = {.path = path, .takes_rest = takes_rest};
    struct job_memory *memory = NULL;
    int result = job_run(recording_open_in_job, &opening, &memory, error);
    recording_buffer_free(&opening.buffer);
    sent_free(&opening.sent);
    if (result != 0) {
        return NULL;
    }
    opening.recording->memory = memory;
    return opening.recording;
}

struct recording *recording_open(const char *path, struct error *error) {
    return recording_open_file(path, false, error);
}

struct recording *recording_open_rest(const char *path, struct error *error) {
    return recording_open_file(path, true, error);
}

void recording_close(struct recording *recording) {
    struct job_memory *memory = recording != NULL ? recording->memory : NULL;
    job_free(&memory);
}

static void recording_refresh_in_job(void *what) {
    struct opening *opening = what;
    struct recording *recording = opening->recording;
    size_t before = recording->block_count;
    struct stat status;
    if (fstat(recording->fd, &status) != 0) {
        recording_fail(recording);
    }
    if ((uint64_t)status.st_size < recording->scanned) {
        job_fail("%s became shorter while it was read", recording->path);
    }
    recording->size = (uint64_t)status.st_size;
    recording_scan(recording, &opening->buffer);
    if (recording->block_count != before) {
        recording_take_program(recording, &opening->buffer);
    }
    recording_note_origin(recording);
}

int recording_refresh(struct recording *recording, struct error *error) {
    struct opening opening = {.recording = recording};
    int result = job_run(recording_refresh_in_job, &opening, NULL, error);
    recording_buffer_free(&opening.buffer);
    return result;
}

int recording_payload(const struct recording *recording, size_t i, struct recording_buffer *buffer,
                      struct error *error) {
    const struct recording_entry *entry = &recording->blocks[i];
    struct memtrace_block_header block;
    enum block_status found =
        block_load(recording->fd, recording->size, entry->offset, &block, buffer);
    if (found == BLOCK_WHOLE) {
        errno = 0;
        found =
            memcmp(&block, &entry->block, sizeof block) == 0 && block_unpack(&block, buffer) == 0
                ? BLOCK_WHOLE
            : errno == ENOMEM ? BLOCK_ERROR
                              : BLOCK_NONE;
    }
    if (found == BLOCK_ERROR && errno == ENOMEM) {
        error_set(error, "out of memory while reading %s", recording->path);
        return RECORDING_NO_MEMORY;
    }
    if (found == BLOCK_ERROR) {
        return error_set(error, "cannot read %s: %s", recording->path, strerror(errno));
    }
    return found == BLOCK_WHOLE ? 0
                                : error_set(error, "%s: the block at byte %llu is damaged",
                                            recording->path, (unsigned long long)entry->offset);
}

bool recording_take(const struct recording *recording, size_t i, struct recording_buffer *buffer) {
    struct error error;
    int result = recording_payload(recording, i, buffer, &error);
    if (result == RECORDING_NO_MEMORY) {
        job_fail_as(&error);
    }
    return result == 0;
}

bool recording_next(const struct recording *recording, enum memtrace_block_kind kind, size_t *next,
                    struct recording_buffer *buffer) {
    while (*next < recording->block_count) {
        size_t i = (*next)++;
        if (recording->blocks[i].block.kind == kind && recording_take(recording, i, buffer)) {
            return true;
        }
    }
    return false;
}

static bool is_node(const struct memtrace_recording_node *node) {
    return node->id >> MEMTRACE_CONTEXT_BITS == 0 && node->parent < node->id && node->frame != 0;
}

struct gathering {
    const struct recording *recording;
    struct recording_buffer buffer;
    struct memtrace_node *nodes; /* the caller's */
    size_t count;
};

/* Made at once: what no node was put into is never touched, so a few nodes with high ids, as parts
 * of a rotated recording have them, take as much memory as they need. Damaged blocks are left out.
 */
static void recording_gather_nodes(void *what) {
    struct gathering *gathering = what;
    const struct recording *recording = gathering->recording;
    struct recording_buffer *buffer = &gathering->buffer;
    struct memtrace_recording_node **read = /* by block; NULL: it has none */
        job_array(recording->block_count, sizeof *read);
    for (size_t next = 0; recording_next(recording, MEMTRACE_BLOCK_NODES, &next, buffer);) {
        size_t items = recording->blocks[next - 1].block.items;
        struct memtrace_recording_node *nodes;
        errno = 0;
        if (nodecode_unpack(buffer->bytes, buffer->size, items, &nodes) == 0) {
            read[next - 1] = job_take(nodes);
        } else if (errno == ENOMEM) {
            job_fail_memory();
        }
        for (size_t i = 0; read[next - 1] != NULL && i < items; i++) {
            if (is_node(&nodes[i]) && nodes[i].id >= gathering->count) {
                gathering->count = (size_t)nodes[i].id + 1;
            }
        }
    }
    gathering->nodes = calloc(gathering->count + 1, sizeof *gathering->nodes);
    if (gathering->nodes == NULL) {
        job_fail_memory();
    }
    for (size_t block = 0; block < recording->block_count; block++) {
        size_t items = read[block] != NULL ? recording->blocks[block].block.items : 0;
        for (size_t i = 0; i < items; i++) {
            const struct memtrace_recording_node *node = &read[block][i];
            if (is_node(node)) {
                gathering->nodes[node->id] =
                    (struct memtrace_node){.frame = node->frame, .parent = node->parent};
            }
        }
    }
}

int recording_nodes(const struct recording *recording, struct memtrace_node **nodes, size_t *count,
                    struct error *error) {
    struct gathering gathering = {.recording = recording};
    int result = job_run(recording_gather_nodes, &gathering, NULL, error);
    recording_buffer_free(&gathering.buffer);
    *nodes = gathering.nodes;
    *count = gathering.nodes != NULL ? gathering.count : 0;
    return result;
}
