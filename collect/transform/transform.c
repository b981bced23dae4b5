/* SPDX-License-Identifier: MIT */
/* transform.c: see transform.h. */
#include "collect/transform/transform.h"

#include "analyze/read/block.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << MEMTRACE_CONTEXT_BITS };

struct transform {
    const struct timeorder_parts *inputs;
    size_t count;
    const struct transform_step *step;
    const struct transform_options *options;
    struct transform_result *result;
    struct error *error;
    struct recordwriter writer;
    struct recording_buffer buffer;
    struct memtrace_block_header span; /* of the events that the writer gathers: from where to where
                                          of a stream, numbered as in the input */
    bool has_span;
    uint64_t total; /* events, for progress */
};

static int no_memory(struct transform *transform) {
    return error_set(transform->error, "out of memory while rewriting %s",
                     transform->inputs[0].items[0]->path);
}

/* What was written of it stays: from here on the new file says that something is missing. */
static void note_damaged_block(struct transform *transform) {
    transform->result->damaged++;
    transform->writer.is_incomplete = true;
}

/* ---- Tables ---- */

/* One block as it is, or as the step makes it. */
static int copy_table(struct transform *transform, const struct recording *recording, size_t i) {
    const struct transform_step *step = transform->step;
    const struct memtrace_block_header *from = &recording->blocks[i].block;
    struct transform_payload payload = {.items = from->items};
    int result = 1;
    if (recording_payload(recording, i, &transform->buffer, NULL) != 0) {
        note_damaged_block(transform);
        return 0;
    }
    payload.size = transform->buffer.size;
    payload.bytes = malloc(payload.size + 1);
    if (payload.bytes == NULL) {
        return no_memory(transform);
    }
    memcpy(payload.bytes, transform->buffer.bytes, payload.size);
    if (step->table != NULL) {
        result = step->table(step->context, (enum memtrace_block_kind)from->kind, &payload);
    }
    if (result == 1) {
        struct memtrace_block_header block = {.kind = from->kind,
                                              .first_ns = from->first_ns,
                                              .last_ns = from->last_ns,
                                              .items = payload.items};
        result = recordwriter_block(&transform->writer, block, payload.bytes, payload.size);
    } else if (result < 0) {
        result = no_memory(transform);
    }
    free(payload.bytes);
    return result;
}

