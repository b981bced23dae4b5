/* SPDX-License-Identifier: MIT */
/*
 * gatherer.h: receives recordings of many senders into a folder: one thread, one poll; threads that
 * wait for the disk (syncing.h).
 *
 * Called by cli/gather. Belongs to one thread.
 */
#ifndef STREAM_GATHERER_H
#define STREAM_GATHERER_H

#include "stream/channel.h"

#include <signal.h>

struct gatherer_options {
    const char *folder;        /* is made where it is not there */
    const char *host;          /* where to listen; "": this machine's own address; NULL: nowhere */
    uint16_t port;             /* 0: one that is free */
    uint16_t discovery_port;   /* UDP: others may find where it listens; 0: they may not */
    const char *const *hosts;  /* to connect to, HOST[:PORT] up to NULL; may be NULL */
    uint64_t give_up_ns;       /* one that cannot be reached for so long; 0: never */
    const struct token *token; /* NULL: loopback only, in clear */
    uint64_t quota_bytes;      /* of one recording; 0: no limit */
    uint64_t total_bytes;      /* of all in the folder; 0: no limit */
    const volatile sig_atomic_t *stop; /* not 0: end */
    void (*tell)(const char *line);    /* what people are to know */
};

/* Blocks until it is stopped, or, where it listens nowhere, until all that the hosts have is here.
 * 0; -1: it could not begin, or not all of it is here (error). */
int gatherer_run(const struct gatherer_options *options, struct error *error);

#endif
