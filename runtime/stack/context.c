/* SPDX-License-Identifier: MIT */
/* context.c: the context tree. See context.h. */
#include "runtime/stack/context.h"

#include "runtime/base/sys.h"
#include "runtime/stack/context_ids.h"

enum {
    PER_LEAF = MEMTRACE_LEAF_ITEMS - MEMTRACE_FIRST_CONTEXT, /* ids a leaf gives out */
    LIST_MOST = 16,                                          /* children before the table is used */
    FIRST_PLACES = 1 << 12,
    LAST_PLACES = 1 << 26,
    LEAST_LIMIT = 2, /* the runtime's own contexts */
};

static const struct room_kind links_kind = {.use = ROOM_MEMORY,
                                            .place = ROOM_OF_LINKS,
                                            .most_bytes = sizeof(struct context_link)
                                                          << MEMTRACE_CONTEXT_BITS,
                                            .limit_part = 32,
                                            .step_bytes = 256 << 10};

/* Bits 24..30 of a place: hash bits that the index does not use, so that few nodes are looked at
 * in vain. */
static const uint32_t frozen = UINT32_C(1) << 31;
static const uint32_t id_mask = (UINT32_C(1) << MEMTRACE_CONTEXT_BITS) - 1;

static size_t table_bytes(size_t places) {
    return sizeof(struct context_table) + places * sizeof(uint32_t);
}

static struct context_table *new_table(size_t places) {
    struct context_table *table = sys_map(table_bytes(places));
    if (table != NULL) {
        table->mask = (uint32_t)(places - 1);
    }
    return table;
}

void context_init(struct context_tree *tree, struct space *space, uint32_t limit) {
    tree->space = space;
    area_init(&tree->areas, space);
    tree->limit = limit < CONTEXT_LEAVES * PER_LEAF ? limit : CONTEXT_LEAVES * PER_LEAF;
    tree->limit = tree->limit < LEAST_LIMIT ? LEAST_LIMIT : tree->limit;
    if (room_open(&tree->links, &links_kind) == 0) {
        tree->link = (struct context_link *)tree->links.base;
    }
    tree->table = new_table(FIRST_PLACES);
    space->header->context_limit = tree->limit;
}

static uint64_t hash(uint64_t node) {
    uint64_t mixed = node * UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= mixed >> 29;
    mixed *= UINT64_C(0xbf58476d1ce4e5b9); /* splitmix64's finalizer */
    return mixed ^ mixed >> 31;
}

static uint32_t tag_of(uint64_t key) {
    return (uint32_t)(key >> 57) << MEMTRACE_CONTEXT_BITS;
}

static void write_node(struct context_tree *tree, uint32_t id, uint32_t parent, uint64_t frame) {
    STORE_RELAXED(context_node(tree, (struct context_id){id}), context_pack(parent, frame));
}

static uint32_t make_node(struct context_tree *tree, enum context_kind kind, uint32_t parent,
                          uint64_t frame) {
    struct context_run run = take_ids(tree, kind, parent, 1);
    if (run.count != 0) {
        write_node(tree, run.first, parent, frame);
    }
    return run.first;
}

static void drop_node(struct context_tree *tree, uint32_t id) {
    STORE_RELAXED(context_node(tree, (struct context_id){id}), 0);
    if (tree->link != NULL) {
        STORE_RELAXED(&tree->link[id].first_child, 0);
    }
}

/* Where a chain of one table ended. */
struct chain_end {
    uint32_t *place; /* empty: the key would go here; NULL: it is found, or goes to the twin */
    uint32_t found;  /* id, or 0 */
};

static struct chain_end search(struct context_tree *tree, struct context_table *table, uint64_t key,
                               uint64_t node) {
    uint32_t tag = tag_of(key);
    for (uint32_t step = 0; step <= table->mask; step++) {
        uint32_t *place = &table->place[(key + step) & table->mask];
        uint32_t entry = LOAD_ACQUIRE(place); /* pairs with the insertion: the node is whole */
        if (entry == 0) {
            return (struct chain_end){.place = LOAD_ACQUIRE(&table->retired) ? NULL : place};
        }
        if (entry == frozen) {
            break;
        }
        if ((entry & ~id_mask) == tag) {
            if (*context_node(tree, (struct context_id){entry & id_mask}) == node) {
                return (struct chain_end){.found = entry & id_mask};
            }
        }
    }
    return (struct chain_end){.place = NULL}; /* frozen here, or full: both for good */
}

