/* SPDX-License-Identifier: MIT */
/*
 * filemap.h: a file mapped for reading that its owner may make shorter meanwhile.
 *
 * Called by analyze/read/profile. Mapped pages past the end of a file raise SIGBUS, and no look at
 * the size beforehand helps: so whoever owns the file of a running program could end the commands
 * of whoever looks at it. Here such pages become zeros, and filemap_is_cut() says so. Reading what
 * is there costs nothing more (a copy would, and would not show counters of one moment together).
 */
#ifndef ANALYZE_READ_FILEMAP_H
#define ANALYZE_READ_FILEMAP_H

#include <stdbool.h>
#include <stdint.h>

/* Beyond so many at a time a mapping is as any other. */
enum { FILEMAP_MOST = 1024 };

/* The mapping, or NULL with errno. */
void *filemap_open(int fd, uint64_t size);

/* Larger or smaller; it may move. NULL with errno: it is as it was. */
void *filemap_resize(void *bytes, uint64_t size, uint64_t new_size);

/* Whether something was read that the file no longer had. */
bool filemap_is_cut(const void *bytes);

void filemap_close(void *bytes, uint64_t size);

#endif
