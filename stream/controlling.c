/* SPDX-License-Identifier: MIT */
/*
 * controlling.c: what the user of the gatherer wants of programs whose recordings it receives
 * (collect/gatherask.h): handed on to their senders. See gatherer.h.
 *
 * A source is asked one thing after the other; who asks waits for the answer, but not for longer
 * than a while.
 */
#include "stream/gatherer.h"

#include "analyze/base/scope.h"
#include "collect/clock.h"
#include "collect/gatherask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_NS (10 * SECOND) /* for what is wanted, and for the answer */

enum {
    ASKERS_MOST = 16,
    TURN_MS = 20, /* how soon it is looked whether a source can be asked the next thing */
};

struct asker {
    int fd; /* -1: nobody */
    bool is_read;
    const struct source *source; /* that was asked; NULL: none yet */
    uint64_t number;             /* of the control */
    uint64_t until_ns;
    struct gatherask_request request;
};

struct controlling {
    int folder; /* the gatherer's */
    int listener;
    int events; /* an epoll of the listener and all that ask */
    uint64_t last_number;
    struct asker askers[ASKERS_MOST];
};

/* ---- Coming and going ---- */

static int controlling_listen(int folder, struct error *error) {
    struct sockaddr_un address;
    SCOPE_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    gatherask_address(folder, &address);
    unlinkat(folder, GATHERASK_SOCKET, 0); /* of one that was killed: the folder is ours alone */
    /* Nobody can connect before it listens. */
    return fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                   fchmodat(folder, GATHERASK_SOCKET, 0600, 0) == 0 && listen(fd, ASKERS_MOST) == 0
               ? scope_keep(&fd)
               : error_set(error, "no socket in its folder: %s", strerror(errno));
}

static int controlling_watch(const struct controlling *controlling, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(controlling->events, EPOLL_CTL_ADD, fd, &event);
}

struct controlling *controlling_open(int folder, struct error *error) {
    struct controlling *controlling = calloc(1, sizeof *controlling);
    if (controlling == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < ASKERS_MOST; i++) {
        controlling->askers[i].fd = -1;
    }
    controlling->folder = folder;
    controlling->events = epoll_create1(EPOLL_CLOEXEC);
    controlling->listener = controlling_listen(folder, error);
    if (controlling->listener >= 0 && controlling_watch(controlling, controlling->listener) == 0) {
        return controlling;
    }
    if (controlling->listener >= 0) {
        error_set(error, "%s", strerror(errno));
    }
    controlling_close(controlling);
    return NULL;
}

static void asker_leave(struct asker *asker) {
    scope_close(&asker->fd);
    *asker = (struct asker){.fd = -1};
}

void controlling_close(struct controlling *controlling) {
    if (controlling == NULL) {
        return;
    }
    for (size_t i = 0; i < ASKERS_MOST; i++) {
        asker_leave(&controlling->askers[i]);
    }
    if (controlling->listener >= 0) {
        unlinkat(controlling->folder, GATHERASK_SOCKET, 0);
        close(controlling->listener);
    }
    scope_close(&controlling->events);
    free(controlling);
}

int controlling_fd(const struct controlling *controlling, int *timeout_ms) {
    for (size_t i = 0; controlling != NULL && i < ASKERS_MOST; i++) {
        const struct asker *asker = &controlling->askers[i];
        if (asker->fd >= 0 && asker->is_read && asker->source == NULL && *timeout_ms > TURN_MS) {
            *timeout_ms = TURN_MS;
        }
    }
    return controlling != NULL ? controlling->events : -1;
}

/* ---- Who asks ---- */

