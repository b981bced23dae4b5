/* SPDX-License-Identifier: MIT */
/* recordwriter.c: see recordwriter.h. */
#include "collect/transform/recordwriter.h"

#include "analyze/base/job.h"

#define XXH_INLINE_ALL
#include <stddef.h>
#include <string.h>
#include <xxhash.h>

enum {
    BLOCK_BYTES = 16 << 20, /* of events: of marks' texts, in the end */
    BLOCK_NODES = 1 << 18,
    BLOCK_SAMPLES = 1 << 16,
    BLOCK_NAMES = 1 << 16,
    BLOCK_TEXT_BYTES = 8 << 20, /* of names; one frame's may come on top */
};

static void recordwriter_append(struct recordwriter *writer, struct memtrace_block_header block,
                                const void *payload, size_t size) {
    struct error error;
    job_check(recordfile_append(&writer->file, &block, payload, size, &error), &error);
}

/* ---- What is gathered goes to the file ---- */

static void recordwriter_flush_nodes(struct recordwriter *writer) {
    struct error error;
    size_t count = writer->node_count;
    writer->node_count = 0;
    job_check(recordfile_append_nodes(&writer->file, writer->nodes, count, 0, &error), &error);
}

static void recordwriter_flush_events(struct recordwriter *writer) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_EVENTS};
    const struct memtrace_block_header *known = &writer->events;
    const void *payload;
    size_t size;
    if (!writer->has_events) {
        return;
    }
    writer->has_events = false;
    writer->event_count += event_encoder_count(writer->encoder);
    payload = event_encoder_finish(writer->encoder, &size, &block);
    if (payload == NULL) {
        job_fail_memory();
    }
    block.stream = known->stream;
    block.thread = known->thread;
    block.first_sequence = known->first_sequence;
    block.first_word = known->first_word;
    block.end_sequence = known->end_sequence;
    block.end_word = known->end_word;
    recordwriter_flush_nodes(writer);
    recordwriter_append(writer, block, payload, size);
}

static void recordwriter_flush_samples(struct recordwriter *writer) {
    const struct memtrace_sample *samples = writer->samples;
    size_t count = writer->sample_count;
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_SAMPLES, .items = (uint32_t)count};
    if (count != 0) {
        block.first_ns = samples[0].time_ns;
        block.last_ns = samples[count - 1].time_ns;
        writer->sample_count = 0;
        recordwriter_append(writer, block, samples, count * sizeof *samples);
    }
}

/* The names, then their texts. */
static void recordwriter_flush_names(struct recordwriter *writer) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_NAMES,
                                          .items = (uint32_t)writer->name_count};
    size_t size = writer->name_count * sizeof *writer->names;
    if (writer->name_count != 0) {
        unsigned char *payload = job_array(size + writer->text_size, 1);
        memcpy(payload, writer->names, size);
        memcpy(payload + size, writer->text, writer->text_size);
        recordwriter_append(writer, block, payload, size + writer->text_size);
        job_release(payload);
        writer->name_count = writer->text_size = 0;
        job_release(writer->texts.entries);
        writer->texts = (struct numbermap){0};
    }
}

/* ---- What comes ---- */

/* Its flag, where something is missing. Whether it was there already, or cannot be. */
static bool recordwriter_mark_incomplete(struct recordwriter *writer) {
    const size_t place = offsetof(struct memtrace_header, flags);
    uint32_t flags;
    if (writer->program_size < place + sizeof flags) {
        return true;
    }
    memcpy(&flags, writer->program + place, sizeof flags);
    if ((flags & MEMTRACE_FLAG_INCOMPLETE) != 0) {
        return true;
    }
    flags |= MEMTRACE_FLAG_INCOMPLETE;
    memcpy(writer->program + place, &flags, sizeof flags);
    return false;
}

void recordwriter_block(struct recordwriter *writer, struct memtrace_block_header block,
                        const void *payload, size_t size) {
    recordwriter_flush_events(writer);
    recordwriter_flush_nodes(writer);
    if (block.kind == MEMTRACE_BLOCK_PROGRAM) {
        /* Kept, since all may be read and written before something turns out to be missing. */
        job_release(writer->program);
        writer->program = job_array(size, 1);
        writer->program_size = size;
        memcpy(writer->program, payload, size);
        if (writer->is_incomplete) {
            recordwriter_mark_incomplete(writer);
        }
        payload = writer->program;
    }
    recordwriter_append(writer, block, payload, size);
}

void recordwriter_table(struct recordwriter *writer, enum memtrace_block_kind kind,
                        const void *items, size_t count, size_t item_size) {
    struct memtrace_block_header block = {.kind = (uint16_t)kind, .items = (uint32_t)count};
    if (count != 0) {
        recordwriter_block(writer, block, items, count * item_size);
    }
}

