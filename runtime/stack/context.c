/* SPDX-License-Identifier: MIT */
/* context.c: the context tree, and numbers for the upper bits of frames. See context.h. */
#include "runtime/stack/context.h"

#include "runtime/base/sys.h"

enum {
    PER_LEAF = MEMTRACE_LEAF_ITEMS - MEMTRACE_FIRST_CONTEXT, /* ids a leaf gives out */
    LIST_MOST = 16,                                          /* children before the table is used */
    FIRST_PLACES = 1 << 12,
    LAST_PLACES = 1 << 26,
    LEAST_LIMIT = 2, /* the runtime's own contexts */
    MOST_ASIDE = 64, /* leaf indices */
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

static size_t context_table_bytes(size_t places) {
    return sizeof(struct context_table) + places * sizeof(uint32_t);
}

static struct context_table *context_new_table(size_t places) {
    struct context_table *table = sys_map(context_table_bytes(places));
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
    tree->table = context_new_table(FIRST_PLACES);
    space->header->context_limit = tree->limit;
}

static uint64_t context_node_hash(uint64_t node) {
    uint64_t mixed = node * UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= mixed >> 29;
    mixed *= UINT64_C(0xbf58476d1ce4e5b9); /* splitmix64's finalizer */
    return mixed ^ mixed >> 31;
}

static uint32_t context_tag_of(uint64_t key) {
    return (uint32_t)(key >> 57) << MEMTRACE_CONTEXT_BITS;
}

/* --- ids for new nodes ---------------------------------------------------------------------------
 *
 * Above their parents', from leaves of their kind, which are made as they are needed. */

/* The next index kept aside; 0: none, or those that are left would be below the parent's and are
 * given up (0 itself is never kept: the first leaf is taken by a child of the root). */
static uint32_t context_take_aside(struct context_tree *tree, uint32_t parent) {
    uint64_t range = LOAD_RELAXED(&tree->aside);
    uint64_t rest;
    uint32_t next;
    do {
        next = (uint32_t)range;
        if (range == 0) {
            return 0;
        }
        rest = next <= parent / MEMTRACE_LEAF_ITEMS || next + 1 == range >> 32 ? 0 : range + 1;
    } while (!__atomic_compare_exchange_n(&tree->aside, &range, rest, 1, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return next > parent / MEMTRACE_LEAF_ITEMS ? next : 0;
}

/* How many inner leaves the next charged one is to serve. Where most nodes are inner ones it must
 * be many, or it is left nearly empty; twice as many as the last one served, found in a few steps.
 */
static uint32_t context_inner_leaves_to_serve(struct context_tree *tree) {
    uint32_t served = __atomic_exchange_n(&tree->inner_leaves, 0, __ATOMIC_RELAXED);
    return served == 0 ? 1 : served < MOST_ASIDE / 2 ? 2 * served : MOST_ASIDE;
}

/* The index of a new leaf. One for charged contexts keeps others aside, below it, for the next
 * inner leaves: else each new inner leaf, whose nodes' children must have higher ids, would make
 * the charged leaf of the moment useless for them, nearly empty as it may be. */
static uint32_t context_take_leaf_index(struct context_tree *tree, enum context_kind kind,
                                        uint32_t parent) {
    uint64_t none = 0;
    uint32_t index;
    uint32_t kept;
    if (kind == CONTEXT_INNER) {
        __atomic_fetch_add(&tree->inner_leaves, 1, __ATOMIC_RELAXED);
        index = context_take_aside(tree, parent);
        return index != 0 ? index : __atomic_fetch_add(&tree->leaves, 1, __ATOMIC_RELAXED);
    }
    if (LOAD_RELAXED(&tree->aside) != 0 || LOAD_RELAXED(&tree->leaves) == 0) {
        return __atomic_fetch_add(&tree->leaves, 1, __ATOMIC_RELAXED);
    }
    kept = context_inner_leaves_to_serve(tree);
    index = __atomic_fetch_add(&tree->leaves, kept + 1, __ATOMIC_RELAXED);
    /* The next in the low half, the end in the high one. */
    __atomic_compare_exchange_n(&tree->aside, &none, (uint64_t)(index + kept) << 32 | index, 0,
                                __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return index + kept;
}

/* Starts a leaf of its own for this kind of ids and gives out its first. 0: no room. */
static COLD uint32_t context_start_leaf(struct context_tree *tree, enum context_kind kind,
                                        uint32_t seen, uint32_t parent) {
    const uint64_t links_bytes = MEMTRACE_LEAF_ITEMS * sizeof *tree->link; /* of a leaf */
    uint32_t index = context_take_leaf_index(tree, kind, parent);
    uint32_t id = index * MEMTRACE_LEAF_ITEMS + MEMTRACE_FIRST_CONTEXT;
    if (index >= CONTEXT_LEAVES ||
        (tree->link != NULL && room_reach(&tree->links, (index + 1) * links_bytes) != 0) ||
        space_leaf(tree->space, &tree->leaf[index], MEMTRACE_SEGMENT_NODES, index, sizeof(uint64_t),
                   MEMTRACE_LEAF_ITEMS) == NULL) {
        /* Full: do not try again each time. */
        STORE_RELAXED(&tree->limit, LOAD_RELAXED(&tree->taken));
        return 0;
    }
    /* If another thread was faster its leaf is used, ours for this one id. */
    __atomic_compare_exchange_n(&tree->next.id[kind], &seen, id + 1, 0, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
    return id;
}

struct context_run {
    uint32_t first;
    uint32_t count;
};

/* The number in the header may be a few behind while threads make nodes at once. */
static inline void context_count_taken(struct context_tree *tree, uint32_t count) {
    uint32_t taken = __atomic_add_fetch(&tree->taken, count, __ATOMIC_RELAXED);
    STORE_RELAXED(&tree->space->header->context_count, taken);
}

/* Up to `most` ids in a row above `parent`, whose leaf is mapped. count 0: the limit is reached, or
 * there is no room. */
static inline struct context_run context_take_ids(struct context_tree *tree, enum context_kind kind,
                                                  uint32_t parent, uint32_t most) {
    struct context_run run = {0, 1};
    uint32_t taken = LOAD_RELAXED(&tree->taken);
    uint32_t limit = LOAD_RELAXED(&tree->limit);
    if (taken >= limit) {
        return (struct context_run){0, 0};
    }
    most = most <= limit - taken ? most : limit - taken;
    /* Pairs with the release in context_start_leaf(): the leaf is there. */
    run.first = LOAD_ACQUIRE(&tree->next.id[kind]);
    do {
        uint32_t place = run.first % MEMTRACE_LEAF_ITEMS;
        if (run.first <= parent || place == 0) {
            run.first = context_start_leaf(tree, kind, run.first, parent);
            run.count = run.first != 0;
            break;
        }
        run.count = most <= MEMTRACE_LEAF_ITEMS - place ? most : MEMTRACE_LEAF_ITEMS - place;
    } while (!__atomic_compare_exchange_n(&tree->next.id[kind], &run.first, run.first + run.count,
                                          1, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE));
    if (run.count != 0) {
        context_count_taken(tree, run.count);
    }
    return run;
}

/* Both kinds for a path, from leaves that are begun: `inner` ids in a row above `parent`, and a
 * charged one above these. 0, or -1: they are to be taken one kind after the other. */
static inline int context_take_path(struct context_tree *tree, uint32_t parent,
                                    struct context_run *inner, struct context_run *charged) {
    union context_next next;
    union context_next after;
    if (LOAD_RELAXED(&tree->taken) + inner->count >= LOAD_RELAXED(&tree->limit)) {
        return -1;
    }
    next.both = LOAD_ACQUIRE(&tree->next.both);
    do {
        uint32_t first = next.id[CONTEXT_INNER];
        uint32_t place = first % MEMTRACE_LEAF_ITEMS;
        after = next;
        after.id[CONTEXT_INNER] += inner->count;
        after.id[CONTEXT_CHARGED]++;
        if (first <= parent || place == 0 || place + inner->count > MEMTRACE_LEAF_ITEMS ||
            next.id[CONTEXT_CHARGED] <= first + inner->count - 1 ||
            next.id[CONTEXT_CHARGED] % MEMTRACE_LEAF_ITEMS == 0) {
            return -1;
        }
    } while (!__atomic_compare_exchange_n(&tree->next.both, &next.both, after.both, 1,
                                          __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE));
    context_count_taken(tree, inner->count + 1);
    inner->first = next.id[CONTEXT_INNER];
    *charged = (struct context_run){next.id[CONTEXT_CHARGED], 1};
    return 0;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static void context_write_node(struct context_tree *tree, uint32_t id, uint32_t parent,
                               uint64_t frame) {
    STORE_RELAXED(context_node(tree, (struct context_id){id}), context_pack(parent, frame));
}

static uint32_t context_make_node(struct context_tree *tree, enum context_kind kind,
                                  uint32_t parent, uint64_t frame) {
    struct context_run run = context_take_ids(tree, kind, parent, 1);
    if (run.count != 0) {
        context_write_node(tree, run.first, parent, frame);
    }
    return run.first;
}

static void context_drop_node(struct context_tree *tree, uint32_t id) {
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

static struct chain_end context_search(struct context_tree *tree, struct context_table *table,
                                       uint64_t key, uint64_t node) {
    uint32_t tag = context_tag_of(key);
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
static struct context_table *context_twin_of(struct context_table *table) {
    size_t places = 2 * ((size_t)table->mask + 1);
    struct context_table *twin = LOAD_ACQUIRE(&table->twin);
    struct context_table *fresh;
    if (twin != NULL || places > LAST_PLACES) {
        return twin;
    }
    fresh = context_new_table(places);
    if (fresh != NULL && !__atomic_compare_exchange_n(&table->twin, &twin, fresh, 0,
                                                      __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
        sys_unmap(fresh, context_table_bytes(places));
        return twin;
    }
    return fresh;
}

/* Copies one entry into the twin, where it may be already (growing again after a fork), or behind
 * it if others have filled it meanwhile. Its key is not there under another id: who looks for it
 * finds it in the old table. */
static void context_copy(struct context_tree *tree, struct context_table *to, uint32_t id) {
    uint64_t key = context_node_hash(*context_node(tree, (struct context_id){id}));
    uint32_t entry = context_tag_of(key) | id;
    for (; to != NULL; to = context_twin_of(to)) {
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
static void context_move(struct context_tree *tree, struct context_table *old,
                         struct context_table *twin) {
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
            context_copy(tree, twin, entry & id_mask);
        }
    }
}

static COLD void context_grow(struct context_tree *tree, struct context_table *old) {
    struct context_table *twin;
    if (!trylock_take(&tree->growing)) {
        return;
    }
    twin = LOAD_ACQUIRE(&tree->table) == old ? context_twin_of(old) : NULL;
    if (twin != NULL) {
        context_move(tree, old, twin);
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

static int context_ends_in(uint32_t next, uint32_t leaf) {
    return next / MEMTRACE_LEAF_ITEMS == leaf && next % MEMTRACE_LEAF_ITEMS != 0;
}

uint32_t context_places(const struct context_tree *tree, uint32_t leaf) {
    for (enum context_kind kind = CONTEXT_INNER; kind <= CONTEXT_CHARGED; kind++) {
        if (context_ends_in(tree->next.id[kind], leaf)) {
            return tree->next.id[kind] % MEMTRACE_LEAF_ITEMS;
        }
        if (context_ends_in(tree->shared_next[kind], leaf)) {
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
            context_grow(tree, tree->table);
        }
    }
}

/* A child that is there already; `made` is the node we made for it meanwhile, or 0. */
static struct context_id context_known(struct context_tree *tree, uint32_t id, uint32_t made) {
    if (made != 0 && made != id) {
        context_drop_node(tree, made); /* another thread was first: ours stays unused */
    }
    return (struct context_id){id};
}

static struct context_id context_cut(struct context_id parent) {
    return (struct context_id){parent.value | CONTEXT_CUT};
}

/* The child of a crowded parent. `made`: its node, if it was made already, or 0. */
static COLD struct context_id context_table_child(struct context_tree *tree,
                                                  struct context_id parent, uint64_t frame,
                                                  enum context_kind kind, uint32_t made) {
    uint64_t node = context_pack(parent.value, frame);
    uint64_t key = context_node_hash(node);
    struct context_table *table = LOAD_ACQUIRE(&tree->table);
    while (table != NULL) {
        struct chain_end end = context_search(tree, table, key, node);
        uint32_t none = 0;
        if (end.found != 0) {
            return context_known(tree, end.found, made);
        }
        if (end.place == NULL) {
            table = context_twin_of(table);
            continue;
        }
        if (made == 0) {
            made = context_make_node(tree, kind, parent.value, frame);
            if (made == 0) {
                break;
            }
        }
        /* Publishes the node; ordered before the look at `retired`. */
        if (!__atomic_compare_exchange_n(end.place, &none, context_tag_of(key) | made, 0,
                                         __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
            continue;
        }
        if (UNLIKELY(__atomic_load_n(&table->retired, __ATOMIC_SEQ_CST))) {
            table = LOAD_ACQUIRE(&table->twin); /* too late: the place means nothing any more */
            continue;
        }
        if (UNLIKELY(__atomic_add_fetch(&tree->table_count, 1, __ATOMIC_RELAXED) / 3 >
                     table->mask / 4)) {
            context_grow(tree, table);
        }
        return (struct context_id){made};
    }
    if (made != 0) {
        context_drop_node(tree, made);
    }
    return context_cut(parent);
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
static struct context_id context_insert(struct context_tree *tree, struct context_id parent,
                                        uint64_t frame, enum context_kind kind, uint32_t made) {
    uint64_t node = context_pack(parent.value, frame);
    uint32_t *link;
    if (UNLIKELY(context_is_cut(parent))) {
        return parent;
    }
    if (UNLIKELY(tree->link == NULL)) {
        return context_table_child(tree, parent, frame, kind, made);
    }
    link = &tree->link[parent.value].first_child;
    for (int steps = 0; steps < LIST_MOST; steps++) {
        uint32_t id = LOAD_ACQUIRE(link); /* pairs with the insertion: the node is whole */
        if (id == 0) {
            if (made == 0 && (made = context_make_node(tree, kind, parent.value, frame)) == 0) {
                return context_cut(parent);
            }
            if (__atomic_compare_exchange_n(link, &id, made, 0, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
                return (struct context_id){made};
            }
        }
        if (*context_node(tree, (struct context_id){id}) == node) {
            return context_known(tree, id, made);
        }
        link = &tree->link[id].next_sibling;
    }
    return context_table_child(tree, parent, frame, kind, made);
}

struct context_id context_child(struct context_tree *tree, struct context_id parent, uint64_t frame,
                                enum context_kind kind) {
    return context_insert(tree, parent, frame, kind, 0);
}

/* The inner nodes of a path, the oldest, whose frame is `frame`, first. */
static void context_write_inner(struct context_tree *tree, struct context_run run, uint32_t parent,
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
    if (UNLIKELY(context_take_path(tree, parent.value, &inner, &charged) != 0)) {
        inner = context_take_ids(tree, CONTEXT_INNER, parent.value, count - 1);
        if (inner.count == 0) {
            return (struct context_path){0, 0, 0};
        }
        if (inner.count == count - 1) {
            charged = context_take_ids(tree, CONTEXT_CHARGED, inner.first + inner.count - 1, 1);
        }
    }
    last = inner.first + inner.count - 1;
    context_write_inner(tree, inner, parent.value, oldest, stride);
    STORE_RELAXED(&tree->link[last].first_child, charged.first);
    if (charged.first != 0) {
        context_write_node(tree, charged.first, last, *frame);
    }
    if (LIKELY(context_insert(tree, parent, *oldest, CONTEXT_INNER, inner.first).value ==
               inner.first)) {
        return (struct context_path){inner.first, inner.count, charged.first};
    }
    for (uint32_t id = inner.first; id <= last; id++) { /* another thread was first */
        context_drop_node(tree, id);
    }
    if (charged.first != 0) {
        context_drop_node(tree, charged.first);
    }
    return (struct context_path){0, 0, 0};
}

/* --- areas ------------------------------------------------------------------------------------ */

void area_init(struct areas *areas, struct space *space) {
    areas->space = space;
    areas->start = sys_map(AREA_LIMIT * sizeof *areas->start);
}

/* -1: no room. A light child's profile is not its own. */
static int area_write(struct areas *areas, uint32_t number) {
    uint32_t index = number / MEMTRACE_AREA_LEAF_ITEMS;
    uint64_t *leaf;
    if (areas->space->is_private) {
        return 0;
    }
    leaf = space_leaf(areas->space, &areas->leaf[index], MEMTRACE_SEGMENT_AREAS, index,
                      sizeof *leaf, MEMTRACE_AREA_LEAF_ITEMS);
    if (leaf == NULL) {
        return -1;
    }
    STORE_RELEASE(&leaf[number % MEMTRACE_AREA_LEAF_ITEMS], LOAD_RELAXED(&areas->start[number]));
    return 0;
}

/* The next number that can be given out, from this one on. */
static uint32_t area_next(uint32_t number) {
    return number % MEMTRACE_AREA_LEAF_ITEMS != 0 ? number : number + AREA_FIRST;
}

uint32_t area_find(struct areas *areas, uint64_t frame) {
    uint64_t start = frame & ~MEMTRACE_NODE_FRAME_MASK;
    if (start == 0) {
        return 0;
    }
    for (uint32_t i = area_next(0); areas->start != NULL && i < AREA_NONE; i = area_next(i + 1)) {
        uint64_t there = LOAD_RELAXED(&areas->start[i]);
        if (there == start ||
            (there == 0 && (__atomic_compare_exchange_n(&areas->start[i], &there, start, 0,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
                            there == start))) {
            /* Also where it is: another thread may have taken the number and not written yet. */
            if (area_write(areas, i) == 0) {
                return i;
            }
            break;
        }
    }
    space_lost(areas->space, MEMTRACE_LOST_MODULES, 1);
    return AREA_NONE;
}

void area_write_all(struct areas *areas) {
    for (uint32_t i = area_next(0); areas->start != NULL && i < AREA_NONE; i = area_next(i + 1)) {
        if (LOAD_RELAXED(&areas->start[i]) == 0) {
            break;
        }
        if (area_write(areas, i) != 0) {
            space_lost(areas->space, MEMTRACE_LOST_MODULES, 1);
            break;
        }
    }
}

int area_is_leaf(const struct areas *areas, const struct memtrace_segment *segment) {
    return segment->kind == MEMTRACE_SEGMENT_AREAS && segment->index < AREA_LEAVES &&
           (const void *)areas->leaf[segment->index] == (const void *)segment;
}
