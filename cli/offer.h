/* SPDX-License-Identifier: MIT */
/*
 * offer.h: `record --listen`: others come and take the files of a recording while it goes on.
 *
 * Called by cli/streaming. A process of its own (`memtrace offerer`) waits for them, for all
 * processes of a run; neither the network nor the recorder's end can harm the other side. The
 * listening socket stays with the recorder, too: an offerer that was killed is started again.
 */
#ifndef CLI_OFFER_H
#define CLI_OFFER_H

#include "cli/variables.h"

#include <stdbool.h>

/* Before the program starts: listens, and says where. CLI_OK, or the exit status with the line
 * printed. */
int offer_begin(const struct variables *variables, bool rotates);
/* Hands on new files. */
void offer_tick(void);
/* The files are whole: waits until somebody has all of them, or for as long as it may take, or
 * until Ctrl-C. */
void offer_end(uint64_t linger_ns);

#endif
