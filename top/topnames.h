/* SPDX-License-Identifier: MIT */
/*
 * topnames.h: names of a running program's frames, found by a thread of their own, so that the
 * screen never waits for debug information: until then a frame is module+0xoffset.
 *
 * Called by top, in one thread. What was asked for and is not known is noted; topnames_look() hands
 * it to the thread and takes what that has found.
 */
#ifndef TOP_TOPNAMES_H
#define TOP_TOPNAMES_H

#include "analyze/model/names.h"

struct topnames;

/* The functions at a frame, innermost first. count 0: they are not known yet. */
struct topnames_found {
    const struct names_frame *frames;
    size_t count;
};

/* NULL: error is set. */
struct topnames *topnames_start(const char *debug_folders, struct error *error);
/* Names that are all there: those of a file. They must live until others are given, or the end. */
void topnames_give(struct topnames *names, const struct names *given);
/* Waits for what the thread does just now. NULL is allowed. */
void topnames_stop(struct topnames *names);

/* What it hands out lives until topnames_stop(). */
struct topnames_found topnames_find(struct topnames *names, uint64_t frame);

/* Takes what was found; then, if frames were asked for that are not known, has the thread look for
 * them in the modules of the profile. Whether anything new is known. */
bool topnames_look(struct topnames *names, const struct profile *profile);
/* Whether the thread is at work. */
bool topnames_is_busy(struct topnames *names);
/* Waits until it is done, at most so long. */
void topnames_wait(struct topnames *names, unsigned ms);

/* Grows whenever names became known. */
uint64_t topnames_generation(const struct topnames *names);

#endif
