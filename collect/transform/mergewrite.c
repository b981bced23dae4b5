/* SPDX-License-Identifier: MIT */
/* mergewrite.c: the file of several processes. See mergewrite.h. */
#include "collect/transform/mergewrite.h"

#include "analyze/read/framenames.h"
#include "analyze/read/nodecode.h"
#include "collect/transform/mergesamples.h"
#include "collect/transform/nameblocks.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_NODES = 1 << 16,
    PROCESS_SHIFT = 48, /* mappings of two processes may have the same address: that of process n
                           is n << 48 higher here, where none can be */
};

struct writing {
    struct mergewrite *all;
    struct recordfile file;
    uint32_t flags; /* of the file */
    const struct transform_options *options;
    struct transform_result *result;
    struct error *error;
    struct mergeprocess *process; /* whose events are written */
    uint32_t stream_base;         /* added to its streams */
    uint32_t stream_most;         /* of those written so far */
};

static int no_memory(const struct writing *writing) {
    return error_set(writing->error, "out of memory while merging");
}

static int append(struct writing *writing, enum memtrace_block_kind kind, size_t items,
                  const void *payload, size_t size) {
    struct memtrace_block_header block = {.kind = kind, .items = (uint32_t)items};
    return items != 0 ? recordfile_append(&writing->file, &block, payload, size, writing->error)
                      : 0;
}

/* ---- The program ---- */

static const struct memtrace_header *program_of(const struct mergeprocess *process) {
    return &process->parts.items[process->parts.count - 1]->program;
}

/* The first file's program, with the sums of all. */
static int write_program(struct writing *writing) {
    const struct mergewrite *all = writing->all;
    struct memtrace_header header = *program_of(&all->processes[0]);
    uint64_t earlier_ns = header.start_realtime_ns - all->start_ns;
    uint64_t end_ns = 0;
    header.start_realtime_ns = all->start_ns;
    header.inherited_blocks = header.inherited_bytes = 0; /* they are allocations like others */
    header.peak_resident_bytes = header.maximum_ns = 0;   /* not known of all */
    header.start_monotonic_ns -= earlier_ns;
    for (size_t i = 0; i < all->count; i++) {
        const struct memtrace_header *other = program_of(&all->processes[i]);
        end_ns = all->processes[i].end_ns > end_ns ? all->processes[i].end_ns : end_ns;
        if (header.malloc_by.place == MEMTRACE_MALLOC_COUNTED) {
            header.malloc_by = other->malloc_by;
        }
        header.peak_error_bytes += i != 0 ? other->peak_error_bytes : 0;
        for (unsigned kind = 0; i != 0 && kind < MEMTRACE_LOSS_KINDS; kind++) {
            *memtrace_lost(&header, kind) += *memtrace_lost(other, kind);
        }
    }
    header.end_monotonic_ns = header.end_monotonic_ns != 0 ? header.start_monotonic_ns + end_ns : 0;
    header.clock_ns = end_ns;
    header.thread_count = all->map->thread_ids + MEMTRACE_THREAD_OTHERS + 1;
    header.module_count = (uint32_t)all->map->module_count;
    header.pool_count = (uint32_t)all->map->pool_count;
    header.context_count = all->map->node_count;
    return append(writing, MEMTRACE_BLOCK_PROGRAM, 1, &header, sizeof header);
}

/* ---- Tables that the map has ---- */

static int write_batch(struct writing *writing, const struct memtrace_recording_node *nodes,
                       size_t count) {
    struct varint_writer payload = {0};
    int result = nodecode_pack(nodes, count, &payload) == 0
                     ? append(writing, MEMTRACE_BLOCK_NODES, count, payload.bytes, payload.size)
                     : no_memory(writing);
    free(payload.bytes);
    return result;
}

/* Not all ids are in use: see mergetables.c. */
static int write_nodes(struct writing *writing) {
    const struct mergetables *map = writing->all->map;
    struct memtrace_recording_node *batch = malloc(BLOCK_NODES * sizeof *batch);
    int result = batch != NULL ? 0 : no_memory(writing);
    size_t filled = 0;
    for (size_t i = 0; i < map->node_count && result == 0; i++) {
        if (map->nodes[i].frame != 0) {
            batch[filled++] = map->nodes[i];
        }
        if (filled == BLOCK_NODES || (i + 1 == map->node_count && filled != 0)) {
            result = write_batch(writing, batch, filled);
            filled = 0;
        }
    }
    free(batch);
    return result;
}

