/* SPDX-License-Identifier: MIT */
/*
 * routes.h: which endpoint answers which path, and which parameters it takes.
 *
 * Called by dispatch.c and openapi.c.
 */
#ifndef WEB_SERVER_ROUTES_H
#define WEB_SERVER_ROUTES_H

#include "web/server/api.h"
#include "web/server/workers.h"

enum route_flags {
    ROUTE_PLAIN = 1 << 0,   /* no source, no filters, no envelope: the handler writes the answer */
    ROUTE_TABLE = 1 << 1,   /* sort, order, limit, cursor */
    ROUTE_METRIC = 1 << 2,  /* metric: maximum (default), leaked, cumulative, ... */
    ROUTE_STREAM = 1 << 3,  /* of ROUTE_PLAIN: events as they happen, by http.c: no handler */
    ROUTE_THREADS = 1 << 4, /* threads and timeline of what is selected are told */
    ROUTE_BLOCKS = 1 << 5,  /* of single blocks alone: the sums of what is selected are not told */
};

/* Those that all routes with filters take, besides. */
struct route {
    const char *method;
    const char *path; /* below /api/v1; {r} is a source, another {name} is call->rest */
    api_handler handler;
    enum task_queue queue;
    const char *own; /* parameters, a space between two; NULL: none */
    unsigned flags;
    /* As openapi.c tells them: its name, the schema of its answer in web/schemas.json (NULL: the
     * one that has the route's name there, or none), and what it is about. */
    const char *id;
    const char *answer;
    const char *about;
    const struct rows *rows; /* of tables: what their rows are, if those are of one thing */
};

/* One after the other; NULL: that was the last. */
const struct route *route_at(size_t place);

/* The route; *source and *rest (malloc'd, or NULL) are what stands in it. NULL: there is none;
 * *is_path: there is one with another method. */
const struct route *route_find(const char *method, const char *path, unsigned *source, char **rest,
                               bool *is_path);
/* Whether the word is one of the words. NULL: none. */
bool route_names(const char *words, const char *word);
bool route_takes(const struct route *route, const char *parameter);

#endif
