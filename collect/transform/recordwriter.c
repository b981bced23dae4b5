/* SPDX-License-Identifier: MIT */
/* recordwriter.c: see recordwriter.h. */
#include "collect/transform/recordwriter.h"

#include "analyze/base/array.h"

#define XXH_INLINE_ALL
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
    BLOCK_BYTES = 16 << 20, /* of events: of marks' texts, in the end */
    BLOCK_NODES = 1 << 18,
    BLOCK_SAMPLES = 1 << 16,
    BLOCK_NAMES = 1 << 16,
    BLOCK_TEXT_BYTES = 8 << 20, /* of names; one frame's may come on top */
};

static int no_memory(const struct recordwriter *writer) {
    return error_set(writer->error, "out of memory while writing %s", writer->file.path);
}

static int append(struct recordwriter *writer, struct memtrace_block_header block,
                  const void *payload, size_t size) {
    return recordfile_append(&writer->file, &block, payload, size, writer->error);
}

/* ---- What is gathered goes to the file ---- */

static int flush_nodes(struct recordwriter *writer) {
    size_t count = writer->node_count;
    writer->node_count = 0;
    return recordfile_append_nodes(&writer->file, writer->nodes, count, 0, writer->error);
}

static int flush_events(struct recordwriter *writer) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_EVENTS};
    const struct memtrace_block_header *known = &writer->events;
    const void *payload;
    size_t size;
    if (!writer->has_events) {
        return 0;
    }
    writer->has_events = false;
    writer->event_count += event_encoder_count(writer->encoder);
    payload = event_encoder_finish(writer->encoder, &size, &block);
    if (payload == NULL) {
        return no_memory(writer);
    }
    block.stream = known->stream;
    block.thread = known->thread;
    block.first_sequence = known->first_sequence;
    block.first_word = known->first_word;
    block.end_sequence = known->end_sequence;
    block.end_word = known->end_word;
    return flush_nodes(writer) == 0 ? append(writer, block, payload, size) : -1;
}

static int flush_samples(struct recordwriter *writer) {
    const struct memtrace_sample *samples = writer->samples;
    size_t count = writer->sample_count;
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_SAMPLES, .items = (uint32_t)count};
    if (count == 0) {
        return 0;
    }
    block.first_ns = samples[0].time_ns;
    block.last_ns = samples[count - 1].time_ns;
    writer->sample_count = 0;
    return append(writer, block, samples, count * sizeof *samples);
}

/* The names, then their texts. */
static int flush_names(struct recordwriter *writer) {
    struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_NAMES,
                                          .items = (uint32_t)writer->name_count};
    size_t size = writer->name_count * sizeof *writer->names;
    unsigned char *payload;
    int result;
    if (writer->name_count == 0) {
        return 0;
    }
    payload = malloc(size + writer->text_size);
    if (payload == NULL) {
        return no_memory(writer);
    }
    memcpy(payload, writer->names, size);
    memcpy(payload + size, writer->text, writer->text_size);
    result = append(writer, block, payload, size + writer->text_size);
    free(payload);
    writer->name_count = writer->text_size = 0;
    numbermap_free(&writer->texts);
    return result;
}

/* ---- What comes ---- */

