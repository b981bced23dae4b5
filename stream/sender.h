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
    const char *name; /* what it is called in messages; NULL: as its path */
    const char *host;
    uint16_t port;
    struct channel *accepted;  /* the receiver has come: this connection and no other; or NULL */
    const struct token *token; /* NULL: to this machine itself only, in clear */
    uint64_t give_up_ns;       /* without a connection for so long; 0: never */
    uint64_t linger_ns;        /* so long after the end of the recording; 0: any time */
    /* As long as this process is our parent, the file's index is not sent: it will give way to
     * other blocks. 0: it is sent. */
    pid_t reopener;
    bool frees_sent;                   /* what the other side has on its disk is freed here */
    bool allows_control;               /* the other side may say what is counted, and mark */
    const volatile sig_atomic_t *stop; /* not 0: end */
    void (*tell)(const char *line);    /* what people are to know */
};

enum sender_result {
    SENDER_DONE,
    SENDER_ALL_BUT_INDEX, /* all is there, and the reopener still lives */
    SENDER_STOPPED,
    SENDER_LATE, /* the time to linger is over */
    SENDER_FAILED,
};

/* How much of the recording the other side has, and how much there is. */
struct sender_progress {
    uint64_t sent;
    uint64_t size;
    bool is_finished; /* with an index: nothing will be added to it */
};

/* Blocks. SENDER_DONE: all is there, compared by its hash; SENDER_FAILED: error. */
enum sender_result sender_run(const struct sender_options *options,
                              struct sender_progress *progress, struct error *error);

#endif
