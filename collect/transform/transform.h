/* SPDX-License-Identifier: MIT */
/*
 * transform.h: the one way from recordings to a new one: each table and each event of the inputs
 * goes through a step, which may change it or leave it out, to the writer. Parts are joined, blocks
 * get their full size, what is damaged is left out.
 *
 * Called by cli (repack), and by strip, anonymize and merge, which are steps. One thread. One block
 * at a time and the tree of call paths are in memory. It is a job of its own: a step's functions
 * may end it, and what they allocate goes with it.
 *
 * The file: the program, nodes, modules and pools; events; other tables; threads.
 */
#ifndef COLLECT_TRANSFORM_TRANSFORM_H
#define COLLECT_TRANSFORM_TRANSFORM_H

#include "analyze/replay/timeorder.h"
#include "collect/transform/recordwriter.h"

/* The payload of a block that holds no events and no nodes, an array of the job (job_array()): who
 * makes it longer puts another in its place, and releases it. */
struct transform_payload {
    unsigned char *bytes;
    size_t size;
    uint32_t items;
};

/* Each may be NULL: nothing changes. */
struct transform_step {
    /* Of the new file. */
    void (*header)(void *context, struct memtrace_recording_header *header);
    /* Writes what stands before the events, in place of what the inputs have. */
    void (*begin)(void *context, struct recordwriter *writer);
    /* What follows is of this input: for its events, and once more for its tables. */
    void (*input)(void *context, size_t input);
    /* Gives a stream, and its thread, other numbers; of a block's header only these two count. */
    void (*stream)(void *context, struct memtrace_block_header *stream);
    /* An event of this stream, whose header is as it was: whether it is written, perhaps changed.
     * Whatever is left out keeps its number, so that other blocks keep theirs. */
    bool (*event)(void *context, const struct memtrace_block_header *stream, struct event *event);
    /* Whether it is written. */
    bool (*table)(void *context, enum memtrace_block_kind kind, struct transform_payload *payload);
    /* All that was there is written: more may be added. */
    void (*finish)(void *context, struct recordwriter *writer);
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
    uint64_t damaged;        /* blocks that could not be read to their end */
    struct error incomplete; /* the first file of which not all is there, and why; "": none */
    uint64_t bytes;
    uint64_t bytes_written;
};

/* Writes the file `path`, which is replaced if it is there. An input is the parts of one process's
 * recording; a step with begin() makes one of several. 0 or -1. */
int transform_run(const struct timeorder_parts *inputs, size_t count, const char *path,
                  const struct transform_step *step, const struct transform_options *options,
                  struct transform_result *result, struct error *error);

#endif
