/* SPDX-License-Identifier: MIT */
/* replayout.c: export_replay(): a recording's allocations by slots. See replayfile.h. */
#include "analyze/export/replayfile.h"
#include "analyze/export/shared.h"
#include "memtrace/events.h"

#include "analyze/base/array.h"
#include "memtrace/format.h"

#define XXH_STATIC_LINKING_ONLY
#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { BUFFER = 1 << 16 };

/* A block that a reallocation ended: what it became comes next, if it is selected. */
struct pending {
    bool is_set;
    uint64_t order;
    uint64_t slot;
    uint32_t thread;
    uint64_t time_ns;
};

struct replaying {
    FILE *out;
    const struct model *model;
    struct varint_writer buffer;
    XXH64_state_t checksum;
    struct replayfile_foot foot;
    struct numbermap slots; /* by the block's place in the order: its slot + 1 */
    uint64_t *empty;        /* slots below foot.slots that hold nothing */
    size_t empty_count;
    size_t empty_room;
    struct pending pending;
    uint32_t thread;
    uint64_t time_ns;
    bool out_of_memory;
};

/* ---- Bytes ---- */

static void flush(struct replaying *replaying) {
    XXH64_update(&replaying->checksum, replaying->buffer.bytes, replaying->buffer.size);
    fwrite(replaying->buffer.bytes, 1, replaying->buffer.size, replaying->out);
    replaying->buffer.size = 0;
}

static void put(struct replaying *replaying, const struct replayfile_event *event) {
    struct varint_writer *buffer = &replaying->buffer;
    bool is_thread = event->thread != replaying->thread;
    uint64_t time_ns = event->time_ns > replaying->time_ns ? event->time_ns : replaying->time_ns;
    bool is_time = time_ns != replaying->time_ns;
    bool is_free = event->operation == REPLAYFILE_FREE;
    varint_put_byte(buffer, (unsigned char)(event->operation | (is_thread ? REPLAYFILE_THREAD : 0) |
                                            (is_time ? REPLAYFILE_TIME : 0)));
    if (is_thread) {
        varint_put(buffer, event->thread);
    }
    if (is_time) {
        varint_put(buffer, time_ns - replaying->time_ns);
    }
    varint_put(buffer, event->slot);
    if (!is_free) {
        varint_put(buffer, event->size);
    }
    if (event->operation == REPLAYFILE_ALIGNED) {
        varint_put_byte(buffer, (unsigned char)event->alignment);
    }
    replaying->thread = event->thread;
    replaying->time_ns = time_ns;
    replaying->foot.events++;
    replaying->foot.allocations += !is_free;
    replaying->foot.frees += is_free || event->operation == REPLAYFILE_REALLOC;
    replaying->foot.total_bytes += event->size;
    if (buffer->size >= BUFFER) {
        flush(replaying);
    }
}

static void put_head(struct replaying *replaying) {
    struct replayfile_head head = {.version = REPLAYFILE_VERSION,
                                   .byte_order = MEMTRACE_BYTE_ORDER};
    memcpy(head.magic, REPLAYFILE_MAGIC, sizeof head.magic);
    varint_put_bytes(&replaying->buffer, &head, sizeof head);
}

static void put_foot(struct replaying *replaying) {
    struct replayfile_foot foot = replaying->foot;
    const size_t summed = offsetof(struct replayfile_foot, checksum);
    foot.duration_ns = replaying->model->now_ns;
    memcpy(foot.magic, REPLAYFILE_MAGIC, sizeof foot.magic);
    varint_put_byte(&replaying->buffer, REPLAYFILE_END);
    varint_put_bytes(&replaying->buffer, &foot, summed);
    flush(replaying);
    foot.checksum = XXH64_digest(&replaying->checksum);
    fwrite((const char *)&foot + summed, 1, sizeof foot - summed, replaying->out);
}

/* ---- Slots ---- */

static uint64_t take_slot(struct replaying *replaying) {
    return replaying->empty_count != 0 ? replaying->empty[--replaying->empty_count]
                                       : replaying->foot.slots++;
}

