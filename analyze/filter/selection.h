/* SPDX-License-Identifier: MIT */
/*
 * selection.h: which part of a profile or recording a question is about. Every report, export,
 * difference, check and query takes the same one.
 *
 * Two things, which may be combined:
 *   view     when we look: only what happened in [from, to) counts. Live is what is held at `to`,
 *            whenever it was allocated; the maximum is what is held when the process held most
 *            within the view.
 *   filters  which blocks count. All that are given must hold. Filters of contexts (function, file,
 *            module, pool, class, path, depth, group) work on profiles, too; filters of single
 *            blocks, and views, need a recording.
 * The result is a model again (model.h), with the same nodes and context ids. Its maximum is what
 * the selected blocks held when the whole process held most in the view: so parts add up to the
 * whole. In a view that does not begin at 0, frees may exceed allocations.
 *
 * Called by cli (and whoever serves questions), in a job. A selection is a value whose memory is
 * that of its maker's job; start from selection_all(). One thread at a time.
 */
#ifndef ANALYZE_FILTER_SELECTION_H
#define ANALYZE_FILTER_SELECTION_H

#include "analyze/model/model.h"
#include "analyze/model/names.h"
#include "analyze/replay/lives.h"
#include "analyze/replay/options.h"
#include "analyze/replay/timeorder.h"

#include <regex.h>

/* least <= value <= most. {0, UINT64_MAX}: any. */
struct selection_range {
    uint64_t least;
    uint64_t most;
};

static inline bool selection_is_any(struct selection_range range) {
    return range.least == 0 && range.most == UINT64_MAX;
}

static inline bool selection_is_within(uint64_t value, struct selection_range range) {
    return range.least <= value && value <= range.most;
}

/* [from, to) */
struct selection_times {
    uint64_t from_ns;
    uint64_t to_ns; /* UINT64_MAX: to the end */
};

/* Blocks, by birth_order: a bit each of the bytes that there are. Start from {0}. */
struct selection_blocks {
    unsigned char *bits;
    size_t size;
};
void selection_add_block(struct selection_blocks *blocks, uint64_t birth_order);

/* Which mappings of the process (mappinghistory.h): those of which all that is asked holds. */
struct selection_mappings {
    uint64_t number;         /* 0: any */
    const char *permissions; /* as "rw-p": '.' for either, the last may be missing; NULL: any */
    struct selection_range peak_resident; /* bytes, over the whole run */
    /* What selection_find_mappings() found. */
    bool *chosen; /* by number - 1 */
    size_t count;
    struct selection_place *places; /* of those chosen, by their first address */
    size_t place_count;
    struct selection_smaps { /* of those chosen: where each began at each moment, by both */
        uint64_t time_ns;
        uint64_t start;
    } * smaps;
    size_t smaps_count;
};

enum selection_part { SELECTION_FUNCTION, SELECTION_FILE, SELECTION_MODULE };

/* Holds if the regex (POSIX extended) is found in that part of some frame of the path, inlined
 * functions included; `negative`: of none. */
struct selection_pattern {
    enum selection_part part;
    bool negative;
    regex_t *regex;
};

enum { SELECTION_LIVE_AT = 2 };

struct selection {
    struct selection_times view;

    /* Contexts. */
    struct selection_pattern *patterns;
    size_t pattern_count, pattern_room;
    struct selection_range depth; /* frames of the recorded path */
    uint32_t classes;             /* bit enum model_class: that class; 0: any */
    const char *pool;             /* name; NULL: any */
    uint64_t path;                /* model_hash() of the context; 0: any */
    /* Groups: all blocks of one context, over the whole run, whatever the other filters say. */
    struct selection_range group_allocations;
    struct selection_range group_bytes;
    struct selection_range group_live_blocks;
    struct selection_range group_live_bytes;
    double group_live_least; /* live blocks, in percent of the allocations; both included */
    double group_live_most;
    /* These two need to be found by a pass, selection_find_groups(). */
    struct selection_range group_interval; /* ns from its first allocation to its last one */
    struct selection_times group_maximum;  /* when it first held the most that it ever held */
    unsigned char *groups; /* by node: 1 where these hold; NULL: they are not asked, or not found */

    /* Blocks. */
    struct selection_range size;
    struct selection_range first_size; /* of its chain of reallocations */
    struct selection_range last_size;
    struct selection_range chain_length;   /* blocks of the whole chain */
    struct selection_range chain_position; /* the block's place in its chain, from 1 on */
    struct selection_range chain_lifetime; /* ns, from the first birth to the last death */
    struct selection_range lifetime;       /* ns; a block that never ended: to the end of the run */
    struct selection_range address;        /* any byte of the block */
    struct selection_times born;
    struct selection_times died;            /* if only_freed */
    uint64_t live_at_ns[SELECTION_LIVE_AT]; /* lived at this moment */
    size_t live_at_count;
    uint32_t *threads; /* ids of those who allocated it, any of them; count 0: any */
    size_t thread_count, thread_room;
    uint32_t *death_threads; /* of those who freed it */
    size_t death_thread_count, death_thread_room;
    const char *where;   /* an expression of SQL that holds for it; NULL: any */
    const char *scope;   /* born while its thread was in a scope of this name; NULL: any */
    uint64_t freed_path; /* model_hash() of the context that freed it; 0: any */
    enum selection_arena { SELECTION_ANY_ARENA, SELECTION_MAIN_ARENA, SELECTION_OTHER_ARENA } arena;
    struct selection_mappings mappings;  /* it lies in one of them, at some time */
    struct selection_blocks where_holds; /* as whoever made the selection has found out */
    bool only_mapped;                    /* the C library gave it a mapping of its own */
    bool only_chain_leaked;              /* the last block of its chain never ended */
    bool only_freed;                     /* ended, in the time `died` */
    bool only_leaked;                    /* never ended */
    bool only_temporary;                 /* life.is_temporary */
    bool only_foreign_freed;             /* by another thread than its own */

