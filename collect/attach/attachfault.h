/* SPDX-License-Identifier: MIT */
/*
 * attachfault.h: places at which the tests have the command killed, to see what becomes of the
 * program then: those named by MEMTRACE_ATTACH_FAULT; or stopped, to be let go on when the program
 * has done something: by MEMTRACE_ATTACH_STOP. In a build without tests there are none.
 *
 * Called by collect/attach.
 */
#ifndef COLLECT_ATTACH_ATTACHFAULT_H
#define COLLECT_ATTACH_ATTACHFAULT_H

#ifdef MEMTRACE_FAULTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static inline void attachfault_at(const char *step) {
    const char *killed = getenv("MEMTRACE_ATTACH_FAULT");
    const char *stopped = getenv("MEMTRACE_ATTACH_STOP");
    if (killed != NULL && strcmp(killed, step) == 0) {
        raise(SIGKILL);
    }
    if (stopped != NULL && strcmp(stopped, step) == 0) {
        raise(SIGSTOP);
    }
}
#else
static inline void attachfault_at(const char *step) {
    (void)step;
}
#endif

#endif
