/* SPDX-License-Identifier: MIT */
/*
 * recordtables.h: what the tables of a region say, as blocks of its recording: contexts before the
 * events that happened in them, modules, pools and threads.
 *
 * Called by collect/record. Belongs to one thread. The region may be damaged: what makes no sense
 * is left out.
 */
#ifndef COLLECT_RECORDTABLES_H
#define COLLECT_RECORDTABLES_H

#include "analyze/read/profile.h"
#include "collect/recordfile.h"

enum {
    RECORDTABLES_CONTEXTS = 1 << MEMTRACE_CONTEXT_BITS,
    RECORDTABLES_LEAVES = RECORDTABLES_CONTEXTS / MEMTRACE_LEAF_ITEMS,
    RECORDTABLES_MODULES = MEMTRACE_FRAME_MODULE_MASK + 1,
};

struct recordtables {
    const struct profile *profile;
    uint32_t *leaves;    /* of the tree, by index: the segment's number + 1; 0: not there yet */
    uint64_t *noted;     /* a bit a context: it is in the file, or among `nodes` */
    uint64_t *modules;   /* by id: unload_ns + 1 as it is in the file; 0: it is not */
    uint32_t pool_count; /* in the file */
    struct memtrace_recording_node *nodes; /* not written yet, parents first */
    size_t node_count, node_room;
    size_t noted_count; /* of contexts in the file, about */
};

/* 0, or -1: out of memory. The profile must outlive the tables. */
int recordtables_open(struct recordtables *tables, const struct profile *profile);
void recordtables_close(struct recordtables *tables);

/* Looks for leaves that were added; call it after each refresh of the profile. */
void recordtables_refresh(struct recordtables *tables);

/* A new file holds nothing yet. */
void recordtables_forget(struct recordtables *tables);
/* What a file holds with which another collector began. 0, or -1: out of memory. */
int recordtables_resume(struct recordtables *tables, const struct recording *there);

static inline bool recordtables_has(const struct recordtables *tables, uint32_t context) {
    return (tables->noted[context / 64] >> context % 64 & 1) != 0;
}
/* Notes a context and its ancestors for the next block of nodes. 0; 1: it is not in the tables as
 * they were at the last refresh; -1: out of memory. */
int recordtables_note(struct recordtables *tables, uint32_t context);

/* Each writes a block of what the file has not yet, if there is anything. 0 or -1. */
int recordtables_write_nodes(struct recordtables *tables, struct recordfile *file, uint64_t time_ns,
                             struct error *error);
int recordtables_write_modules(struct recordtables *tables, struct recordfile *file,
                               uint64_t time_ns, struct error *error);
int recordtables_write_pools(struct recordtables *tables, struct recordfile *file, uint64_t time_ns,
                             struct error *error);
/* All threads, as they are now. */
int recordtables_write_threads(struct recordtables *tables, struct recordfile *file,
                               uint64_t time_ns, struct error *error);

#endif
