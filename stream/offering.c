/* SPDX-License-Identifier: MIT */
/* offering.c: files, connections, and the thread of each. See offering.h. */
#include "stream/offering.h"

#include "analyze/base/array.h"
#include "analyze/base/scope.h"
#include "analyze/base/threadstart.h"
#include "analyze/rows/number.h"
#include "collect/clock.h"
#include "stream/channel.h"
#include "stream/discovery.h"
#include "stream/sender.h"
#include "stream/sourcename.h"
#include "stream/tail.h"
#include "stream/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GREET_NS   (10 * SECOND) /* from the connection to what it wants */
#define PARTING_NS (2 * SECOND)

enum {
    CONNECTIONS_MOST = 256,
    AWAY_AT_ONCE = 16,
    STACK_BYTES = 512 << 10,
    LOOK_MS = 50, /* after new files and their ends */
};

struct offered {
    int fd;
    bool leaves_index;
    bool is_known; /* hello says what it is */
    bool is_done;  /* somebody has all of it */
    uint64_t sent; /* the most that anybody has of it */
    struct wire_hello hello;
};

struct connection {
    struct offering *offering;
    struct channel channel;
    char peer[CHANNEL_SHOWN];
    volatile sig_atomic_t stop;
    bool is_known;   /* it has the token, where there is one, and asked for something */
    bool is_over;    /* its thread has ended, or is about to */
    bool sends_part; /* a file without its index */
    pthread_t thread;
    size_t in_size;
    uint8_t in[2 * WIRE_SMALL_MOST]; /* what a receiver says is small */
};

struct offering {
    const struct offering_options *options;
    pthread_mutex_t lock; /* of all below, and of connections' flags */
    struct offered *files;
    size_t count, room;
    struct connection *connections[CONNECTIONS_MOST];
    size_t connected;
    bool has_ended;  /* no file will come, and those that are there do not lose their index */
    bool is_orphan;  /* nobody said so, but who would have is gone */
    uint64_t end_ns; /* since when; 0: not so */
    bool told_full;
    struct discovery_beacon *beacon; /* NULL: nobody is to find us */
};

/* ---- Files ---- */

/* Takes over the descriptor. 0 or -1. */
static int offering_add(struct offering *offering, int fd, bool leaves_index) {
    pthread_mutex_lock(&offering->lock);
    int result =
        array_grow(&offering->files, &offering->room, offering->count, sizeof *offering->files);
    if (result == 0) {
        offering->files[offering->count++] =
            (struct offered){.fd = fd, .leaves_index = leaves_index};
    }
    pthread_mutex_unlock(&offering->lock);
    if (result != 0) {
        close(fd);
    }
    return result;
}

/* With the lock. What the file is; false: it does not say yet, or is of no use. */
static bool offered_describe(struct offered *file) {
    char name[PATH_MAX];
    struct error error;
    if (!file->is_known) {
        source_path(file->fd, name);
        file->is_known = source_describe(file->fd, name, &file->hello, &error) == 1;
    }
    return file->is_known;
}

/* Whether there is such a file still: those of small processes are taken away at the end. */
static bool offered_is_there(const struct offered *file, struct stat *status) {
    return fstat(file->fd, status) == 0 && status->st_nlink != 0;
}

/* ---- One connection ---- */

static bool connection_wait(const struct connection *connection, short events, uint64_t until_ns) {
    while (connection->stop == 0 && clock_now_ns() < until_ns) {
        struct pollfd one = {connection->channel.fd, events, 0};
        if (poll(&one, 1, LOOK_MS) > 0) {
            return true;
        }
    }
    return false;
}

/* What was written is to be read before the socket is gone. */
static void connection_part(struct connection *connection) {
    uint64_t until = clock_now_ns() + PARTING_NS;
    char nothing[256];
    if (shutdown(connection->channel.fd, SHUT_WR) == 0) {
        while (connection_wait(connection, POLLIN, until) &&
               recv(connection->channel.fd, nothing, sizeof nothing, 0) > 0) {
        }
    }
}

/* 0, or -1: the connection is lost. */
static int connection_write(struct connection *connection, const uint8_t *bytes, size_t size) {
    struct error error;
    uint64_t until = clock_now_ns() + WIRE_SILENCE_NS;
    while (size > 0) {
        ssize_t put = channel_write(&connection->channel, bytes, size, &error);
        if (put < 0 || (put == 0 && !connection_wait(connection, POLLOUT, until))) {
            return -1;
        }
        bytes += put;
        size -= (size_t)put;
    }
    return 0;
}

