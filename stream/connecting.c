/* SPDX-License-Identifier: MIT */
/* connecting.c: see connecting.h. */
#define _GNU_SOURCE
#include "stream/connecting.h"

#include "collect/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#define BACKOFF_MOST (30 * SECOND)

struct lookup {
    struct gaicb request;
    struct addrinfo hints;
    char port[8];
    char host[];
};

struct lookup *lookup_begin(const char *host, uint16_t port) {
    size_t size = strlen(host) + 1;
    struct lookup *lookup = calloc(1, sizeof *lookup + size);
    struct gaicb *list[1];
    if (lookup == NULL) {
        return NULL;
    }
    memcpy(lookup->host, host, size);
    snprintf(lookup->port, sizeof lookup->port, "%u", port);
    lookup->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    lookup->request = (struct gaicb){
        .ar_name = lookup->host, .ar_service = lookup->port, .ar_request = &lookup->hints};
    list[0] = &lookup->request;
    if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) != 0) {
        free(lookup);
        return NULL;
    }
    return lookup;
}

int lookup_result(const struct lookup *lookup, const struct addrinfo **addresses) {
    /* (The C library takes what it only reads as if it wrote it.) */
    int found = gai_error((struct gaicb *)&lookup->request);
    *addresses = found == 0 ? lookup->request.ar_result : NULL;
    return found;
}

bool lookup_is_final(int reason) {
    return reason != EAI_AGAIN && reason != EAI_SYSTEM && reason != EAI_INPROGRESS;
}

void lookup_wait(const struct lookup *lookup, unsigned ms) {
    const struct gaicb *const list[] = {&lookup->request};
    const struct timespec longest = {ms / 1000, (long)(ms % 1000) * 1000000};
    gai_suspend(list, 1, &longest);
}

void lookup_end(struct lookup *lookup) {
    if (lookup == NULL || gai_cancel(&lookup->request) == EAI_NOTCANCELED) {
        return; /* the thread will write to it */
    }
    if (lookup->request.ar_result != NULL) {
        freeaddrinfo(lookup->request.ar_result);
    }
    free(lookup);
}

int connecting_result(int fd) {
    int on = 1;
    int reason = 0;
    socklen_t size = sizeof reason;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &size) != 0) {
        reason = errno;
    }
    if (reason == 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    return reason;
}

uint64_t backoff_next(uint64_t *backoff_ns) {
    uint64_t now = *backoff_ns;
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) {
        random = (uint32_t)clock_now_ns();
    }
    *backoff_ns = now * 2 < BACKOFF_MOST ? now * 2 : BACKOFF_MOST;
    return now / 2 + now / 2 * (random % 1024) / 1024;
}
