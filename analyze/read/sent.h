/* SPDX-License-Identifier: MIT */
/*
 * sent.h: what a recording whose beginning was sent away and freed (struct memtrace_sent) says of
 * that: how far it goes, and which blocks there were.
 *
 * Called by analyze/read/recording and stream/punch. Any thread.
 */
#ifndef ANALYZE_READ_SENT_H
#define ANALYZE_READ_SENT_H

#include "analyze/read/block.h"

struct sent {
    struct memtrace_sent last; /* of the last page; end 0: nothing was freed */
    uint64_t first_page;       /* where the pages begin; 0: not known yet */
    struct memtrace_index_entry *entries;
    size_t count, room;
    size_t last_count; /* entries of the last page */
};

/* Where the pages of a file begin or would begin; 0: its first block is not there yet. */
uint64_t sent_first_page(int fd);

/* From {0}. 0: read, last.end says whether there was something; -1: errno. Damage ends it. */
int sent_read(struct sent *sent, int fd);
void sent_free(struct sent *sent); /* of one from {0}, too */

#endif
