/* SPDX-License-Identifier: MIT */
/*
 * context.h: the context tree. Every distinct call path is one node; its id is its place.
 *
 * All nodes form one list sorted by hash(parent, frame), with shortcuts into it (a split-ordered
 * list: Shalev and Shavit, "Split-Ordered Lists: Lock-Free Extensible Hash Tables", 2006). Nodes
 * are only ever added, so a lookup needs no lock and no reclamation, and an insertion is one
 * compare-and-swap. Shortcuts are levels of a flattened binary trie over the hash: shortcut[2^k +
 * i] is some node whose hash is below i * 2^(32-k), or 0 (ask the level above).
 *
 * Invariants: node.parent < id; hash(node) <= hash(node.next); a node is reached only after all its
 * fields are written.
 */
#ifndef RUNTIME_STACK_CONTEXT_H
#define RUNTIME_STACK_CONTEXT_H

#include "runtime/base/compiler.h"
#include "runtime/base/space.h"

/* A context id; 0 is the root, above every outermost frame. */
struct context_id {
    uint32_t value;
};

enum {
    CONTEXT_LEAVES = 1 << (MEMTRACE_CONTEXT_BITS - 10),
};

struct context_tree {
    struct space *space;
    struct memtrace_node *leaf[CONTEXT_LEAVES];
    uint32_t *shortcut;  /* touched as the tree grows; NULL: no memory, the list alone */
    uint32_t last_level; /* as far as there is address space for shortcuts */
    uint32_t level;      /* shortcuts [2^level, 2^(level+1)) are in use */
    uint32_t first;      /* first node of the list */
    uint32_t taken;      /* nodes made */
    uint32_t limit;      /* past it paths are charged to their ancestor */
};

void context_init(struct context_tree *tree, struct space *space, uint32_t limit);

/* The child of `parent` over `frame` (format.h: struct memtrace_node), made if it is new. When the
 * limit is reached or there is no room: `parent` itself, counted. Any thread, any time. */
struct context_id context_child(struct context_tree *tree, struct context_id parent,
                                uint64_t frame);

/* In a forked child, whose copy of the nodes was taken while others went on: forgets what was made
 * since the fork, and links all nodes anew if `relink`. */
void context_fork(struct context_tree *tree, int relink);
/* Whether this segment is a leaf of the tree as we know it. */
int context_is_leaf(const struct context_tree *tree, const struct memtrace_segment *segment);

INLINE struct memtrace_node *context_node(struct context_tree *tree, struct context_id id) {
    /* Pairs with the release in install_leaf(). */
    return LOAD_ACQUIRE(&tree->leaf[id.value >> 10]) + (id.value & (MEMTRACE_LEAF_ITEMS - 1));
}

/* A small direct-mapped cache in front of the tree, one a thread. */
enum { CONTEXT_CACHE_PLACES = 256 };

struct context_cache {
    struct {
        uint64_t frame; /* 0: empty */
        uint32_t parent;
        uint32_t child;
    } place[CONTEXT_CACHE_PLACES];
};

INLINE struct context_id context_cached_child(struct context_tree *tree,
                                              struct context_cache *cache, struct context_id parent,
                                              uint64_t frame) {
    size_t i = ((frame + parent.value * UINT64_C(0x9e3779b1)) * UINT64_C(0x9e3779b97f4a7c15)) >> 56;
    struct context_id child;
    if (LIKELY(cache->place[i].frame == frame && cache->place[i].parent == parent.value)) {
        return (struct context_id){cache->place[i].child};
    }
    child = context_child(tree, parent, frame);
    cache->place[i].frame = frame;
    cache->place[i].parent = parent.value;
    cache->place[i].child = child.value;
    return child;
}

#endif
