/* SPDX-License-Identifier: MIT */
/*
 * api.h: what an endpoint is: a function that answers one question about one source, as JSON.
 *
 * Called by dispatch (routes.c), which has parsed the request, found the source, made the model of
 * what the filters select and taken care of who may ask. A handler runs in a worker thread; several
 * run at once, also on the same view: all that it reads is immutable. It writes the value of "data"
 * to call->json, and nothing else: the envelope (window, exact, via, command, time) is the
 * dispatcher's, from call->told. On failure what it wrote is thrown away.
 */
#ifndef WEB_SERVER_API_H
#define WEB_SERVER_API_H

#include "analyze/ask/question.h"
#include "analyze/report/metric.h"
#include "analyze/rows/jsonwriter.h"
#include "analyze/rows/rows.h"

/* A source, loaded, and what filters select of it. Immutable and counted: it lives while any call
 * holds it. */
struct api_view {
    const struct source *source;
    const struct model *whole;
    const struct model *model; /* of what is selected; may be the same */
    const struct names *names; /* resolved: may be read by several threads */
    const struct selection *selection;
    const struct question *question; /* as it was asked; filters.text spells it */
    struct api_view_cache *cache;    /* what passes over it gathered: apicache.h */
};

enum api_exact { API_EXACT, API_BOUND, API_ESTIMATE, API_SNAPPED };
enum api_via { API_VIA_MODEL, API_VIA_SLICES, API_VIA_PASS, API_VIA_CACHE };

/* What is told around the data. */
struct api_told {
    enum api_exact exact; /* the dispatcher's guess from the model; handlers may change it */
    double error;
    enum api_via via;
    char *command; /* malloc'd: "report --show-peak --bottom-up ..." without memtrace, filters and
                      file */
    char *sql;     /* malloc'd; NULL: none */
};

struct api_call {
    const struct api_view *view;
    const struct api_view *base; /* of a difference; NULL: none */
    const struct api_request *request;
    const char *rest; /* what stands in place of {name} in the route, decoded; NULL: none */
    struct replay_options replay; /* cancel and progress: to be handed on */
    struct report report;         /* filled for the view (options of the request, no output) */
    enum metric metric;
    struct jsonwriter *json;
    struct api_told told;
    int status; /* of HTTP, where the handler fails; 0: 400 where it is the asker's fault is to be
                   set */
};

/* 0, or -1: error is one line. */
typedef int (*api_handler)(struct api_call *call, struct error *error);

/* Parameters that are the endpoint's own. NULL: not given. */
const char *api_param(const struct api_call *call, const char *name);
/* The same as a number within bounds; `usual` if it is not given. 0, or -1: error says what is
 * wrong, status is 400. */
int api_number(struct api_call *call, const char *name, uint64_t usual, uint64_t least,
               uint64_t most, uint64_t *value, struct error *error);
bool api_flag(const struct api_call *call, const char *name);

#endif
