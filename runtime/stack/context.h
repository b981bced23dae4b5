/* SPDX-License-Identifier: MIT */
/*
 * context.h: the context tree. Every distinct call path is one node; its id is its place.
 *
 * The first children of a node form a list, found at its own place in an array that mirrors the
 * tree: paths grow where the program is, so what is looked at lies near what was looked at last.
 * Children of crowded parents, which are rare, are found by hash(parent, frame) in one
 * open-addressed table of ids. Nothing is ever taken out of either, so a lookup needs no lock and
 * an insertion is one compare-and-swap at the end. The table grows by a twin of twice the size:
 * whoever holds the lock freezes the empty places of the old one and copies the others; who meets a
 * frozen place goes on in the twin. Nobody waits.
 *
 * A node is one word (format.h: memtrace_unpack). What is called `frame` here is a return address
 * (or class) with the number of its area above it, in bits 48 up; of the rest the node keeps the
 * lowest bits.
 *
 * Invariants: node.parent < id; an id is linked only after its node is written; a list never
 * exceeds LIST_MOST, and only when it is full are further children in the table; a key that is in
 * neither an unfrozen chain of a table nor behind it in its twin is in no table.
 */
#ifndef RUNTIME_STACK_CONTEXT_H
#define RUNTIME_STACK_CONTEXT_H

#include "runtime/base/compiler.h"
#include "runtime/base/space.h"

/* --- areas ---------------------------------------------------------------------------------------
 *
 * The upper bits of frames by number, so that a node of the context tree needs 8 bytes (format.h:
 * memtrace_unpack). Rules carry the area of their code, so no walk looks for one.
 *
 * Invariants: an area's number is final; it stands in the profile before a node names it. What the
 * program works with is private memory: a light child goes on with what was there at the fork, and
 * writes its own into the profile when that is its own. */

enum {
    AREA_BITS = 13, /* each of the 4,095 modules has one, large ones some more */
    AREA_LIMIT = 1 << AREA_BITS,
    AREA_NONE = AREA_LIMIT - 1, /* never given out: no room for another */
    AREA_LEAVES = AREA_LIMIT / MEMTRACE_AREA_LEAF_ITEMS,
    AREA_FIRST = sizeof(struct memtrace_segment) / sizeof(uint64_t), /* of each leaf */
};

struct areas {
    struct space *space;
    uint64_t *start;             /* by number; 0: free; NULL: no memory */
    uint64_t *leaf[AREA_LEAVES]; /* the same in the profile */
};

void area_init(struct areas *areas, struct space *space);
/* The number of the area of this frame (format.h: struct memtrace_node), made if it is new;
 * AREA_NONE: no room, which is counted. Any thread, any time. */
uint32_t area_find(struct areas *areas, uint64_t frame);
/* In a child whose profile is its own from now on: writes all into it. */
void area_write_all(struct areas *areas);
/* Whether this segment is a leaf as we know it. */
int area_is_leaf(const struct areas *areas, const struct memtrace_segment *segment);

INLINE uint64_t area_start(const struct areas *areas, uint64_t packed) {
    uint64_t number = packed >> MEMTRACE_NODE_AREA_SHIFT;
    return LIKELY(areas->start != NULL && number < AREA_LIMIT) ? LOAD_RELAXED(&areas->start[number])
                                                               : 0;
}

/* --- contexts --------------------------------------------------------------------------------- */

/* A context id; 0 is the root, above every outermost frame. With CONTEXT_CUT: a path that leads
 * through this context and goes on, but for the rest there was no room. Every child of such a one
 * is itself, so whatever remembers contexts (frame words, trails, caches) hands the cut on. */
struct context_id {
    uint32_t value;
};

#define CONTEXT_CUT (UINT32_C(1) << 31)

enum {
    CONTEXT_LEAVES = 1 << (MEMTRACE_CONTEXT_BITS - 10),
};

/* Each kind takes its ids from leaves of its own, so that the ledger, which mirrors the leaves, has
 * no cells for nodes that nothing is ever charged to. Only memory depends on it being right. */
enum context_kind {
    CONTEXT_INNER = 0,  /* a frame that has callees */
    CONTEXT_CHARGED = 1 /* the innermost frame, or the class below it */
};

struct context_table {
    struct context_table *twin; /* the next, twice as large; NULL: none yet */
    uint32_t retired;           /* all is copied: places read as 0 now and mean nothing */
    uint32_t mask;              /* places - 1 */
    uint32_t unused[12];
    uint32_t place[]; /* 0: empty; CONTEXT_FROZEN: look in the twin; else tag | id */
};

/* Of each node. Private memory, so that a forked child has what was there at the fork. */
struct context_link {
    uint32_t first_child;
    uint32_t next_sibling;
};

/* The next id of each kind; the first of a leaf (or 0): start another. One word, so that a path
 * takes ids of both kinds at once. */
union context_next {
    uint32_t id[2]; /* by kind */
    uint64_t both;
};

struct context_tree {
    uint64_t *leaf[CONTEXT_LEAVES]; /* nodes, packed */
    struct space *space;            /* from here on as runtime.h says: beside each other */
    struct areas areas;
    struct room links;           /* where they are, as many as there are leaves */
    struct context_link *link;   /* by id; NULL: no memory, the table alone */
    struct context_table *table; /* NULL: no memory, every path is charged to the root */
    uint32_t table_count;        /* keys in the table */
    struct trylock growing;
    union context_next next;
    uint32_t leaves;       /* given out */
    uint32_t inner_leaves; /* of these, since the last charged one */
    uint64_t aside;        /* given out, kept for the next inner leaves: a range; 0: none */
    /* A light child's: what it shares with the file of its ancestor ends there. */
    uint32_t shared_next[2]; /* next.id of before */
    const void *shared_end;
    uint32_t taken; /* nodes made */
    uint32_t limit; /* past it paths are cut; where no leaf can be had it is lowered to `taken` */
};

