/* SPDX-License-Identifier: MIT */
/*
 * serving.h: `run --serve` and `record --serve`: the page of the program that was just started.
 *
 * Called by cli/run. The server is a process of its own (`memtrace serve PID`), so that what it
 * does costs the collector nothing, and the page stays when the program is gone.
 */
#ifndef CLI_SERVING_H
#define CLI_SERVING_H

#include <sys/types.h>

/* Its process; -1: it was said why not. */
pid_t serving_start(pid_t program);
/* Ends it now. */
void serving_end(pid_t server);
/* Stays until the user ends it (Ctrl-C), or it ends itself. The signals are blocked. */
void serving_wait(pid_t server);

#endif
