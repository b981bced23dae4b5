/* SPDX-License-Identifier: MIT */
/* transform.c: see transform.h. */
#include "collect/transform/transform.h"

#include "analyze/read/nodecode.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_NODES = 1 << 18,
    MOST_NODES = 1 << MEMTRACE_CONTEXT_BITS,
};

struct transform {
    struct timeorder_parts parts;
    const struct transform_hooks *hooks;
    const struct transform_options *options;
    struct transform_result *result;
    struct error *error;
    struct recordfile file;
    uint32_t flags; /* of the new file */
    struct recording_buffer buffer;
};

static int no_memory(struct transform *transform) {
    return error_set(transform->error, "out of memory while rewriting %s",
                     transform->parts.items[0]->path);
}

/* ---- Tables ---- */

static int append_table(struct transform *transform, const struct memtrace_block_header *from,
                        const struct transform_payload *payload) {
    struct memtrace_block_header block = {.kind = from->kind,
                                          .first_ns = from->first_ns,
                                          .last_ns = from->last_ns,
                                          .items = payload->items};
    return recordfile_append(&transform->file, &block, payload->bytes, payload->size,
                             transform->error);
}

/* One block as it is, or as the hook makes it. */
static int copy_table(struct transform *transform, const struct recording *recording, size_t i) {
    const struct memtrace_block_header *block = &recording->blocks[i].block;
    struct transform_payload payload = {.items = block->items};
    int result;
    if (recording_payload(recording, i, &transform->buffer, NULL) != 0) {
        transform->result->damaged++;
        return 0;
    }
    payload.size = transform->buffer.size;
    payload.bytes = malloc(payload.size + 1);
    if (payload.bytes == NULL) {
        return no_memory(transform);
    }
    memcpy(payload.bytes, transform->buffer.bytes, payload.size);
    result = transform->hooks->table != NULL
                 ? transform->hooks->table(transform->hooks->context,
                                           (enum memtrace_block_kind)block->kind, &payload)
                 : 1;
    if (result == 1) {
        result = append_table(transform, block, &payload);
    } else if (result < 0) {
        result = no_memory(transform);
    }
    free(payload.bytes);
    return result;
}

/* Of those blocks of which only the last one counts. */
static int copy_last(struct transform *transform, enum memtrace_block_kind kind) {
    for (size_t part = transform->parts.count; part-- > 0;) {
        const struct recording *recording = transform->parts.items[part];
        for (size_t i = recording->block_count; i-- > 0;) {
            if (recording->blocks[i].block.kind == kind) {
                return copy_table(transform, recording, i);
            }
        }
    }
    return 0;
}

static bool is_copied(uint16_t kind, bool before_events) {
    switch (kind) {
    case MEMTRACE_BLOCK_PROGRAM: /* the last one, first of all */
    case MEMTRACE_BLOCK_NODES:   /* all at once */
    case MEMTRACE_BLOCK_EVENTS:
    case MEMTRACE_BLOCK_THREADS: /* the last one, last of all */
    case MEMTRACE_BLOCK_INDEX:
        return false;
    case MEMTRACE_BLOCK_MODULES:
    case MEMTRACE_BLOCK_POOLS:
        return before_events;
    default:
        return !before_events;
    }
}