static void asker_reply(struct asker *asker, bool is_connected,
                        const struct programask_answer *answer) {
    const struct gatherask_reply message = {
        .magic = GATHERASK_MAGIC, .is_connected = is_connected, .answer = *answer};
    /* There is room for one message; who does not take it is gone. */
    (void)!send(asker->fd, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
    asker_leave(asker);
}

static void asker_refuse(struct asker *asker, const char *why) {
    struct programask_answer answer = {.is_done = false};
    snprintf(answer.text, sizeof answer.text, "%s", why);
    asker_reply(asker, true, &answer);
}

static void take_askers(struct controlling *controlling, uint64_t now) {
    int fd;
    while ((fd = accept4(controlling->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        size_t place = 0;
        uid_t uid;
        while (place < ASKERS_MOST && controlling->askers[place].fd >= 0) {
            place++;
        }
        if (place == ASKERS_MOST || gatherask_peer(fd, &uid) != 0 ||
            (uid != geteuid() && uid != 0) || controlling_watch(controlling, fd) != 0) {
            close(fd);
        } else {
            controlling->askers[place] = (struct asker){.fd = fd, .until_ns = now + PATIENCE_NS};
        }
    }
}

/* What it wants; or it has gone away. */
static void asker_read(struct asker *asker) {
    struct gatherask_request *request = &asker->request;
    ssize_t got = recv(asker->fd, request, sizeof *request, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got == 0 || asker->is_read) {
        asker_leave(asker);
        return;
    }
    if (got != sizeof *request || request->magic != GATHERASK_MAGIC) {
        asker_refuse(asker, "the memtrace gather that receives it is of another version");
        return;
    }
    request->wish.text[sizeof request->wish.text - 1] = '\0';
    request->name[sizeof request->name - 1] = '\0';
    asker->is_read = true;
}

/* ---- Whom is asked ---- */

static size_t length_of_base(const char *name) {
    const char *file = strrchr(name, '/');
    const char *end;
    file = file != NULL ? file : name;
    end = strstr(file, ".part");
    end = end != NULL ? end : strrchr(file, '.');
    return end != NULL ? (size_t)(end - name) : strlen(name);
}

/* The one that receives it; of a rotated recording, whose earlier parts are complete, the part that
 * grows: the parts have all of "host/program.pid.time.partN.mtr" up to there in common. NULL: none
 * does. */
static struct source *controlling_find_source(const struct gatherer *gatherer, const char *name) {
    struct source *found = NULL;
    for (size_t i = 0; i < gatherer->count; i++) {
        struct source *source = gatherer->sources[i];
        size_t length = length_of_base(name);
        if (source->state != GREETED || source->is_done) {
            continue;
        }
        if (strcmp(source->arrival.name, name) == 0) {
            return source;
        }
        if (length == length_of_base(source->arrival.name) &&
            memcmp(name, source->arrival.name, length) == 0) {
            found = source;
        }
    }
    return found;
}

static void asker_hand_on(struct gatherer *gatherer, struct asker *asker) {
    struct source *source = controlling_find_source(gatherer, asker->request.name);
    if (source == NULL) {
        asker_reply(asker, false, &(struct programask_answer){.is_done = false});
    } else if (!source->allows_control) {
        asker_refuse(asker, "its sender does not allow it: it was begun without --allow-control");
    } else if (source->asked == 0 && !source->owes_welcome && incoming_has_room(source)) {
        source->asked = asker->number = ++gatherer->controlling->last_number;
        source->out_size +=
            wire_put_control(incoming_out(source), source->asked, &asker->request.wish);
        asker->source = source;
        asker->until_ns = clock_now_ns() + PATIENCE_NS;
    }
}

void controlling_serve(struct gatherer *gatherer, uint64_t now) {
    struct controlling *controlling = gatherer->controlling;
    if (controlling == NULL) {
        return;
    }
    take_askers(controlling, now);
    for (size_t i = 0; i < ASKERS_MOST; i++) {
        struct asker *asker = &controlling->askers[i];
        if (asker->fd >= 0) {
            asker_read(asker);
        }
        if (asker->fd >= 0 && asker->is_read && asker->source == NULL) {
            asker_hand_on(gatherer, asker);
        }
        if (asker->fd >= 0 && now >= asker->until_ns) {
            asker_refuse(asker, "its sender has not answered for 10 s");
        }
    }
}

/* ---- Answers ---- */

int controlling_take_answer(struct gatherer *gatherer, struct source *source,
                            const struct wire_frame *frame) {
    struct controlling *controlling = gatherer->controlling;
    struct programask_answer answer;
    if (source->asked == 0 || frame->offset != source->asked ||
        wire_read_answer(frame, &answer) != 0) {
        return -1;
    }
    for (size_t i = 0; i < ASKERS_MOST; i++) {
        struct asker *asker = &controlling->askers[i];
        if (asker->fd >= 0 && asker->source == source && asker->number == source->asked) {
            asker_reply(asker, true, &answer);
        }
    }
    source->asked = 0;
    return 0;
}

void controlling_lost(struct controlling *controlling, const struct source *source) {
    for (size_t i = 0; controlling != NULL && i < ASKERS_MOST; i++) {
        struct asker *asker = &controlling->askers[i];
        if (asker->fd >= 0 && asker->source == source) {
            asker_refuse(asker, "its sender went away before it answered");
        }
    }
}
