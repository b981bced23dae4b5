/* SPDX-License-Identifier: MIT */
/*
 * light.h: what a light child (format.h: struct memtrace_process) leaves in the region of the
 * nearest ancestor that has one: its record, which it keeps up to date, and at its end its paths.
 *
 * The ancestor goes on meanwhile, other light children come and go: places are taken by atomics on
 * the ancestor's header, what is written there counts once it is whole. Nobody waits for anybody.
 */
#ifndef RUNTIME_RECORD_LIGHT_H
#define RUNTIME_RECORD_LIGHT_H

#include "runtime/heap/ledger.h"
#include "runtime/stack/context.h"

enum {
    LIGHT_RECORDS_PER_LEAF = MEMTRACE_PAGE_SIZE / sizeof(struct memtrace_process),
    LIGHT_LEAVES_MOST = 2000, /* 70,000 light children an ancestor; those past it are lost */
};

struct light {
    struct memtrace_header *ancestor; /* the first page of its header, shared; NULL: not light */
    struct memtrace_process *process; /* our record there, shared; NULL: none was left */
    uint32_t number;                  /* of the record */
    struct memtrace_path *head;       /* of what was handed in to shared paths; NULL: nothing */
    uint64_t paths_at, paths_size;    /* the segment that was handed in; size 0: none */
};

/* What of the ledger is to be handed in: all columns but that of the inherited blocks, whose
 * allocations are the frees of inherited blocks in the others. NULL: there were none. */
struct light_work {
    struct space *space; /* private */
    struct context_tree *tree;
    const struct ledger *ledger;
    const struct ledger_column *born;
    uint64_t alloc_count; /* of heap blocks, for a child without a record */
};

/* Takes a record. The space is private, light->ancestor is set. 0 or a negative errno. */
long light_open(struct light *light, struct space *space);
/* Whether what is handed in still comes to its profile: it runs, and its file has its name. */
int light_is_open(const struct light *light, struct space *space);
/* What the child did, and what of that is frees of inherited blocks. */
void light_count(struct light *light, const struct memtrace_counts *counts, uint64_t freed_count,
                 uint64_t freed_bytes);
/* At the end, or before exec: writes the paths and closes the record. */
void light_hand_in(struct light *light, const struct light_work *work,
                   enum memtrace_process_state state);
/* The exec failed: the record is open again, its paths are void. */
void light_take_back(struct light *light, struct space *space);
/* The child has a region of its own, `grown`; or it is the fork of a light child, and forgets what
 * was its parent's. Where its record was there is private memory from then on: a handler may have
 * interrupted somebody who adds to it. */
void light_close(struct light *light, int grown);

#endif
