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
/* What an endpoint says of a view that no hub has: for a page that is saved (onefile.c). */
struct dispatch_question {
    const struct answer *view;
    const char *path;  /* as it stands behind "/r/1": "/tree?metric=leaked" */
    const char *names; /* what is put behind it: how names are shown: "&full-names" */
    /* Asked instead of the endpoint of that path; it may have the parameter "limit". */
    api_handler handler;
    const struct replay_options *replay;
};
void dispatch_of_view(const struct dispatch_question *question, struct reply *reply);
/* Whether events are asked for, and of which source. *reply: the refusal, where its type is set. */
bool dispatch_is_stream(const struct request *request, unsigned *source, struct reply *reply);
/* application/problem+json, of one line. */
void dispatch_problem(struct reply *reply, int status, const char *detail);

/* Which queue it goes to. */
enum task_queue dispatch_queue(const struct request *request);

#endif
