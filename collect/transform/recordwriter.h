/* SPDX-License-Identifier: MIT */
/*
 * recordwriter.h: writes a recording from single events, call paths, samples and names, which it
 * gathers to blocks of full size.
 *
 * Called by all of collect/transform. One thread, in a job, which ends where the file cannot be
 * written. A live program's recorder has its blocks already (collect/recordevents) and goes to
 * collect/recordfile itself, which both stand on.
 */
#ifndef COLLECT_TRANSFORM_RECORDWRITER_H
#define COLLECT_TRANSFORM_RECORDWRITER_H

#include "analyze/base/numbermap.h"
#include "analyze/read/eventcode.h"
#include "analyze/read/framenames.h"
#include "collect/recordfile.h"

enum { RECORDWRITER_EVENTS = 1 << 17 }; /* of a full block, as when recording */

struct recordwriter {
    struct recordfile file;
    struct event_encoder *encoder;
    struct memtrace_block_header events; /* the block that is being filled; see below */
    bool has_events;
    uint64_t event_count; /* in blocks that are written */
    bool is_incomplete; /* the caller's: not all that belongs in the file could be read. May become
                           true at any time before the file is closed, which then says so */
    unsigned char *program; /* what its last PROGRAM block says */
    size_t program_size;
    /* Not written yet: */
    struct memtrace_recording_node *nodes;
    size_t node_count;
    size_t node_room;
    struct memtrace_sample *samples;
    size_t sample_count;
    size_t sample_room;
    struct memtrace_frame_name *names;
    size_t name_count;
    size_t name_room;
    char *text; /* of the names, each ended by NUL; [0] is the empty one */
    size_t text_size;
    size_t text_room;
    struct numbermap texts; /* hash of a text -> its place */
};

/* Makes the file `path`, which is replaced if it is there. level: of compression, as zstd counts.
 * The writer is the job's. */
struct recordwriter *recordwriter_open(const char *path,
                                       const struct memtrace_recording_header *header, int level);
/* Writes what is left, and the index. */
void recordwriter_close(struct recordwriter *writer);

/* A whole block: kind, times and items of its header count. Events and nodes that came before stand
 * before it. */
void recordwriter_block(struct recordwriter *writer, struct memtrace_block_header block,
                        const void *payload, size_t size);
/* A table; nothing where it has no items. */
void recordwriter_table(struct recordwriter *writer, enum memtrace_block_kind kind,
                        const void *items, size_t count, size_t item_size);

/*
 * Begins a block of events with the header's stream, thread, first_number and first place; its last
 * place (end_sequence, end_word) is the caller's to set in writer->events. Such a block is written
 * even if no event comes: a stream's blocks must join.
 */
void recordwriter_begin_events(struct recordwriter *writer,
                               const struct memtrace_block_header *header);
void recordwriter_event(struct recordwriter *writer, const struct event *event);
/* Whether the block takes as many events more, of as many bytes. */
bool recordwriter_has_room(const struct recordwriter *writer, size_t events, size_t bytes);

/* Parents first. Nodes stand in the file before the events that come after them here. */
void recordwriter_node(struct recordwriter *writer, const struct memtrace_recording_node *node);
void recordwriter_sample(struct recordwriter *writer, const struct memtrace_sample *sample);
/* All names of a frame, innermost function first; their texts are copied. */
void recordwriter_names(struct recordwriter *writer, const struct framename *names, size_t count);

#endif
