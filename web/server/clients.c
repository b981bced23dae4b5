/* SPDX-License-Identifier: MIT */
/* clients.c: see clients.h. */
#include "web/server/clients.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    REQUEST_MS = 30000, /* a request begins so long after the one before, and is whole so long after
                           it began */
    STALLED_MS = 2000,  /* who takes none of its answer for so long may have to give way */
};

void clients_start(struct clients *clients, struct watch *watch) {
    *clients = (struct clients){.watch = watch};
    pthread_mutex_init(&clients->lock, NULL);
}

void clients_stop(struct clients *clients) {
    pthread_mutex_destroy(&clients->lock);
}

/* ---- Who gives way. Under the lock ---- */

/* The daemon sees that, too. */
static void shut(struct client *client) {
    if (!client->is_ended) {
        client->is_ended = true;
        client->clients->count--;
        shutdown(client->entry.fd, SHUT_RDWR);
    }
}

static bool is_stalled(const struct client *client) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    return getsockopt(client->entry.fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_last_data_sent >= STALLED_MS;
}

/* Those that say nothing before those that do not listen, each the longest first. */
static bool goes_first(const struct client *client, const struct client *other) {
    return other == NULL || client->state < other->state ||
           (client->state == other->state && client->since_ms < other->since_ms);
}

static void clients_make_room(struct clients *clients) {
    struct client *chosen = NULL;
    for (struct client *at = clients->first; at != NULL; at = at->next) {
        bool may_go = at->state == CLIENT_SILENT || (at->state == CLIENT_READING && is_stalled(at));
        if (may_go && !at->is_ended && goes_first(at, chosen)) {
            chosen = at;
        }
    }
    if (chosen != NULL) {
        shut(chosen);
    }
}

/* ---- From its connecting to its end ---- */

static void is_late(struct watch_entry *entry) {
    struct client *client = (struct client *)((char *)entry - offsetof(struct client, entry));
    pthread_mutex_lock(&client->clients->lock);
    if (client->state == CLIENT_SILENT) { /* it may have begun to speak just now */
        shut(client);
    }
    pthread_mutex_unlock(&client->clients->lock);
}

static void await_request(struct client *client) {
    client->entry.deadline_ms = client->since_ms + REQUEST_MS;
    watch_add(client->clients->watch, &client->entry);
}

struct client *clients_join(struct clients *clients, int fd) {
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        return NULL;
    }
    *client = (struct client){.clients = clients,
                              .entry = {.fd = fd, .gone = is_late},
                              .state = CLIENT_SILENT,
                              .since_ms = watch_now_ms()};
    pthread_mutex_lock(&clients->lock);
    if (clients->count >= CLIENTS_MOST) {
        clients_make_room(clients);
    }
    client->next = clients->first;
    clients->first = client;
    clients->count++;
    pthread_mutex_unlock(&clients->lock);
    await_request(client);
    return client;
}

void clients_note(struct client *client, enum client_state state) {
    enum client_state before;
    if (client == NULL) {
        return;
    }
    pthread_mutex_lock(&client->clients->lock);
    before = client->state;
    client->state = state;
    client->since_ms = watch_now_ms();
    pthread_mutex_unlock(&client->clients->lock);
    /* Not under the lock: the watching thread takes it in is_late(). */
    if (before == CLIENT_SILENT) {
        watch_remove(client->clients->watch, &client->entry);
    }
    if (state == CLIENT_SILENT) {
        await_request(client);
    }
}

void clients_leave(struct client *client) {
    struct clients *clients;
    if (client == NULL) {
        return;
    }
    clients = client->clients;
    if (client->state == CLIENT_SILENT) {
        watch_remove(clients->watch, &client->entry);
    }
    pthread_mutex_lock(&clients->lock);
    for (struct client **at = &clients->first; *at != NULL; at = &(*at)->next) {
        if (*at == client) {
            *at = client->next;
            break;
        }
    }
    clients->count -= !client->is_ended;
    pthread_mutex_unlock(&clients->lock);
    free(client);
}
