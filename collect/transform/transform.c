/* SPDX-License-Identifier: MIT */
/* transform.c: see transform.h. */
#include "collect/transform/transform.h"

#include "analyze/base/job.h"
#include "analyze/read/block.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << MEMTRACE_CONTEXT_BITS };

struct transform {
    const struct timeorder_parts *inputs;
    size_t count;
    const char *path;
    const struct transform_step *step;
    const struct transform_options *options;
    struct transform_result *result;
    struct recordwriter *writer;
    struct recording_buffer buffer;
    struct memtrace_node *nodes;       /* of the part whose nodes are copied */
    struct timeorder order;            /* of the input whose events are copied */
    struct event_decoder decoder;      /* of the block */
    struct memtrace_block_header span; /* of the events that the writer gathers: from where to where
                                          of a stream, numbered as in the input */
    bool has_span;
    uint64_t total; /* events, for progress */
};

/* What was written of it stays: from here on the new file says that something is missing. */
static void transform_note_damage(struct transform *transform) {
    transform->result->damaged++;
    transform->writer->is_incomplete = true;
}

/* ---- Tables ---- */

/* One block as it is, or as the step makes it. */
static void transform_table(struct transform *transform, const struct recording *recording,
                            size_t i) {
    const struct transform_step *step = transform->step;
    const struct memtrace_block_header *from = &recording->blocks[i].block;
    struct memtrace_block_header block = {
        .kind = from->kind, .first_ns = from->first_ns, .last_ns = from->last_ns};
    struct transform_payload payload = {.items = from->items};
    if (!recording_take(recording, i, &transform->buffer)) {
        transform_note_damage(transform);
        return;
    }
    payload.size = transform->buffer.size;
    payload.bytes = job_array(payload.size + 1, 1);
    memcpy(payload.bytes, transform->buffer.bytes, payload.size);
    if (step->table == NULL ||
        step->table(step->context, (enum memtrace_block_kind)from->kind, &payload)) {
        block.items = payload.items;
        recordwriter_block(transform->writer, block, payload.bytes, payload.size);
    }
    job_release(payload.bytes);
}

/* Of those blocks of which only the last one counts. */
static void transform_last_table(struct transform *transform, const struct timeorder_parts *parts,
                                 enum memtrace_block_kind kind) {
    for (size_t part = parts->count; part-- > 0;) {
        const struct recording *recording = parts->items[part];
        for (size_t i = recording->block_count; i-- > 0;) {
            if (recording->blocks[i].block.kind == kind) {
                transform_table(transform, recording, i);
                return;
            }
        }
    }
}

static bool transform_is_table(uint16_t kind, bool before_events) {
    switch (kind) {
    case MEMTRACE_BLOCK_PROGRAM: /* the last one, first of all */
    case MEMTRACE_BLOCK_NODES:   /* all at once */
    case MEMTRACE_BLOCK_EVENTS:
    case MEMTRACE_BLOCK_THREADS: /* the last one, last of all */
    case MEMTRACE_BLOCK_INDEX:
    case MEMTRACE_BLOCK_SLICES: /* they are of the blocks that were there */
        return false;
    case MEMTRACE_BLOCK_MODULES:
    case MEMTRACE_BLOCK_POOLS:
        return before_events;
    default:
        return !before_events;
    }
}

/* Each part of a recording has all program files. */
static size_t transform_part_with_files(const struct timeorder_parts *parts) {
    for (size_t part = parts->count; part-- > 1;) {
        const struct recording *recording = parts->items[part];
        for (size_t i = recording->block_count; i-- > 0;) {
            if (recording->blocks[i].block.kind == MEMTRACE_BLOCK_FILE) {
                return part;
            }
        }
    }
    return 0;
}

