/* SPDX-License-Identifier: MIT */
/*
 * model.h: the costs of a profile or a recording, added up: totals, calling contexts, threads,
 * modules, timeline.
 *
 * Called by analyze/report, collect and cli. A model is a value: it does not change after
 * model_load or model_replay (replay.h) and needs its profile or recording no more. Two models of
 * the same running program, taken at two moments, are compared by context id (model_find). Belongs
 * to one thread at a time.
 *
 * Invariants, whatever the file says:
 *   nodes[id].parent < id, for every id < node_count (damaged nodes become children of nothing)
 *   contexts are sorted by id, each id < node_count, and each has some count other than zero
 *   of heap contexts (class MODEL_HEAP): sum of live_bytes == totals.live_bytes, sum of live_blocks
 *   == totals.live_blocks, sum of peak_bytes == totals.maximum_bytes, and so on; of the other
 *   classes nothing is in totals
 *   frees <= allocations and freed_bytes <= total_bytes, in each context but that of
 *   MEMTRACE_FRAME_BEFORE and in totals, if from_ns == 0
 * If the profile has no contexts (MEMTRACE_STACKS_NONE), totals come from the threads.
 */
#ifndef ANALYZE_MODEL_MODEL_H
#define ANALYZE_MODEL_MODEL_H

#include "analyze/base/job.h"
#include "analyze/base/numbermap.h"
#include "analyze/read/profile.h"

enum model_class {
    MODEL_HEAP = 0,
    MODEL_MAPPING = 1, /* mmap and friends */
    MODEL_POOL = 2,    /* a custom pool; see pool */
};

/* The path nodes[parent] extended by one frame. */
struct model_node {
    uint64_t frame;  /* as in the file: address, module, exact; 0: never written */
    uint32_t parent; /* 0: outermost */
};

/* A path's node, below model.node_count whatever the file says: a pass alone makes one
 * (analyze/replay/pass.c), of what an event says. 0: none. */
struct context_id {
    uint32_t node;
};

struct model_context {
    uint32_t id;
    uint32_t parent; /* of nodes[id] */
    uint64_t frame;  /* of nodes[id] */
    uint32_t path;   /* innermost node that is code: id, or the parent of a class frame; 0: none */
    uint32_t pool;   /* class MODEL_POOL: index into pools */
    enum model_class class;
    uint64_t live_bytes;
    uint64_t live_blocks;
    uint64_t peak_bytes; /* held when the whole process was at its maximum */
    uint64_t total_bytes;
    uint64_t allocations;
    uint64_t freed_bytes;
    uint64_t frees;
    uint64_t temporary;       /* blocks freed by their thread with no other allocation in between */
    uint64_t lifetimes;       /* index of its first bucket in model.lifetimes; MODEL_NO_LIFETIMES */
    double total_error_bytes; /* standard errors of estimates; 0: counted */
    double live_error_bytes;
    double allocations_error; /* of profiles */
};
#define MODEL_NO_LIFETIMES UINT64_MAX
enum { MODEL_MARKS = 1 << 16 };

/* Standard errors of what a sample estimates. */
struct model_errors {
    double total_bytes;
    double allocations;
    double live_bytes;
    double maximum_bytes;
};

struct model_totals {
    uint64_t maximum_bytes;
    uint64_t maximum_error_bytes; /* bound of the maximum's error, threads only */
    uint64_t maximum_ns;          /* when it was reached; 0: not known, as in older profiles */
    uint64_t live_bytes;
    uint64_t live_blocks;
    uint64_t total_bytes;
    uint64_t allocations;
    uint64_t freed_bytes;
    uint64_t frees;
    uint64_t temporary;
    uint64_t context_count; /* heap contexts with at least one allocation */
    /* What was there before the program was attached to: is left of it, in live_bytes, too; has
     * gone, which is in nothing else. */
    uint64_t before_bytes;
    uint64_t before_freed_bytes;
    uint64_t before_frees;
    uint64_t lost; /* sum of the header's lost[]; what a recording alone lost counts only there */
};

struct model_thread {
    uint32_t id;
    uint32_t tid;
    uint32_t earlier; /* threads that had this id before and ended: they are in the sums */
    bool alive;
    uint64_t start_ns;
    uint64_t end_ns; /* 0: alive */
    uint64_t allocations;
    uint64_t total_bytes;
    uint64_t frees;
    uint64_t freed_bytes;
    uint64_t foreign_frees; /* blocks of others that this thread freed */
    uint64_t foreign_freed_bytes;
    int64_t live_bytes; /* total_bytes - what anyone freed of this thread's blocks */
    char name[32];
};

/* Thread `freer` freed this much that thread `owner` had allocated. */
struct model_foreign {
    uint32_t freer;
    uint32_t owner;
    uint64_t blocks;
    uint64_t bytes;
};

