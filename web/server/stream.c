/* SPDX-License-Identifier: MIT */
/* stream.c: see stream.h. */
#include "web/server/stream.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_BYTES = 256 * 1024 /* that wait to be read: who reads no more is left out */ };

struct stream {
    struct hub_listener listener; /* first */
    struct hub *hub;
    void (*wake)(void *context);
    void *context;
    char *job;
    pthread_mutex_t lock;
    char *bytes; /* that wait */
    size_t size, room;
    uint64_t id; /* of the last event */
    bool waits;  /* wake() is to be called */
    bool ended;
};

static struct stream *stream_of(struct hub_listener *listener) {
    return (struct stream *)listener;
}

/* Under the lock. false: there is no room. */
static bool stream_append(struct stream *stream, const char *text, size_t size) {
    if (stream->size + size > STREAM_BYTES) {
        return false;
    }
    if (stream->size + size > stream->room) {
        size_t room = 2 * (stream->size + size);
        char *grown = realloc(stream->bytes, room);
        if (grown == NULL) {
            return false;
        }
        stream->bytes = grown;
        stream->room = room;
    }
    memcpy(stream->bytes + stream->size, text, size);
    stream->size += size;
    return true;
}

static void stream_wake(struct stream *stream, bool waited) {
    if (waited) {
        stream->wake(stream->context);
    }
}

static void stream_put(struct stream *stream, const char *text, size_t size) {
    bool waited;
    pthread_mutex_lock(&stream->lock);
    stream_append(stream, text, size);
    waited = stream->waits;
    stream->waits = false;
    pthread_mutex_unlock(&stream->lock);
    stream_wake(stream, waited);
}

static void stream_tell(struct hub_listener *listener, const char *event, const char *data) {
    struct stream *stream = stream_of(listener);
    char *text;
    int size;
    uint64_t id;
    pthread_mutex_lock(&stream->lock);
    id = ++stream->id;
    pthread_mutex_unlock(&stream->lock);
    size = asprintf(&text, "id: %" PRIu64 "\nevent: %s\ndata: %s\n\n", id, event, data);
    if (size >= 0) {
        stream_put(stream, text, (size_t)size);
        free(text);
    }
}

struct stream *stream_open(struct hub *hub, unsigned source, const char *job,
                           void (*wake_reader)(void *context), void *context) {
    struct stream *stream = calloc(1, sizeof *stream);
    struct hub_status status;
    char data[600];
    if (stream == NULL || (job != NULL && (stream->job = strdup(job)) == NULL)) {
        free(stream);
        return NULL;
    }
    pthread_mutex_init(&stream->lock, NULL);
    stream->hub = hub;
    stream->wake = wake_reader;
    stream->context = context;
    stream->listener =
        (struct hub_listener){.source = source, .job = stream->job, .tell = stream_tell};
    hub_listen(hub, &stream->listener);
    /* What was told before somebody listened. */
    if (hub_status(hub, source, &status)) {
        snprintf(data, sizeof data, "{\"what\":\"%s\",\"done\":%" PRIu64 ",\"total\":%" PRIu64 "}",
                 status.what, status.done, status.total);
        stream_tell(&stream->listener,
                    status.state == HUB_OPEN     ? "open"
                    : status.state == HUB_FAILED ? "failed"
                                                 : "progress",
                    status.state == HUB_OPENING ? data : "{}");
        hub_status_free(&status);
    }
    return stream;
}

long stream_read(struct stream *stream, char *bytes, size_t size) {
    long count;
    pthread_mutex_lock(&stream->lock);
    count = (long)(stream->size < size ? stream->size : size);
    if (count != 0) {
        memcpy(bytes, stream->bytes, (size_t)count);
        memmove(stream->bytes, stream->bytes + count, stream->size - (size_t)count);
        stream->size -= (size_t)count;
    } else if (stream->ended) {
        count = -1;
    } else {
        stream->waits = true;
    }
    pthread_mutex_unlock(&stream->lock);
    return count;
}

void stream_end(struct stream *stream) {
    bool waited;
    pthread_mutex_lock(&stream->lock);
    stream->ended = true;
    stream->size = 0;
    waited = stream->waits;
    stream->waits = false;
    pthread_mutex_unlock(&stream->lock);
    stream_wake(stream, waited);
}

void stream_close(struct stream *stream) {
    hub_unlisten(stream->hub, &stream->listener);
    pthread_mutex_destroy(&stream->lock);
    free(stream->bytes);
    free(stream->job);
    free(stream);
}
