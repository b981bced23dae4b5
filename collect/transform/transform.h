/* SPDX-License-Identifier: MIT */
/*
 * transform.h: a recording written anew: its parts joined, blocks of full size, damage left out,
 * and on the way each event and each table handed to who wants to change it.
 *
 * Called by cli (repack, strip, anonymize, merge). One thread. One block at a time is in memory.
 */
#ifndef COLLECT_TRANSFORM_TRANSFORM_H
#define COLLECT_TRANSFORM_TRANSFORM_H

#include "analyze/replay/timeorder.h"
#include "collect/recordfile.h"

/* The payload of a block that holds no events and no nodes; whoever makes it longer reallocates. */
struct transform_payload {
    unsigned char *bytes;
    size_t size;
    uint32_t items;
};

/* Each may be NULL: nothing changes. */
struct transform_hooks {
    /* Of the new file. */
    void (*header)(void *context, struct memtrace_recording_header *header);
    /* Gives a stream, and its thread, other numbers; of a block's header only these two count. */
    void (*stream)(void *context, struct memtrace_block_header *stream);
    /* An event of this stream, whose header is as it was. 1: it is written, perhaps changed; 0: it
     * is left out; -1: no memory. Whatever is left out keeps its number, so that other blocks keep
     * theirs. */
    int (*event)(void *context, const struct memtrace_block_header *stream, struct event *event);
    /* 1: it is written; 0: it is left out; -1: no memory. */
    int (*table)(void *context, enum memtrace_block_kind kind, struct transform_payload *payload);
    /* The node's frame may be changed. */
    void (*node)(void *context, struct memtrace_recording_node *node);
    /* All that was there is written: more blocks may be appended. 0 or -1. */
    int (*finish)(void *context, struct recordfile *file, struct error *error);
    void *context;
};

struct transform_options {
    int level;                                                      /* as zstd counts */
    uint32_t add_flags;                                             /* MEMTRACE_RECORDING_* */
    void (*progress)(void *context, uint64_t done, uint64_t total); /* events; NULL: none */
    void *context;
};

/* What became of it. */
struct transform_result {
    uint64_t events; /* read */
    uint64_t kept;
    uint64_t blocks; /* of events: read, and written */
    uint64_t blocks_written;
    uint64_t damaged; /* blocks that could not be read to their end */
    uint64_t bytes;
    uint64_t bytes_written;
};

/* Writes the file `path`, which is replaced if it is there. 0 or -1. */
int transform_recording(struct timeorder_parts parts, const char *path,
                        const struct transform_hooks *hooks,
                        const struct transform_options *options, struct transform_result *result,
                        struct error *error);

/* The events alone, to the end of an open file with these flags (of its header); adds to the
 * result. 0 or -1. */
int transform_events(struct timeorder_parts parts, struct recordfile *file, uint32_t flags,
                     const struct transform_hooks *hooks, const struct transform_options *options,
                     struct transform_result *result, struct error *error);

#endif
