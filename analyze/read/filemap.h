/* SPDX-License-Identifier: MIT */
/*
 * filemap.h: mapped files that may become shorter meanwhile. Loads past their end raise SIGBUS, and
 * no look at the size beforehand helps: whoever owns the file of a running program could end the
 * commands of whoever looks at it, or its collector. Such pages become zeros here. A copy of the
 * file would cost more, and would not show counters of one moment together.
 *
 * Called by whoever maps what may be another user's. Any thread that does not block SIGBUS
 * (analyze/base/threadstart.h).
 */
#ifndef ANALYZE_READ_FILEMAP_H
#define ANALYZE_READ_FILEMAP_H

#include <stdbool.h>
#include <stdint.h>

/* COPIES: reads, of a private mapping. */
enum filemap_use { FILEMAP_READS, FILEMAP_WRITES, FILEMAP_COPIES };

/* NULL with errno. */
void *filemap_open(int fd, uint64_t offset, uint64_t size, enum filemap_use use);
void filemap_close(void *bytes, uint64_t size);

/* Larger or smaller; it may move. NULL with errno: it is as it was. */
void *filemap_resize(void *bytes, uint64_t size, uint64_t new_size);

/* Whether something was asked for that the file no longer had. */
bool filemap_is_cut(const void *bytes);

/* The same for a private mapping that a library made and will unmap; forgotten before that. */
void filemap_watch(void *bytes, uint64_t size);
void filemap_forget(void *bytes);

#endif