/* The next larger table, made if need be by whoever needs it first: a thread that finds the table
 * full does not wait for the one that grows it. NULL: no memory. */
static struct context_table *twin_of(struct context_table *table) {
    size_t places = 2 * ((size_t)table->mask + 1);
    struct context_table *twin = LOAD_ACQUIRE(&table->twin);
    struct context_table *fresh;
    if (twin != NULL || places > LAST_PLACES) {
        return twin;
    }
    fresh = new_table(places);
    if (fresh != NULL && !__atomic_compare_exchange_n(&table->twin, &twin, fresh, 0,
                                                      __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
        sys_unmap(fresh, table_bytes(places));
        return twin;
    }
    return fresh;
}

/* Copies one entry into the twin, where it may be already (growing again after a fork), or behind
 * it if others have filled it meanwhile. Its key is not there under another id: who looks for it
 * finds it in the old table. */
static void copy(struct context_tree *tree, struct context_table *to, uint32_t id) {
    uint64_t key = hash(*context_node(tree, (struct context_id){id}));
    uint32_t entry = tag_of(key) | id;
    for (; to != NULL; to = twin_of(to)) {
        for (size_t step = 0; step <= to->mask; step++) {
            uint32_t found = 0;
            uint32_t *place = &to->place[(key + step) & to->mask];
            if (__atomic_compare_exchange_n(place, &found, entry, 0, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED) ||
                found == entry) {
                return;
            }
        }
    }
}

/* Freezes the empty places of `old` and copies the others. */
static void move(struct context_tree *tree, struct context_table *old, struct context_table *twin) {
    enum { AHEAD = 16 };
    for (size_t i = 0; i <= old->mask; i++) {
        uint32_t entry = 0;
        uint32_t later = LOAD_ACQUIRE(&old->place[(i + AHEAD) & old->mask]);
        if (later != 0 && later != frozen) {
            __builtin_prefetch(context_node(tree, (struct context_id){later & id_mask}));
        }
        /* An insertion comes before this (and is copied) or fails (and goes to the twin). */
        if (!__atomic_compare_exchange_n(&old->place[i], &entry, frozen, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE) &&
            entry != frozen) {
            copy(tree, twin, entry & id_mask);
        }
    }
}

static COLD void grow(struct context_tree *tree, struct context_table *old) {
    struct context_table *twin;
    if (!trylock_take(&tree->growing)) {
        return;
    }
    twin = LOAD_ACQUIRE(&tree->table) == old ? twin_of(old) : NULL;
    if (twin != NULL) {
        move(tree, old, twin);
        STORE_RELEASE(&tree->table, twin);
        /* A late reader finds zeros: `retired`, set before, tells it that they mean nothing. */
        __atomic_store_n(&old->retired, 1, __ATOMIC_SEQ_CST);
        sys_discard(old->place, ((size_t)old->mask + 1) * sizeof old->place[0]);
    }
    trylock_release(&tree->growing);
}

int context_is_leaf(const struct context_tree *tree, const struct memtrace_segment *segment) {
    return area_is_leaf(&tree->areas, segment) ||
           (segment->kind == MEMTRACE_SEGMENT_NODES && segment->index < CONTEXT_LEAVES &&
            (const void *)tree->leaf[segment->index] == (const void *)segment);
}

void context_begin_private(struct context_tree *tree) {
    tree->shared_end = tree->space->base + tree->space->header->end;
    for (enum context_kind kind = CONTEXT_INNER; kind <= CONTEXT_CHARGED; kind++) {
        tree->shared_next[kind] = tree->next.id[kind];
        tree->next.id[kind] = 0;
    }
}

void context_end_private(struct context_tree *tree) {
    for (enum context_kind kind = CONTEXT_INNER; kind <= CONTEXT_CHARGED; kind++) {
        for (uint32_t id = tree->shared_next[kind]; id % MEMTRACE_LEAF_ITEMS != 0; id++) {
            *context_node(tree, (struct context_id){id}) = 0;
        }
    }
    area_write_all(&tree->areas);
}

int context_is_own(const struct context_tree *tree, uint32_t id) {
    return (const void *)tree->leaf[id / MEMTRACE_LEAF_ITEMS] >= tree->shared_end;
}

static int ends_in(uint32_t next, uint32_t leaf) {
    return next / MEMTRACE_LEAF_ITEMS == leaf && next % MEMTRACE_LEAF_ITEMS != 0;
}

uint32_t context_places(const struct context_tree *tree, uint32_t leaf) {
    for (enum context_kind kind = CONTEXT_INNER; kind <= CONTEXT_CHARGED; kind++) {
        if (ends_in(tree->next.id[kind], leaf)) {
            return tree->next.id[kind] % MEMTRACE_LEAF_ITEMS;
        }
        if (ends_in(tree->shared_next[kind], leaf)) {
            return tree->shared_next[kind] % MEMTRACE_LEAF_ITEMS;
        }
    }
    return MEMTRACE_LEAF_ITEMS;
}

void context_fork(struct context_tree *tree) {
    tree->space->header->context_count = tree->taken;
    tree->space->header->context_limit = tree->limit;
    /* Links and table are private: as they were at the fork. But a grower may be gone. */
    room_fork(&tree->links);
    if (tree->growing.held) {
        trylock_release(&tree->growing);
        if (tree->table != NULL && tree->table->twin != NULL) {
            grow(tree, tree->table);
        }
    }
}

/* A child that is there already; `made` is the node we made for it meanwhile, or 0. */
static struct context_id known(struct context_tree *tree, uint32_t id, uint32_t made) {
    if (made != 0 && made != id) {
        drop_node(tree, made); /* another thread was first: ours stays unused */
    }
    return (struct context_id){id};
}

static struct context_id cut(struct context_id parent) {
    return (struct context_id){parent.value | CONTEXT_CUT};
}

/* The child of a crowded parent. `made`: its node, if it was made already, or 0. */
static COLD struct context_id table_child(struct context_tree *tree, struct context_id parent,
                                          uint64_t frame, enum context_kind kind, uint32_t made) {
    uint64_t node = context_pack(parent.value, frame);
    uint64_t key = hash(node);
    struct context_table *table = LOAD_ACQUIRE(&tree->table);
    while (table != NULL) {
        struct chain_end end = search(tree, table, key, node);
        uint32_t none = 0;
        if (end.found != 0) {
            return known(tree, end.found, made);
        }
        if (end.place == NULL) {
            table = twin_of(table);
            continue;
        }
        if (made == 0) {
            made = make_node(tree, kind, parent.value, frame);
            if (made == 0) {
                break;
            }
        }
        /* Publishes the node; ordered before the look at `retired`. */
        if (!__atomic_compare_exchange_n(end.place, &none, tag_of(key) | made, 0, __ATOMIC_SEQ_CST,
                                         __ATOMIC_RELAXED)) {
            continue;
        }
        if (UNLIKELY(__atomic_load_n(&table->retired, __ATOMIC_SEQ_CST))) {
            table = LOAD_ACQUIRE(&table->twin); /* too late: the place means nothing any more */
            continue;
        }
        if (UNLIKELY(__atomic_add_fetch(&tree->table_count, 1, __ATOMIC_RELAXED) / 3 >
                     table->mask / 4)) {
            grow(tree, table);
        }
        return (struct context_id){made};
    }
    if (made != 0) {
        drop_node(tree, made);
    }
    return cut(parent);
}

uint32_t context_find(struct context_tree *tree, struct context_id parent, uint64_t frame) {
    uint64_t node = context_pack(parent.value, frame);
    uint32_t id;
    if (UNLIKELY(tree->link == NULL || context_is_cut(parent))) {
        return CONTEXT_UNKNOWN;
    }
    id = LOAD_ACQUIRE(&tree->link[parent.value].first_child); /* pairs with the insertion */
    for (int steps = 0; id != 0; steps++) {
        if (steps == LIST_MOST) {
            return CONTEXT_UNKNOWN;
        }
        if (*context_node(tree, (struct context_id){id}) == node) {
            return id;
        }
        id = LOAD_ACQUIRE(&tree->link[id].next_sibling);
    }
    return 0;
}

/* context_child(). `made`: its node, if it was made already, or 0. */
static struct context_id insert(struct context_tree *tree, struct context_id parent, uint64_t frame,
                                enum context_kind kind, uint32_t made) {
    uint64_t node = context_pack(parent.value, frame);
    uint32_t *link;
    if (UNLIKELY(context_is_cut(parent))) {
        return parent;
    }
    if (UNLIKELY(tree->link == NULL)) {
        return table_child(tree, parent, frame, kind, made);
    }
    link = &tree->link[parent.value].first_child;
    for (int steps = 0; steps < LIST_MOST; steps++) {
        uint32_t id = LOAD_ACQUIRE(link); /* pairs with the insertion: the node is whole */
        if (id == 0) {
            if (made == 0 && (made = make_node(tree, kind, parent.value, frame)) == 0) {
                return cut(parent);
            }
            if (__atomic_compare_exchange_n(link, &id, made, 0, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
                return (struct context_id){made};
            }
        }
        if (*context_node(tree, (struct context_id){id}) == node) {
            return known(tree, id, made);
        }
        link = &tree->link[id].next_sibling;
    }
    return table_child(tree, parent, frame, kind, made);
}

struct context_id context_child(struct context_tree *tree, struct context_id parent, uint64_t frame,
                                enum context_kind kind) {
    return insert(tree, parent, frame, kind, 0);
}

/* The inner nodes of a path, the oldest, whose frame is `frame`, first. */
static void write_inner(struct context_tree *tree, struct context_run run, uint32_t parent,
                        const uint64_t *frame, size_t stride) {
    uint64_t *node = context_node(tree, (struct context_id){run.first});
    for (uint32_t id = run.first; id != run.first + run.count; id++, node++, frame -= stride) {
        STORE_RELAXED(node, context_pack(parent, *frame));
        parent = id;
        STORE_RELAXED(&tree->link[id].first_child, id + 1); /* the last one's: below */
    }
}

struct context_path context_add_path(struct context_tree *tree, struct context_id parent,
                                     const uint64_t *frame, size_t stride, uint32_t count) {
    const uint64_t *oldest = frame + (count - 1) * stride;
    struct context_run inner = {0, count - 1};
    struct context_run charged = {0, 0};
    uint32_t last;
    if (UNLIKELY(take_path(tree, parent.value, &inner, &charged) != 0)) {
        inner = take_ids(tree, CONTEXT_INNER, parent.value, count - 1);
        if (inner.count == 0) {
            return (struct context_path){0, 0, 0};
        }
        if (inner.count == count - 1) {
            charged = take_ids(tree, CONTEXT_CHARGED, inner.first + inner.count - 1, 1);
        }
    }
    last = inner.first + inner.count - 1;
    write_inner(tree, inner, parent.value, oldest, stride);
    STORE_RELAXED(&tree->link[last].first_child, charged.first);
    if (charged.first != 0) {
        write_node(tree, charged.first, last, *frame);
    }
    if (LIKELY(insert(tree, parent, *oldest, CONTEXT_INNER, inner.first).value == inner.first)) {
        return (struct context_path){inner.first, inner.count, charged.first};
    }
    for (uint32_t id = inner.first; id <= last; id++) { /* another thread was first */
        drop_node(tree, id);
    }
    if (charged.first != 0) {
        drop_node(tree, charged.first);
    }
    return (struct context_path){0, 0, 0};
}
