/* SPDX-License-Identifier: MIT */
/*
 * orphan.h: programs that record and whose collector has died get another one.
 *
 * Called by collect/recover for the regions of running programs, and by collect/programask.
 */
#ifndef COLLECT_ORPHAN_H
#define COLLECT_ORPHAN_H

#include <stdbool.h>

/* Starts a companion (cli/companion) for the region at `path` if its program waits for a
 * recording's collector that is gone. The companion is nobody's child and says nothing: the streams
 * of this process are not its own. */
void orphan_help(const char *path);

/* Whether nobody collects it. */
bool orphan_is(const char *path);

/* Starts one for a region that has none. */
void orphan_start(const char *path);

#endif
