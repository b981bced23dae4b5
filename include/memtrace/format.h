/* SPDX-License-Identifier: MIT */
/*
 * format.h: the contract between the program that is profiled and the tools that read its profile.
 *
 * A profile is one file: a header, then segments back to back. While the program runs the file is
 * a shared mapping (the "profile region"); when it ends the same bytes become the profile. Nothing
 * is ever moved inside it, so a reader needs no lock and a file that is cut off, or whose writer
 * was killed, is read up to the break. docs/format.md says the same in words.
 *
 * Numbers are in the byte order of the machine that wrote them (header.byte_order tells), offsets
 * are from the start of the file, times are in nanoseconds, sizes are in bytes. Counters only grow.
 * Whatever a reader does not know (a segment kind, a flag) it skips.
 */
#ifndef MEMTRACE_FORMAT_H
#define MEMTRACE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
#define MEMTRACE_STATIC_ASSERT static_assert
#else
#define MEMTRACE_STATIC_ASSERT _Static_assert
#endif

#define MEMTRACE_MAGIC          "MEMTRACE" /* 8 bytes, no terminator */
#define MEMTRACE_FORMAT_VERSION 1u         /* every count is exact */
#define MEMTRACE_FORMAT_SAMPLED 2u         /* counts are estimates: see struct memtrace_estimate */
#define MEMTRACE_FORMAT_PACKED  3u         /* packed nodes; estimates: see MEMTRACE_FLAG_SAMPLED */
/* Added to the version: a compressed profile. The header is as ever, but for stored_bytes; behind
 * it stand blocks (recording.h) of kind MEMTRACE_BLOCK_SEGMENTS, which give the bytes of the
 * profile. */
#define MEMTRACE_FORMAT_COMPRESSED 0x100u
#define MEMTRACE_BYTE_ORDER        0x01020304u

enum {
    MEMTRACE_HEADER_SIZE = 16384,
    MEMTRACE_PAGE_SIZE = 4096, /* every segment starts at a multiple of this */
    MEMTRACE_LEAF_ITEMS = 1024,
    MEMTRACE_CONTEXT_BITS = 24,
    MEMTRACE_THREAD_BITS = 12,
    MEMTRACE_LIFETIME_BUCKETS = 16,
    MEMTRACE_TICK_SHIFT = 22, /* one lifetime tick is 2^22 ns, about 4.2 ms */
    MEMTRACE_TIMELINE_POINTS = 1023,
    MEMTRACE_REGION_FOLDERS = 3, /* memtrace-UID, memtrace-UID.2, ...: the first one that is ours */
    MEMTRACE_FIRST_CONTEXT = 8,  /* ids 0..7 of each tree leaf lie under the segment header */
};

enum memtrace_state {
    MEMTRACE_STATE_RUNNING = 1, /* the program runs, or was killed: ask whether the pid is alive */
    MEMTRACE_STATE_ENDED = 2,   /* the program ended and wrote its last event */
    MEMTRACE_STATE_EXECED = 3,  /* the program replaced itself by exec */
    MEMTRACE_STATE_COPIED = 4,  /* a copy made while the program went on */
    MEMTRACE_STATE_WRITTEN =
        5, /* the profile is at its place; who could not remove the region says so */
};

/* Which processes belong to a run besides the one that was started: header.run.children. */
enum memtrace_children {
    MEMTRACE_CHILDREN_NONE = 0, /* none: what it becomes by exec is not followed either */
    MEMTRACE_CHILDREN_EXEC = 1, /* the same process, whatever it becomes by exec */
    MEMTRACE_CHILDREN_ALL = 2,  /* and all that it forks or starts */
};

/* A run is one command of the user: all processes that came of it. A pid names a process only
 * within its namespace, and with its start (header.process_start_ticks). */
struct memtrace_run {
    uint64_t id;            /* the same in all processes of a run; 0: no run was named */
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid; 0: not known */
    uint32_t children;      /* enum memtrace_children */
    uint32_t not_reached;   /* live: programs that it started where they cannot open our library:
                               under   another root, as another user; 0 in older files */
};

/* How backtraces were taken: header.stacks. */
enum memtrace_stacks {
    MEMTRACE_STACKS_NONE = 0,  /* no contexts: totals per thread only */
    MEMTRACE_STACKS_SHORT = 1, /* only frames of the program's own modules */
    MEMTRACE_STACKS_FULL = 2,
};

