/* SPDX-License-Identifier: MIT */
/*
 * recording.h: the file that holds every event of a program: a short header, then blocks back to
 * back, each whole in itself. docs/format.md says the same in words, with the columns of an events
 * block.
 *
 * A file is only ever appended to. One whose writer was killed ends in a torn block or without an
 * index: a reader steps from block to block, skips what is damaged (it looks for the next
 * MEMTRACE_BLOCK_MAGIC at a multiple of 8) and says so. Numbers are in the byte order of the
 * machine that wrote them, times are nanoseconds since the program's start.
 */
#ifndef MEMTRACE_RECORDING_H
#define MEMTRACE_RECORDING_H

#include "memtrace/format.h"

#define MEMTRACE_RECORDING_MAGIC   "MEMTRREC" /* 8 bytes, no terminator */
#define MEMTRACE_RECORDING_VERSION 1u
#define MEMTRACE_BLOCK_MAGIC       0x4b4c424du /* "MBLK" in memory on little-endian machines */

/* No writer goes past these, so that a reader knows how much memory a block can ask of it. */
enum {
    MEMTRACE_BLOCK_MOST = 1 << 26,        /* stored_size and raw_size */
    MEMTRACE_BLOCK_EVENTS_MOST = 1 << 20, /* items of an events block */
};

struct memtrace_recording_header {
    char magic[8];
    uint32_t version;
    uint32_t header_size;
    uint32_t byte_order; /* MEMTRACE_BYTE_ORDER */
    uint32_t pid;
    uint64_t process_start_ticks; /* with the pid: which process */
    uint32_t part;                /* 0, 1, ... of a recording that is rotated */
    uint32_t flags;               /* MEMTRACE_RECORDING_* of events.h */
    uint64_t reserved[3];
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_recording_header) == 64, "recording header size");

enum memtrace_block_kind {
    MEMTRACE_BLOCK_PROGRAM = 1,   /* struct memtrace_header as it is then; the last one counts */
    MEMTRACE_BLOCK_NODES = 2,     /* struct memtrace_recording_node, in columns; before their use */
    MEMTRACE_BLOCK_EVENTS = 3,    /* of one stream, in its order */
    MEMTRACE_BLOCK_THREADS = 4,   /* struct memtrace_thread_record[]: all; the last one counts */
    MEMTRACE_BLOCK_MODULES = 5,   /* struct memtrace_module[]: new or changed ones */
    MEMTRACE_BLOCK_POOLS = 6,     /* struct memtrace_recording_pool[]: new ones */
    MEMTRACE_BLOCK_SAMPLES = 7,   /* struct memtrace_sample[] */
    MEMTRACE_BLOCK_SMAPS = 8,     /* struct memtrace_mapping[] at one moment, their names behind */
    MEMTRACE_BLOCK_FILE = 9,      /* struct memtrace_embedded, then a program file or its symbols */
    MEMTRACE_BLOCK_INDEX = 10,    /* struct memtrace_index_entry[]: all blocks before it */
    MEMTRACE_BLOCK_CULLED = 12,   /* struct memtrace_culled[]: what the events leave out */
    MEMTRACE_BLOCK_NAMES = 13,    /* struct memtrace_frame_name[], their texts behind */
    MEMTRACE_BLOCK_SLICES = 14,   /* sums of the events before it: docs/format.md, "Slices" */
    MEMTRACE_BLOCK_SEGMENTS = 15, /* in compressed profiles only: segments, in columns */
    MEMTRACE_BLOCK_SENT = 16,     /* struct memtrace_sent: what is not in this file any more */
    MEMTRACE_BLOCK_GAP = 17,      /* struct memtrace_gap[]: when events were lost */
    MEMTRACE_BLOCK_TOTALS = 18,   /* a slice: what the program counted; docs/format.md, "Totals" */
    MEMTRACE_BLOCK_THINNED = 19,  /* struct memtrace_thinned[]: when not all was recorded */
};

/*
 * Before each block's payload, which begins behind it and is padded with zeros to a multiple of 8.
 * stored_size bytes are stored; they are a zstd frame of raw_size bytes unless the two are equal.
 * checksum: XXH3, 64 bits, of this header with a checksum of 0, then of the payload as stored.
 *
 * stream .. first_number are of events blocks. An events block holds the words from word
 * `first_word` of chunk `first_sequence` up to before word `end_word` of chunk `end_sequence`
 * (events.h) of its stream: so whoever goes on with a file knows what is in it already, and a
 * reader sees whether something is missing.
 */
struct memtrace_block_header {
    uint32_t magic;
    uint16_t kind; /* enum memtrace_block_kind; a reader skips those it does not know */
    uint16_t header_size;
    uint32_t stored_size;
    uint32_t raw_size;
    uint64_t checksum;
    uint64_t first_ns; /* the earliest and the latest time in it */
    uint64_t last_ns;
    uint32_t items; /* events, nodes, records */
    uint32_t stream;
    uint32_t thread;
    uint32_t first_sequence;
    uint32_t end_sequence;
    uint16_t first_word;
    uint16_t end_word;
    uint64_t first_number; /* of the first allocation in it */
    uint32_t allocs; /* how many of its events allocate, and how many free (a realloc: both) */
    uint32_t frees;
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_block_header) == 80, "block header size");

