/* SPDX-License-Identifier: MIT */
/* lookup.c: see lookup.h. */
#define _GNU_SOURCE
#include "stream/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* (The C library's functions take what they only read as if they wrote it.) */
static struct gaicb *request_of(const struct lookup *lookup) {
    return (struct gaicb *)&lookup->request;
}

int lookup_result(const struct lookup *lookup, const struct addrinfo **addresses) {
    int found = gai_error(request_of(lookup));
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