/* header.flags */
enum {
    MEMTRACE_FLAG_INSTRUMENTED = 1u << 0, /* compiler hooks fed the shadow stack */
    MEMTRACE_FLAG_PRELOADED = 1u << 1,    /* the runtime came by LD_PRELOAD */
    MEMTRACE_FLAG_FORKED = 1u << 2,       /* made in a forked child: see inherited_* */
    MEMTRACE_FLAG_DISK = 1u << 3,         /* the region lay on disk: no usable tmpfs */
    MEMTRACE_FLAG_THREADED = 1u << 4,     /* more than one thread allocated: the peak has a bound */
    MEMTRACE_FLAG_FOREIGN_MALLOC = 1u
                                   << 5, /* the allocator is not glibc's: tiny requests rounded */
    MEMTRACE_FLAG_ADJACENT = 1u << 6, /* imported: a temporary block ends in the very next event */
    MEMTRACE_FLAG_SAMPLED = 1u << 7,  /* some allocations stood for others; version is not 1 then */
    MEMTRACE_FLAG_BEFORE_UNSURE = 1u << 8, /* MEMTRACE_FRAME_BEFORE was not followed to the end */
    MEMTRACE_FLAG_ATTACHED = 1u << 9,      /* the program ran already: it can be detached from */
    MEMTRACE_FLAG_LEFT = 1u << 10,         /* it was detached from, and went on */
    MEMTRACE_FLAG_NAMED = 1u << 11,    /* functions that --alloc named count as the heap's malloc */
    MEMTRACE_FLAG_FOLLOWED = 1u << 12, /* functions that --alloc named are there, and counted */
    MEMTRACE_FLAG_OUTSIDE = 1u << 13,  /* live: who attached writes the profile, not the program */
    MEMTRACE_FLAG_INCOMPLETE = 1u << 14 /* made of files of which not all could be read */
};

/* Whose malloc the program calls where it is not ours: then what it allocates is not counted, and
 * "lost" says nothing about it. */
enum memtrace_malloc_place {
    MEMTRACE_MALLOC_COUNTED = 0, /* name "all": so say the files of program and libraries, too */
    MEMTRACE_MALLOC_PROGRAM = 1, /* defined in the program's own file; name: the allocator's */
    MEMTRACE_MALLOC_LIBRARY = 2, /* in a library found before ours; name: that file's base name */
    /* what only who looks into the program's file sees: */
    MEMTRACE_MALLOC_HIDDEN = 3, /* as 1, but only the program itself sees it */
    MEMTRACE_MALLOC_NAMED = 4,  /* besides malloc; name: a function, "mi_malloc" */
    /* In a library, which calls it itself: the rest is counted. name: "jemalloc in libplug.so", or
     * "malloc in libplug.so" where it is not known; " and N more" may follow. */
    MEMTRACE_MALLOC_INSIDE = 5,
};

struct memtrace_malloc {
    uint32_t place; /* enum memtrace_malloc_place */
    char name[60];  /* cut if it does not fit; empty: not known */
};

/* What could not be kept; the sum is "lost" in every report. memtrace_lost() finds the counter. */
enum memtrace_loss {
    MEMTRACE_LOST_EVENTS = 0,   /* allocations that were not counted (no room, thread in handler) */
    MEMTRACE_LOST_CONTEXTS = 1, /* allocations charged to an ancestor: context limit or no room */
    MEMTRACE_LOST_FRAMES = 2,   /* backtraces that end early: no unwind information */
    MEMTRACE_LOST_THREADS = 3,  /* threads whose totals went to "others" */
    MEMTRACE_LOST_MODULES = 4,  /* modules past the table */
    MEMTRACE_LOST_BLOCKS = 5,   /* live blocks that could not be noted: their frees are not seen */
    MEMTRACE_LOST_GUARDS = 6,   /* threads whose stacks are patched no more (docs/unwinding.md) */
    MEMTRACE_LOST_RECORDS = 7,  /* events that the profile has and the recording has not */
    MEMTRACE_LOST_FREES = 8,    /* blocks that were freed past us: another block lay there later */
    MEMTRACE_LOSS_KINDS = 9,
    MEMTRACE_LOSS_FIRST_KINDS =
        8,                       /* in header.lost[], those that came later in header.more_lost[] */
    MEMTRACE_LOSS_MORE_KINDS = 4 /* places for those */
};

