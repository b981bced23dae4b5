/* SPDX-License-Identifier: MIT */
/*
 * reuse.h: which bytes of a recording need not be sent, since the receiver has them of another
 * one: symbols of program files, nine tenths of what a short program's recording holds, are the
 * same in each recording of the same program. The sender asks for some of them ahead of time, by
 * digest, so that nobody waits for an answer on a slow line.
 *
 * Called by stream/sender. Belongs to one thread.
 */
#ifndef STREAM_REUSE_H
#define STREAM_REUSE_H

#include "stream/wire.h"

#include "analyze/read/block.h"

enum reuse_state { REUSE_NEW, REUSE_ASKED, REUSE_HAS, REUSE_LACKS };

/* The payload of a block. */
struct reuse_piece {
    uint64_t offset;
    enum reuse_state state;
    struct wire_piece wire;
};

struct reuse {
    int fd;                     /* of the recording, the caller's */
    struct reuse_piece *pieces; /* by offset */
    size_t count, room;
    size_t at;      /* those before were sent */
    unsigned asked; /* without an answer */
};

void reuse_end(struct reuse *reuse);

/* A block of the file that will not change, the next one. Without memory it is sent as any other.
 */
void reuse_note(struct reuse *reuse, uint64_t offset, const struct memtrace_block_header *block);

/* A new connection, which goes on at this offset: nothing was asked. */
void reuse_begin(struct reuse *reuse, uint64_t next);
/* Whatever the receiver has, it wants all from this offset on. */
void reuse_stop(struct reuse *reuse, uint64_t next);

/* The frame that stands for what comes at `next`, if there is one, or asks for what comes later:
 * there is room for WIRE_SMALL_MOST bytes. Its size or 0; *known: so many bytes it stands for. */
size_t reuse_put(struct reuse *reuse, uint64_t next, uint8_t *to, uint64_t *known);
/* So many bytes from `next` on are to be sent; 0: an answer comes first. */
uint64_t reuse_sendable(const struct reuse *reuse, uint64_t next, uint64_t bytes);

/* The frame is an answer. 0, or -1: it makes no sense. */
int reuse_take(struct reuse *reuse, const struct wire_frame *frame);

#endif