/* The index block is the last of a file that was closed; behind its payload stands this. */
struct memtrace_index_end {
    uint64_t index_offset; /* of the index block's header */
    char magic[8];         /* MEMTRACE_RECORDING_MAGIC */
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_index_end) == 16, "index end size");

struct memtrace_index_entry {
    uint64_t offset;
    struct memtrace_block_header block;
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_index_entry) == 88, "index entry size");

/* A node of the context tree (struct memtrace_node) with its id. A parent stands in the file before
 * its children. */
struct memtrace_recording_node {
    uint64_t frame;
    uint32_t parent;
    uint32_t id;
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_recording_node) == 16, "recording node size");

/* Blocks of a context that were freed so soon that neither end is among the events. Counted since
 * the file's last block of this kind: the sum of all such blocks is the total. */
struct memtrace_culled {
    uint32_t context;
    uint32_t thread; /* that allocated them */
    uint64_t count;
    uint64_t bytes;
    int64_t temporary; /* so many more of the context's blocks were temporary than events tell */
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_culled) == 32, "culled size");

/*
 * What was sent to another machine may be freed here (`memtrace record --queue`): then a file has a
 * hole behind its first block. Pages of MEMTRACE_SENT_PAGE bytes, from the first multiple of that
 * behind the first block on, each hold a block of this kind: this struct, then a struct
 * memtrace_index_entry of each block that was sent, from the file's first block on. They stand
 * where blocks stood that were sent; what is sent has never one. The last page counts for all but
 * its entries: where they end, the file goes on.
 */
#define MEMTRACE_SENT_PAGE UINT64_C(4096)
struct memtrace_sent {
    uint64_t page;   /* 0, 1, ... */
    uint64_t end;    /* bytes below are where they were sent to; the next block begins here */
    uint64_t hashed; /* bytes below are in the hash: docs/stream.md */
    uint64_t hash;
    char to[96]; /* where: "HOST:PORT" */
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_sent) == 128, "sent size");

/* Between these times the program did more than the events tell. So many allocations, and frees of
 * blocks that are recorded, are missing; both 0: not known how many. In the header of the block,
 * allocs and frees are those of all gaps so far. */
struct memtrace_gap {
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t allocs;
    uint64_t frees;
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_gap) == 32, "gap size");

/* Between these times more came than could be taken (--on-lag thin): one allocation in at most so
 * many bytes is among the events, and stands for those that are not. */
struct memtrace_thinned {
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t distance;
    uint64_t reserved;
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_thinned) == 32, "thinned size");

/*
 * What a frame is called, in files whose names do not come from program files: imported ones and
 * those that hide names. It stands for all that a symbolizer would find. Frames with inlined
 * functions have several in a row, innermost first, all in one block; of a frame with names in
 * several blocks the first block counts. The texts stand behind the array, each ended by NUL;
 * `function` and `file` are offsets there, of "" where not known.
 */
struct memtrace_frame_name {
    uint64_t frame;    /* as in nodes */
    uint32_t function; /* demangled */
    uint32_t file;
    uint32_t line;   /* 0: not known */
    uint32_t column; /* 0: not known */
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_frame_name) == 24, "frame name size");

struct memtrace_recording_pool {
    uint32_t number; /* of MEMTRACE_FRAME_POOL + number */
    uint32_t reserved;
    char name[64];
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_recording_pool) == 72, "pool size");

/* The process at one moment. 0: not known. */
struct memtrace_sample {
    uint64_t time_ns;
    uint64_t resident_bytes;
    uint64_t swap_bytes;
    uint64_t virtual_bytes;
    uint64_t live_bytes; /* heap, by the profile's counters */
    uint64_t cgroup_bytes;
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_sample) == 48, "sample size");

/* One line of /proc/PID/smaps. The names stand behind the array, each ended by NUL. */
struct memtrace_mapping {
    uint64_t start, end;
    uint64_t offset;
    uint64_t resident_bytes;
    uint64_t dirty_bytes;
    uint64_t swap_bytes;
    uint32_t protection; /* PROT_*, bit 3: shared */
    uint32_t name;       /* offset of its name behind the array */
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_mapping) == 56, "mapping size");

/* What stands before an embedded file. */
enum memtrace_embedded_what {
    MEMTRACE_EMBEDDED_WHOLE = 1,   /* the file as it is */
    MEMTRACE_EMBEDDED_SYMBOLS = 2, /* an ELF file with the same addresses and build-id that holds
                                      what names functions and lines, without code and data */
};
struct memtrace_embedded {
    uint32_t module; /* 0, or in some files the id of the module: the build-id says it, or, of a
                        file that has none (size 0), the path */
    uint32_t what;   /* enum memtrace_embedded_what */
    uint64_t offset; /* of these bytes in the file: large files come in several blocks */
    uint64_t size;   /* of the whole file */
    uint8_t build_id[32];
    uint32_t build_id_size;
    uint32_t path_size; /* bytes of the path that follows, NUL included; then the bytes */
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_embedded) == 64, "embedded size");

#endif