static int write_places(struct writing *writing) {
    const struct mergetables *map = writing->all->map;
    size_t modules = map->module_count > 1 ? map->module_count - 1 : 0;
    return append(writing, MEMTRACE_BLOCK_MODULES, modules, map->modules + 1,
                  modules * sizeof *map->modules) == 0
               ? append(writing, MEMTRACE_BLOCK_POOLS, map->pool_count, map->pools,
                        map->pool_count * sizeof *map->pools)
               : -1;
}

static int write_threads(struct writing *writing) {
    const struct mergetables *map = writing->all->map;
    return append(writing, MEMTRACE_BLOCK_THREADS, map->thread_count, map->threads,
                  map->thread_count * sizeof *map->threads);
}

/* ---- Events ---- */

static void map_stream(void *context, struct memtrace_block_header *block) {
    struct writing *writing = context;
    block->stream += writing->stream_base;
    block->thread = mergesource_thread(&writing->process->source, writing->all->map, block->thread);
    writing->stream_most =
        block->stream > writing->stream_most ? block->stream : writing->stream_most;
}

static bool map_block(struct writing *writing, struct event_block *block) {
    if (block->number != 0) {
        block->thread =
            mergesource_thread(&writing->process->source, writing->all->map, block->thread);
    }
    return block->number == 0 || block->thread != 0;
}

/* An event of a thread that found no place is left out. */
static int map_event(void *context, const struct memtrace_block_header *stream,
                     struct event *event) {
    struct writing *writing = context;
    const struct mergesource *source = &writing->process->source;
    uint64_t space = (uint64_t)writing->process->number << PROCESS_SHIFT;
    (void)stream;
    event->context = mergesource_context(source, event->context);
    event->time_ns += source->shift_ns;
    if (event->kind == EVENT_MAP) {
        event->address += space;
        event->old_address += event->old_address != 0 ? space : 0;
    }
    return map_block(writing, &event->block) && map_block(writing, &event->old);
}