static void transform_tables(struct transform *transform, const struct timeorder_parts *parts,
                             bool before_events) {
    size_t files = transform_part_with_files(parts);
    for (size_t part = 0; part < parts->count; part++) {
        const struct recording *recording = parts->items[part];
        for (size_t i = 0; i < recording->block_count; i++) {
            uint16_t kind = recording->blocks[i].block.kind;
            if (transform_is_table(kind, before_events) &&
                (kind != MEMTRACE_BLOCK_FILE || part == files)) {
                transform_table(transform, recording, i);
            }
        }
    }
}

/* ---- Nodes ---- */

/* Each part repeats the nodes that it needs, under the same ids. Parents first, as their ids are.
 */
static void transform_nodes(struct transform *transform, const struct timeorder_parts *parts) {
    struct memtrace_node *all = NULL;
    size_t all_count = 0;
    for (size_t part = 0; part < parts->count; part++) {
        struct error error;
        size_t count = 0;
        job_check(recording_nodes(parts->items[part], &transform->nodes, &count, &error), &error);
        count = count < MOST_NODES ? count : MOST_NODES;
        if (count > all_count) {
            struct memtrace_node *grown = job_array(count, sizeof *grown);
            if (all_count != 0) {
                memcpy(grown, all, all_count * sizeof *all);
            }
            job_release(all);
            all = grown;
            all_count = count;
        }
        for (size_t id = 0; id < count; id++) {
            if (all[id].frame == 0) {
                all[id] = transform->nodes[id];
            }
        }
        free(transform->nodes);
        transform->nodes = NULL;
    }
    for (size_t id = 1; id < all_count; id++) {
        const struct memtrace_recording_node node = {all[id].frame, all[id].parent, (uint32_t)id};
        if (node.frame != 0) {
            recordwriter_node(transform->writer, &node);
        }
    }
    job_release(all);
}

/* ---- Events ---- */

/* Sees to it that the writer gathers events of this block's stream: in the block that it is at, if
 * these may stand behind those, else in a new one. */
static void transform_begin_block(struct transform *transform,
                                  const struct memtrace_block_header *block) {
    const struct transform_step *step = transform->step;
    const struct memtrace_block_header *span = &transform->span;
    struct memtrace_block_header named = *block;
    if (transform->has_span && span->stream == block->stream && span->thread == block->thread &&
        block_goes_on(span, block) &&
        recordwriter_has_room(transform->writer, block->items, block->raw_size)) {
        return;
    }
    transform->span = *block;
    transform->has_span = true;
    if (step->stream != NULL) {
        step->stream(step->context, &named);
    }
    recordwriter_begin_events(transform->writer, &named);
}

/* Behind what can be read of a damaged block the stream has a gap. */
static void transform_events(struct transform *transform, const struct timeorder_parts *parts,
                             struct timeorder_block place) {
    const struct recording *recording = parts->items[place.part];
    const struct memtrace_block_header *block = &recording->blocks[place.block].block;
    const struct transform_step *step = transform->step;
    struct event_decoder *decoder = &transform->decoder;
    struct event event;
    int found;
    if (!recording_take(recording, place.block, &transform->buffer)) {
        transform_note_damage(transform);
        return; /* what follows does not join: the gap is seen */
    }
    transform_begin_block(transform, block);
    found = event_decoder_start(decoder, block, transform->buffer.bytes, transform->buffer.size);
    found = found == 0 ? event_decoder_next(decoder, &event) : found;
    while (found == 1) {
        if (step->event == NULL || step->event(step->context, block, &event)) {
            recordwriter_event(transform->writer, &event);
        }
        transform->result->events++;
        found = event_decoder_next(decoder, &event);
    }
    event_decoder_end(decoder);
    if (decoder->no_memory) {
        job_fail_memory();
    }
    if (found < 0) {
        transform_note_damage(transform);
    }
    transform->span.end_sequence = found == 0 ? block->end_sequence : block->first_sequence;
    transform->span.end_word = found == 0 ? block->end_word : block->first_word;
    transform->writer->events.end_sequence = transform->span.end_sequence;
    transform->writer->events.end_word = transform->span.end_word;
}

static void transform_show(const struct transform *transform, uint64_t done) {
    if (transform->options->progress != NULL) {
        transform->options->progress(transform->options->context, done, transform->total);
    }
}

