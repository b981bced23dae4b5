/* SPDX-License-Identifier: MIT */
/* gatherer.c: the folder, and the turns of all connections. See gatherer.h. */
#include "stream/gatherer.h"

#include "analyze/base/scope.h"
#include "collect/clock.h"
#include "stream/channel.h"
#include "stream/discovery.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STRANGERS_MOST = 512,
    STRANGER_LINES = 100, /* at once, then one each STRANGER_LINE_NS */
};
#define STRANGER_LINE_NS (10 * SECOND)

static void tell_hidden(struct gatherer *gatherer) {
    struct told_strangers *told = &gatherer->told;
    if (told->hidden != 0) {
        tell_line(gatherer->options->tell,
                  "%" PRIu64 " more connections came to nothing, without a line each",
                  told->hidden);
    }
    told->hidden = 0;
}

bool gatherer_may_tell_stranger(struct gatherer *gatherer) {
    struct told_strangers *told = &gatherer->told;
    uint64_t now = clock_now_ns();
    for (; told->lines > 0 && now >= told->since_ns + STRANGER_LINE_NS; told->lines--) {
        told->since_ns += STRANGER_LINE_NS;
    }
    if (told->lines == 0) {
        told->since_ns = now;
    }
    if (told->lines == STRANGER_LINES) {
        told->hidden++;
        return false;
    }
    told->lines++;
    tell_hidden(gatherer);
    return true;
}

bool gatherer_is_removed(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_nlink == 0;
}

/* ---- All sources ---- */

/* The next connection. Those that say nothing keep nobody out: the oldest of too many makes room.
 */
static void gatherer_take_connection(struct gatherer *gatherer, uint64_t now) {
    char peer[CHANNEL_SHOWN];
    int fd = gatherer->count < SOURCES_MOST ? listening_accept(gatherer->listener, peer) : -1;
    int reason = gatherer->count < SOURCES_MOST ? errno : EUSERS;
    struct source *oldest = NULL;
    size_t strangers = 0;
    if (fd >= 0) {
        gatherer->told.has_no_room = false;
        incoming_add(gatherer, fd, true, peer);
    } else if (reason == EMFILE || reason == ENFILE || reason == ENOMEM || reason == ENOBUFS ||
               reason == EUSERS) {
        if (!gatherer->told.has_no_room) {
            tell_line(gatherer->options->tell, "no further connection can be taken beside %zu: %s",
                      gatherer->count, strerror(reason));
        }
        gatherer->told.has_no_room = true;
        gatherer->rest_until_ns = now + SECOND;
    }
    for (size_t i = 0; i < gatherer->count; i++) {
        if (incoming_is_stranger(gatherer->sources[i])) {
            oldest = oldest != NULL ? oldest : gatherer->sources[i]; /* they are in this order */
            strangers++;
        }
    }
    if (oldest != NULL &&
        (strangers > gatherer->strangers_most || gatherer->count == SOURCES_MOST)) {
        incoming_lose(gatherer, oldest, "connected, said nothing, and makes room for others");
    }
}

/* What poll() waits for; returns for how long, in ms. */
static int prepare_polls(struct gatherer *gatherer, uint64_t now) {
    int timeout = gatherer->puller != NULL ? 50 : 500;
    gatherer->polls[POLL_LISTENER] =
        (struct pollfd){now < gatherer->rest_until_ns ? -1 : gatherer->listener, POLLIN, 0};
    gatherer->polls[POLL_BEACON] = (struct pollfd){discovery_fd(gatherer->beacon), POLLIN, 0};
    gatherer->polls[POLL_SYNCING] = (struct pollfd){syncing_fd(gatherer->syncing), POLLIN, 0};
    gatherer->polls[POLL_CONTROL] =
        (struct pollfd){controlling_fd(gatherer->controlling, &timeout), POLLIN, 0};
    for (size_t i = 0; i < gatherer->count; i++) {
        const struct source *source = gatherer->sources[i];
        gatherer->polls[i + POLLS_OWN] =
            (struct pollfd){source->channel.fd, incoming_waits(source, &timeout), 0};
    }
    return timeout;
}

/* Whether there is nobody left from whom anything could come, or it would go into a folder that
 * nobody can find. */
static bool gatherer_is_over(struct gatherer *gatherer) {
    uint64_t now = clock_now_ns();
    bool failed;
    if (*gatherer->options->stop != 0 ||
        (gatherer->listener < 0 && puller_is_over(gatherer->puller, &failed))) {
        return true;
    }
    if (now >= gatherer->looked_ns + SECOND) {
        gatherer->looked_ns = now;
        gatherer->is_removed = gatherer_is_removed(gatherer->folder);
    }
    return gatherer->is_removed;
}

static void gatherer_go_on(struct gatherer *gatherer) {
    while (!gatherer_is_over(gatherer)) {
        if (gatherer->puller != NULL) {
            puller_tick(gatherer, clock_now_ns());
        }
        size_t count = gatherer->count;
        int timeout = prepare_polls(gatherer, clock_now_ns());
        if (poll(gatherer->polls, count + POLLS_OWN, timeout) < 0) {
            continue;
        }
        if (gatherer->polls[POLL_SYNCING].revents != 0) {
            incoming_synced(gatherer);
        }
        controlling_serve(gatherer, clock_now_ns());
        for (size_t i = 0; i < count; i++) {
            incoming_serve(gatherer, gatherer->sources[i], gatherer->polls[i + POLLS_OWN].revents);
        }
        count = gatherer->count;
        gatherer->count = 0;
        for (size_t i = 0; i < count; i++) {
            if (gatherer->sources[i]->state == GONE) {
                controlling_lost(gatherer->controlling, gatherer->sources[i]);
                incoming_free(gatherer->sources[i]);
            } else {
                gatherer->sources[gatherer->count++] = gatherer->sources[i];
            }
        }
        if (gatherer->polls[POLL_BEACON].revents != 0) {
            discovery_answer(gatherer->beacon, 0, NULL);
        }
        if (gatherer->polls[POLL_LISTENER].revents != 0) {
            gatherer_take_connection(gatherer, clock_now_ns());
        }
    }
    tell_hidden(gatherer);
    for (size_t i = 0; i < gatherer->count; i++) {
        if (!gatherer->is_removed) {
            incoming_lose(gatherer, gatherer->sources[i], "stopped");
        }
        incoming_free(gatherer->sources[i]);
    }
}

