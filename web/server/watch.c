/* SPDX-License-Identifier: MIT */
/* watch.c: see watch.h. */
#include "web/server/watch.h"

#include "web/server/workers.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_WAIT_MS = 1000 };

struct watch {
    pthread_mutex_t lock;
    pthread_t thread;
    struct watch_entry *first;
    size_t count;
    int changed; /* an eventfd */
    atomic_bool stops;
};

int64_t watch_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void watch_wake(struct watch *watch) {
    uint64_t one = 1;
    ssize_t written = write(watch->changed, &one, sizeof one);
    (void)written; /* it is full: it wakes anyway */
}

/* Those to be polled. The lock is held. */
static size_t list_peers(const struct watch *watch, struct pollfd *polled, size_t room) {
    size_t count = 0;
    polled[count++] = (struct pollfd){.fd = watch->changed, .events = POLLIN};
    for (struct watch_entry *entry = watch->first; entry != NULL && count < room;
         entry = entry->next) {
        if (entry->minds_peer && !entry->is_gone) {
            polled[count++] = (struct pollfd){.fd = entry->fd, .events = POLLRDHUP};
        }
    }
    return count;
}

static bool has_hung_up(const struct pollfd *polled, size_t count, int fd) {
    for (size_t i = 1; i < count; i++) {
        if (polled[i].fd == fd) {
            return (polled[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
        }
    }
    return false;
}

/* A descriptor that was polled may be another connection's by now, so the kernel is asked again. */
static bool is_gone_now(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLRDHUP};
    return poll(&one, 1, 0) > 0 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void watch_tell(struct watch *watch, const struct pollfd *polled, size_t count) {
    int64_t now = watch_now_ms();
    for (struct watch_entry *entry = watch->first; entry != NULL; entry = entry->next) {
        bool is_late = entry->deadline_ms != 0 && entry->deadline_ms <= now;
        if (!entry->is_gone &&
            (is_late || (entry->minds_peer && has_hung_up(polled, count, entry->fd) &&
                         is_gone_now(entry->fd)))) {
            entry->is_gone = true;
            entry->gone(entry);
        }
    }
}

static void *run_watch(void *argument) {
    struct watch *watch = argument;
    struct pollfd *polled = NULL;
    size_t room = 0;
    while (!atomic_load(&watch->stops)) {
        uint64_t ignored;
        size_t count;
        pthread_mutex_lock(&watch->lock);
        if (watch->count + 1 > room) {
            struct pollfd *grown = realloc(polled, 2 * (watch->count + 1) * sizeof *polled);
            polled = grown != NULL ? grown : polled;
            room = grown != NULL ? 2 * (watch->count + 1) : room;
        }
        count = polled != NULL ? list_peers(watch, polled, room) : 0;
        pthread_mutex_unlock(&watch->lock);
        poll(polled, count, LONGEST_WAIT_MS);
        if (count != 0 && polled[0].revents != 0) {
            ssize_t size = read(watch->changed, &ignored, sizeof ignored);
            (void)size;
        }
        pthread_mutex_lock(&watch->lock);
        watch_tell(watch, polled, count);
        pthread_mutex_unlock(&watch->lock);
    }
    free(polled);
    return NULL;
}

struct watch *watch_start(struct error *error) {
    struct watch *watch = calloc(1, sizeof *watch);
    int result = -1;
    if (watch == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&watch->lock, NULL);
    watch->changed = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->changed >= 0) {
        result = worker_start(&watch->thread, "watch", run_watch, watch);
    }
    if (result != 0) {
        if (watch->changed >= 0) {
            close(watch->changed);
        }
        pthread_mutex_destroy(&watch->lock);
        free(watch);
        error_set(error, "cannot start threads");
        return NULL;
    }
    return watch;
}

void watch_stop(struct watch *watch) {
    if (watch == NULL) {
        return;
    }
    atomic_store(&watch->stops, true);
    watch_wake(watch);
    pthread_join(watch->thread, NULL);
    close(watch->changed);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

void watch_add(struct watch *watch, struct watch_entry *entry) {
    pthread_mutex_lock(&watch->lock);
    entry->is_gone = false;
    entry->before = NULL;
    entry->next = watch->first;
    if (entry->next != NULL) {
        entry->next->before = entry;
    }
    watch->first = entry;
    watch->count++;
    pthread_mutex_unlock(&watch->lock);
    if (entry->minds_peer) { /* deadlines are looked at every second anyway */
        watch_wake(watch);
    }
}

void watch_remove(struct watch *watch, struct watch_entry *entry) {
    pthread_mutex_lock(&watch->lock);
    if (entry->before != NULL) {
        entry->before->next = entry->next;
    } else {
        watch->first = entry->next;
    }
    if (entry->next != NULL) {
        entry->next->before = entry->before;
    }
    watch->count--;
    pthread_mutex_unlock(&watch->lock);
}