/* The streams of one input, one after the other. */
static void transform_streams(struct transform *transform, const struct timeorder_parts *parts) {
    struct timeorder *order = &transform->order;
    if (timeorder_start(order, *parts) != 0) {
        job_fail_memory();
    }
    for (size_t i = 0; i < order->block_count; i++) {
        transform_events(transform, parts, order->blocks[i]);
        transform_show(transform, transform->result->events);
    }
    timeorder_end(order);
    transform->has_span = false; /* the next input's streams are others */
}

/* ---- The file ---- */

static void transform_count_input(struct transform *transform) {
    struct error *incomplete = &transform->result->incomplete;
    for (size_t i = 0; i < transform->count; i++) {
        for (size_t part = 0; part < transform->inputs[i].count; part++) {
            const struct recording *recording = transform->inputs[i].items[part];
            const char *why = recording->damage[0] != '\0'         ? recording->damage
                              : recording_is_unfinished(recording) ? "its writer did not finish it"
                                                                   : NULL;
            transform->result->bytes += recording->size;
            transform->result->damaged += recording->damaged_blocks;
            if (why != NULL && incomplete->message[0] == '\0') {
                error_set(incomplete, "%s: %s", recording->path, why);
            }
            for (size_t at = 0; at < recording->block_count; at++) {
                const struct memtrace_block_header *block = &recording->blocks[at].block;
                transform->total += block->kind == MEMTRACE_BLOCK_EVENTS ? block->items : 0;
            }
        }
    }
}

static void transform_begin_input(const struct transform *transform, size_t i) {
    if (transform->step->input != NULL) {
        transform->step->input(transform->step->context, i);
    }
}

static void transform_write(void *what) {
    struct transform *transform = what;
    const struct transform_step *step = transform->step;
    const struct timeorder_parts *inputs = transform->inputs;
    struct memtrace_recording_header header = inputs[0].items[0]->header;
    struct recordwriter *writer;
    transform_count_input(transform);
    header.header_size = sizeof header;
    if (step->header != NULL) {
        step->header(step->context, &header);
    }
    header.flags |= transform->options->add_flags;
    writer = recordwriter_open(transform->path, &header, transform->options->level);
    writer->is_incomplete = transform->result->incomplete.message[0] != '\0';
    transform->writer = writer;
    if (step->begin != NULL) {
        step->begin(step->context, writer);
    } else {
        transform_last_table(transform, &inputs[0], MEMTRACE_BLOCK_PROGRAM);
        transform_nodes(transform, &inputs[0]);
        transform_tables(transform, &inputs[0], true);
    }
    for (size_t i = 0; i < transform->count; i++) {
        transform_begin_input(transform, i);
        transform_streams(transform, &inputs[i]);
    }
    transform_show(transform, transform->total);
    for (size_t i = 0; i < transform->count; i++) {
        transform_begin_input(transform, i);
        transform_tables(transform, &inputs[i], false);
        if (step->begin == NULL) {
            transform_last_table(transform, &inputs[i], MEMTRACE_BLOCK_THREADS);
        }
    }
    if (step->finish != NULL) {
        step->finish(step->context, writer);
    }
    recordwriter_close(writer);
    transform->result->kept = writer->event_count;
    transform->result->bytes_written = writer->file.size;
}

int transform_run(const struct timeorder_parts *inputs, size_t count, const char *path,
                  const struct transform_step *step, const struct transform_options *options,
                  struct transform_result *result, struct error *error) {
    struct transform transform = {.inputs = inputs,
                                  .count = count,
                                  .path = path,
                                  .step = step,
                                  .options = options,
                                  .result = result};
    int status;
    *result = (struct transform_result){0};
    status = job_run(transform_write, &transform, NULL, error);
    free(transform.nodes);
    event_decoder_end(&transform.decoder);
    timeorder_end(&transform.order);
    recording_buffer_free(&transform.buffer);
    return status;
}