/* Of those blocks of which only the last one counts. */
static int copy_last(struct transform *transform, const struct timeorder_parts *parts,
                     enum memtrace_block_kind kind) {
    for (size_t part = parts->count; part-- > 0;) {
        const struct recording *recording = parts->items[part];
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
static size_t part_with_files(const struct timeorder_parts *parts) {
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

static int copy_tables(struct transform *transform, const struct timeorder_parts *parts,
                       bool before_events) {
    size_t files = part_with_files(parts);
    for (size_t part = 0; part < parts->count; part++) {
        const struct recording *recording = parts->items[part];
        for (size_t i = 0; i < recording->block_count; i++) {
            uint16_t kind = recording->blocks[i].block.kind;
            if (is_copied(kind, before_events) && (kind != MEMTRACE_BLOCK_FILE || part == files) &&
                copy_table(transform, recording, i) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* ---- Nodes ---- */

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

/* Parents first, as their ids are. */
static int copy_nodes(struct transform *transform, const struct timeorder_parts *parts) {
    struct memtrace_node *all = NULL;
    size_t all_count = 0;
    int result = 0;
    for (size_t part = 0; part < parts->count && result == 0; part++) {
        struct memtrace_node *nodes = NULL;
        size_t count = 0;
        result = recording_nodes(parts->items[part], &nodes, &count, transform->error);
        if (result == 0 && add_nodes(&all, &all_count, nodes, count) != 0) {
            result = no_memory(transform);
        }
        free(nodes);
    }
    for (size_t id = 1; id < all_count && result == 0; id++) {
        const struct memtrace_recording_node node = {all[id].frame, all[id].parent, (uint32_t)id};
        result = node.frame != 0 ? recordwriter_node(&transform->writer, &node) : 0;
    }
    free(all);
    return result;
}

/* ---- Events ---- */

/* Whether this block's events may stand in one block with those that the writer gathers. */
static bool joins(const struct transform *transform, const struct memtrace_block_header *block) {
    const struct memtrace_block_header *span = &transform->span;
    return transform->has_span && span->stream == block->stream && span->thread == block->thread &&
           block_goes_on(span, block) &&
           recordwriter_has_room(&transform->writer, block->items, block->raw_size);
}

/* Begins a block of the new file. 0 or -1. */
static int begin_block(struct transform *transform, const struct memtrace_block_header *block) {
    const struct transform_step *step = transform->step;
    struct memtrace_block_header named = *block;
    transform->span = *block;
    transform->has_span = true;
    if (step->stream != NULL) {
        step->stream(step->context, &named);
    }
    return recordwriter_begin_events(&transform->writer, &named);
}

static int copy_event(struct transform *transform, const struct memtrace_block_header *block,
                      struct event *event) {
    const struct transform_step *step = transform->step;
    int result = step->event != NULL ? step->event(step->context, block, event) : 1;
    transform->result->events++;
    return result == 1   ? recordwriter_event(&transform->writer, event)
           : result == 0 ? 0
                         : no_memory(transform);
}

/* Behind what can be read of a damaged block the stream has a gap. */
static int copy_events(struct transform *transform, const struct timeorder_parts *parts,
                       struct timeorder_block place) {
    const struct recording *recording = parts->items[place.part];
    const struct memtrace_block_header *block = &recording->blocks[place.block].block;
    struct event_decoder decoder = {0};
    struct event event;
    int found;
    int result = 0;
    if (recording_payload(recording, place.block, &transform->buffer, NULL) != 0) {
        note_damaged_block(transform);
        return 0; /* what follows does not join: the gap is seen */
    }
    if (!joins(transform, block) && begin_block(transform, block) != 0) {
        return -1;
    }
    found = event_decoder_start(&decoder, block, transform->buffer.bytes, transform->buffer.size);
    found = found == 0 ? event_decoder_next(&decoder, &event) : found;
    while (found == 1 && (result = copy_event(transform, block, &event)) == 0) {
        found = event_decoder_next(&decoder, &event);
    }
    event_decoder_end(&decoder);
    if (found < 0) {
        note_damaged_block(transform);
    }
    transform->span.end_sequence = found == 0 ? block->end_sequence : block->first_sequence;
    transform->span.end_word = found == 0 ? block->end_word : block->first_word;
    transform->writer.events.end_sequence = transform->span.end_sequence;
    transform->writer.events.end_word = transform->span.end_word;
    return result;
}

static void show_progress(const struct transform *transform, uint64_t done) {
    if (transform->options->progress != NULL) {
        transform->options->progress(transform->options->context, done, transform->total);
    }
}

/* The streams of one input, one after the other. */
static int copy_streams(struct transform *transform, const struct timeorder_parts *parts) {
    struct timeorder order = {0};
    int result = timeorder_start(&order, *parts) == 0 ? 0 : no_memory(transform);
    for (size_t i = 0; i < order.block_count && result == 0; i++) {
        result = copy_events(transform, parts, order.blocks[i]);
        show_progress(transform, transform->result->events);
    }
    timeorder_end(&order);
    transform->has_span = false; /* the next input's streams are others */
    return result;
}

/* ---- The file ---- */

static int begin_file(struct transform *transform) {
    const struct transform_step *step = transform->step;
    const struct timeorder_parts *parts = &transform->inputs[0];
    if (step->begin != NULL) {
        return step->begin(step->context, &transform->writer);
    }
    return copy_last(transform, parts, MEMTRACE_BLOCK_PROGRAM) == 0 &&
                   copy_nodes(transform, parts) == 0
               ? copy_tables(transform, parts, true)
               : -1;
}

static void begin_input(const struct transform *transform, size_t i) {
    if (transform->step->input != NULL) {
        transform->step->input(transform->step->context, i);
    }
}

static int copy_all(struct transform *transform) {
    const struct transform_step *step = transform->step;
    int result = begin_file(transform);
    for (size_t i = 0; i < transform->count && result == 0; i++) {
        begin_input(transform, i);
        result = copy_streams(transform, &transform->inputs[i]);
    }
    show_progress(transform, transform->total);
    for (size_t i = 0; i < transform->count && result == 0; i++) {
        begin_input(transform, i);
        result = copy_tables(transform, &transform->inputs[i], false);
        if (result == 0 && step->begin == NULL) {
            result = copy_last(transform, &transform->inputs[i], MEMTRACE_BLOCK_THREADS);
        }
    }
    return result == 0 && step->finish != NULL ? step->finish(step->context, &transform->writer)
                                               : result;
}

static void note_incomplete(struct transform_result *result, const struct recording *recording) {
    const char *why = recording->damage[0] != '\0'         ? recording->damage
                      : recording_is_unfinished(recording) ? "its writer did not finish it"
                                                           : NULL;
    if (why != NULL && result->incomplete.message[0] == '\0') {
        error_set(&result->incomplete, "%s: %s", recording->path, why);
    }
}

static void count_input(struct transform *transform) {
    for (size_t i = 0; i < transform->count; i++) {
        for (size_t part = 0; part < transform->inputs[i].count; part++) {
            const struct recording *recording = transform->inputs[i].items[part];
            transform->result->bytes += recording->size;
            transform->result->damaged += recording->damaged_blocks;
            note_incomplete(transform->result, recording);
            for (size_t at = 0; at < recording->block_count; at++) {
                const struct memtrace_block_header *block = &recording->blocks[at].block;
                transform->total += block->kind == MEMTRACE_BLOCK_EVENTS ? block->items : 0;
            }
        }
    }
}

static int write_file(struct transform *transform, const char *path) {
    const struct transform_step *step = transform->step;
    struct memtrace_recording_header header = transform->inputs[0].items[0]->header;
    header.header_size = sizeof header;
    if (step->header != NULL) {
        step->header(step->context, &header);
    }
    header.flags |= transform->options->add_flags;
    if (recordwriter_open(&transform->writer, path, &header, transform->options->level,
                          transform->error) != 0) {
        return -1;
    }
    transform->writer.is_incomplete = transform->result->incomplete.message[0] != '\0';
    if (copy_all(transform) != 0 || recordwriter_close(&transform->writer) != 0) {
        return -1;
    }
    transform->result->kept = transform->writer.event_count;
    transform->result->bytes_written = transform->writer.file.size;
    return 0;
}

int transform_run(const struct timeorder_parts *inputs, size_t count, const char *path,
                  const struct transform_step *step, const struct transform_options *options,
                  struct transform_result *result, struct error *error) {
    struct transform transform = {.inputs = inputs,
                                  .count = count,
                                  .step = step,
                                  .options = options,
                                  .result = result,
                                  .error = error,
                                  .writer = {.file = RECORDFILE_NONE}};
    int status;
    *result = (struct transform_result){0};
    count_input(&transform);
    status = write_file(&transform, path);
    recordwriter_free(&transform.writer);
    recording_buffer_free(&transform.buffer);
    return status;
}
