/* SPDX-License-Identifier: MIT */
/*
 * runwatch.h: finds the processes of a run by their regions, and collects each one while it runs
 * and when it is gone.
 *
 * Called by cli/run. Belongs to one thread.
 */
#ifndef COLLECT_RUNWATCH_H
#define COLLECT_RUNWATCH_H

#include "analyze/read/region.h"
#include "collect/collector.h"
#include "collect/runwriter.h"

struct runwatch {
    struct runwriter *run;
    struct collector **processes; /* attached */
    size_t count;
    int64_t looked_ns; /* the folders of regions as they were at the last look; -1: look again */
    bool found_any;    /* ever */
};

struct runwatch runwatch_begin(struct runwriter *run);

/* Looks for new processes, does what is due beside each, finishes those that are gone. Returns the
 * milliseconds until it should be called again. */
int runwatch_tick(struct runwatch *watch);

/* The command's process is a zombie now, so that nobody else has its pid: finishes all that are
 * gone. Returns how many go on. */
size_t runwatch_end(struct runwatch *watch);
/* Then, when the run is at its place: those that go on finish their profiles themselves, recordings
 * get a collector of their own. */
void runwatch_let_go(struct runwatch *watch);

#endif
