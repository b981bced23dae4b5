/* SPDX-License-Identifier: MIT */
/*
 * topask.h: what the user of `memtrace top` wants of the program whose recording is on the screen:
 * on this machine, or on another one, from which `memtrace gather` receives it. Nobody waits: the
 * answer comes while the screen goes on.
 *
 * Called by topkeys (what a key asks) and toploop (the answer). Belongs to one thread.
 */
#ifndef TOP_TOPASK_H
#define TOP_TOPASK_H

#include "collect/gatherask.h"

enum { TOPASK_LOOK_MS = 20 }; /* between two looks for an answer */

struct topask {
    enum { TOPASK_NOTHING, TOPASK_PROGRAM, TOPASK_GATHERER } whom; /* is under way */
    struct programask program;
    struct gatherask gatherer;
    /* What the last answer said of what is recorded. */
    bool is_off;
    bool is_sampled;
};

/* Asks the program of this recording; what was asked before is not waited for any more. 0, or -1:
 * error says why not. */
int topask_begin(struct topask *ask, const char *path, const struct programask_wish *wish,
                 struct error *error);
/* The same of a process. */
int topask_begin_process(struct topask *ask, pid_t pid, const struct programask_wish *wish,
                         struct error *error);
/* True: that is the answer. */
bool topask_look(struct topask *ask, struct programask_answer *answer);
void topask_end(struct topask *ask);

#endif