/* What the collector does when the program nears the end of its memory (docs/limits.md). */
enum memtrace_limit_action {
    MEMTRACE_LIMIT_REPORT = 0, /* a periodic report */
    MEMTRACE_LIMIT_DUMP = 1,   /* and the profile as it is */
    MEMTRACE_LIMIT_ABORT = 2,  /* and SIGABRT to the program */
};
struct memtrace_limit {
    uint64_t bytes;   /* of the process; 0: see percent */
    uint32_t percent; /* of what the process, its cgroup and the machine may use; both 0: none */
    uint32_t action;  /* enum memtrace_limit_action */
};

/* Who is to own the files that are written. */
struct memtrace_owner {
    uint32_t is_set;
    uint32_t uid, gid;
};

/* Why a program that was started is not profiled. */
enum memtrace_not_followed {
    MEMTRACE_NOT_FOLLOWED_LIBC,    /* another C library, and no library of ours for it is there */
    MEMTRACE_NOT_FOLLOWED_STATIC,  /* linked statically, without MemTrace in it */
    MEMTRACE_NOT_FOLLOWED_MACHINE, /* another machine, or 32 bits, and no library of ours for it */
    MEMTRACE_NOT_FOLLOWED_ORDER,   /* a sanitizer's library must come before ours */
    MEMTRACE_NOT_FOLLOWED_KINDS
};

/*
 * The first MEMTRACE_HEADER_SIZE bytes. Fields marked "live" change while the program runs.
 *
 * Peak. Each cell keeps what it held when the process was last at its maximum, lazily: the peak
 * epoch is odd while the process is at its maximum (every cell's present value counts) and even
 * after it fell below (a cell whose epoch equals the header's counts with saved_live, any other,
 * unchanged since, with its present value). The sum over all heap cells is the maximum.
 */
