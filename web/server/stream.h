/* SPDX-License-Identifier: MIT */
/*
 * stream.h: server-sent events of a source: how far its opening is, what a running program holds,
 * that it ended; and how far a request with job=ID is.
 *
 * Called by http.c, which has the connection. Texts are made here; the connection sleeps between
 * them.
 */
#ifndef WEB_SERVER_STREAM_H
#define WEB_SERVER_STREAM_H

#include "web/server/hub.h"

enum { STREAM_MOST = 32 };

struct stream;

/* wake: called in any thread when there is more to read, or the stream is over, at most once after
 * each stream_read() that returned 0. NULL: out of memory. */
struct stream *stream_open(struct hub *hub, unsigned source, const char *job,
                           void (*wake)(void *context), void *context);
/* Bytes that were read; 0: none now, wake() will be called; -1: it is over. */
long stream_read(struct stream *stream, char *bytes, size_t size);
/* It is over, whatever happens. Wakes. */
void stream_end(struct stream *stream);
void stream_close(struct stream *stream);

#endif
