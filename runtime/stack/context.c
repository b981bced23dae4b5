/* SPDX-License-Identifier: MIT */
/* context.c: the context tree. See context.h. */
#include "runtime/stack/context.h"

#include "runtime/base/sys.h"

enum {
    PER_LEAF = MEMTRACE_LEAF_ITEMS - MEMTRACE_FIRST_CONTEXT, /* ids a leaf gives out */
    FIRST_LEVEL = 6,
    LAST_LEVEL = MEMTRACE_CONTEXT_BITS - 1,
    NODES_PER_SHORTCUT = 2,
    STEPS_BEFORE_SHORTCUT = 4,
};

void context_init(struct context_tree *tree, struct space *space, uint32_t limit) {
    tree->space = space;
    tree->limit = limit < CONTEXT_LEAVES * PER_LEAF ? limit : CONTEXT_LEAVES * PER_LEAF;
    tree->level = FIRST_LEVEL;
    for (tree->last_level = LAST_LEVEL; tree->shortcut == NULL && tree->last_level > FIRST_LEVEL;) {
        tree->shortcut = sys_map((sizeof *tree->shortcut * 2) << tree->last_level);
        tree->last_level -= tree->shortcut == NULL; /* ulimit -v: live with fewer */
    }
    space->header->context_limit = tree->limit;
}

static uint32_t hash(uint32_t parent, uint64_t frame) {
    uint64_t mixed = (frame ^ ((uint64_t)parent << 40 | parent)) * UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= mixed >> 29;
    mixed *= UINT64_C(0xbf58476d1ce4e5b9); /* splitmix64's finalizer */
    return (uint32_t)(mixed >> 32);
}

static uint32_t *link_of(struct context_tree *tree, uint32_t id) {
    return id == 0 ? &tree->first : &context_node(tree, (struct context_id){id})->next;
}

/* Where the search for a key stands: the last node below it, and the first at or above it. */
struct position {
    uint32_t before; /* 0: the head of the list */
    uint32_t after;  /* 0: the end */
    uint32_t found;  /* the node with this key, or 0 */
};

/* A node known to lie before every node with this hash; 0: the head. */
static uint32_t nearest_shortcut(struct context_tree *tree, uint32_t key, uint32_t *index) {
    uint32_t level = LOAD_RELAXED(&tree->level);
    uint32_t i;
    if (tree->shortcut == NULL) {
        *index = 0;
        return 0;
    }
    i = (1u << level) + (key >> (32 - level));
    *index = i;
    for (; i > 0; i >>= 1) {
        /* Pairs with the release below: the node behind a shortcut is whole. */
        uint32_t node = LOAD_ACQUIRE(&tree->shortcut[i]);
        if (node != 0) {
            return node;
        }
    }
    return 0;
}

static struct position search(struct context_tree *tree, uint32_t key, uint32_t parent,
                              uint64_t frame) {
    uint32_t index;
    struct position at = {.before = nearest_shortcut(tree, key, &index)};
    uint32_t level = index != 0 ? 31u - (uint32_t)__builtin_clz(index) : 0;
    uint32_t border = index != 0 ? (index - (1u << level)) << (32 - level) : 0;
    uint32_t below = 0; /* the last node passed whose hash is under the shortcut's range */
    unsigned steps = 0;
    for (;;) {
        /* Pairs with the release of insertions. */
        uint32_t next = LOAD_ACQUIRE(link_of(tree, at.before));
        const struct memtrace_node *node;
        uint32_t next_hash;
        at.after = next;
        if (next == 0) {
            break;
        }
        node = context_node(tree, (struct context_id){next});
        next_hash = hash(node->parent, node->frame);
        if (next_hash == key && node->parent == parent && node->frame == frame) {
            at.found = next;
            break;
        }
        if (next_hash > key) {
            break;
        }
        if (next_hash < border) {
            below = next;
        }
        at.before = next;
        steps++;
    }
    if (steps > STEPS_BEFORE_SHORTCUT && below != 0) {
        STORE_RELEASE(&tree->shortcut[index], below);
    }
    return at;
}