struct memtrace_header {
    char magic[8];
    uint32_t version;
    uint32_t header_size;
    uint32_t byte_order;
    uint32_t machine; /* e_machine of the ELF header */
    uint64_t end;     /* live: bytes of the file in use; segments lie below */
    uint32_t state;   /* live: enum memtrace_state */
    uint32_t flags;   /* live: MEMTRACE_FLAG_* */
    uint32_t stacks;  /* enum memtrace_stacks */
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t uid;
    uint32_t collector_pid; /* live: who prints the periodic report and finishes; 0: nobody */
    uint32_t thread_count;  /* live: highest thread id given out, plus one */
    uint32_t module_count;  /* live */
    uint32_t pool_count;    /* live: names of custom pools in use */
    uint64_t context_count; /* live: contexts made (tree nodes), pseudo-frames included */
    uint64_t context_limit;
    uint64_t process_start_ticks; /* field 22 of /proc/PID/stat: tells a reused pid */
    uint64_t start_realtime_ns;
    uint64_t start_monotonic_ns; /* zero of every other time in the file */
    uint64_t end_monotonic_ns;   /* 0 while running or if killed */
    uint32_t peak_epoch;         /* live */
    uint32_t peak_threads;       /* live: threads that keep a private delta: bound of the peak */
    int64_t live_bytes;          /* live: flushed live heap bytes; exact with one thread */
    int64_t maximum_bytes;       /* live: the highest live_bytes; the reported maximum is the sum */
    uint64_t peak_error_bytes;   /* live: peak_threads * max(128 KiB, maximum/512); 0 with one */
    uint64_t inherited_blocks;   /* forked child: live blocks it was born with */
    uint64_t inherited_bytes;    /* and their bytes; what a program had when it was attached to */
    uint64_t lost[MEMTRACE_LOSS_FIRST_KINDS]; /* live */
    uint64_t churn_bytes;       /* live: bytes allocated plus freed, flushed now and then */
    uint64_t shadow_heap;       /* address of the program's shadow heap root (docs/format.md) */
    uint64_t pool_heap;         /* the same for custom pools */
    uint64_t every_ns;          /* periodic report: interval, 0: none */
    uint64_t churn_limit_bytes; /* periodic report: churned bytes, 0: none */
    uint32_t top;               /* periodic report: paths, 0: all */
    uint32_t summary;           /* 1: print the summary at the end */
    uint64_t snapshot_request;  /* live: grows by one for each memtrace_snapshot() */
    uint64_t clock_ns;          /* live: the latest time any thread looked at the clock */
    uint64_t log_size_bytes;    /* the log is begun anew at this size; 0: never */
    struct memtrace_limit limit;
    char recording[1408]; /* struct memtrace_recording (events.h) */
    struct memtrace_owner owner;
    /* live: programs that it started and that could not be followed, by the reason; 255: or more */
    uint8_t not_followed[MEMTRACE_NOT_FOLLOWED_KINDS];
    struct memtrace_run run;
    uint64_t peak_resident_bytes; /* live: the most memory that was resident, as the kernel counts
                                     it (VmHWM); 0: not known, as in older files */
    uint64_t maximum_ns; /* live: until when the process was at its maximum, by clock_ns; 0: not
                            known, or it is there still (peak_epoch is odd) */
    /* live: where the next light child's record goes: page of the newest segment of processes << 32
     * | its index << 8 | place in it; 0: there is none yet */
    uint64_t process_place;
    uint64_t path_bytes;    /* live: of all segments of paths, at most MEMTRACE_PATHS_MOST */
    uint32_t merged;        /* a merged profile: of how many; the process is the first one's */
    uint32_t mode;          /* live: enum memtrace_mode (sampled.h); 0 in older files */
    uint64_t birth_zero_ns; /* zero of the ticks of births in the shadow heap, on the monotonic
                               clock: the start of the process or, in a forked child, which
                               inherits blocks, that of its first ancestor */
    uint64_t more_lost[MEMTRACE_LOSS_MORE_KINDS]; /* live: 0 in older files */
    uint64_t sample_bytes;   /* live: mean distance of sampled bytes, the last one; 0: never */
    uint64_t control;        /* live: written by others, see MEMTRACE_CONTROL_MODE_SHIFT */
    uint64_t control_done;   /* live: what of it was carried out last */
    uint64_t sampled_heap;   /* live: address of the program's struct memtrace_sampled_heap */
    double live_variance;    /* live: of live_bytes as an estimate */
    double maximum_variance; /* live: the same when the maximum was reached */
    uint64_t stored_bytes;   /* of a compressed profile: the size of the file, */
    uint64_t whole_bytes;    /* and the size that it has uncompressed */
    /* live: how much of `resident` is MemTrace's own (its tables and this file), when it was looked
     * at last; 0: not known, as in older files */
    uint64_t own_resident_bytes;
    uint64_t own_maps;      /* address of the program's struct memtrace_own_maps; 0: not told */
    uint64_t command_bytes; /* of `command`; 0: up to the first empty argument, as in older files */
    char name[40];          /* of the program, as it was called; empty: as its file is called */
    uint64_t
        foreign_heap; /* address of the same for blocks of allocators that stand in for malloc */
    struct memtrace_malloc malloc_by;
    char executable[2048]; /* absolute path of the program */
    char command[4096];    /* arguments, each ended by NUL */
    char output[4096];     /* absolute path the profile goes to, patterns expanded */
    char log[4096];        /* absolute path of the log, empty: stderr */
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_header) == MEMTRACE_HEADER_SIZE, "header size");
MEMTRACE_STATIC_ASSERT(offsetof(struct memtrace_header, executable) == 2048, "header layout");
MEMTRACE_STATIC_ASSERT(offsetof(struct memtrace_header, end) == 24, "header layout");
MEMTRACE_STATIC_ASSERT(offsetof(struct memtrace_header, recording) == 320, "header layout");

/* What the program is called: no path, whatever the header holds, whose strings are ended. */
static inline const char *memtrace_program(const struct memtrace_header *header) {
    const char *name = header->name[0] != '\0' ? header->name : header->executable;
    for (const char *at = name; *at != '\0'; at++) {
        name = *at == '/' ? at + 1 : name;
    }
    return name;
}

/* The counter of losses of this kind; to be written only where the header is. */
static inline uint64_t *memtrace_lost(const struct memtrace_header *header, unsigned kind) {
    const uint64_t *counter = kind < MEMTRACE_LOSS_FIRST_KINDS
                                  ? &header->lost[kind]
                                  : &header->more_lost[kind - MEMTRACE_LOSS_FIRST_KINDS];
    return (uint64_t *)(uintptr_t)counter;
}

static inline uint64_t memtrace_lost_sum(const struct memtrace_header *header) {
    uint64_t sum = 0;
    for (unsigned kind = 0; kind < MEMTRACE_LOSS_KINDS; kind++) {
        sum += *memtrace_lost(header, kind);
    }
    return sum;
}