static void give_slot(struct replaying *replaying, uint64_t slot) {
    if (array_grow(&replaying->empty, &replaying->empty_room, replaying->empty_count,
                   sizeof *replaying->empty) != 0) {
        replaying->out_of_memory = true;
        return;
    }
    replaying->empty[replaying->empty_count++] = slot;
}

static void put_free(struct replaying *replaying, const struct pending *block) {
    const struct replayfile_event event = {.operation = REPLAYFILE_FREE,
                                           .thread = block->thread,
                                           .time_ns = block->time_ns,
                                           .slot = block->slot};
    put(replaying, &event);
    give_slot(replaying, block->slot);
}

/* What it became was not selected. */
static void end_pending(struct replaying *replaying) {
    if (replaying->pending.is_set) {
        put_free(replaying, &replaying->pending);
        replaying->pending.is_set = false;
    }
}

/* ---- Lives ---- */

static bool is_wanted(const struct replaying *replaying, const struct life *life) {
    return !life->is_inherited && lifepass_is_heap(replaying->model, life->context);
}

static int begin(void *context, const struct life *life) {
    struct replaying *replaying = context;
    struct replayfile_event event = {.operation = REPLAYFILE_MALLOC,
                                     .thread = life->block.thread,
                                     .time_ns = life->birth_ns,
                                     .size = life->size};
    if (!is_wanted(replaying, life)) {
        return 0;
    }
    if (replaying->pending.is_set && replaying->pending.order == life->old_order) {
        event.operation = REPLAYFILE_REALLOC;
        event.slot = replaying->pending.slot;
        replaying->pending.is_set = false;
    } else {
        end_pending(replaying);
        event.slot = take_slot(replaying);
    }
    if (event.operation == REPLAYFILE_MALLOC && life->alignment != 0) {
        event.operation = REPLAYFILE_ALIGNED;
        event.alignment = life->alignment;
    } else if (event.operation == REPLAYFILE_MALLOC && (life->flags & MEMTRACE_ALLOC_ZEROED) != 0) {
        event.operation = REPLAYFILE_CALLOC;
    }
    put(replaying, &event);
    replaying->out_of_memory |= numbermap_put(&replaying->slots, life->birth_order,
                                              (void *)(uintptr_t)(event.slot + 1)) != 0;
    return replaying->out_of_memory;
}

static int end(void *context, const struct life *life) {
    struct replaying *replaying = context;
    uintptr_t slot = 0;
    if (life->death_ns != LIFE_ALIVE && is_wanted(replaying, life)) {
        slot = (uintptr_t)numbermap_take(&replaying->slots, life->birth_order);
    }
    if (slot != 0) {
        end_pending(replaying);
        replaying->pending =
            (struct pending){true, life->birth_order, slot - 1, life->death_thread, life->death_ns};
        if (!life->is_reallocated) {
            end_pending(replaying);
        }
    }
    return replaying->out_of_memory;
}

/* ---- The file ---- */

static int refuse(const struct export *export, struct error *error) {
    if (export->parts.count == 0) {
        return error_set(error, "a profile has no single allocations to replay; make a recording "
                                "with `memtrace record`");
    }
    if (!lifepass_possible(export)) {
        return error_set(error, "filters that ask how a block ended do not go with a replay");
    }
    return export->model->recording.sampled
               ? error_set(
                     error,
                     "a sampled recording does not have all allocations: it cannot be replayed")
               : 0;
}

int export_replay(const struct export *export, struct error *error) {
    struct replaying replaying = {.out = export->out, .model = export->whole};
    const struct lives_visitor visitor = {.begin = begin, .end = end, .context = &replaying};
    int result = refuse(export, error);
    if (result != 0) {
        return result;
    }
    XXH64_reset(&replaying.checksum, 0);
    put_head(&replaying);
    result = lifepass_visit(export, &visitor, error);
    if (result == 0) {
        end_pending(&replaying);
        put_foot(&replaying);
    }
    if (replaying.out_of_memory || replaying.buffer.failed) {
        result = error_set(error, "out of memory");
    }
    numbermap_free(&replaying.slots);
    free(replaying.empty);
    free(replaying.buffer.bytes);
    return result == 0 ? 0 : -1;
}
