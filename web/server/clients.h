/* SPDX-License-Identifier: MIT */
/*
 * clients.h: who is connected, and who has to give way when there are too many: whoever has been
 * silent longest, so that nobody can keep others out by staying.
 *
 * Called by http.c in the threads of its daemons.
 */
#ifndef WEB_SERVER_CLIENTS_H
#define WEB_SERVER_CLIENTS_H

#include "web/server/watch.h"

#include <pthread.h>
#include <stddef.h>

enum { CLIENTS_MOST = 64 };

enum client_state {
    CLIENT_SILENT,  /* a request is awaited, or the rest of one: it must come in time */
    CLIENT_WAITING, /* for its answer, or for events */
    CLIENT_READING, /* its answer is sent */
};

/* A client, from its connecting to its end. */
struct client {
    struct clients *clients;
    struct watch_entry entry; /* deadline of the request that is awaited */
    enum client_state state;
    int64_t since_ms;
    bool is_ended; /* its connection was shut down, and goes soon */
    struct client *next;
};

struct clients {
    struct watch *watch;
    pthread_mutex_t lock;
    struct client *first;
    size_t count; /* of those that are not ended */
};

void clients_start(struct clients *clients, struct watch *watch);
void clients_stop(struct clients *clients); /* all have left */

/* A new connection; where there are as many as may be, one that is silent, or does not read what it
 * is sent, is ended for it. NULL: out of memory. */
struct client *clients_join(struct clients *clients, int fd);
void clients_leave(struct client *client); /* before its descriptor is closed. NULL is allowed */

/* It goes on to that; CLIENT_SILENT again: its request has begun. NULL is allowed. */
void clients_note(struct client *client, enum client_state state);

#endif