struct model_module {
    uint32_t id;
    uint32_t build_id_size;
    uint8_t build_id[32];
    uint64_t start;
    uint64_t end;
    uint64_t bias;
    uint64_t load_ns;
    uint64_t unload_ns; /* 0: never */
    const char *path;   /* "" where unknown */
};

/* What only a recording tells; at its end what a sampled profile has, too. */
struct model_recording {
    bool present; /* false: the model is a profile's, and all but what a sample has is 0 */
    bool closed;  /* its writer finished it */
    bool precise;
    bool stopped;   /* before the program's end: the disk was full, or so it was asked */
    uint32_t part;  /* of a recording in several files: 0, 1, ...; the first one of these */
    uint32_t parts; /* files that were read as one */
    uint64_t bytes;
    uint64_t blocks; /* blocks of events */
    uint64_t events;
    uint64_t lost_allocs; /* not recorded, because no buffer was free */
    uint64_t lost_frees;
    uint64_t foreign_frees; /* of blocks that are not in this file: begun before it, or lost */
    uint64_t size_least;    /* only heap blocks of these sizes are in it */
    uint64_t size_most;     /* 0: of any size */
    bool some_modules;      /* only what some modules allocate is in it */
    uint64_t sample_bytes;  /* 0: every allocation; else the mean distance of sampled bytes */
    bool is_counted; /* totals, contexts and threads are the program's own counters: in events some
                        are missing, or stand for others */
    bool sampled;    /* some allocations stand for others: what follows is not 0 */
    struct model_errors errors; /* of the totals */
};

/* When events of a recording were lost, and how many; 0 and 0: not known how many. Or when not all
 * were recorded since too many came, and those that were stand for the others. */
struct model_gap {
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t allocs;
    uint64_t frees;
    uint64_t distance; /* thinned: one allocation in at most so many bytes; 0: they were lost */
};

/* What the program said of itself: memtrace_mark(), scopes, snapshots, recording on and off. */
struct model_mark {
    uint64_t time_ns;
    uint32_t thread;
    uint32_t what;    /* enum memtrace_mark */
    uint64_t id;      /* of scopes */
    const char *name; /* "" where it has none */
};

/* A forked child that stayed light: what it did stands in its parent's profile, and is in none of
 * the model's totals and contexts. One that wrote a profile of its own is not among them. */
struct model_child {
    uint32_t pid;
    uint32_t parent_pid;
    bool ended;  /* else it ran still, or was killed */
    bool execed; /* it ended by exec */
    uint64_t start_ns;
    uint64_t end_ns; /* 0: it had not ended */
    uint64_t allocations;
    uint64_t total_bytes;
    uint64_t frees;
    uint64_t freed_bytes;
    uint64_t maximum_bytes;
    uint64_t lost;
    uint64_t first_path; /* of model.child_paths */
    size_t path_count;   /* 0: it wrote none */
    char name[32];
};

/* What a child did in one context. */
struct model_child_path {
    uint32_t node; /* in nodes: of the file's tree, or of those that children made, behind them */
    uint64_t total_bytes;
    uint64_t allocations;
    uint64_t freed_bytes; /* <= total_bytes */
    uint64_t frees;       /* <= allocations */
};

struct index;

struct model {
    struct memtrace_header header; /* strings end inside their arrays */
    struct model_totals totals;
    struct model_node *nodes; /* indexed by context id; nodes[0] is the root */
    size_t node_count;
    uint32_t before_node; /* of recordings: that of MEMTRACE_FRAME_BEFORE; 0: there is none */
    struct model_context *contexts;
    size_t context_count;
    uint64_t *lifetimes; /* MEMTRACE_LIFETIME_BUCKETS a context: see context.lifetimes */
    size_t lifetime_count, lifetime_room;
    struct model_thread *threads; /* sorted by id; those that were never used are left out */
    size_t thread_count;
    struct model_foreign *foreign; /* sorted by freer, then by owner */
    size_t foreign_count;
    struct model_module *modules; /* indexed by id; [0] and damaged ones have path "" */
    size_t module_count;
    char (*pools)[64]; /* indexed by context.pool */
    size_t pool_count;
    struct memtrace_pool_room *pool_rooms; /* by pool, of as many as there are in the file; NULL: it
                                              does not say where pools' blocks lay in the end */
    size_t pool_room_count;
    struct memtrace_point *timeline; /* times grow strictly */
    size_t timeline_count;
    struct model_mark *marks; /* of recordings, by time; the first MODEL_MARKS of them */
    size_t mark_count;
    uint64_t mark_total;
    struct model_gap *gaps; /* of recordings, by time */
    size_t gap_count;
    struct model_gap *thinned; /* the same */
    size_t thinned_count;
    struct model_child *children; /* of profiles, in the order of their starts */
    size_t child_count;
    struct model_child_path *child_paths;
    size_t child_path_count;
    char *mark_names; /* of the marks, each once; NULL: all are "" */
    size_t mark_names_size;
    uint64_t from_ns; /* only what happened in [from_ns, to_ns) is counted: see selection.h */
    uint64_t to_ns;   /* UINT64_MAX: to the end */
    struct model_recording recording;
    uint64_t now_ns;           /* the latest time known, since the program's start */
    bool live;                 /* taken from a program that was running */
    char damage[256];          /* empty: whole; else where the file breaks or what did not add up */
    char *strings;             /* module paths */
    struct index *index;       /* of all of a recording, for views of it; else NULL */
    struct job_memory *memory; /* its own; NULL: it is of the job that made it */
};

