/* SPDX-License-Identifier: MIT */
/*
 * space.h: a file that grows and stays mapped: the storage under the profile region.
 *
 * Invariants:
 *   address of file offset o == base + o, for o < mapped end
 *   header.end grows only; segments below it have blocks behind them (reserved before they are
 *   touched: a full disk is a refusal here, never a SIGBUS later). What a child takes of its
 *   ancestor's file, and gets no blocks for, stays a hole: readers step over it
 * Any thread may take segments at any time, without a lock.
 */
#ifndef RUNTIME_BASE_SPACE_H
#define RUNTIME_BASE_SPACE_H

#include "memtrace/format.h"
#include "runtime/base/room.h"
#include "runtime/base/sys.h"

struct space {
    struct memtrace_header *header; /* at base; NULL: no space */
    uint8_t *base;
    struct room room; /* from base on */
    int held;         /* a descriptor, or -1; the program may have closed it: space_hold() */
    uint64_t device, inode;
    uint32_t is_private;  /* of a light child: what is taken is memory, not part of the file */
    uint64_t private_end; /* and that lies below this, already mapped */
    uint32_t refused;     /* a segment could not be had: logged once */
    uint64_t prepared;    /* space_prepare(): what is left of it */
    struct trylock preparing;
    uint64_t again_from_ns; /* monotonic: none is tried before, the disk may be full for long */
    char path[256];
};

/* Takes over an open, empty file of ours: reserves address space, maps the header (zeroed).  0 or a
 * negative errno. The descriptor is closed. */
long space_open(struct space *space, int fd, const char *path);

/* A new segment with its header filled but the magic not yet written; NULL if there is no room.
 * item_count counts the places under the header. Publish with space_publish(). */
void *space_segment(struct space *space, enum memtrace_segment_kind kind, uint32_t owner,
                    uint32_t index, uint32_t item_size, uint32_t item_count);
void space_publish(void *segment);

/* The leaf that the pointer at `leaf` (one of a table of pointers to items) points to. Where that
 * is NULL a new segment, published and then set there, or the one of another thread that was first:
 * ours is void then. Item 0 lies under the segment's header. NULL: no room. */
void *space_leaf(struct space *space, void *leaf, enum memtrace_segment_kind kind, uint32_t index,
                 uint32_t item_size, uint32_t item_count);

/* Some of the next segments, about `size` bytes of them, can be taken without asking the kernel: it
 * may soon refuse. */
void space_prepare(struct space *space, uint64_t size, enum sys_pages pages);

/* In a forked child: header, zeroed, and all segments from here on are private memory; the segments
 * of before stay the parent's, shared with it, and so does the file. Returns the first page of the
 * parent's header, shared, NULL: no memory. */
struct memtrace_header *space_begin_private(struct space *space);
/* The same where the parent's space was private already, and all that is in it was copied by the
 * kernel. 0 or a negative errno. */
long space_begin_private_again(struct space *space);
/* Of a private space: the next `size` bytes of the file, `header` being that of the file, with
 * blocks behind them, so that they can be mapped. `fd`: from space_descriptor(). 0 or a negative
 * errno. */
long space_append(struct space *space, int fd, struct memtrace_header *header, uint64_t size,
                  uint64_t *offset);
/* The same, and writes these bytes there, all but the magic, which comes last. */
long space_append_segment(struct space *space, struct memtrace_header *header,
                          const struct memtrace_segment *segment, uint64_t *offset);

/* In a forked child: moves the space to a new file of its own, mapped over the parent's, or over
 * private memory, at the same addresses. Segments that keep() accepts come along, the others are
 * void. 0 or a negative errno: then all is as before, but that a private header may be zeroed. */
long space_fork(struct space *space, int fd, const char *path,
                int (*keep)(void *argument, const struct memtrace_segment *segment),
                void *argument);

/* The next published segment at or behind offset *at, which moves behind it; NULL: none below
 * `end`, which the caller read from header.end. Steps over what was reserved and never written. */
const struct memtrace_segment *space_next(const struct space *space, uint64_t *at, uint64_t end);

/* A descriptor of the file, for the caller alone, who closes it soon: the program sees those that
 * it opened itself and no other. Or a negative errno. */
long space_descriptor(struct space *space);

/* Before the program may lose the right to open the file by its name, or the name leads elsewhere:
 * a descriptor is kept from now on. After that: it is closed if the name still leads there. */
void space_hold(struct space *space);
void space_let_go(struct space *space);

/* Whether the file still has its name. 1, 0, or where that cannot be told 1. */
int space_is_there(const struct space *space);

/* Counts what could not be kept. Signal-safe. */
void space_lost(struct space *space, enum memtrace_loss kind, uint64_t count);

/* Closes it and gives its address space back: nobody uses it yet. */
void space_give_up(struct space *space);
void space_close(struct space *space); /* unmaps nothing: others may still look */

#endif