    /* Threads and timeline of the answer are wanted in any case: filters of contexts alone do not
     * tell them, so of a recording they take a pass, too. A profile never tells them of a part. */
    bool wants_threads;
};

struct selection selection_all(void);

/* Adds a pattern. 0, or -1: no such regex (error says why). */
int selection_add_pattern(struct selection *selection, enum selection_part part, bool negative,
                          const char *regex, struct error *error);

/* What answering takes. */
bool selection_is_all(const struct selection *selection);        /* the whole model is the answer */
bool selection_asks_contexts(const struct selection *selection); /* filters of them are given */
bool selection_needs_lives(const struct selection *selection);   /* filters of blocks are given */
bool selection_asks_group_times(const struct selection *selection);
bool selection_has_view(const struct selection *selection);
bool selection_asks_ends(const struct selection *selection); /* whether a life counts is known when
                                                                it is over, or the view is */
bool selection_asks_deaths(const struct selection *selection); /* ... its death tells */
bool selection_asks_chains(const struct selection *selection); /* ... when its chain is over */

/* The classes that filters ask for, as bits 1 << enum model_class; 0: none in particular. */
uint32_t selection_classes(const struct selection *selection);

/* Finds the groups that the selection asks the times of, by a pass over all blocks: before anything
 * below is called of a selection for which selection_asks_group_times() holds. 0, or -1: error. */
int selection_find_groups(struct selection *selection, const struct model *whole,
                          struct timeorder_parts parts, const struct replay_options *options,
                          struct error *error);

/* Finds the mappings that are asked for, before anything below is called where some are. 0, or -1:
 * error, which names no option. */
bool selection_asks_mappings(const struct selection_mappings *mappings);
int selection_find_mappings(struct selection_mappings *mappings, struct timeorder_parts parts,
                            struct error *error);
/* Whether this one is chosen; all are where none are asked for, or `mappings` is NULL. */
bool selection_has_mapping(const struct selection_mappings *mappings, uint64_t number);
/* The same of what the kernel said at this moment about what began there. */
bool selection_has_smaps(const struct selection_mappings *mappings, uint64_t time_ns,
                         uint64_t start);

/*
 * The model of what is selected; the caller frees it. `whole` is the model of all of it, `parts`
 * the recording (count 0: a profile), `names` those of `whole`, needed where there are patterns.
 * Costs that a recording culled, and mappings, pass filters of contexts only. NULL: out of memory,
 * or the selection needs a recording (error says what of it).
 */
struct model *selection_model(const struct selection *selection, const struct model *whole,
                              struct timeorder_parts parts, const struct names *names,
                              const struct replay_options *options, struct error *error);

/*
 * lives_visit() with the selected lives only: begin() and end() see a life if all filters hold,
 * and the view is that of births and deaths: a life that was born behind it is left out, one that
 * ended behind it is handed out as LIFE_ALIVE, one that ended before it not at all. Where
 * selection_asks_ends(), begin() is never called; where selection_asks_chains(), end() is called
 * when the chain is over, and so later than in the order of deaths. Until then the lives of a chain
 * take memory. other() sees what is in the view.
 */
int selection_visit(const struct selection *selection, const struct model *whole,
                    struct timeorder_parts parts, const struct names *names,
                    const struct lives_visitor *visitor, const struct replay_options *options,
                    struct error *error);

/* A question about pools or mappings becomes one about the heap: a model in which they are the
 * heap, so that totals, trees and tables are of them. `classes`: bits 1 << enum model_class. The
 * contexts of these classes are of class MODEL_HEAP in it, others are not there, and the totals
 * are theirs; the maximum is what they held when the heap held most. Threads stay as they are.
 * Belongs to the job; shares all but the contexts with `model`. */
struct model *selection_as_heap(const struct model *model, uint32_t classes);
/* The same where the selection asks for it, of a model that belongs to the caller. */
void selection_turn_to_heap(const struct selection *selection, struct model *model);

/* ---- Inside analyze/filter ---- */

/* places[id]: the place of context `id` in whole->contexts, from 1 on, if the filters hold for it;
 * 0: they do not, or it has no counts. As many as the model has nodes; the caller releases it.
 * `names` may be NULL where the selection has no patterns. */
uint32_t *selection_contexts(const struct selection *selection, const struct model *whole,
                             const struct names *names);

/* Whether some byte of the block lay in one of them, at some time. */
bool selection_is_in_mappings(const struct selection_mappings *mappings, const struct life *life);

/* Who looks on. Functions may be NULL; one that does not return 0 ends the pass with that value. */
struct selectionpass_visitor {
    /* Every block of the recording, in the order of the replay. */
    int (*begin)(void *context, const struct life *life);
    int (*end)(void *context, const struct life *life); /* not those that never ended */
    /* One that all filters let through, whatever the view: when that is known. After end(). */
    int (*take)(void *context, const struct life *life);
    /* The same at its birth, if selection_asks_ends() does not hold. */
    int (*take_begin)(void *context, const struct life *life);
    int (*other)(void *context, const struct timeorder_event *event);
    struct scopes *scopes; /* as in lives_visitor; NULL: the pass has its own where it needs them */
    void *context;
};

/* `places`: of selection_contexts(). Returns as lives_visit() does. */
int selectionpass_run(const struct selection *selection, const struct model *whole,
                      struct timeorder_parts parts, const uint32_t *places,
                      const struct selectionpass_visitor *visitor,
                      const struct replay_options *options, struct error *error);

#endif