static void connection_refuse(struct connection *connection, enum wire_code code, const char *why) {
    uint8_t bytes[WIRE_SMALL_MOST];
    tell_line(connection->offering->options->tell, "%s: refused: %s", connection->peer, why);
    connection_write(connection, bytes, wire_put_refusal(bytes, code, why));
    connection_part(connection);
}

/* True: TLS is ready, or none is wanted. */
static bool connection_shake_hands(struct connection *connection, uint64_t until) {
    const struct offering *offering = connection->offering;
    struct channel *channel = &connection->channel;
    struct error error = {""};
    const char *why = "";
    enum listening_first first = LISTENING_LATER;
    int done;
    while (first == LISTENING_LATER && connection_wait(connection, POLLIN, until)) {
        first = listening_look(channel, offering->options->token != NULL, &why);
    }
    if (first != LISTENING_FINE) {
        if (first == LISTENING_REFUSED) {
            tell_line(offering->options->tell, "%s: refused: %s", connection->peer, why);
            connection_part(connection);
        } else if (connection->stop == 0) {
            tell_line(offering->options->tell, "%s: %s", connection->peer,
                      first == LISTENING_LEFT ? "left without a word"
                                              : "connected and said nothing for 10 s");
        }
        return false;
    }
    while ((done = channel_handshake(channel, &error)) == 0) {
        if (!connection_wait(connection, channel->wants_write ? POLLOUT : POLLIN, until)) {
            error_set(&error, "said nothing for 10 s");
            done = -1;
            break;
        }
    }
    if (done < 0 && connection->stop == 0) {
        bool is_tls = strncmp(error.message, "TLS:", 4) == 0;
        tell_line(offering->options->tell, "%s: refused: %s%s%s", connection->peer,
                  is_tls ? "not our token (" : "", error.message, is_tls ? ")" : "");
    }
    return done == 1;
}

/* Reads what has come. 1: a frame is there; 0: none yet; -1: the connection is lost or broken. */
static int connection_read(struct connection *connection, struct wire_frame *frame) {
    struct error error;
    long whole = wire_parse(connection->in, connection->in_size, frame);
    if (whole == 0) {
        size_t room = sizeof connection->in - connection->in_size;
        ssize_t got = room == 0 ? -1
                                : channel_read(&connection->channel,
                                               connection->in + connection->in_size, room, &error);
        if (got <= 0) {
            return got == 0 ? 0 : -1;
        }
        connection->in_size += (size_t)got;
        whole = wire_parse(connection->in, connection->in_size, frame);
    }
    return whole > 0 ? 1 : (int)whole;
}

/* ---- The list of files ---- */

static void drop_frame(struct connection *connection, const struct wire_frame *frame) {
    size_t size = WIRE_HEADER + frame->length;
    connection->in_size -= size;
    memmove(connection->in, connection->in + size, connection->in_size);
}

/* The next file of which this receiver does not know. The frame's size; 0: none now, or all were
 * told and no more will come (is_end). */
static size_t put_offer(struct offering *offering, size_t *told, uint8_t *to, bool *is_end) {
    struct stat status;
    size_t size = 0;
    pthread_mutex_lock(&offering->lock);
    while (*told < offering->count && size == 0) {
        struct offered *file = &offering->files[*told];
        if (!offered_is_there(file, &status)) {
            ++*told;
        } else if (offered_describe(file)) {
            ++*told;
            size = wire_put_offer(to, &file->hello, (uint64_t)status.st_size);
        } else if (offering->has_ended && offering->end_ns != 0) {
            ++*told; /* its program was killed before it said what it is */
        } else {
            break;
        }
    }
    *is_end = size == 0 && *told == offering->count && offering->end_ns != 0;
    pthread_mutex_unlock(&offering->lock);
    return size;
}

/* Goes on until the receiver has all and goes. */
static void connection_list(struct connection *connection) {
    uint8_t bytes[WIRE_SMALL_MOST];
    struct wire_frame frame;
    uint64_t heard = clock_now_ns();
    uint64_t said = heard;
    size_t told = 0;
    bool end_told = false;
    int got = 0;
    while (connection->stop == 0 && got >= 0 && clock_now_ns() < heard + WIRE_SILENCE_NS) {
        bool is_end;
        size_t size;
        while (connection->stop == 0 && (got = connection_read(connection, &frame)) == 1) {
            heard = clock_now_ns();
            if (frame.type != WIRE_ALIVE) {
                return;
            }
            drop_frame(connection, &frame);
        }
        size = put_offer(connection->offering, &told, bytes, &is_end);
        if (size == 0 && is_end && !end_told) {
            size = wire_put_end(bytes, told, 0);
            end_told = true;
        }
        if (size == 0 && clock_now_ns() >= said + WIRE_ALIVE_NS) {
            size = wire_put_alive(bytes);
        }
        if (size != 0) {
            said = clock_now_ns();
            got = got < 0 ? got : connection_write(connection, bytes, size);
        } else if (got == 0) {
            connection_wait(connection, POLLIN, clock_now_ns() + LOOK_MS * MS);
        }
    }
}

