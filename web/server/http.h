/* SPDX-License-Identifier: MIT */
/*
 * http.h: HTTP by libmicrohttpd: connections, what may be asked at all, and answers.
 *
 * Called by server.c. The daemon's own threads read requests, refuse what must not be answered, and
 * hand the rest to the workers (workers.h); connections are suspended meanwhile. Bodies are made in
 * memory, whole, by dispatch.c; streams of events come from stream.c.
 */
#ifndef WEB_SERVER_HTTP_H
#define WEB_SERVER_HTTP_H

#include "web/server/access.h"
#include "web/server/hub.h"

struct http;

/* listeners: sockets that listen, which are closed at the end in any case. NULL: error is set. */
struct http *http_start(const struct access *access, struct hub *hub, const int *listeners,
                        size_t count, struct error *error);
void http_stop(struct http *http); /* NULL is allowed */

#endif