INLINE int context_is_cut(struct context_id context) {
    return (context.value & CONTEXT_CUT) != 0;
}

INLINE struct context_id context_kept(struct context_id context) {
    return (struct context_id){context.value & ~CONTEXT_CUT};
}

void context_init(struct context_tree *tree, struct space *space, uint32_t limit);

/* The child of `parent` over `frame`, made if it is new. When the
 * limit is reached or there is no room: `parent` itself, cut. Any thread, any time. */
struct context_id context_child(struct context_tree *tree, struct context_id parent, uint64_t frame,
                                enum context_kind kind);

/* The child that is there; 0: there is none, CONTEXT_UNKNOWN: only context_child() can tell. */
enum { CONTEXT_UNKNOWN = INT32_MAX };
uint32_t context_find(struct context_tree *tree, struct context_id parent, uint64_t frame);

/* Nodes of a new path: `inner` ids in a row from `first` on, and the charged one or 0. */
struct context_path {
    uint32_t first;
    uint32_t inner;
    uint32_t charged;
};

/* A path of at least two frames below `parent`, which has no child of the first of them: made in
 * one piece. Ids are taken together, nodes are written and linked below each other, and the first
 * is inserted last; until then nobody sees them, so no atomics are needed. frame: of the newest,
 * which is charged; each older one lies `stride` behind. Perhaps not all are made, the oldest
 * first; none: the limit is reached, there is no room, or another thread was first. */
struct context_path context_add_path(struct context_tree *tree, struct context_id parent,
                                     const uint64_t *frame, size_t stride, uint32_t count);

/* In a forked child: counts what was made before the fork, and ends what another thread was just
 * doing to the table. */
void context_fork(struct context_tree *tree);
/* In a light child, before context_fork(): the leaves that are there stay shared, without what
 * others make in them from here on; new nodes get leaves of its own. */
void context_begin_private(struct context_tree *tree);
/* It has a file of its own now, to which the shared leaves were copied. */
void context_end_private(struct context_tree *tree);
/* Of a light child: whether it, or a light child between its ancestor and itself, made the node. */
int context_is_own(const struct context_tree *tree, uint32_t id);
/* The places of a leaf below it may have been given out. */
uint32_t context_places(const struct context_tree *tree, uint32_t leaf);
/* Whether this segment is a leaf of the tree as we know it. */
int context_is_leaf(const struct context_tree *tree, const struct memtrace_segment *segment);

INLINE uint64_t *context_node(struct context_tree *tree, struct context_id id) {
    /* Pairs with the release in space_leaf(). */
    return LOAD_ACQUIRE(&tree->leaf[id.value >> 10]) + (id.value & (MEMTRACE_LEAF_ITEMS - 1));
}

INLINE uint64_t context_pack(uint32_t parent, uint64_t frame) {
    const uint64_t area = (uint64_t)(AREA_LIMIT - 1) << MEMTRACE_NODE_AREA_SHIFT;
    return (frame & (area | MEMTRACE_NODE_FRAME_MASK)) | (uint64_t)parent
                                                             << MEMTRACE_NODE_PARENT_SHIFT;
}

/* The node as others know it, with the whole frame. */
INLINE struct memtrace_node context_read(struct context_tree *tree, struct context_id id) {
    uint64_t packed = LOAD_RELAXED(context_node(tree, id));
    return memtrace_unpack(packed, area_start(&tree->areas, packed));
}

/* Whether this can be a context of the tree's, or a cut one: what it says may be read. */
INLINE int context_exists(const struct context_tree *tree, uint32_t value) {
    uint32_t id = value & ~CONTEXT_CUT;
    return id != 0 && id >> MEMTRACE_CONTEXT_BITS == 0 &&
           LOAD_RELAXED(&tree->leaf[id >> 10]) != NULL;
}

/* A small direct-mapped cache in front of the tree, one a thread. */
enum { CONTEXT_CACHE_PLACES = 512 };

struct context_cache {
    struct {
        uint64_t node; /* as the child's; 0: empty */
        uint32_t child;
    } place[CONTEXT_CACHE_PLACES];
};

INLINE size_t context_cache_place(uint64_t node) {
    return (node * UINT64_C(0x9e3779b97f4a7c15)) >> 55;
}

/* 0: it is not in the cache. */
INLINE uint32_t context_cache_look(const struct context_cache *cache, struct context_id parent,
                                   uint64_t frame) {
    uint64_t node = context_pack(parent.value, frame);
    size_t i = context_cache_place(node);
    if (UNLIKELY(context_is_cut(parent))) {
        return parent.value; /* as any child of it; packed, it would be another's */
    }
    return LIKELY(cache->place[i].node == node) ? cache->place[i].child : 0;
}

INLINE void context_cache_keep(struct context_cache *cache, struct context_id parent,
                               uint64_t frame, uint32_t child) {
    uint64_t node = context_pack(parent.value, frame);
    size_t i = context_cache_place(node);
    cache->place[i].node = 0; /* a handler may leave by longjmp: what counts is whole */
    SIGNAL_FENCE();
    cache->place[i].child = child;
    SIGNAL_FENCE();
    cache->place[i].node = node;
}

INLINE struct context_id context_cached_child(struct context_tree *tree,
                                              struct context_cache *cache, struct context_id parent,
                                              uint64_t frame, enum context_kind kind) {
    struct context_id child = {context_cache_look(cache, parent, frame)};
    if (UNLIKELY(child.value == 0)) {
        child = context_child(tree, parent, frame, kind);
        context_cache_keep(cache, parent, frame, child.value);
    }
    return child;
}

#endif