static COLD int install_leaf(struct context_tree *tree, uint32_t index) {
    struct memtrace_node *none = NULL;
    void *segment = space_segment(tree->space, MEMTRACE_SEGMENT_TREE, 0, index,
                                  sizeof(struct memtrace_node), MEMTRACE_LEAF_ITEMS);
    if (segment == NULL) {
        return -1;
    }
    space_publish(segment);
    if (!__atomic_compare_exchange_n(&tree->leaf[index], &none, (struct memtrace_node *)segment, 0,
                                     __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        ((struct memtrace_segment *)segment)->kind = 0; /* another thread was first: void */
    }
    return 0;
}

/* The places under segment headers are skipped. */
static uint32_t id_of_number(uint32_t number) {
    return number / PER_LEAF * MEMTRACE_LEAF_ITEMS + MEMTRACE_FIRST_CONTEXT + number % PER_LEAF;
}

/* A fresh id whose leaf is mapped, or 0. */
static uint32_t take_id(struct context_tree *tree) {
    uint32_t number;
    uint32_t id;
    if (LOAD_RELAXED(&tree->taken) >= tree->limit) {
        return 0;
    }
    number = __atomic_fetch_add(&tree->taken, 1, __ATOMIC_RELAXED);
    if (number >= tree->limit) {
        STORE_RELAXED(&tree->taken, tree->limit);
        return 0;
    }
    id = id_of_number(number);
    if (LOAD_ACQUIRE(&tree->leaf[id >> 10]) == NULL && install_leaf(tree, id >> 10) != 0) {
        return 0;
    }
    __atomic_fetch_add(&tree->space->header->context_count, 1, __ATOMIC_RELAXED);
    return id;
}

static void deepen(struct context_tree *tree) {
    uint32_t level = LOAD_RELAXED(&tree->level);
    if (level < tree->last_level && tree->taken > (uint32_t)NODES_PER_SHORTCUT << level) {
        STORE_RELAXED(&tree->level, level + 1);
    }
}

/* Links a whole node in. 0, or the id of the node that has this key already. */
static uint32_t link_node(struct context_tree *tree, uint32_t id) {
    struct memtrace_node *node = context_node(tree, (struct context_id){id});
    uint32_t key = hash(node->parent, node->frame);
    for (;;) {
        struct position at = search(tree, key, node->parent, node->frame);
        if (at.found != 0) {
            return at.found;
        }
        node->next = at.after;
        /* Publishes the node's fields to whoever follows the link. */
        if (__atomic_compare_exchange_n(link_of(tree, at.before), &at.after, id, 0,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
            return 0;
        }
    }
}

struct context_id context_child(struct context_tree *tree, struct context_id parent,
                                uint64_t frame) {
    uint32_t key = hash(parent.value, frame);
    struct position at = search(tree, key, parent.value, frame);
    struct memtrace_node *node;
    uint32_t id;
    uint32_t rival;
    if (at.found != 0) {
        return (struct context_id){at.found};
    }
    id = take_id(tree);
    if (id == 0 || id <= parent.value) {
        space_lost(tree->space, MEMTRACE_LOST_CONTEXTS, 1);
        return parent;
    }
    node = context_node(tree, (struct context_id){id});
    node->parent = parent.value;
    STORE_RELAXED(&node->frame, frame);
    rival = link_node(tree, id);
    if (rival != 0) { /* another thread made it meanwhile: ours stays unused */
        STORE_RELAXED(&node->frame, 0);
        return (struct context_id){rival};
    }
    deepen(tree);
    return (struct context_id){id};
}

int context_is_leaf(const struct context_tree *tree, const struct memtrace_segment *segment) {
    return segment->kind == MEMTRACE_SEGMENT_TREE && segment->index < CONTEXT_LEAVES &&
           (const void *)tree->leaf[segment->index] == (const void *)segment;
}

void context_fork(struct context_tree *tree, int relink) {
    uint32_t end = id_of_number(tree->taken);
    tree->space->header->context_count = tree->taken;
    tree->space->header->context_limit = tree->limit;
    for (uint32_t id = end;
         id % MEMTRACE_LEAF_ITEMS >= MEMTRACE_FIRST_CONTEXT && tree->leaf[id >> 10] != NULL; id++) {
        *context_node(tree, (struct context_id){id}) = (struct memtrace_node){0};
    }
    if (!relink) {
        return;
    }
    tree->first = 0;
    tree->level = FIRST_LEVEL;
    if (tree->shortcut != NULL) {
        sys_unmap(tree->shortcut, (sizeof *tree->shortcut * 2) << tree->last_level);
        tree->shortcut = sys_map((sizeof *tree->shortcut * 2) << tree->last_level);
    }
    for (uint32_t number = 0; number < tree->taken; number++) {
        uint32_t id = id_of_number(number);
        if (tree->leaf[id >> 10] != NULL &&
            context_node(tree, (struct context_id){id})->frame != 0) {
            link_node(tree, id);
            deepen(tree);
        }
    }
}
