/* SPDX-License-Identifier: MIT */
/*
 * dispatch.h: a request becomes an answer: route, parameters, view, handler, envelope.
 *
 * Called by workers. docs/serve.md and web/openapi.json describe what comes out.
 */
#ifndef WEB_SERVER_DISPATCH_H
#define WEB_SERVER_DISPATCH_H

#include "web/server/hub.h"
#include "web/server/request.h"
#include "web/server/routes.h"

#include <stdatomic.h>

struct reply {
    int status;
    char *bytes; /* malloc'd */
    size_t size;
    const char *type;
    FILE *file;      /* in place of the bytes; NULL: none */
    char *file_name; /* offered as a download; NULL: no. malloc'd */
};

/* NULL is never left in reply->bytes but where memory is out: then size is 0. */
void dispatch(struct hub *hub, const struct request *request, const atomic_bool *cancel,
              struct reply *reply);
/* application/problem+json, of one line. */
void dispatch_problem(struct reply *reply, int status, const char *detail);

/* Which queue it goes to. */
enum route_queue dispatch_queue(const struct request *request);

#endif