/* ---- One file ---- */

static void no_words(const char *line) {
    (void)line;
}

/* What became of it. */
static void note_sent(struct connection *connection, size_t place, const char *name,
                      enum sender_result result, const struct sender_progress *progress,
                      const struct error *error) {
    struct offering *offering = connection->offering;
    struct number n;
    pthread_mutex_lock(&offering->lock);
    struct offered *file = &offering->files[place];
    file->is_done = file->is_done || result == SENDER_DONE;
    file->sent = file->sent > progress->sent ? file->sent : progress->sent;
    pthread_mutex_unlock(&offering->lock);
    if (result == SENDER_DONE && offering->options->tells_all) {
        tell_line(offering->options->tell, "%s, %s, is at %s", name,
                  number_bytes(&n, progress->sent), connection->peer);
    } else if (result == SENDER_FAILED && error->message[0] != '\0' &&
               offering->options->tells_all) {
        tell_line(offering->options->tell, "%s: %s; %s of %s are there", connection->peer,
                  error->message, number_bytes(&n, progress->sent), name);
    }
}

static void connection_send(struct connection *connection, const uint8_t id[WIRE_ID]) {
    struct offering *offering = connection->offering;
    char path[32];
    char name[PATH_MAX] = "";
    struct sender_progress progress;
    struct error error = {""};
    struct sender_options asked = {.path = path,
                                   .name = name,
                                   .host = connection->peer,
                                   .accepted = &connection->channel,
                                   .allows_control = offering->options->allows_control,
                                   .stop = &connection->stop,
                                   .tell = no_words};
    size_t place = 0;
    bool is_here;
    pthread_mutex_lock(&offering->lock);
    while (place < offering->count && (!offered_describe(&offering->files[place]) ||
                                       memcmp(offering->files[place].hello.id, id, WIRE_ID) != 0)) {
        place++;
    }
    is_here = place < offering->count;
    if (is_here) {
        const struct offered *file = &offering->files[place];
        snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
        source_path(file->fd, name);
        connection->sends_part = file->leaves_index && !offering->has_ended;
        asked.reopener = connection->sends_part ? offering->options->reopener : 0;
    }
    pthread_mutex_unlock(&offering->lock);
    if (!is_here) {
        connection_refuse(connection, WIRE_BAD, "it wants a recording that is not here");
        return;
    }
    note_sent(connection, place, name, sender_run(&asked, &progress, &error), &progress, &error);
    connection->channel = CHANNEL_NONE; /* closed by it */
}

/* ---- Connections ---- */

static void connection_talk(struct connection *connection) {
    static const uint8_t none[WIRE_ID];
    uint64_t until = clock_now_ns() + GREET_NS;
    struct wire_frame frame;
    uint8_t id[WIRE_ID];
    uint32_t version;
    int got = 0;
    if (!connection_shake_hands(connection, until)) {
        return;
    }
    while ((got = connection_read(connection, &frame)) == 0 &&
           connection_wait(connection, POLLIN, until)) {
    }
    if (got == 1 && frame.type == WIRE_HELLO) {
        connection_refuse(connection, WIRE_BAD, "recordings are taken from here, not to here");
    } else if (got < 1 || frame.type != WIRE_PULL || wire_read_pull(&frame, &version, id) != 0) {
        connection_refuse(connection, WIRE_BAD, "it does not speak MemTrace's protocol");
    } else if (version != WIRE_VERSION) {
        char text[WIRE_REASON_MOST];
        snprintf(text, sizeof text, "it speaks version %u of the protocol, this is version %d",
                 version, WIRE_VERSION);
        connection_refuse(connection, WIRE_OTHER_VERSION, text);
    } else {
        drop_frame(connection, &frame);
        pthread_mutex_lock(&connection->offering->lock);
        connection->is_known = true;
        pthread_mutex_unlock(&connection->offering->lock);
        if (memcmp(id, none, sizeof id) == 0) {
            connection_list(connection);
        } else {
            connection_send(connection, id);
        }
    }
}