enum memtrace_segment_kind {
    MEMTRACE_SEGMENT_TREE = 1,      /* struct memtrace_node[1024], ids index * 1024 + i; before
                                       version 3 and in merged profiles */
    MEMTRACE_SEGMENT_LEDGER = 2,    /* struct memtrace_cell[1024] of column `owner` */
    MEMTRACE_SEGMENT_LIFETIMES = 3, /* struct memtrace_lifetimes[1024], any column */
    MEMTRACE_SEGMENT_THREADS = 4,   /* struct memtrace_thread_record[] */
    MEMTRACE_SEGMENT_MODULES = 5,   /* struct memtrace_module[] */
    MEMTRACE_SEGMENT_POOLS = 6,     /* struct memtrace_pool[] */
    MEMTRACE_SEGMENT_TIMELINE = 7,  /* struct memtrace_timeline, the only one */
    MEMTRACE_SEGMENT_FREES = 8,     /* struct memtrace_foreign_frees[] of thread `owner` */
    MEMTRACE_SEGMENT_EVENTS = 9, /* struct memtrace_chunk[32] (events.h): buffers, while running */
    MEMTRACE_SEGMENT_PROCESSES = 10, /* struct memtrace_process[], light children of this process */
    MEMTRACE_SEGMENT_PATHS = 11, /* struct memtrace_path[] of light child `owner`; 0: of several */
    MEMTRACE_SEGMENT_ESTIMATES =
        12, /* struct memtrace_estimate[1024] (sampled.h), ids as of the tree */
    MEMTRACE_SEGMENT_CELLS = 13,     /* struct memtrace_cell[66] of column `owner`: see there */
    MEMTRACE_SEGMENT_NODES = 14,     /* uint64_t[1024], nodes, packed, ids index * 1024 + i */
    MEMTRACE_SEGMENT_AREAS = 15,     /* uint64_t[512], areas index * 512 + i: memtrace_unpack() */
    MEMTRACE_SEGMENT_POOL_ROOM = 16, /* struct memtrace_pool_room[], written when the process ends;
                                        of several the last one counts */
};

#define MEMTRACE_SEGMENT_MAGIC 0x474d4553u /* "SEMG" in memory on little-endian machines */

/*
 * Every segment starts with this header, in the place of its first item (or items): a leaf is a
 * plain array, and the indices under the header are never given out. A segment counts once its
 * magic is there (written last). A reader steps from segment to segment by `size`; where the magic
 * is missing (the writer died between reserving and writing) it looks at the next page, up to
 * header.end.
 */
struct memtrace_segment {
    uint32_t magic;
    uint16_t kind; /* enum memtrace_segment_kind */
    uint16_t header_size;
    uint32_t owner; /* ledger: column; frees: thread id; else 0 */
    uint32_t index; /* number of this leaf within its kind and owner, from 0 */
    uint64_t size;  /* of the whole segment, this header included; a multiple of the page size */
    uint32_t item_size;
    uint32_t item_count; /* places, those under this header included */
    uint32_t previous;   /* frees, for the runtime: page of this thread's segment before; 0: none */
    uint32_t used;       /* for the runtime: shared paths: places taken; processes: 1 if there is
                            room for shared paths behind it */
    char reserved[24];
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_segment) == 64, "segment size");

/*
 * A calling context: the path `parent` extended by one frame. A context id is the node's place:
 * leaf index * 1024 + place in the leaf; 0 is no context and the parent of outermost frames.
 * A parent is always older than its children, so parent < id. A node whose frame is 0 was reserved
 * but never written.
 *
 * frame: bits 0..47 the return address (or, MEMTRACE_FRAME_EXACT set, the address of the
 * interrupted instruction), bits 48..62 the module id, bit 63 exact. A return address points behind
 * the call: subtract one before looking up its line.
 * Frames below MEMTRACE_FRAME_CLASSES are no code but the class of what was allocated, always
 * innermost: MEMTRACE_FRAME_MAPPING for mmap and friends, MEMTRACE_FRAME_POOL + n for custom pool
 * n. A context without such a frame is heap; so is MEMTRACE_FRAME_UNKNOWN.
 */
struct memtrace_node {
    uint64_t frame;
    uint32_t parent;
    uint32_t reserved;
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_node) == 16, "node size");

