/* SPDX-License-Identifier: MIT */
/*
 * profile.h: one profile (include/memtrace/format.h), opened read-only: its header and the list of
 * its segments, checked, so that everything handed out lies inside the file.
 *
 * Called by analyze/model, collect and cli. A profile belongs to one thread at a time.
 *
 * A finished file is copied into memory, uncompressed if it was not, and with the byte order of
 * this machine (byteorder.h). The region of a running program is mapped (`live`): its counters
 * change under the reader, so they are read with the profile_load_* functions, and
 * profile_refresh() finds what was added since. A file that is cut off or damaged opens as long as
 * its header is whole; `damage` then says where it breaks.
 *
 * Invariants, whatever the file says:
 *   segments[i].offset + segments[i].size <= size
 *   segments[i].item_size >= the size of its kind's item, and item_size * item_count <= size of
 *   the segment; item_count counts the places under the segment's header
 *   every string of `header` ends inside its array
 */
#ifndef ANALYZE_READ_PROFILE_H
#define ANALYZE_READ_PROFILE_H

#include "analyze/base/error.h"
#include "memtrace/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The damage of a file with MEMTRACE_FLAG_INCOMPLETE, a recording or a profile, that is itself as
 * it was written. */
#define PROFILE_INCOMPLETE "made of files of which not all could be read"

struct profile_segment {
    uint32_t kind; /* enum memtrace_segment_kind; kinds not known are left out */
    uint32_t owner;
    uint32_t index;
    uint32_t item_size;
    uint32_t item_count; /* places that lie inside the file */
    uint32_t leaf_items; /* places of the whole leaf, more than item_count where the file is cut */
    uint64_t offset;
    uint64_t size;
};

struct profile {
    struct memtrace_header header; /* a copy, as of profile_open or the last profile_refresh */
    const unsigned char *bytes;    /* [0, size) is readable */
    uint64_t size;
    struct profile_segment *segments; /* in the order of the file */
    size_t segment_count;
    size_t segment_room;
    uint32_t area_leaves[MEMTRACE_AREA_LEAVES]; /* by index: number of the segment + 1; 0: none */
    bool live;        /* mapped from a file whose writer may still write */
    bool is_turned;   /* a copy of what a machine with the other byte order wrote */
    char damage[256]; /* empty: whole; else one phrase, e.g. "cut off at byte 8192 of 40960" */
    bool is_broken;   /* there is damage, and not only in the files that it was made of */
    char *path;

    int fd;          /* live: the mapped file; else -1 */
    uint64_t mapped; /* live: bytes mapped; else 0 */
    void *owned;     /* not live: the copy; NULL for profile_wrap */
    struct job_memory *memory;
};

/* Whether files of this version can be read here: exact ones, those with estimates, and those with
 * packed nodes, compressed or not. */
static inline bool profile_knows_version(uint32_t version) {
    version &= ~MEMTRACE_FORMAT_COMPRESSED;
    return version >= MEMTRACE_FORMAT_VERSION && version <= MEMTRACE_FORMAT_PACKED;
}

static inline bool profile_is_compressed(const struct memtrace_header *header) {
    return (header->version & MEMTRACE_FORMAT_COMPRESSED) != 0;
}

/* A writer does not compress what would become so small that a reader, who sees but the file, would
 * have to take it for an attempt to take all its memory. */
static inline uint64_t profile_compressed_most(uint64_t stored_bytes) {
    return (UINT64_C(64) << 20) + (stored_bytes << 11);
}

/*
 * Of a compressed profile (docs/format.md) all header->whole_bytes, in a mapping of their own
 * (pages of zeros take no memory), which goes with the present job. The header there is that of a
 * profile that is not compressed. tables_only: without counters and tree. What is missing is zeros;
 * `damage` gets one phrase about it. The job ends if nothing can be read.
 */
unsigned char *profile_uncompress(int fd, const char *path, const struct memtrace_header *header,
                                  bool tables_only, char *damage, size_t damage_size);

/* Opens a file or a region. NULL on failure: no such file, no profile, another format version,
 * header cut off; error then holds one line. */
struct profile *profile_open(const char *path, struct error *error);
/* The same of an open file, which stays the caller's, called `name` in messages. */
struct profile *profile_open_file(int fd, const char *name, struct error *error);

/* The same over bytes in memory, which must outlive the profile. `name` is for messages. */
struct profile *profile_wrap(const void *bytes, size_t size, const char *name, struct error *error);

/* Looks again at a live profile: header, size, segments. Does nothing to one that is not live.
 * Pointers into `bytes` and `segments` of before are dead afterwards. 0 or -1. */
int profile_refresh(struct profile *profile, struct error *error);

/* The pages of a live profile that were read are not counted as ours until they are read again. */
void profile_let_go(const struct profile *profile);

/* Whether its owner made the file shorter while it was mapped: what was read of the rest is zeros.
 */
bool profile_is_cut(const struct profile *profile);

/* Whether all segments below `end` (header.end of a moment ago) are there: a program raises the end
 * before it publishes what is below. */
bool profile_reaches(const struct profile *profile, uint64_t end);

/* NULL is allowed. */
void profile_close(struct profile *profile);
/* profile_close() when the present job ends. */
void profile_goes_with_job(struct profile *profile);

/* Item `place` of a segment, or NULL if it lies under the segment's header or past its end.
 * Aligned as the item needs. Live items change under the reader. */
const void *profile_item(const struct profile *profile, const struct profile_segment *segment,
                         uint32_t place);

/* A walk through all items of a kind, in the order of the file; all zero at first, but for that. */
struct profile_items {
    uint32_t kind;    /* enum memtrace_segment_kind */
    uint32_t place;   /* of the last item in its segment */
    const void *item; /* the last one */
    uint64_t number;  /* its place among all of the kind, whether they are there or not */
    const struct profile_segment *segment;
    size_t next; /* segment */
};
/* The next item that is there; NULL: there are no more. */
const void *profile_next(const struct profile *profile, struct profile_items *at);
/* How many of a kind there may be. */
size_t profile_places(const struct profile *profile, enum memtrace_segment_kind kind);

/* Whether a segment holds nodes of the tree. */
static inline bool profile_is_tree(const struct profile_segment *segment) {
    return segment->kind == MEMTRACE_SEGMENT_TREE || segment->kind == MEMTRACE_SEGMENT_NODES;
}

/* The same of a node, whichever of the two forms it has. false: there is no such item. */
bool profile_node(const struct profile *profile, const struct profile_segment *segment,
                  uint32_t place, struct memtrace_node *node);

/* The header in the file itself, for reading live fields with profile_load_*. */
const struct memtrace_header *profile_header(const struct profile *profile);

/* Loads of fields that may change: never torn, and not moved before earlier ones. */
static inline uint64_t profile_load_u64(const uint64_t *field) {
    return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}
static inline int64_t profile_load_i64(const int64_t *field) {
    return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}
static inline uint32_t profile_load_u32(const uint32_t *field) {
    return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

#endif