static void *connection_serve(void *argument) {
    struct connection *connection = argument;
    struct offering *offering = connection->offering;
    connection_talk(connection);
    channel_close(&connection->channel);
    pthread_mutex_lock(&offering->lock);
    connection->is_over = true;
    pthread_mutex_unlock(&offering->lock);
    return NULL;
}

static void offering_take_connection(struct offering *offering) {
    char peer[CHANNEL_SHOWN];
    int fd = listening_accept(offering->options->listener, peer);
    struct connection *connection;
    pthread_attr_t attributes;
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            poll(NULL, 0, 1000); /* it stays in the queue */
        }
        return;
    }
    connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        close(fd);
        return;
    }
    connection->offering = offering;
    memcpy(connection->peer, peer, sizeof peer);
    if (channel_open(&connection->channel, fd, true, offering->options->token) != 0) {
        free(connection);
        return;
    }
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (threadstart(&connection->thread, &attributes, connection_serve, connection) == 0) {
        offering->connections[offering->connected++] = connection;
    } else {
        channel_close(&connection->channel);
        free(connection);
    }
    pthread_attr_destroy(&attributes);
}

/* Whether one more can be taken. Those that say nothing keep nobody out: the oldest go, some at
 * once since each takes a moment. */
static bool offering_has_room(struct offering *offering) {
    size_t sent_away = 0;
    if (offering->connected < CONNECTIONS_MOST) {
        return true;
    }
    pthread_mutex_lock(&offering->lock);
    for (size_t i = 0; i < offering->connected && sent_away < AWAY_AT_ONCE; i++) {
        if (!offering->connections[i]->is_known) {
            offering->connections[i]->stop = 1;
            sent_away++;
        }
    }
    pthread_mutex_unlock(&offering->lock);
    if (!offering->told_full) {
        tell_line(offering->options->tell, "there are %zu connections: further ones wait",
                  offering->connected);
    }
    offering->told_full = true;
    return false;
}

/* Joins those that are over; all: stops and joins them. */
static void remove_over(struct offering *offering, bool all) {
    size_t kept = 0;
    for (size_t i = 0; i < offering->connected && all; i++) {
        offering->connections[i]->stop = 1; /* of all, before the first is waited for */
    }
    for (size_t i = 0; i < offering->connected; i++) {
        struct connection *connection = offering->connections[i];
        bool is_over;
        pthread_mutex_lock(&offering->lock);
        is_over = connection->is_over || all;
        pthread_mutex_unlock(&offering->lock);
        if (is_over) {
            pthread_join(connection->thread, NULL);
            free(connection);
        } else {
            offering->connections[kept++] = connection;
        }
    }
    offering->connected = kept;
}

/* ---- The end ---- */

/* end_ns: since when; 0: files may still grow. Whoever was sent a file without its index comes
 * again, for all of it. */
static void end_files(struct offering *offering, uint64_t end_ns) {
    pthread_mutex_lock(&offering->lock);
    offering->has_ended = true;
    offering->end_ns = end_ns;
    for (size_t i = 0; i < offering->connected; i++) {
        if (offering->connections[i]->sends_part) {
            offering->connections[i]->stop = 1;
        }
    }
    pthread_mutex_unlock(&offering->lock);
}

/* What the recorder says. Returns false when it will say no more. */
static bool offering_take_word(struct offering *offering) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct offering_word word = {0};
    struct iovec vector = {&word, sizeof word};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(offering->options->words, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    const struct cmsghdr *extra = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    if (got != sizeof word) {
        offering->is_orphan = true;
        end_files(offering, 0);
        return false;
    }
    if (word.kind == OFFERING_FILE && extra != NULL && extra->cmsg_type == SCM_RIGHTS) {
        int fd;
        memcpy(&fd, CMSG_DATA(extra), sizeof fd);
        offering_add(offering, fd, word.leaves_index);
        return true;
    }
    if (word.kind == OFFERING_OVER) {
        end_files(offering, clock_now_ns());
        return false;
    }
    return true;
}

/* ---- All of it ---- */

/* Whether it is over: somebody has all of each file and nobody takes anything any more; or the time
 * is. */
