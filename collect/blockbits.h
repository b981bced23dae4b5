/* SPDX-License-Identifier: MIT */
/*
 * blockbits.h: a bit for each block of a recording, by its name. The bits lie in a file without a
 * name ($TMPDIR or /tmp), so that the kernel can put them aside: a recording has more blocks than
 * memory has room for.
 *
 * Called by collect/strip. Belongs to one thread.
 */
#ifndef COLLECT_BLOCKBITS_H
#define COLLECT_BLOCKBITS_H

#include "analyze/read/event.h"

struct blockbits;

struct blockbits *blockbits_new(void);       /* NULL: errno */
void blockbits_free(struct blockbits *bits); /* NULL is allowed */

/* Sets the block's bit. 0, or -1: errno; names that no block can have are no failure. */
int blockbits_set(struct blockbits *bits, struct event_block block);
bool blockbits_has(const struct blockbits *bits, struct event_block block);

#endif
