/* SPDX-License-Identifier: MIT */
/*
 * access.h: who may ask: requests of our own page in a browser of this machine, and of programs
 * that know the token.
 *
 * Called by http.c before anything of a request is looked at. The token is made anew each time; it
 * goes to the browser in the fragment of the address, which is never sent.
 */
#ifndef WEB_SERVER_ACCESS_H
#define WEB_SERVER_ACCESS_H

#include "analyze/base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { ACCESS_TOKEN = 32 }; /* hexadecimal digits: 128 bits */

struct access {
    char token[ACCESS_TOKEN + 1];
    uint16_t port;
    char host[256]; /* --listen ADDRESS, or this machine's name; "": of this machine alone */
    bool is_any;    /* it listens at all addresses of the machine: each is ours */
};

/* 0, or -1: the kernel gives no random numbers. */
int access_start(struct access *access, struct error *error);

/* What the headers say; NULL: not there. */
struct access_headers {
    const char *host;
    const char *origin;
    const char *fetch_site;
    const char *authorization;
};

/* 0, or the status of the refusal: 401 or 403, with *reason. The page itself needs no token (it
 * holds no data); the rest does. */
int access_check(const struct access *access, const struct access_headers *headers, bool is_page,
                 const char **reason);

#endif
