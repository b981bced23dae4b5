/* SPDX-License-Identifier: MIT */
/* attachbeside.c: see attachbeside.h. */
#define _GNU_SOURCE
#include "collect/attach/attachbeside.h"

#include "analyze/read/procfile.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSOR_FIELD = 39 }; /* of stat, counted from 1 */

static cpu_set_t own_processors;
static bool has_moved;
static bool is_urgent;

/* -1: not known. */
static int last_processor(pid_t pid, pid_t tid) {
    char text[PROCFILE_STAT_BYTES];
    const char *field = procfile_stat(pid, tid, PROCESSOR_FIELD, text);
    return field != NULL ? atoi(field) : -1;
}

static bool move_to(int processor) {
    cpu_set_t set;
    if (processor < 0 || processor >= CPU_SETSIZE ||
        sched_getaffinity(0, sizeof own_processors, &own_processors) != 0) {
        return false;
    }
    CPU_ZERO(&set);
    CPU_SET((unsigned)processor, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

void attachbeside_come(pid_t pid, pid_t tid) {
    const struct sched_param first = {.sched_priority = 1};
    has_moved = move_to(last_processor(pid, tid));
    is_urgent = sched_getscheduler(0) == SCHED_OTHER &&
                sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0;
}

void attachbeside_leave(void) {
    const struct sched_param none = {0};
    if (is_urgent) {
        sched_setscheduler(0, SCHED_OTHER, &none);
    }
    if (has_moved) {
        sched_setaffinity(0, sizeof own_processors, &own_processors);
    }
    is_urgent = has_moved = false;
}
