/* SPDX-License-Identifier: MIT */
/*
 * gatherask.h: what a user wants of the program of a recording that is being received: said to the
 * `memtrace gather` that receives it, which hands it on to the sender, and brings back what became
 * of it. A socket in the folder of `gather`, which its user alone can connect to; one message each
 * way.
 *
 * Called by cli/control and top, which ask, and stream/controlling, which hands on. Belongs to one
 * thread.
 */
#ifndef COLLECT_GATHERASK_H
#define COLLECT_GATHERASK_H

#include "collect/programask.h"

/* In the folder that recordings are received into. */
#define GATHERASK_SOCKET ".control"

enum { GATHERASK_NAME = 320 };

/* The messages. Both sides are of one build, or do not understand each other. */
#define GATHERASK_MAGIC UINT32_C(0x4d544331)
struct gatherask_request {
    uint32_t magic;
    struct programask_wish wish;
    char name[GATHERASK_NAME]; /* of the recording, below the folder */
};
struct gatherask_reply {
    uint32_t magic;
    bool is_connected; /* false: no sender of it is */
    struct programask_answer answer;
};

struct gatherask {
    int fd; /* -1: nothing is under way */
    uint64_t until_ns;
    char path[4096]; /* of the recording */
    char name[GATHERASK_NAME];
};
#define GATHERASK_NONE ((struct gatherask){.fd = -1})

/* Asks, and does not wait. 1; 0: there is no gatherer that receives this file; -1: error. */
int gatherask_begin(struct gatherask *ask, const char *path, const struct programask_wish *wish,
                    struct error *error);
/* Now and then, at the latest when the descriptor can be read. True: that is the answer, and
 * nothing is under way any more. */
bool gatherask_look(struct gatherask *ask, struct programask_answer *answer);
void gatherask_end(struct gatherask *ask);

/* For both sides: the address of the socket in this open folder, however long its path is. */
struct sockaddr_un;
void gatherask_address(int folder, struct sockaddr_un *address);
/* Whose process the other side of a connection is. 0 or -1. */
int gatherask_peer(int fd, uid_t *uid);

#endif
