/* SPDX-License-Identifier: MIT */
/*
 * recording.h: a recording (memtrace/recording.h), opened read-only: its blocks, checked, and what
 * they hold. Nothing but one block at a time is in memory: a file may be larger than that.
 *
 * Called by analyze/model, collect and cli. A recording belongs to one thread, but for
 * recording_payload(), which several may call at once.
 *
 * A file that is cut off, damaged or still being written opens as long as its header is whole:
 * damaged blocks are left out, `damage` says how many and where the first one is. In a file that
 * has an index, blocks of events and embedded files are checked only when they are read.
 */
#ifndef ANALYZE_READ_RECORDING_H
#define ANALYZE_READ_RECORDING_H

#include "analyze/base/job.h"
#include "analyze/read/block.h"
#include "analyze/read/eventcode.h"

struct recording_entry {
    uint64_t offset; /* of the block's header in the file */
    struct memtrace_block_header block;
};

struct recording {
    struct memtrace_recording_header header;
    struct memtrace_header program; /* of the last PROGRAM block; strings end inside their arrays */
    struct recording_entry *blocks; /* in the order of the file; all kinds */
    size_t block_count;
    size_t block_room;
    bool closed;      /* has an index: its writer finished it */
    char damage[256]; /* empty: whole */
    bool is_broken;   /* there is damage, and not only in the files that it was made of */
    uint64_t damaged_blocks;
    char *path;
    int fd;
    uint64_t size;
    uint64_t table_bytes;  /* recording.c's: of blocks that are neither events nor alike in honest
                              loops */
    uint64_t scanned;      /* recording.c's: where the next block would begin */
    uint64_t first_damage; /* recording.c's: where the first damaged block would be */
    size_t sent_blocks;    /* recording_open_rest(): the first ones, which are elsewhere */
    struct job_memory *memory; /* of all this */
};

/* Whether the file at `path` begins as a recording does. */
bool recording_is(const char *path);

/* NULL on failure: no such file, no recording, another version or byte order, header cut off, no
 * whole PROGRAM block; error holds one line. */
struct recording *recording_open(const char *path, struct error *error);
/* The same of one whose beginning was sent and freed here (struct memtrace_sent), which
 * recording_open() refuses: `blocks` has all of them, but the payloads of most of the first
 * `sent_blocks` are gone. For who goes on with the file. */
struct recording *recording_open_rest(const char *path, struct error *error);
void recording_close(struct recording *recording); /* NULL is allowed */

/* Whether more may come: it has no index, and its program runs or, where that is on another machine
 * or has just ended, somebody writes the file. */
bool recording_grows(const struct recording *recording);
/* Whether its end may be missing: it has no index, and nothing comes any more. */
bool recording_is_unfinished(const struct recording *recording);

/* Looks for blocks appended since. 0 or -1. */
int recording_refresh(struct recording *recording, struct error *error);

/* Reads block i, checks it and unpacks it into the buffer. 0; -1: it is damaged, or cannot be read
 * (error says where); or there is no memory. Any thread, each with a buffer of its own. */
enum { RECORDING_NO_MEMORY = 1 };
int recording_payload(const struct recording *recording, size_t i, struct recording_buffer *buffer,
                      struct error *error);
/* The same in a job, which ends if there is no memory. false: it is damaged. */
bool recording_take(const struct recording *recording, size_t i, struct recording_buffer *buffer);
/* The same of the next block of this kind that is not damaged, from *next on; afterwards that is
 * the place behind it. false: there is none. */
bool recording_next(const struct recording *recording, enum memtrace_block_kind kind, size_t *next,
                    struct recording_buffer *buffer);

/* The nodes of the context tree, by id: of all NODES blocks. The caller frees *nodes. A node that
 * is not there has frame 0. 0, or -1: out of memory. */
int recording_nodes(const struct recording *recording, struct memtrace_node **nodes, size_t *count,
                    struct error *error);

#endif
