/* SPDX-License-Identifier: MIT */
/*
 * request.h: what was asked for: method, path and parameters, decoded.
 *
 * Made by http.c from the line of the request as it came, so that nothing was decoded before and
 * nothing is decoded twice. Immutable once it is made.
 */
#ifndef WEB_SERVER_REQUEST_H
#define WEB_SERVER_REQUEST_H

#include "analyze/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { REQUEST_PARAMETERS = 256, REQUEST_URI = 16 * 1024, REQUEST_BODY = 1 << 20 };

struct request_parameter {
    char *name;
    char *value; /* "": NAME or NAME= */
};

struct request {
    char *path; /* begins with a slash; no part of it is "." or ".." */
    struct request_parameter *parameters;
    size_t parameter_count;
    const char *method; /* "GET" (HEAD, too) or "POST" */
    const char *body;   /* NUL-terminated UTF-8 text; NULL: none */
    bool wants_columns; /* Accept names application/vnd.memtrace.columns */
    bool wants_text;    /* ... text/plain */
};

/* 0, or -1: it is not well-formed (NUL, bytes outside UTF-8, "..", more than 256 parameters).
 * request_free() in any case. */
int request_parse(struct request *request, const char *uri, struct error *error);
void request_free(struct request *request);

/* The first of that name; NULL: not given. */
const char *request_parameter(const struct request *request, const char *name);

#endif
