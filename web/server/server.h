/* SPDX-License-Identifier: MIT */
/*
 * server.h: the page in the browser and what answers it: sockets, sources, HTTP, the browser.
 *
 * Called by cli/serve and cli/run. One server a process; its threads take no signals.
 */
#ifndef WEB_SERVER_SERVER_H
#define WEB_SERVER_SERVER_H

#include "web/server/hub.h"

enum { SERVER_PORT = 6363, SERVER_PORTS_TRIED = 20 };

struct server_options {
    struct hub_options hub;
    uint16_t port;      /* 0: SERVER_PORT, or the next one that is free */
    const char *listen; /* another address than this machine's own; NULL: none */
};

struct server;

/* Listens and begins to open the names. NULL: error is set. */
struct server *server_start(const struct server_options *options, const char *const *names,
                            size_t count, struct error *error);
void server_stop(struct server *server); /* NULL is allowed */

/* "http://127.0.0.1:6363/#token=..."; the token is in it. */
const char *server_address(const struct server *server);
uint16_t server_port(const struct server *server);

/* Shows the page in the user's browser, without the token on any command line. 0; -1: there is no
 * display, or nothing that opens it. */
int server_open_browser(struct server *server);

#endif