void recordwriter_begin_events(struct recordwriter *writer,
                               const struct memtrace_block_header *header) {
    recordwriter_flush_events(writer);
    writer->events = *header;
    writer->has_events = true;
    event_encoder_start(writer->encoder, header->thread, header->first_number);
}

void recordwriter_event(struct recordwriter *writer, const struct event *event) {
    if (event_encoder_add(writer->encoder, event) != 0) {
        job_fail_memory();
    }
}

bool recordwriter_has_room(const struct recordwriter *writer, size_t events, size_t bytes) {
    return event_encoder_count(writer->encoder) + events <= RECORDWRITER_EVENTS &&
           event_encoder_bytes(writer->encoder) + bytes <= BLOCK_BYTES;
}

void recordwriter_node(struct recordwriter *writer, const struct memtrace_recording_node *node) {
    if (writer->node_count == BLOCK_NODES) {
        recordwriter_flush_nodes(writer);
    }
    job_grow(&writer->nodes, &writer->node_room, writer->node_count, sizeof *node);
    writer->nodes[writer->node_count++] = *node;
}

void recordwriter_sample(struct recordwriter *writer, const struct memtrace_sample *sample) {
    if (writer->sample_count == BLOCK_SAMPLES) {
        recordwriter_flush_samples(writer);
    }
    job_grow(&writer->samples, &writer->sample_room, writer->sample_count, sizeof *sample);
    writer->samples[writer->sample_count++] = *sample;
}

/* The place of the text, which is added if it is new. */
static uint32_t recordwriter_text(struct recordwriter *writer, const char *text) {
    size_t size = text != NULL ? strlen(text) + 1 : 1;
    uint64_t hash = size != 1 ? XXH3_64bits(text, size) : 0;
    uintptr_t known;
    size_t place = writer->text_size;
    if (size == 1) {
        return 0;
    }
    while ((known = (uintptr_t)numbermap_get(&writer->texts, hash)) != 0) {
        if (strcmp(writer->text + known, text) == 0) {
            return (uint32_t)known;
        }
        hash++;
    }
    job_reserve(&writer->text, &writer->text_room, place + size, 1);
    memcpy(writer->text + place, text, size);
    writer->text_size += size;
    numbermap_set(&writer->texts, hash, (void *)place);
    return (uint32_t)place;
}

void recordwriter_names(struct recordwriter *writer, const struct framename *names, size_t count) {
    if (writer->name_count + count > BLOCK_NAMES || writer->text_size > BLOCK_TEXT_BYTES) {
        recordwriter_flush_names(writer);
    }
    job_reserve(&writer->names, &writer->name_room, writer->name_count + count,
                sizeof *writer->names);
    if (writer->text_size == 0) {
        job_reserve(&writer->text, &writer->text_room, 1, 1);
        writer->text[writer->text_size++] = '\0';
    }
    for (size_t i = 0; i < count; i++) {
        struct memtrace_frame_name *item = &writer->names[writer->name_count++];
        *item = (struct memtrace_frame_name){
            .frame = names[i].frame, .line = names[i].line, .column = names[i].column};
        item->function = recordwriter_text(writer, names[i].function);
        item->file = recordwriter_text(writer, names[i].file);
    }
}

/* ---- The file ---- */

static void recordwriter_undo(void *what) {
    struct recordwriter *writer = what;
    recordfile_release(&writer->file);
    event_encoder_free(writer->encoder);
}

struct recordwriter *recordwriter_open(const char *path,
                                       const struct memtrace_recording_header *header, int level) {
    struct recordwriter *writer = job_alloc(sizeof *writer);
    struct error error;
    writer->file = RECORDFILE_NONE;
    job_undo(recordwriter_undo, writer);
    job_check(recordfile_create(&writer->file, path, RECORDFILE_REPLACE, header, &error), &error);
    writer->file.level = level;
    writer->encoder = event_encoder_new(header->flags);
    if (writer->encoder == NULL) {
        job_fail_memory();
    }
    return writer;
}

void recordwriter_close(struct recordwriter *writer) {
    const struct memtrace_block_header program = {.kind = MEMTRACE_BLOCK_PROGRAM, .items = 1};
    struct error error;
    recordwriter_flush_events(writer);
    recordwriter_flush_nodes(writer);
    recordwriter_flush_samples(writer);
    recordwriter_flush_names(writer);
    if (writer->is_incomplete && !recordwriter_mark_incomplete(writer)) {
        /* Of several PROGRAM blocks the last one counts. */
        recordwriter_append(writer, program, writer->program, writer->program_size);
    }
    job_check(recordfile_close(&writer->file, &error), &error);
}