#define MEMTRACE_FRAME_EXACT        (UINT64_C(1) << 63)
#define MEMTRACE_FRAME_ADDRESS_MASK ((UINT64_C(1) << 48) - 1)
#define MEMTRACE_FRAME_MODULE_SHIFT 48
#define MEMTRACE_FRAME_MODULE_MASK  0x7fffu /* module 0: in no known module */
#define MEMTRACE_FRAME_MAPPING      UINT64_C(1)
#define MEMTRACE_FRAME_UNKNOWN      UINT64_C(2) /* a heap block whose backtrace was not taken */
#define MEMTRACE_FRAME_POOL         UINT64_C(16)
#define MEMTRACE_FRAME_CLASSES      UINT64_C(4096)
/* No code either, but it stands where code would: the only frame of the path to which the heap is
 * charged that a program had when it was attached to. Its cells have as many allocations as frees,
 * and one more: what they say is its bytes, freed bytes and frees. header.inherited_bytes has those
 * at the start. */
#define MEMTRACE_FRAME_BEFORE UINT64_C(0xbef0)

/*
 * The same in 8 bytes: bits 0..23 of the frame, in bits 24..47 the parent, in bits 48..63 the
 * number of an area, which has the upper bits of the frame. 0: reserved but never written. An area
 * is 16 MiB of a module's addresses; area 0 is that of the classes. A number without an area stands
 * for all for which there was no room: frames there belong to no module.
 */
enum {
    MEMTRACE_AREA_SHIFT = 24,
    MEMTRACE_AREA_LEAF_ITEMS = 512,
    MEMTRACE_AREA_LEAVES = (1 << 16) / MEMTRACE_AREA_LEAF_ITEMS,
};

#define MEMTRACE_NODE_FRAME_MASK   ((UINT64_C(1) << MEMTRACE_AREA_SHIFT) - 1)
#define MEMTRACE_NODE_PARENT_SHIFT 24
#define MEMTRACE_NODE_AREA_SHIFT   48
#define MEMTRACE_AREA_UNKNOWN      ((uint64_t)MEMTRACE_FRAME_MODULE_MASK << MEMTRACE_FRAME_MODULE_SHIFT)

/* `area`: what stands at the node's area, 0: there is none. */
static inline struct memtrace_node memtrace_unpack(uint64_t packed, uint64_t area) {
    struct memtrace_node node = {0, 0, 0};
    node.frame = packed & MEMTRACE_NODE_FRAME_MASK;
    node.frame |=
        area != 0 || packed >> MEMTRACE_NODE_AREA_SHIFT == 0 ? area : MEMTRACE_AREA_UNKNOWN;
    node.parent = (uint32_t)(packed >> MEMTRACE_NODE_PARENT_SHIFT) &
                  ((UINT32_C(1) << MEMTRACE_CONTEXT_BITS) - 1);
    return node;
}

/*
 * What one thread column allocated and freed in one context. Only its owner writes it, each field
 * only grows (saved_live and peak_epoch apart), so: live = sum(alloc) - sum(free) over columns;
 * read the frees of all columns before the allocations and no block is freed before it was
 * allocated. A realloc of a live block is one free and one allocation of the full new size.
 */
struct memtrace_cell {
    uint64_t alloc_bytes;
    uint64_t alloc_count;
    uint64_t free_bytes;
    uint64_t free_count;
    uint64_t temporary_count; /* freed by the same thread with no other allocation in between */
    int64_t saved_live;       /* alloc_bytes - free_bytes at the peak: see memtrace_header */
    uint32_t peak_epoch;
    uint32_t lifetimes; /* 0 none; bit 31: one free, in bucket (bits 0..3); else its record's id.
                           Bit 30: bucket 0 is not counted, it holds all frees that no other has */
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_cell) == 56, "cell size");

/* A column's cells lie in segments of two kinds, which may overlap: add them up. MEMTRACE_SEGMENT_
 * LEDGER has those of the 1024 contexts of a leaf, by their place. MEMTRACE_SEGMENT_CELLS, a page,
 * is for threads that need few: item MEMTRACE_GROUP_FIRST + i is that of context index *
 * MEMTRACE_GROUP_ITEMS + i. */
enum { MEMTRACE_GROUP_SHIFT = 6, MEMTRACE_GROUP_ITEMS = 64, MEMTRACE_GROUP_FIRST = 2 };

#define MEMTRACE_LIFETIME_SINGLE 0x80000000u
#define MEMTRACE_LIFETIME_REST   0x40000000u
#define MEMTRACE_LIFETIME_RECORD 0x00ffffffu /* the bits of a record's id */

/*
 * How long freed blocks lived. Bucket 0: under one tick (2^MEMTRACE_TICK_SHIFT ns); bucket b: at
 * least 4^(b-1) and under 4^b ticks; the last bucket has no upper end. Counts stop at UINT32_MAX.
 */