/* Its flag, where something is missing. Whether it was there already, or cannot be. */
static bool mark_incomplete(struct recordwriter *writer) {
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

/* Kept, since all may be read and written before something turns out to be missing. */
static int append_program(struct recordwriter *writer, struct memtrace_block_header block,
                          const void *payload, size_t size) {
    unsigned char *program = realloc(writer->program, size + 1);
    if (program == NULL) {
        return no_memory(writer);
    }
    memcpy(program, payload, size);
    writer->program = program;
    writer->program_size = size;
    if (writer->is_incomplete) {
        mark_incomplete(writer);
    }
    return append(writer, block, program, size);
}

/* Of several PROGRAM blocks the last one counts. */
static int tell_incomplete(struct recordwriter *writer) {
    const struct memtrace_block_header block = {.kind = MEMTRACE_BLOCK_PROGRAM, .items = 1};
    return !writer->is_incomplete || mark_incomplete(writer)
               ? 0
               : append(writer, block, writer->program, writer->program_size);
}

int recordwriter_block(struct recordwriter *writer, struct memtrace_block_header block,
                       const void *payload, size_t size) {
    if (flush_events(writer) != 0 || flush_nodes(writer) != 0) {
        return -1;
    }
    return block.kind == MEMTRACE_BLOCK_PROGRAM ? append_program(writer, block, payload, size)
                                                : append(writer, block, payload, size);
}

int recordwriter_table(struct recordwriter *writer, enum memtrace_block_kind kind,
                       const void *items, size_t count, size_t item_size) {
    struct memtrace_block_header block = {.kind = (uint16_t)kind, .items = (uint32_t)count};
    return count != 0 ? recordwriter_block(writer, block, items, count * item_size) : 0;
}

int recordwriter_begin_events(struct recordwriter *writer,
                              const struct memtrace_block_header *header) {
    if (flush_events(writer) != 0) {
        return -1;
    }
    writer->events = *header;
    writer->has_events = true;
    event_encoder_start(writer->encoder, header->thread, header->first_number);
    return 0;
}

int recordwriter_event(struct recordwriter *writer, const struct event *event) {
    return event_encoder_add(writer->encoder, event) == 0 ? 0 : no_memory(writer);
}

bool recordwriter_has_room(const struct recordwriter *writer, size_t events, size_t bytes) {
    return event_encoder_count(writer->encoder) + events <= RECORDWRITER_EVENTS &&
           event_encoder_bytes(writer->encoder) + bytes <= BLOCK_BYTES;
}

int recordwriter_node(struct recordwriter *writer, const struct memtrace_recording_node *node) {
    if (writer->node_count == BLOCK_NODES && flush_nodes(writer) != 0) {
        return -1;
    }
    if (array_grow(&writer->nodes, &writer->node_room, writer->node_count, sizeof *node) != 0) {
        return no_memory(writer);
    }
    writer->nodes[writer->node_count++] = *node;
    return 0;
}

int recordwriter_sample(struct recordwriter *writer, const struct memtrace_sample *sample) {
    if (writer->sample_count == BLOCK_SAMPLES && flush_samples(writer) != 0) {
        return -1;
    }
    if (array_grow(&writer->samples, &writer->sample_room, writer->sample_count, sizeof *sample) !=
        0) {
        return no_memory(writer);
    }
    writer->samples[writer->sample_count++] = *sample;
    return 0;
}

/* The place of the text, which is added if it is new. 0, or -1: out of memory. */
static int place_of(struct recordwriter *writer, const char *text, uint32_t *place) {
    size_t size = text != NULL ? strlen(text) + 1 : 1;
    uint64_t hash = size != 1 ? XXH3_64bits(text, size) : 0;
    uintptr_t known;
    *place = 0;
    if (size == 1) {
        return 0;
    }
    while ((known = (uintptr_t)numbermap_get(&writer->texts, hash)) != 0) {
        if (strcmp(writer->text + known, text) == 0) {
            *place = (uint32_t)known;
            return 0;
        }
        hash++;
    }
    if (array_reserve(&writer->text, &writer->text_room, writer->text_size + size, 1) != 0) {
        return -1;
    }
    *place = (uint32_t)writer->text_size;
    memcpy(writer->text + writer->text_size, text, size);
    writer->text_size += size;
    return numbermap_put(&writer->texts, hash, (void *)(uintptr_t)*place);
}

int recordwriter_names(struct recordwriter *writer, const struct framename *names, size_t count) {
    if ((writer->name_count + count > BLOCK_NAMES || writer->text_size > BLOCK_TEXT_BYTES) &&
        flush_names(writer) != 0) {
        return -1;
    }
    if (array_reserve(&writer->names, &writer->name_room, writer->name_count + count,
                      sizeof *writer->names) != 0 ||
        array_reserve(&writer->text, &writer->text_room, 1, 1) != 0) {
        return no_memory(writer);
    }
    if (writer->text_size == 0) {
        writer->text[writer->text_size++] = '\0';
    }
    for (size_t i = 0; i < count; i++) {
        struct memtrace_frame_name *item = &writer->names[writer->name_count + i];
        *item = (struct memtrace_frame_name){
            .frame = names[i].frame, .line = names[i].line, .column = names[i].column};
        if (place_of(writer, names[i].function, &item->function) != 0 ||
            place_of(writer, names[i].file, &item->file) != 0) {
            return no_memory(writer);
        }
    }
    writer->name_count += count;
    return 0;
}

/* ---- The file ---- */

int recordwriter_open(struct recordwriter *writer, const char *path,
                      const struct memtrace_recording_header *header, int level,
                      struct error *error) {
    *writer = (struct recordwriter){.file = RECORDFILE_NONE, .error = error};
    if (recordfile_create(&writer->file, path, RECORDFILE_REPLACE, header, error) != 0) {
        return -1;
    }
    writer->file.level = level;
    writer->encoder = event_encoder_new(header->flags);
    return writer->encoder != NULL ? 0 : no_memory(writer);
}

int recordwriter_close(struct recordwriter *writer) {
    return flush_events(writer) == 0 && flush_nodes(writer) == 0 && flush_samples(writer) == 0 &&
                   flush_names(writer) == 0 && tell_incomplete(writer) == 0
               ? recordfile_close(&writer->file, writer->error)
               : -1;
}

void recordwriter_free(struct recordwriter *writer) {
    recordfile_release(&writer->file);
    event_encoder_free(writer->encoder);
    free(writer->program);
    free(writer->nodes);
    free(writer->samples);
    free(writer->names);
    free(writer->text);
    numbermap_free(&writer->texts);
    *writer = (struct recordwriter){.file = RECORDFILE_NONE};
}
