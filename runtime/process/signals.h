/* SPDX-License-Identifier: MIT */
/*
 * signals.h: signals that switch counting on and off or ask for a report.
 *
 * A handler of ours is there only for signals that have something to do, and the program never sees
 * it: what it sets for such a signal is kept here, shown to it again when it asks, and called after
 * ours. Only signals that the user named (MEMTRACE_SIGNALS) do something: any other one does to the
 * program what it does without us.
 */
#ifndef RUNTIME_PROCESS_SIGNALS_H
#define RUNTIME_PROCESS_SIGNALS_H

#include "runtime/record/region.h"

enum signal_action {
    SIGNAL_NOTHING = 0,
    SIGNAL_TOGGLE, /* on if off, off if on */
    SIGNAL_ON,
    SIGNAL_OFF,
    SIGNAL_SNAPSHOT,
    SIGNAL_EXACT,
    SIGNAL_SAMPLE,
};

/* "none", or a list as in "USR1,snapshot:USR2,off:40". 0; -1: not understood, *signals is as it
 * was. */
int signals_parse(const char *list, struct settings_signals *signals);
/* Sets our handlers; once, when the runtime is ready. */
void signals_start(const struct settings_signals *signals);

#endif