struct memtrace_lifetimes {
    uint32_t bucket[MEMTRACE_LIFETIME_BUCKETS];
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_lifetimes) == 64, "lifetimes size");

/* What was done with heap blocks. */
struct memtrace_counts {
    uint64_t alloc_count;
    uint64_t alloc_bytes;
    uint64_t free_count;
    uint64_t free_bytes;
};

enum memtrace_thread_state {
    MEMTRACE_THREAD_FREE = 0,
    MEMTRACE_THREAD_ALIVE = 1,
    MEMTRACE_THREAD_ENDED = 2,
};

/*
 * One thread's totals over heap blocks (mappings and custom pools left out). Its place in the table
 * is leaf index * item_count + place; place 0 of each leaf, under the segment header, is no thread.
 * A thread's id is its place. Where ids run low, a thread gets the id of one that ended and adds to
 * its counters; `tid`, `name`, `state` and times are those of the last one.
 * Thread MEMTRACE_THREAD_OTHERS stands for what threads do after they have said goodbye, and for
 * those alive beyond the ids: each of these has a record of its own, past the ids, whose id this
 * is.
 */
enum { MEMTRACE_THREAD_OTHERS = 1 };

struct memtrace_thread_record {
    uint32_t id;  /* the id in a block's record */
    uint32_t tid; /* the kernel's */
    uint32_t state;
    uint32_t column;
    uint64_t start_ns;
    uint64_t end_ns;
    struct memtrace_counts counts;
    uint64_t foreign_free_count; /* blocks this thread freed that another had allocated */
    uint64_t foreign_free_bytes;
    uint32_t earlier; /* threads that ended and had this record before: they are in the counters */
    uint32_t place;   /* for the runtime: of this record; */
    uint32_t next;    /* of the next one that waits for a thread; */
    uint32_t frees;   /* page of its newest segment of foreign frees; 0: none */
    char name[32];
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_thread_record) == 128, "thread record size");

/* Whose memory a thread freed: item i of leaf n of owner T counts what T freed of thread
 * n * 256 + i. The first four places of a leaf lie under the segment header: those owners are kept
 * at places 256 to 259. */
struct memtrace_foreign_frees {
    uint64_t count;
    uint64_t bytes;
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_foreign_frees) == 16, "foreign frees size");

/* A loaded object seen in some backtrace. Never reused: an object mapped again is a new record. */
struct memtrace_module {
    uint32_t id; /* its index */
    uint32_t build_id_size;
    uint64_t start, end; /* addresses it was mapped at */
    uint64_t bias;       /* address - bias = address in the file's own terms (st_value) */
    uint64_t load_ns;    /* when it was first seen */
    uint64_t unload_ns;  /* when it was seen to be gone; 0: never */
    uint8_t build_id[32];
    char path[1024 - 80]; /* absolute where known; "[vdso]"; longer ones: see below */
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_module) == 1024, "module size");

/*
 * A path that does not fit goes on in the path of another record, which is of no object (its range
 * is empty): up to MEMTRACE_MODULE_PART bytes, a NUL, and the other's id, the low byte first. A
 * record is whole before another one names it.
 */
enum { MEMTRACE_MODULE_PART = 1024 - 80 - 5 };

/* Where the path goes on; 0: it ends here. */
static inline uint32_t memtrace_module_rest(const struct memtrace_module *module) {
    const uint8_t *at = (const uint8_t *)&module->path[MEMTRACE_MODULE_PART + 1];
    return module->path[MEMTRACE_MODULE_PART] == '\0' && module->path[0] != '\0'
               ? (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16
               : 0;
}

/*
 * A forked child is light until it has done something worth a region of its own (100,000 events
 * or 16 MiB live): it keeps its counters in private memory and its totals here, in the region of
 * the nearest ancestor that has one. Its number is leaf index * item_count + place, as a thread's
 * id; place 0 of each leaf lies under the segment header. Only the child writes its record; what a
 * killed one has counted stays. memtrace_process_own() leaves out what it was born with.
 */
enum memtrace_process_state {
    MEMTRACE_PROCESS_FREE = 0,
    MEMTRACE_PROCESS_RUNNING = 1, /* or killed */
    MEMTRACE_PROCESS_ENDED = 2,
    MEMTRACE_PROCESS_EXECED = 3,
    MEMTRACE_PROCESS_GROWN = 4, /* it has a region of its own, where all that it did is counted */
};

struct memtrace_process {
    uint32_t pid;
    uint32_t parent_pid;
    uint32_t state;      /* enum memtrace_process_state */
    uint32_t path_count; /* live: items of its segments of paths; 0 until it ended */
    uint64_t start_ns;   /* as all times, since header.start_monotonic_ns */
    uint64_t end_ns;
    struct memtrace_counts counts; /* of heap blocks; frees of inherited ones, too */
    uint64_t maximum_bytes;        /* the most that it held of its own, before its last free */
    uint64_t lost;
    char name[16];                 /* of its first thread, as in /proc/PID/comm */
    uint64_t inherited_free_count; /* of what it was born with: these are among the frees */
    uint64_t inherited_free_bytes;
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_process) == 112, "process record size");

