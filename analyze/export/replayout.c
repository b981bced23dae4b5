/* SPDX-License-Identifier: MIT */
/* replayout.c: export_replay(): a recording's allocations by slots. See replayfile.h. */
#include "analyze/base/job.h"
#include "analyze/export/replayfile.h"
#include "analyze/export/shared.h"
#include "memtrace/events.h"
#include "memtrace/format.h"

#define XXH_STATIC_LINKING_ONLY
#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

enum { BUFFER = 1 << 16, RECORD_MOST = 128 }; /* head and foot, too */

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
};

/* ---- Bytes ---- */

static void replaying_flush(struct replaying *replaying) {
    XXH64_update(&replaying->checksum, replaying->buffer.bytes, replaying->buffer.size);
    fwrite(replaying->buffer.bytes, 1, replaying->buffer.size, replaying->out);
    replaying->buffer.size = 0;
}

static void replaying_put(struct replaying *replaying, const struct replayfile_event *event) {
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
        replaying_flush(replaying);
    }
}

static void replaying_put_foot(struct replaying *replaying) {
    struct replayfile_foot foot = replaying->foot;
    const size_t summed = offsetof(struct replayfile_foot, checksum);
    foot.duration_ns = replaying->model->now_ns;
    memcpy(foot.magic, REPLAYFILE_MAGIC, sizeof foot.magic);
    varint_put_byte(&replaying->buffer, REPLAYFILE_END);
    varint_put_bytes(&replaying->buffer, &foot, summed);
    replaying_flush(replaying);
    foot.checksum = XXH64_digest(&replaying->checksum);
    fwrite((const char *)&foot + summed, 1, sizeof foot - summed, replaying->out);
}

/* ---- Slots ---- */

static void replaying_put_free(struct replaying *replaying, const struct pending *block) {
    const struct replayfile_event event = {.operation = REPLAYFILE_FREE,
                                           .thread = block->thread,
                                           .time_ns = block->time_ns,
                                           .slot = block->slot};
    replaying_put(replaying, &event);
    job_grow(&replaying->empty, &replaying->empty_room, replaying->empty_count,
             sizeof *replaying->empty);
    replaying->empty[replaying->empty_count++] = block->slot;
}

/* What it became was not selected. */
static void replaying_end_pending(struct replaying *replaying) {
    if (replaying->pending.is_set) {
        replaying_put_free(replaying, &replaying->pending);
        replaying->pending.is_set = false;
    }
}

/* ---- Lives ---- */

static int replaying_begin(void *context, const struct life *life) {
    struct replaying *replaying = context;
    struct replayfile_event event = {.operation = REPLAYFILE_MALLOC,
                                     .thread = life->block.thread,
                                     .time_ns = life->birth_ns,
                                     .size = life->size};
    if (life->is_inherited) {
        return 0;
    }
    if (replaying->pending.is_set && replaying->pending.order == life->old_order) {
        event.operation = REPLAYFILE_REALLOC;
        event.slot = replaying->pending.slot;
        replaying->pending.is_set = false;
    } else {
        replaying_end_pending(replaying);
        event.slot = replaying->empty_count != 0 ? replaying->empty[--replaying->empty_count]
                                                 : replaying->foot.slots++;
    }
    if (event.operation == REPLAYFILE_MALLOC && life->alignment != 0) {
        event.operation = REPLAYFILE_ALIGNED;
        event.alignment = life->alignment;
    } else if (event.operation == REPLAYFILE_MALLOC && (life->flags & MEMTRACE_ALLOC_ZEROED) != 0) {
        event.operation = REPLAYFILE_CALLOC;
    }
    replaying_put(replaying, &event);
    numbermap_set(&replaying->slots, life->birth_order, (void *)(uintptr_t)(event.slot + 1));
    return 0;
}

static int replaying_end(void *context, const struct life *life) {
    struct replaying *replaying = context;
    uintptr_t slot = (uintptr_t)numbermap_take(&replaying->slots, life->birth_order);
    if (slot != 0) {
        replaying_end_pending(replaying);
        replaying->pending =
            (struct pending){true, life->birth_order, slot - 1, life->death_thread, life->death_ns};
        if (!life->is_reallocated) {
            replaying_end_pending(replaying);
        }
    }
    return 0;
}

/* ---- The file ---- */

void export_replay(const struct export *export) {
    const struct replayfile_head head = {.magic = REPLAYFILE_MAGIC,
                                         .version = REPLAYFILE_VERSION,
                                         .byte_order = MEMTRACE_BYTE_ORDER};
    struct replaying replaying = {.out = export->out, .model = export->whole};
    const struct lives_visitor visitor = {
        .begin = replaying_begin, .end = replaying_end, .context = &replaying};
    if (export->parts.count == 0) {
        job_fail("a profile has no single allocations to replay; make a recording with `memtrace "
                 "record`");
    }
    if (!lifepass_possible(export)) {
        job_fail("filters that ask how a block ended do not go with a replay");
    }
    if (export->model->recording.sampled) {
        job_fail("a sampled recording does not have all allocations: it cannot be replayed");
    }
    replaying.buffer = (struct varint_writer){.bytes = job_array(BUFFER + RECORD_MOST, 1),
                                              .capacity = BUFFER + RECORD_MOST};
    XXH64_reset(&replaying.checksum, 0);
    varint_put_bytes(&replaying.buffer, &head, sizeof head);
    lifepass_visit(export, &visitor);
    replaying_end_pending(&replaying);
    replaying_put_foot(&replaying);
}