static int write_events(struct writing *writing) {
    struct transform_hooks hooks = {.stream = map_stream, .event = map_event, .context = writing};
    for (size_t i = 0; i < writing->all->count; i++) {
        writing->process = &writing->all->processes[i];
        writing->stream_base = writing->stream_most;
        if (transform_events(writing->process->parts, &writing->file, writing->flags, &hooks,
                             writing->options, writing->result, writing->error) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- Tables that each process has ---- */

typedef int (*block_visitor)(struct writing *writing, const struct memtrace_block_header *block,
                             struct recording_buffer *buffer);

/* Calls visit() for all whole blocks of a kind of all processes; writing->process is whose. */
static int each_block(struct writing *writing, enum memtrace_block_kind kind, block_visitor visit) {
    struct recording_buffer buffer = {0};
    int result = 0;
    for (size_t i = 0; i < writing->all->count; i++) {
        writing->process = &writing->all->processes[i];
        for (size_t part = 0; part < writing->process->parts.count; part++) {
            const struct recording *recording = writing->process->parts.items[part];
            for (size_t at = 0; at < recording->block_count && result == 0; at++) {
                if (recording->blocks[at].block.kind == kind &&
                    recording_payload(recording, at, &buffer, NULL) == 0) {
                    result = visit(writing, &recording->blocks[at].block, &buffer);
                }
            }
        }
    }
    recording_buffer_free(&buffer);
    return result;
}

static int copy_culled(struct writing *writing, const struct memtrace_block_header *block,
                       struct recording_buffer *buffer) {
    struct mergesource *source = &writing->process->source;
    struct memtrace_culled *culled = (struct memtrace_culled *)(void *)buffer->bytes;
    size_t count = buffer->size / sizeof *culled;
    if (count < block->items) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        culled[i].context = mergesource_context(source, culled[i].context);
        culled[i].thread = mergesource_thread(source, writing->all->map, culled[i].thread);
    }
    return append(writing, MEMTRACE_BLOCK_CULLED, count, culled, count * sizeof *culled);
}

/* Whether an earlier process has this file, too. */
static bool has_earlier(const struct writing *writing, const struct memtrace_embedded *file) {
    for (const struct mergeprocess *process = writing->all->processes; process < writing->process;
         process++) {
        for (size_t i = 0; i < process->source.module_count; i++) {
            uint32_t id = process->source.modules[i];
            const struct memtrace_module *module = &writing->all->map->modules[id];
            if (id != 0 && module->build_id_size == file->build_id_size &&
                memcmp(module->build_id, file->build_id, file->build_id_size) == 0) {
                return process->has_files;
            }
        }
    }
    return false;
}

static int copy_file(struct writing *writing, const struct memtrace_block_header *block,
                     struct recording_buffer *buffer) {
    const struct mergesource *source = &writing->process->source;
    struct memtrace_embedded head;
    (void)block;
    if (buffer->size < sizeof head) {
        return 0;
    }
    memcpy(&head, buffer->bytes, sizeof head);
    writing->process->has_files = true;
    if (head.build_id_size > sizeof head.build_id || has_earlier(writing, &head)) {
        return 0;
    }
    head.module = head.module < source->module_count ? source->modules[head.module] : 0;
    memcpy(buffer->bytes, &head, sizeof head);
    return append(writing, MEMTRACE_BLOCK_FILE, 1, buffer->bytes, buffer->size);
}

/* What one process's frames are called. */
static int copy_names(struct writing *writing, const struct mergeprocess *process,
                      struct nameblocks *blocks) {
    struct framenames names;
    int result =
        framenames_read(&names, process->parts.items, process->parts.count, writing->error);
    for (size_t i = 0; result == 0 && i < names.count;) {
        uint64_t frame = names.items[i].frame;
        size_t first = i;
        for (; i < names.count && names.items[i].frame == frame; i++) {
            names.items[i].frame = mergesource_frame(&process->source, frame);
        }
        result = nameblocks_add(blocks, names.items + first, i - first, writing->error);
    }
    framenames_free(&names);
    return result;
}

static int write_names(struct writing *writing) {
    struct nameblocks *blocks = nameblocks_new(&writing->file);
    int result = blocks != NULL ? 0 : no_memory(writing);
    for (size_t i = 0; i < writing->all->count && result == 0; i++) {
        result = copy_names(writing, &writing->all->processes[i], blocks);
    }
    if (blocks != NULL && nameblocks_close(blocks, result == 0, writing->error) != 0) {
        result = -1;
    }
    return result;
}

/* ---- The file ---- */

/* What holds for all of them. */
static struct memtrace_recording_header header_of(const struct writing *writing) {
    const struct mergewrite *all = writing->all;
    const uint32_t for_all = MEMTRACE_RECORDING_PRECISE | MEMTRACE_RECORDING_FREE_STACKS;
    struct memtrace_recording_header header = all->processes[0].parts.items[0]->header;
    uint32_t common = for_all;
    uint32_t any = 0;
    for (size_t i = 0; i < all->count; i++) {
        common &= all->processes[i].parts.items[0]->header.flags;
        any |= all->processes[i].parts.items[0]->header.flags;
    }
    header.header_size = sizeof header;
    header.part = 0;
    header.flags = common | (any & ~for_all) | writing->options->add_flags;
    return header;
}

static int write_all(struct writing *writing) {
    return write_program(writing) == 0 && write_nodes(writing) == 0 && write_places(writing) == 0 &&
                   write_events(writing) == 0 &&
                   mergesamples_write(writing->all, &writing->file, writing->error) == 0 &&
                   each_block(writing, MEMTRACE_BLOCK_CULLED, copy_culled) == 0 &&
                   each_block(writing, MEMTRACE_BLOCK_FILE, copy_file) == 0 &&
                   write_names(writing) == 0
               ? write_threads(writing)
               : -1;
}

int mergewrite_file(struct mergewrite *all, const char *path,
                    const struct transform_options *options, struct transform_result *result,
                    struct error *error) {
    struct writing writing = {
        .all = all, .file = RECORDFILE_NONE, .options = options, .result = result, .error = error};
    struct memtrace_recording_header header = header_of(&writing);
    int status;
    if (recordfile_create(&writing.file, path, &header, error) != 0) {
        return -1;
    }
    writing.file.level = options->level;
    writing.flags = header.flags;
    status = write_all(&writing);
    if (status == 0) {
        status = recordfile_close(&writing.file, error);
        result->bytes_written = writing.file.size;
    }
    recordfile_release(&writing.file);
    return status;
}