/* ---- Beginning ---- */

/* What recordings take that are there already, two levels down. */
static uint64_t count_used(int folder, int depth) {
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    SCOPE_FOLDER DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    uint64_t used = 0;
    for (const struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
        struct stat status;
        if (entry->d_name[0] == '.' ||
            fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (S_ISREG(status.st_mode)) {
            used += (uint64_t)status.st_size;
        } else if (S_ISDIR(status.st_mode) && depth > 0) {
            SCOPE_FD int below =
                openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            used += below >= 0 ? count_used(below, depth - 1) : 0;
        }
    }
    return used;
}

void gatherer_count(struct gatherer *gatherer) {
    gatherer->used_bytes = count_used(gatherer->folder, 1);
}

static int gatherer_open_folder(struct gatherer *gatherer, struct error *error) {
    const char *path = gatherer->options->folder;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return error_set(error, "cannot make %s: %s", path, strerror(errno));
    }
    gatherer->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (gatherer->folder < 0) {
        return error_set(error, "cannot open %s: %s", path, strerror(errno));
    }
    if (flock(gatherer->folder, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK
                   ? error_set(error, "another memtrace gather receives into %s", path)
                   : error_set(error, "cannot lock %s: %s", path, strerror(errno));
    }
    gatherer_count(gatherer);
    return 0;
}

/* And beacon: where others find it. */
static int gatherer_open_listener(struct gatherer *gatherer, struct error *error) {
    const struct gatherer_options *options = gatherer->options;
    char shown[CHANNEL_SHOWN];
    uint8_t id[DISCOVER_ID];
    gatherer->listener = listening_open(options->host, options->port, options->token, error);
    if (gatherer->listener < 0) {
        return -1;
    }
    listening_show(gatherer->listener, shown);
    tell_line(options->tell, "listening at %s, %s; recordings go to %s", shown,
              options->token != NULL ? "TLS with the token" : "this machine only, no token",
              options->folder);
    if (options->discovery_port == 0) {
        return 0;
    }
    SCOPE_MEMORY char *path = realpath(options->folder, NULL);
    discovery_id(path != NULL ? path : options->folder, id);
    gatherer->beacon =
        discovery_open(options->discovery_port, options->token, DISCOVER_GATHERER,
                       gatherer->listener, options->folder, id, options->tell, error);
    return gatherer->beacon != NULL ? 0 : -1;
}

static int gatherer_begin(struct gatherer *gatherer, struct error *error) {
    const struct gatherer_options *options = gatherer->options;
    bool pulls = options->hosts != NULL && options->hosts[0] != NULL;
    struct error why;
    gatherer->strangers_most = listening_raise_limit() / 4;
    if (gatherer->strangers_most == 0 || gatherer->strangers_most > STRANGERS_MOST) {
        gatherer->strangers_most = STRANGERS_MOST;
    }
    if (gatherer_open_folder(gatherer, error) != 0 ||
        (gatherer->syncing = syncing_new(error)) == NULL) {
        return -1;
    }
    gatherer->known = knownpieces_new();
    gatherer->puller = pulls ? puller_new(options) : NULL;
    if (gatherer->known == NULL || (pulls && gatherer->puller == NULL)) {
        return error_set(error, "out of memory");
    }
    if (options->host != NULL && gatherer_open_listener(gatherer, error) != 0) {
        return -1;
    }
    gatherer->controlling = controlling_open(gatherer->folder, &why);
    if (gatherer->controlling == NULL) { /* some file systems have no sockets */
        tell_line(options->tell, "no program can be controlled from here: %s", why.message);
    }
    return 0;
}

int gatherer_run(const struct gatherer_options *options, struct error *error) {
    struct gatherer *gatherer = calloc(1, sizeof *gatherer);
    bool failed = false;
    int result = -1;
    if (gatherer == NULL) {
        return error_set(error, "out of memory");
    }
    gatherer->options = options;
    gatherer->folder = gatherer->listener = -1;
    if (gatherer_begin(gatherer, error) == 0) {
        gatherer_go_on(gatherer);
        result = gatherer->is_removed
                     ? error_set(error, "the folder %s was removed", options->folder)
                     : 0;
    }
    if (result == 0 && gatherer->puller != NULL &&
        (!puller_is_over(gatherer->puller, &failed) || failed)) {
        result = error_set(error, "not all recordings are here");
    }
    controlling_close(gatherer->controlling);
    size_t unsynced = syncing_free(gatherer->syncing);
    if (unsynced != 0) {
        tell_line(gatherer->options->tell,
                  "the disk stands still: the last bytes of %zu recordings may not be on it; "
                  "they were not acknowledged, and come again",
                  unsynced);
    }
    knownpieces_free(gatherer->known);
    puller_free(gatherer->puller);
    discovery_close(gatherer->beacon);
    scope_close(&gatherer->listener);
    scope_close(&gatherer->folder);
    free(gatherer);
    return result;
}
