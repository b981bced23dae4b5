/* SPDX-License-Identifier: MIT */
/* gatherer.c: the folder, and the turns of all connections. See gatherer.h. */
#include "stream/gatherer.h"

#include "collect/clock.h"
#include "stream/discovery.h"
#include "stream/gathering.h"
#include "stream/listening.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void gathering_tell(const struct gatherer *gatherer, const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    gatherer->options->tell(line);
}

/* ---- All sources ---- */

static void take_connection(struct gatherer *gatherer, uint64_t now) {
    char peer[CHANNEL_SHOWN];
    int fd = listening_accept(gatherer->listener, peer);
    if (fd >= 0) {
        incoming_add(gatherer, fd, true, peer);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        gathering_tell(gatherer, "no further connection can be taken: %s", strerror(errno));
        gatherer->rest_until_ns = now + SECOND;
    }
}

static void remove_gone(struct gatherer *gatherer) {
    size_t kept = 0;
    for (size_t i = 0; i < gatherer->count; i++) {
        if (gatherer->sources[i]->state == GONE) {
            incoming_free(gatherer->sources[i]);
        } else {
            gatherer->sources[kept++] = gatherer->sources[i];
        }
    }
    gatherer->count = kept;
}

/* What poll() waits for; returns for how long, in ms. */
static int prepare_polls(struct gatherer *gatherer, uint64_t now) {
    int timeout = gatherer->puller != NULL ? 50 : 500;
    gatherer->polls[POLL_LISTENER] =
        (struct pollfd){now < gatherer->rest_until_ns ? -1 : gatherer->listener, POLLIN, 0};
    gatherer->polls[POLL_BEACON] = (struct pollfd){discovery_fd(gatherer->beacon), POLLIN, 0};
    gatherer->polls[POLL_SYNCING] = (struct pollfd){syncing_fd(gatherer->syncing), POLLIN, 0};
    for (size_t i = 0; i < gatherer->count; i++) {
        const struct source *source = gatherer->sources[i];
        gatherer->polls[i + POLLS_OWN] =
            (struct pollfd){source->channel.fd, incoming_waits(source, &timeout), 0};
    }
    return timeout;
}

/* Whether there is nobody left from whom anything could come. */
static bool is_over(const struct gatherer *gatherer) {
    bool failed;
    return *gatherer->options->stop != 0 ||
           (gatherer->listener < 0 && puller_is_over(gatherer->puller, &failed));
}

static void gather(struct gatherer *gatherer) {
    while (!is_over(gatherer)) {
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
        for (size_t i = 0; i < count; i++) {
            incoming_serve(gatherer, gatherer->sources[i], gatherer->polls[i + POLLS_OWN].revents);
        }
        remove_gone(gatherer);
        if (gatherer->polls[POLL_BEACON].revents != 0) {
            discovery_answer(gatherer->beacon, 0, NULL);
        }
        if (gatherer->polls[POLL_LISTENER].revents != 0) {
            take_connection(gatherer, clock_now_ns());
        }
    }
    for (size_t i = 0; i < gatherer->count; i++) {
        incoming_lose(gatherer, gatherer->sources[i], "stopped");
        incoming_free(gatherer->sources[i]);
    }
}

/* ---- Beginning ---- */

/* What recordings take that are there already, two levels down. */
static uint64_t count_used(int folder, int depth) {
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
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
            int below = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            used += below >= 0 ? count_used(below, depth - 1) : 0;
            if (below >= 0) {
                close(below);
            }
        }
    }
    if (list != NULL) {
        closedir(list);
    }
    return used;
}

static int open_folder(struct gatherer *gatherer, struct error *error) {
    const char *path = gatherer->options->folder;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return error_set(error, "cannot make %s: %s", path, strerror(errno));
    }
    gatherer->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (gatherer->folder < 0) {
        return error_set(error, "cannot open %s: %s", path, strerror(errno));
    }
    if (flock(gatherer->folder, LOCK_EX | LOCK_NB) != 0) {
        return error_set(error, "another memtrace gather receives into %s", path);
    }
    gatherer->used_bytes = count_used(gatherer->folder, 1);
    return 0;
}

static int open_listener(struct gatherer *gatherer, struct error *error) {
    const struct gatherer_options *options = gatherer->options;
    char shown[CHANNEL_SHOWN];
    gatherer->listener = listening_open(options->host, options->port, options->token, error);
    if (gatherer->listener < 0) {
        return -1;
    }
    listening_show(gatherer->listener, shown);
    gathering_tell(gatherer, "listening at %s, %s; recordings go to %s", shown,
                   options->token != NULL ? "TLS with the token" : "this machine only, no token",
                   options->folder);
    return 0;
}

static int open_beacon(struct gatherer *gatherer, struct error *error) {
    const struct gatherer_options *options = gatherer->options;
    uint8_t id[DISCOVER_ID];
    char *path = realpath(options->folder, NULL);
    discovery_id(path != NULL ? path : options->folder, id);
    free(path);
    gatherer->beacon =
        discovery_open(options->discovery_port, options->token, DISCOVER_GATHERER,
                       gatherer->listener, options->folder, id, options->tell, error);
    return gatherer->beacon != NULL ? 0 : -1;
}

static int begin(struct gatherer *gatherer, struct error *error) {
    const struct gatherer_options *options = gatherer->options;
    listening_raise_limit();
    if (open_folder(gatherer, error) != 0) {
        return -1;
    }
    gatherer->syncing = syncing_new(error);
    if (gatherer->syncing == NULL) {
        return -1;
    }
    if (options->hosts != NULL && options->hosts[0] != NULL) {
        gatherer->puller = puller_new(options);
        if (gatherer->puller == NULL) {
            return error_set(error, "out of memory");
        }
    }
    if (options->host != NULL && open_listener(gatherer, error) != 0) {
        return -1;
    }
    return gatherer->listener >= 0 && options->discovery_port != 0 ? open_beacon(gatherer, error)
                                                                   : 0;
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
    if (begin(gatherer, error) == 0) {
        gather(gatherer);
        result = 0;
    }
    if (result == 0 && gatherer->puller != NULL &&
        (!puller_is_over(gatherer->puller, &failed) || failed)) {
        result = error_set(error, "not all recordings are here");
    }
    syncing_free(gatherer->syncing);
    puller_free(gatherer->puller);
    discovery_close(gatherer->beacon);
    if (gatherer->listener >= 0) {
        close(gatherer->listener);
    }
    if (gatherer->folder >= 0) {
        close(gatherer->folder);
    }
    free(gatherer);
    return result;
}
