/* SPDX-License-Identifier: MIT */
/*
 * sourcename.h: which recording is it, and what is it called where it is received?
 *
 * Called by stream/sender, stream/offering, stream/arrival and cli/streaming. Any thread.
 */
#ifndef STREAM_SOURCENAME_H
#define STREAM_SOURCENAME_H

#include "analyze/base/error.h"
#include "stream/wire.h"

#include <limits.h>

/* An identity lies in the first bytes of a recording: which process, and the checksum of what was
 * known of it at its start. They never change, so whoever has them can tell, after any restart. */
enum { SOURCE_HEAD = 144 };

/* The identity of a recording that begins with these SOURCE_HEAD bytes. */
void source_id(const uint8_t *head, uint8_t id[WIRE_ID]);

/* What a sender says of the recording in this open file. 1; 0: its first bytes are not written yet;
 * -1: it is no recording that can be sent (error). */
int source_describe(int fd, const char *path, struct wire_hello *hello, struct error *error);

/* What the open file is called now: the folder of a run gets its name at the end. */
void source_path(int fd, char path[PATH_MAX]);

/* A name as one component of a path: no slash, no control character, nothing outside ASCII, no dot
 * at its beginning, never empty, at most 100 letters. */
enum { SOURCE_WORD = 101 };
void source_word(const char *name, char word[SOURCE_WORD]);

/* "host/program.pid.time.mtr", for the n-th recording (from 1) of which all this is the same. */
enum { SOURCE_NAME = 2 * SOURCE_WORD + 80 };
void source_name(const struct wire_hello *hello, unsigned n, char name[SOURCE_NAME]);

#endif