/* Makes a model in a job of its own, whose memory is the model's: make() fills in what is all zero
 * at first. NULL: that job failed, error (may be NULL) says why. */
struct model *model_make(void (*make)(struct model *model, void *what), void *what,
                         struct error *error);

/* Reads everything. For a live profile call profile_refresh() first: frees are read before
 * allocations, so no block counts as freed before it was allocated. NULL: out of memory. */
struct model *model_load(const struct profile *profile, struct error *error);

/* The same without call paths: threads, modules, pools, timeline. Totals are those of the threads,
 * and the only node is the root. */
struct model *model_load_records(const struct profile *profile, struct error *error);

/* NULL is allowed. One without memory of its own goes with its job. */
void model_free(struct model *model);
/* model_free() when the present job ends. */
void model_goes_with_job(struct model *model);

/* The context with this id, or NULL if it has no counts. NULL model: NULL. */
const struct model_context *model_find(const struct model *model, uint32_t id);
/* Whether what is live was never freed: what is held while the program runs, or was held once, is
 * no leak. */
bool model_has_leaks(const struct model *model);
/* How it ended: "ended", "detached", "execed", "copied" or "killed"; "running": not yet. */
const char *model_end_word(const struct model *model);
/* It was detached from: what it holds is no longer watched, and may be freed yet. */
bool model_is_left(const struct model *model);
/* Whether it is a recording whose end may be missing: its writer did not finish it, and is gone. */
bool model_is_unfinished(const struct model *model);

/* The children of a profile, summed up. */
struct model_children {
    uint64_t allocations;
    uint64_t total_bytes;
    uint64_t live_bytes;    /* what they had not freed when they ended */
    uint64_t maximum_bytes; /* the most that one of them held */
    uint64_t lost;
};
struct model_children model_sum_children(const struct model *model);

/* What a frame says. offset: in the file's own terms, one less for return addresses, as
 * symbolizer_resolve wants it; of frames in no known module: the address itself, one less too. */
struct model_place {
    uint32_t module; /* index into modules; 0: none */
    uint64_t offset;
    uint64_t address; /* as recorded */
    uint64_t called;  /* the address in the calling instruction, or of an interrupted one */
};
struct model_place model_place(const struct model *model, uint64_t frame);

/* A stable hash of the path that ends in node `id`: it is the same in each run and with each load
 * address, as long as the modules' build-ids (or, without, paths) and offsets are. */
uint64_t model_hash(const struct model *model, uint32_t id);

/* The name of a pool, "mapping" or "heap". */
const char *model_class_name(const struct model *model, const struct model_context *context);

/* How much each thread freed of what each other thread allocated, added up. A program of thousands
 * of threads has millions of pairs, so a pair is found by its hash. All zero is empty and ready; it
 * belongs to the job that it was begun in. */
struct foreign {
    struct model_foreign *pairs; /* each (freer, owner) once; blocks in the caller's units */
    size_t count;
    size_t room;
    struct numbermap places; /* of the pairs: their numbers from 1; empty after foreign_sort() */
};

/* Frees it early. */
void foreign_free(struct foreign *foreign);

void foreign_add(struct foreign *foreign, struct model_foreign more);

/* By freer, then by owner. */
void foreign_sort(struct foreign *foreign);

/* Sorts them, and gives the model a copy. */
void foreign_give(struct foreign *foreign, struct model *model);

/* Empties it and keeps the room. */
void foreign_clear(struct foreign *foreign);

/* Whether its totals, contexts and threads are estimates. */
static inline bool model_is_estimate(const struct model *model) {
    return model->recording.sampled && !model->recording.is_counted;
}

/* What of the resident memory is MemTrace's own was counted at another moment, in older files with
 * pages that only others have: whatever the file says, a part is no larger than the whole. */
static inline void model_bound_own(struct model *model) {
    struct memtrace_header *header = &model->header;
    if (header->peak_resident_bytes != 0 &&
        header->own_resident_bytes > header->peak_resident_bytes) {
        header->own_resident_bytes = header->peak_resident_bytes;
    }
}

#endif