/* What a light child did with blocks of its own, at one moment. */
struct memtrace_process_own {
    struct memtrace_counts counts;
    uint64_t maximum_bytes;
};

static inline struct memtrace_process_own
memtrace_process_own(const struct memtrace_process *process) {
    struct memtrace_process_own own = {process->counts, process->maximum_bytes};
    uint64_t *count = &own.counts.free_count, *bytes = &own.counts.free_bytes;
    uint64_t allocated = own.counts.alloc_bytes;
    *count -= process->inherited_free_count < *count ? process->inherited_free_count : *count;
    *bytes -= process->inherited_free_bytes < *bytes ? process->inherited_free_bytes : *bytes;
    if (allocated > *bytes && allocated - *bytes > own.maximum_bytes) {
        own.maximum_bytes = allocated - *bytes;
    }
    return own;
}

/*
 * What a light child did, by call path, written when it ended. `id` is the child's context; where
 * `frame` is 0 it is also one of the tree of this file, else a node that the child made, whose
 * parent is named by id, too. Parents come first. Items 0 and 1 lie under the segment header.
 *
 * Where the segment is shared (owner 0) each child's paths follow an item with the frame
 * MEMTRACE_PATHS_HEAD, `id` the child's number (0: void) and `parent` the number of its paths.
 * Other items that no such head counts are void: that child was killed.
 */
enum { MEMTRACE_PATHS_MOST = 16 << 20 }; /* bytes a file; past it only totals are kept */
#define MEMTRACE_PATHS_HEAD UINT64_C(0x4441454853485450) /* no frame: not an address */

struct memtrace_path {
    uint64_t frame;
    uint32_t id;
    uint32_t parent;
    uint64_t alloc_bytes;
    uint64_t alloc_count;
    uint64_t free_bytes;
    uint64_t free_count;
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_path) == 48, "path size");

struct memtrace_pool {
    char name[64]; /* of memtrace_alloc(); frame MEMTRACE_FRAME_POOL + its index */
};

/*
 * Where the live blocks of a pool lay when the process ended: item MEMTRACE_POOL_ROOM_FIRST + n is
 * that of pool n. A block lies in the innermost thing that contains its first byte: a block of the
 * heap, a mapping, or a block of a pool; each of these is counted once. One that lies in none, or
 * is older than what it lies in, is outside.
 */
enum { MEMTRACE_POOL_ROOM_FIRST = 1 /* item 0 lies under the segment header */ };
struct memtrace_pool_room {
    uint64_t live_blocks, live_bytes;       /* of the pool, all of them */
    uint64_t outside_blocks, outside_bytes; /* of these */
    uint64_t heap_blocks, heap_bytes;       /* that hold some of them, with all their bytes */
    uint64_t mappings, mapping_bytes;       /* the same */
    uint64_t pool_blocks, pool_bytes;       /* the same, of pools */
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_pool_room) == 80, "pool room size");

/* Samples over the process's life. Bounded: when all places are taken every second one is dropped
 * and the distance doubles. `count` is stored after the point. Points may repeat after a kill in
 * the middle of a thinning: a reader sorts by time and drops points that do not advance. */
struct memtrace_point {
    uint64_t time_ns;
    uint64_t live_bytes;
    uint64_t resident_bytes;
    uint64_t alloc_count;
    uint64_t alloc_bytes;
};
struct memtrace_timeline {
    struct memtrace_segment segment;
    uint32_t count;
    uint32_t reserved;
    uint64_t interval_ns; /* present distance; 0: by churn */
    uint64_t churn_step_bytes;
    struct memtrace_point point[MEMTRACE_TIMELINE_POINTS];
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_point) == 40, "point size");

#endif
