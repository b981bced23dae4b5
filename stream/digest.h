/* SPDX-License-Identifier: MIT */
/*
 * digest.h: SHA-256 of bytes of a file, by OpenSSL.
 *
 * Called by stream/reuse and stream/knownpieces. Any thread.
 */
#ifndef STREAM_DIGEST_H
#define STREAM_DIGEST_H

#include "stream/wire.h"

/* 0, or -1: the file cannot be read there, or is shorter. */
int digest_of_file(int fd, uint64_t offset, uint32_t size, uint8_t digest[WIRE_DIGEST]);

#endif
