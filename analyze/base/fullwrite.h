/* SPDX-License-Identifier: MIT */
/* fullwrite.h: writes all of some bytes, however few of them the kernel takes at a time. */
#ifndef ANALYZE_BASE_FULLWRITE_H
#define ANALYZE_BASE_FULLWRITE_H

#include <stddef.h>
#include <stdint.h>

/* Behind what was written, or at a place. 0, or -1 with errno. */
int fullwrite(int fd, const void *bytes, size_t size);
int fullwrite_at(int fd, const void *bytes, size_t size, uint64_t offset);

#endif
