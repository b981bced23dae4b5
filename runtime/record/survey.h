/* SPDX-License-Identifier: MIT */
/*
 * survey.h: adds up the columns of the ledger inside the program: for the summary at the end, the
 * API, and the top-N where no collector can be had. Private memory, bounded by the contexts.
 */
#ifndef RUNTIME_RECORD_SURVEY_H
#define RUNTIME_RECORD_SURVEY_H

#include "runtime/base/space.h"
#include "runtime/base/text.h"
#include "runtime/stack/context.h"
#include "runtime/stack/module.h"

struct survey_item {
    uint64_t alloc_bytes, alloc_count, free_bytes, free_count;
    int64_t peak_bytes;
};

struct survey {
    struct survey_item *item; /* by context id */
    uint32_t count;           /* ids below it */
    struct survey_item total; /* heap only */
    uint32_t contexts;        /* heap contexts that allocated */
};

/* 0, or -1: no memory. */
int survey_make(struct survey *survey, struct space *space, struct context_tree *tree);
void survey_free(struct survey *survey);

/* The frames of a context, innermost first; class frames left out. Returns how many there are. */
uint32_t survey_frames(struct context_tree *tree, uint32_t context, uint64_t *frames,
                       uint32_t capacity);
/* Whether the context's blocks are heap, not mappings or custom pools. */
int survey_is_heap(struct context_tree *tree, uint32_t context);
/* Writes one context to a descriptor, as module+offset lines. 0, or -1. */
int survey_write(int fd, struct context_tree *tree, const struct modules *modules, uint32_t context,
                 const struct survey_item *item);
int survey_write_frames(int fd, struct context_tree *tree, const struct modules *modules,
                        uint32_t context);
/* "    module+0x12ab" of one frame, with the end of the line. */
void survey_add_frame(struct text *text, const struct modules *modules, uint64_t frame);

/* The `top` contexts (0: all) that hold most live memory, largest last. `accept` may be NULL.
 * Returns how many were written, or -1. */
long survey_write_top(int fd, const struct survey *survey, struct context_tree *tree,
                      const struct modules *modules, uint32_t top,
                      int (*accept)(void *argument, uint32_t context,
                                    const struct survey_item *item),
                      void *argument);

#endif
