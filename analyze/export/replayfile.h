/* SPDX-License-Identifier: MIT */
/*
 * replayfile.h: a recording's allocations as a file that another allocator can be made to repeat:
 * slots and sizes, without call paths. docs/replay.md describes the bytes.
 *
 * Written by export_replay(), read by cli/replay. One thread.
 */
#ifndef ANALYZE_EXPORT_REPLAYFILE_H
#define ANALYZE_EXPORT_REPLAYFILE_H

#include "analyze/base/error.h"
#include "analyze/read/varint.h"

#define REPLAYFILE_MAGIC "MTREPLAY" /* 8 bytes, the NUL is not written */

enum { REPLAYFILE_VERSION = 1, REPLAYFILE_THREADS = 4096 };

enum replayfile_operation {
    REPLAYFILE_END = 0,
    REPLAYFILE_MALLOC = 1,
    REPLAYFILE_CALLOC = 2,
    REPLAYFILE_ALIGNED = 3,
    REPLAYFILE_REALLOC = 4, /* of the block in the slot, which stays in it */
    REPLAYFILE_FREE = 5,
};

/* Of a record's first byte, above its operation: what has changed since the record before. */
enum { REPLAYFILE_THREAD = 1 << 3, REPLAYFILE_TIME = 1 << 4, REPLAYFILE_KNOWN = (1 << 5) - 1 };

struct replayfile_event {
    enum replayfile_operation operation;
    uint32_t thread;
    uint64_t time_ns;
    uint64_t slot;
    uint64_t size;      /* but of a free */
    uint32_t alignment; /* log2; ALIGNED alone */
};

struct replayfile_head {
    char magic[8];
    uint32_t version;
    uint32_t byte_order; /* MEMTRACE_BYTE_ORDER */
};

/* At the end of the file. */
struct replayfile_foot {
    uint64_t events;
    uint64_t allocations; /* reallocations, too */
    uint64_t frees;       /* likewise */
    uint64_t total_bytes; /* of all allocations */
    uint64_t slots;       /* most blocks at once */
    uint64_t duration_ns;
    uint64_t checksum; /* XXH64 of all bytes before this field */
    char magic[8];
};

struct replayfile {
    const unsigned char *bytes;
    size_t size;
    struct replayfile_foot foot;
    int unpacked; /* where it lies if the file is packed, for children, too; -1: it is not */
};

/* Opens and checks all of it: whoever reads its events need not. It may be packed by gzip or zstd.
 * 0 or -1. */
int replayfile_open(struct replayfile *file, const char *path, struct error *error);
void replayfile_close(struct replayfile *file);

struct replayfile_reader {
    struct varint_reader bytes;
    bool failed;
    uint32_t thread;
    uint64_t time_ns;
};

void replayfile_start(struct replayfile_reader *reader, const struct replayfile *file);
/* 1; 0: the end; -1: damaged. */
int replayfile_next(struct replayfile_reader *reader, struct replayfile_event *event);

#endif
