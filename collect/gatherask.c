/* SPDX-License-Identifier: MIT */
/* gatherask.c: who asks. See gatherask.h. */
#include "collect/gatherask.h"

#include "analyze/base/scope.h"
#include "analyze/read/block.h"
#include "collect/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Longer than the gatherer waits for the sender. */
#define PATIENCE_NS (UINT64_C(15) * 1000000000)

/* ---- For both sides ---- */

void gatherask_address(int folder, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/" GATHERASK_SOCKET,
             folder);
}

int gatherask_peer(int fd, uid_t *uid) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        return -1;
    }
    *uid = peer.uid;
    return 0;
}

/* ---- Who asks ---- */

/* DIR/HOST/NAME: the folder DIR, opened, and the rest. -1: it has no such path. */
static int gatherask_open_folder(struct gatherask *ask) {
    char folder[sizeof ask->path];
    char *slash = strrchr(ask->path, '/');
    while (slash != NULL && slash > ask->path && *--slash != '/') {
    }
    if (slash == NULL || slash == ask->path || strlen(slash + 1) >= sizeof ask->name) {
        return -1;
    }
    snprintf(ask->name, sizeof ask->name, "%s", slash + 1);
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - ask->path), ask->path);
    return open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* A connection; -1: nobody is there, or a stranger (errno EACCES). */
static int connect_in(int folder) {
    struct sockaddr_un address;
    uid_t uid;
    SCOPE_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    gatherask_address(folder, &address);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        return -1;
    }
    /* Whoever may write to the folder could have put another socket there. */
    if (gatherask_peer(fd, &uid) != 0 || (uid != geteuid() && uid != 0 && geteuid() != 0)) {
        errno = EACCES;
        return -1;
    }
    return scope_keep(&fd);
}

int gatherask_begin(struct gatherask *ask, const char *path, const struct programask_wish *wish,
                    struct error *error) {
    struct gatherask_request request = {.magic = GATHERASK_MAGIC, .wish = *wish};
    SCOPE_MEMORY char *whole = realpath(path, NULL);
    *ask = GATHERASK_NONE;
    if (whole == NULL) {
        return error_set(error, "%s: %s", path, strerror(errno));
    }
    snprintf(ask->path, sizeof ask->path, "%s", whole);
    SCOPE_FD int folder = gatherask_open_folder(ask);
    ask->fd = folder >= 0 ? connect_in(folder) : -1;
    if (ask->fd < 0) {
        return folder >= 0 && errno == EACCES
                   ? error_set(error, "%s is received by another user's memtrace gather", path)
                   : 0;
    }
    memcpy(request.name, ask->name, sizeof request.name);
    if (send(ask->fd, &request, sizeof request, MSG_NOSIGNAL) != sizeof request) {
        error_set(error, "the memtrace gather that receives %s does not listen: %s", path,
                  strerror(errno));
        gatherask_end(ask);
        return -1;
    }
    ask->until_ns = clock_now_ns() + PATIENCE_NS;
    return 1;
}

/* Whether it ends with an index. */
static bool gatherask_is_complete(const char *path) {
    struct memtrace_index_end end;
    struct stat status;
    SCOPE_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 && fstat(fd, &status) == 0 && status.st_size > (off_t)sizeof end &&
           block_read_at(fd, &end, sizeof end, (uint64_t)status.st_size - sizeof end) ==
               (ssize_t)sizeof end &&
           memcmp(end.magic, MEMTRACE_RECORDING_MAGIC, sizeof end.magic) == 0;
}

static bool gatherask_answer_with(struct gatherask *ask, struct programask_answer *answer,
                                  const char *text) {
    answer->is_done = false;
    snprintf(answer->text, sizeof answer->text, "%.255s", text);
    gatherask_end(ask);
    return true;
}

bool gatherask_look(struct gatherask *ask, struct programask_answer *answer) {
    struct gatherask_reply reply;
    ssize_t got = recv(ask->fd, &reply, sizeof reply, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return clock_now_ns() >= ask->until_ns &&
               gatherask_answer_with(ask, answer,
                                     "the memtrace gather that receives it does not answer");
    }
    if (got != sizeof reply || reply.magic != GATHERASK_MAGIC) {
        return gatherask_answer_with(
            ask, answer,
            got <= 0 ? "the memtrace gather that receives it has ended"
                     : "the memtrace gather that receives it is of another version");
    }
    if (!reply.is_connected) {
        return gatherask_answer_with(ask, answer,
                                     gatherask_is_complete(ask->path)
                                         ? "complete; its program has ended"
                                         : "its sender is not connected");
    }
    reply.answer.text[sizeof reply.answer.text - 1] = '\0';
    *answer = reply.answer;
    gatherask_end(ask);
    return true;
}

void gatherask_end(struct gatherask *ask) {
    scope_close(&ask->fd);
    ask->fd = -1;
}