static int copy_tables(struct transform *transform, bool before_events) {
    for (size_t part = 0; part < transform->parts.count; part++) {
        const struct recording *recording = transform->parts.items[part];
        for (size_t i = 0; i < recording->block_count; i++) {
            if (is_copied(recording->blocks[i].block.kind, before_events) &&
                copy_table(transform, recording, i) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* ---- Nodes ---- */

static int write_nodes(struct transform *transform, const struct memtrace_recording_node *nodes,
                       size_t count) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_NODES, .items = (uint32_t)count};
    struct varint_writer payload = {0};
    int result = nodecode_pack(nodes, count, &payload) == 0
                     ? recordfile_append(&transform->file, &block, payload.bytes, payload.size,
                                         transform->error)
                     : no_memory(transform);
    free(payload.bytes);
    return result;
}

/* Parents first, as their ids are. */
static int write_all_nodes(struct transform *transform, const struct memtrace_node *nodes,
                           size_t count) {
    struct memtrace_recording_node *batch = malloc(BLOCK_NODES * sizeof *batch);
    size_t filled = 0;
    int result = batch != NULL ? 0 : no_memory(transform);
    for (size_t id = 1; id < count && result == 0; id++) {
        if (nodes[id].frame == 0) {
            continue;
        }
        batch[filled] =
            (struct memtrace_recording_node){nodes[id].frame, nodes[id].parent, (uint32_t)id};
        if (transform->hooks->node != NULL) {
            transform->hooks->node(transform->hooks->context, &batch[filled]);
        }
        if (++filled == BLOCK_NODES) {
            result = write_nodes(transform, batch, filled);
            filled = 0;
        }
    }
    if (result == 0 && filled != 0) {
        result = write_nodes(transform, batch, filled);
    }
    free(batch);
    return result;
}

/* Adds those of another part. Each part repeats the nodes that it needs, under the same ids. 0, or
 * -1: out of memory. */
static int add_nodes(struct memtrace_node **all, size_t *all_count,
                     const struct memtrace_node *nodes, size_t count) {
    count = count < MOST_NODES ? count : MOST_NODES;
    if (count > *all_count) {
        struct memtrace_node *grown = reallocarray(*all, count, sizeof *grown);
        if (grown == NULL) {
            return -1;
        }
        memset(grown + *all_count, 0, (count - *all_count) * sizeof *grown);
        *all = grown;
        *all_count = count;
    }
    for (size_t id = 0; id < count; id++) {
        if ((*all)[id].frame == 0) {
            (*all)[id] = nodes[id];
        }
    }
    return 0;
}

static int copy_nodes(struct transform *transform) {
    struct memtrace_node *all = NULL;
    size_t all_count = 0;
    int result = 0;
    for (size_t part = 0; part < transform->parts.count && result == 0; part++) {
        struct memtrace_node *nodes = NULL;
        size_t count = 0;
        result = recording_nodes(transform->parts.items[part], &nodes, &count, transform->error);
        if (result == 0 && add_nodes(&all, &all_count, nodes, count) != 0) {
            result = no_memory(transform);
        }
        free(nodes);
    }
    if (result == 0) {
        result = write_all_nodes(transform, all, all_count);
    }
    free(all);
    return result;
}

/* ---- The file ---- */

static struct memtrace_recording_header header_of(const struct transform *transform) {
    struct memtrace_recording_header header = transform->parts.items[0]->header;
    header.header_size = sizeof header;
    header.flags |= transform->options->add_flags;
    if (transform->hooks->header != NULL) {
        transform->hooks->header(transform->hooks->context, &header);
    }
    return header;
}

static void count_input(struct transform *transform) {
    for (size_t part = 0; part < transform->parts.count; part++) {
        transform->result->bytes += transform->parts.items[part]->size;
        transform->result->damaged += transform->parts.items[part]->damaged_blocks;
    }
}

static int copy_all(struct transform *transform) {
    const struct transform_hooks *hooks = transform->hooks;
    if (copy_last(transform, MEMTRACE_BLOCK_PROGRAM) != 0 || copy_nodes(transform) != 0 ||
        copy_tables(transform, true) != 0 ||
        transform_events(transform->parts, &transform->file, transform->flags, hooks,
                         transform->options, transform->result, transform->error) != 0 ||
        copy_tables(transform, false) != 0 || copy_last(transform, MEMTRACE_BLOCK_THREADS) != 0) {
        return -1;
    }
    return hooks->finish != NULL ? hooks->finish(hooks->context, &transform->file, transform->error)
                                 : 0;
}

static int write_file(struct transform *transform, const char *path) {
    struct memtrace_recording_header header = header_of(transform);
    int result;
    transform->flags = header.flags;
    if (recordfile_create(&transform->file, path, &header, transform->error) != 0) {
        return -1;
    }
    transform->file.level = transform->options->level;
    result = copy_all(transform);
    if (result == 0) {
        result = recordfile_close(&transform->file, transform->error);
        transform->result->bytes_written = transform->file.size;
    }
    recordfile_release(&transform->file);
    return result;
}

int transform_recording(struct timeorder_parts parts, const char *path,
                        const struct transform_hooks *hooks,
                        const struct transform_options *options, struct transform_result *result,
                        struct error *error) {
    struct transform transform = {.parts = parts,
                                  .hooks = hooks,
                                  .options = options,
                                  .result = result,
                                  .error = error,
                                  .file = RECORDFILE_NONE};
    int status;
    *result = (struct transform_result){0};
    count_input(&transform);
    status = write_file(&transform, path);
    recording_buffer_free(&transform.buffer);
    return status;
}