static bool offering_is_over(struct offering *offering) {
    uint64_t linger = offering->options->linger_ns;
    struct stat status;
    bool is_needed = false;
    if (*offering->options->stop != 0 || offering->end_ns == 0) {
        return *offering->options->stop != 0;
    }
    pthread_mutex_lock(&offering->lock);
    for (size_t i = 0; i < offering->connected && !is_needed; i++) {
        is_needed = offering->connections[i]->is_known;
    }
    for (size_t i = 0; i < offering->count && !is_needed; i++) {
        is_needed = !offering->files[i].is_done && offered_is_there(&offering->files[i], &status);
    }
    pthread_mutex_unlock(&offering->lock);
    return !is_needed || (linger != 0 && clock_now_ns() >= offering->end_ns + linger);
}

static void offering_answer(struct offering *offering) {
    struct stat status;
    const char *program = NULL;
    uint32_t there = 0;
    pthread_mutex_lock(&offering->lock);
    for (size_t i = 0; i < offering->count; i++) {
        if (offered_is_there(&offering->files[i], &status) &&
            offered_describe(&offering->files[i])) {
            program = program == NULL ? offering->files[i].hello.program : program;
            there++;
        }
    }
    discovery_answer(offering->beacon, there, program);
    pthread_mutex_unlock(&offering->lock);
}

static void offering_go_on(struct offering *offering) {
    bool has_words = offering->options->words >= 0;
    if (!has_words) {
        end_files(offering, clock_now_ns());
    }
    while (!offering_is_over(offering)) {
        struct pollfd waits[3] = {
            {offering_has_room(offering) ? offering->options->listener : -1, POLLIN, 0},
            {has_words ? offering->options->words : -1, POLLIN, 0},
            {discovery_fd(offering->beacon), POLLIN, 0}};
        int ready = poll(waits, 3, LOOK_MS);
        if (ready > 0 && waits[1].revents != 0) {
            has_words = offering_take_word(offering);
        }
        if (ready > 0 && waits[0].revents != 0) {
            offering_take_connection(offering);
        }
        if (ready > 0 && waits[2].revents != 0) {
            offering_answer(offering);
        }
        if (offering->is_orphan && offering->end_ns == 0) {
            /* The recorder is gone: until the next collector of the program, and what it writes,
             * is, too. */
            bool is_written = false;
            for (size_t i = 0; i < offering->count && !is_written; i++) {
                is_written = tail_is_written(offering->files[i].fd);
            }
            if (!is_written) {
                end_files(offering, clock_now_ns());
            }
        }
        remove_over(offering, false);
    }
}

/* The files that are known from the beginning, and the beacon. */
static int offering_begin(struct offering *offering, struct error *error) {
    const struct offering_options *options = offering->options;
    for (const char *const *path = options->paths; path != NULL && *path != NULL; path++) {
        struct wire_hello hello;
        SCOPE_FD int fd = open(*path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) {
            return error_set(error, "cannot read %s: %s", *path, strerror(errno));
        }
        if (source_describe(fd, *path, &hello, error) < 0) {
            return -1;
        }
        if (offering_add(offering, scope_keep(&fd), false) != 0) {
            return error_set(error, "out of memory");
        }
    }
    if (options->discovery_port != 0) {
        char shown[CHANNEL_SHOWN];
        uint8_t id[DISCOVER_ID];
        listening_show(options->listener, shown);
        discovery_id(shown, id);
        offering->beacon = discovery_open(options->discovery_port, options->token, DISCOVER_OFFER,
                                          options->listener, "", id, options->tell, error);
        return offering->beacon != NULL ? 0 : -1;
    }
    return 0;
}

int offering_run(const struct offering_options *options, struct offering_rest *rest,
                 struct error *error) {
    SCOPE_MEMORY struct offering *offering = calloc(1, sizeof *offering);
    int result = -1;
    if (offering == NULL) {
        return error_set(error, "out of memory");
    }
    offering->options = options;
    pthread_mutex_init(&offering->lock, NULL);
    listening_raise_limit();
    if (offering_begin(offering, error) == 0) {
        struct stat status;
        offering_go_on(offering);
        remove_over(offering, true);
        *rest = (struct offering_rest){.kind = OFFERING_REST};
        for (size_t i = 0; i < offering->count; i++) {
            const struct offered *file = &offering->files[i];
            if (!file->is_done && offered_is_there(file, &status)) {
                uint64_t size = (uint64_t)status.st_size;
                rest->files++;
                rest->sent += file->sent;
                rest->missing += size > file->sent ? size - file->sent : 0;
                source_path(file->fd, rest->name);
            }
        }
        result = rest->files == 0 ? 0 : 1;
    }
    discovery_close(offering->beacon);
    for (size_t i = 0; i < offering->count; i++) {
        close(offering->files[i].fd);
    }
    free(offering->files);
    pthread_mutex_destroy(&offering->lock);
    return result;
}
