/* SPDX-License-Identifier: MIT */
/*
 * tail.h: how much of a recording that may still grow will never change, and whether it has ended.
 *
 * Called by stream/sender. Belongs to one thread.
 *
 * A collector only appends, but for two things that it may cut off again: a block that was not
 * written as a whole, and the index of a file that somebody goes on with (recordfile_resume). So
 * whole blocks with the right checksum are steady, and the rest is once nobody writes any more.
 */
#ifndef STREAM_TAIL_H
#define STREAM_TAIL_H

#include "analyze/read/block.h"

#include <stdbool.h>
#include <stdint.h>

struct tail {
    int fd;            /* the caller's, open for reading */
    uint64_t steady;   /* bytes that stay as they are */
    bool ended;        /* the file has an index, or nobody is left who would write: steady is all */
    bool indexed;      /* `leaves_index`: all but the index that ends it is steady */
    bool leaves_index; /* the caller's: an index is not the end yet */
    uint64_t size;     /* of the file, the last time */
    uint64_t quiet_since_ns; /* nobody writes since then; 0: not so */
    struct recording_buffer buffer;
    /* The caller's: told of each block that is steady. 0, or -1: errno. NULL: nobody wants it. */
    int (*passed)(void *context, uint64_t offset, const struct memtrace_block_header *block);
    void *context;
};

void tail_start(struct tail *tail, int fd);
/* Looks again, at most some megabytes further. 0; -1: the file cannot be read (errno). */
int tail_look(struct tail *tail, uint64_t now_ns);
void tail_end(struct tail *tail);

/* Whether somebody writes the recording, or may go on with it. */
bool tail_is_written(int fd);

#endif
