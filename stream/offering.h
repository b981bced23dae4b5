/* SPDX-License-Identifier: MIT */
/*
 * offering.h: recordings that others come and take: what `memtrace gather HOST` connects to.
 *
 * Called by cli/send and cli/streaming. One thread waits for connections; each connection has one
 * of its own, in which stream/sender sends a file, or the list of files goes on (WIRE_OFFER), so
 * that a receiver that stops reading holds up nobody else.
 */
#ifndef STREAM_OFFERING_H
#define STREAM_OFFERING_H

#include "stream/channel.h"

#include <limits.h>
#include <signal.h>

struct offering_options {
    int listener;
    uint16_t discovery_port;   /* UDP: others may find the listener; 0: they may not */
    const struct token *token; /* NULL: loopback only, in clear */
    const char *const *paths;  /* of recordings, up to NULL; may be NULL */
    /* A socket (SOCK_SEQPACKET) on which files come, struct offering_word with a descriptor, until
     * the run is over; -1: none. Where its other end is gone without that word, files may still
     * grow: it is over when nobody writes them any more. */
    int words;
    pid_t reopener;                    /* as in sender.h, of files that come with leaves_index */
    uint64_t linger_ns;                /* so long after the end; 0: any time */
    const volatile sig_atomic_t *stop; /* not 0: end */
    void (*tell)(const char *line);    /* what people are to know */
    bool tells_all;                    /* also who has what */
    bool allows_control;               /* as in sender.h */
};

enum offering_kind { OFFERING_FILE = 1, OFFERING_OVER = 2, OFFERING_REST = 3 };

/* What goes over `words`; OFFERING_REST comes back. */
struct offering_word {
    uint32_t kind;
    bool leaves_index;
};

/* What nobody has taken as a whole. */
struct offering_rest {
    uint32_t kind; /* OFFERING_REST */
    uint32_t files;
    uint64_t sent;       /* of the most that anybody has of each */
    uint64_t missing;    /* bytes */
    char name[PATH_MAX]; /* of one of them */
};

/* Blocks until each recording has ended and somebody has all of it, and nobody is connected any
 * more. 0; 1: stopped, or the time to linger is over: `rest` says what is only here; -1: error. */
int offering_run(const struct offering_options *options, struct offering_rest *rest,
                 struct error *error);

#endif
