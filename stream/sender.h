/* SPDX-License-Identifier: MIT */
/*
 * sender.h: sends a recording, whole or still growing, until the other side has all of it.
 *
 * Called by cli/send. Belongs to one thread.
 */
#ifndef STREAM_SENDER_H
#define STREAM_SENDER_H

#include "stream/channel.h"

#include <signal.h>

struct sender_options {
    const char *path; /* of the recording */
    const char *host;
    uint16_t port;
    const struct token *token;         /* NULL: to this machine itself only, in clear */
    uint64_t give_up_ns;               /* without a connection for so long; 0: never */
    const volatile sig_atomic_t *stop; /* not 0: end */
    void (*tell)(const char *line);    /* what people are to know */
};

enum sender_result { SENDER_DONE, SENDER_STOPPED, SENDER_FAILED };

/* Blocks. SENDER_DONE: `sent` bytes are there, compared by their hash; SENDER_FAILED: error. */
enum sender_result sender_run(const struct sender_options *options, uint64_t *sent,
                              struct error *error);

#endif
