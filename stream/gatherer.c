/* SPDX-License-Identifier: MIT */
/* gatherer.c: connections, and what each of them sends. See gatherer.h. */
#include "stream/gatherer.h"

#include "analyze/rows/number.h"
#include "collect/clock.h"
#include "stream/arrival.h"
#include "stream/wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS         UINT64_C(1000000)
#define SECOND     (1000 * MS)
#define HELLO_NS   (10 * SECOND) /* from the connection to what it says of itself */
#define ALIVE_NS   (5 * SECOND)
#define SILENCE_NS (20 * SECOND)
#define SYNC_NS    (50 * MS)    /* received bytes wait so long for others to be synced with them */
#define PARTING_NS (2 * SECOND) /* for a refusal to be read */

enum {
    SOURCES_MOST = 4096,
    WINDOW = 4 << 20,
    SYNC_BYTES = WINDOW / 4,
    TURN_BYTES = 1 << 20, /* taken of one source before others have their turn */
    OUT_BYTES = 4 * WIRE_SMALL_MOST,
};

enum state { FRESH, GREETED, PARTING, GONE };

struct source {
    struct channel channel;
    enum state state;
    struct arrival arrival;
    char peer[CHANNEL_SHOWN];
    bool looked;                                     /* the first byte was looked at: TLS or not */
    bool is_half;                                    /* PARTING: nothing is sent any more */
    bool is_hungry;                                  /* more may be there to read at once */
    bool is_done;                                    /* all of it is there */
    uint64_t born_ns, heard_ns, said_ns, waiting_ns; /* waiting: since when bytes are not synced */
    size_t in_size, out_size;
    uint8_t out[OUT_BYTES];
    uint8_t in[WIRE_FRAME_MOST];
};

struct gatherer {
    const struct gatherer_options *options;
    int folder;
    int listener;
    uint64_t used_bytes;    /* of all recordings in the folder */
    uint64_t rest_until_ns; /* no descriptors were left: no connection is taken before */
    struct source *sources[SOURCES_MOST];
    struct pollfd polls[SOURCES_MOST + 1];
    size_t count;
};

__attribute__((format(printf, 2, 3))) static void tell(const struct gatherer *gatherer,
                                                       const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    gatherer->options->tell(line);
}

/* ---- What a source is told ---- */

static uint8_t *out_of(struct source *source) {
    return source->out + source->out_size;
}

static bool has_out_room(const struct source *source) {
    return source->out_size + WIRE_SMALL_MOST <= OUT_BYTES;
}

/* It goes away with a reason. */
static void refuse(struct gatherer *gatherer, struct source *source, enum wire_code code,
                   const char *reason) {
    tell(gatherer, "%s: refused: %s",
         source->state == GREETED ? source->arrival.name : source->peer, reason);
    if (has_out_room(source)) {
        source->out_size += wire_put_refusal(out_of(source), code, reason);
    }
    arrival_close(&source->arrival);
    source->state = PARTING;
    source->born_ns = clock_now_ns();
}

static void lose(struct gatherer *gatherer, struct source *source, const char *why) {
    struct number n;
    if (source->state == GREETED && !source->is_done) {
        tell(gatherer, "%s: %s; %s are here", source->arrival.name, why,
             number_bytes(&n, source->arrival.next));
    } else if (source->state == FRESH) {
        tell(gatherer, "%s: %s", source->peer, why);
    }
    source->state = GONE;
}

/* The disk, mostly. What was acknowledged stays. */
static void fail(struct gatherer *gatherer, struct source *source, int reason) {
    char text[WIRE_REASON_MOST];
    if (reason == EBADMSG) {
        refuse(gatherer, source, WIRE_BAD,
               "these are not the bytes of the recording that it named");
        return;
    }
    snprintf(text, sizeof text, "cannot write there: %s", strerror(reason));
    refuse(gatherer, source, WIRE_NO_SPACE, text);
}

/* ---- What a source says ---- */

static bool is_other(void *context, const char *name, const uint8_t *id) {
    const struct gatherer *gatherer = context;
    for (size_t i = 0; i < gatherer->count; i++) {
        const struct source *source = gatherer->sources[i];
        if (source->state == GREETED && strcmp(source->arrival.name, name) == 0 &&
            memcmp(source->arrival.id, id, WIRE_ID) != 0) {
            return true;
        }
    }
    return false;
}

/* An older connection with the same recording: mostly one whose other end is gone. */
static void take_over(struct gatherer *gatherer, const struct source *newer) {
    for (size_t i = 0; i < gatherer->count; i++) {
        struct source *source = gatherer->sources[i];
        if (source != newer && source->state == GREETED &&
            strcmp(source->arrival.name, newer->arrival.name) == 0) {
            refuse(gatherer, source, WIRE_TAKEN, "another sender goes on with it");
        }
    }
}

static void take_hello(struct gatherer *gatherer, struct source *source,
                       const struct wire_frame *frame) {
    struct wire_hello hello;
    struct error error = {""};
    struct number n;
    char text[WIRE_REASON_MOST];
    if (wire_read_hello(frame, &hello) != 0) {
        refuse(gatherer, source, WIRE_BAD, "its greeting makes no sense");
    } else if (hello.version != WIRE_VERSION) {
        snprintf(text, sizeof text, "it speaks version %u of the protocol, this is version %d",
                 hello.version, WIRE_VERSION);
        refuse(gatherer, source, WIRE_OTHER_VERSION, text);
    } else if (arrival_open(&source->arrival, gatherer->folder, &hello, is_other, gatherer,
                            &error) != 0) {
        refuse(gatherer, source, WIRE_NO_SPACE, error.message);
    } else {
        take_over(gatherer, source);
        source->state = GREETED;
        source->out_size += wire_put_welcome(out_of(source), source->arrival.next, WINDOW);
        if (source->arrival.next != 0) {
            tell(gatherer, "%s: from %s, goes on behind %s", source->arrival.name, source->peer,
                 number_bytes(&n, source->arrival.next));
        } else {
            tell(gatherer, "%s: from %s", source->arrival.name, source->peer);
        }
    }
}

/* Whether there is no place for a file of this size. */
static bool is_over_quota(const struct gatherer *gatherer, const struct source *source,
                          uint64_t size, char text[WIRE_REASON_MOST]) {
    const struct gatherer_options *options = gatherer->options;
    uint64_t more = size > source->arrival.size ? size - source->arrival.size : 0;
    struct number n;
    if (options->quota_bytes != 0 && more != 0 && size > options->quota_bytes) {
        snprintf(text, WIRE_REASON_MOST, "it is larger than the quota of one recording, %s",
                 number_bytes(&n, options->quota_bytes));
        return true;
    }
    if (options->total_bytes != 0 && more != 0 &&
        gatherer->used_bytes + more > options->total_bytes) {
        snprintf(text, WIRE_REASON_MOST, "the quota of all recordings, %s, is used up",
                 number_bytes(&n, options->total_bytes));
        return true;
    }
    return false;
}

static void take_data(struct gatherer *gatherer, struct source *source,
                      const struct wire_frame *frame) {
    struct arrival *arrival = &source->arrival;
    char text[WIRE_REASON_MOST];
    uint64_t before = arrival->size;
    int reason = 0;
    if (frame->offset == 0) {
        arrival->next = arrival->synced = 0; /* the file here has more than there is: all anew */
    }
    if (frame->offset != arrival->next || arrival->hash.state != NULL) {
        refuse(gatherer, source, WIRE_BAD, "its bytes do not follow each other");
        return;
    }
    if (is_over_quota(gatherer, source, frame->offset + frame->length, text)) {
        refuse(gatherer, source, WIRE_QUOTA, text);
        return;
    }
    if (source->waiting_ns == 0) {
        source->waiting_ns = clock_now_ns();
    }
    if (arrival_write(arrival, frame->payload, frame->length) != 0) {
        reason = errno;
    }
    gatherer->used_bytes += arrival->size - before;
    if (reason != 0) {
        fail(gatherer, source, reason);
    }
}

static void take_end(struct gatherer *gatherer, struct source *source,
                     const struct wire_frame *frame) {
    struct arrival *arrival = &source->arrival;
    uint64_t before = arrival->size;
    uint64_t hash;
    wire_read_end(frame, &hash);
    if (frame->offset != arrival->next || arrival->hash.state != NULL) {
        refuse(gatherer, source, WIRE_BAD, "its end is not where its bytes end");
    } else if (arrival_compare(arrival, frame->offset, hash) != 0) {
        fail(gatherer, source, errno);
    } else {
        gatherer->used_bytes -= before - arrival->size;
    }
}

static void take_frame(struct gatherer *gatherer, struct source *source,
                       const struct wire_frame *frame) {
    bool is_greeted = source->state == GREETED;
    if (frame->type == WIRE_HELLO && !is_greeted) {
        take_hello(gatherer, source, frame);
    } else if (frame->type == WIRE_DATA && is_greeted) {
        take_data(gatherer, source, frame);
    } else if (frame->type == WIRE_END && is_greeted) {
        take_end(gatherer, source, frame);
    } else if (frame->type != WIRE_ALIVE || !is_greeted) {
        refuse(gatherer, source, WIRE_BAD, "it does not speak MemTrace's protocol");
    }
}

static void take_frames(struct gatherer *gatherer, struct source *source) {
    struct wire_frame frame;
    size_t at = 0;
    long size = 0;
    while (source->state < PARTING && has_out_room(source) &&
           (size = wire_parse(source->in + at, source->in_size - at, &frame)) > 0) {
        take_frame(gatherer, source, &frame);
        at += (size_t)size;
    }
    if (size < 0 && source->state < PARTING) {
        refuse(gatherer, source, WIRE_BAD, "it does not speak MemTrace's protocol");
    }
    if (source->state >= PARTING) {
        at = source->in_size;
    }
    memmove(source->in, source->in + at, source->in_size - at);
    source->in_size -= at;
}

/* ---- One source's turn ---- */

/* One side has a token and the other has none: both are to learn it in words of their own. False:
 * nothing has come yet. */
static bool look_at_first(struct gatherer *gatherer, struct source *source) {
    static const unsigned char access_denied[] = {0x15, 3, 1, 0, 2, 2, 49}; /* TLS's alert */
    uint8_t refusal[WIRE_SMALL_MOST];
    unsigned char first;
    bool wants_tls = gatherer->options->token != NULL;
    ssize_t got = recv(source->channel.fd, &first, 1, MSG_PEEK);
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            lose(gatherer, source, "left without a word");
        }
        return false;
    }
    source->looked = true;
    if ((first == 0x16) == wants_tls) {
        return true;
    }
    if (wants_tls) {
        size_t size = wire_put_refusal(refusal, WIRE_BAD, "it wants a token (--token FILE)");
        send(source->channel.fd, refusal, size, MSG_NOSIGNAL);
        tell(gatherer, "%s: refused: it comes without a token", source->peer);
    } else if (first == 0x16) {
        send(source->channel.fd, access_denied, sizeof access_denied, MSG_NOSIGNAL);
        tell(gatherer, "%s: refused: it comes with a token, and there is none here", source->peer);
    } else {
        return true; /* bytes in clear, as wanted */
    }
    /* What was sent is to be read before the socket is gone. */
    channel_make_bare(&source->channel);
    source->is_half = shutdown(source->channel.fd, SHUT_WR) == 0;
    source->state = PARTING;
    source->born_ns = clock_now_ns();
    return false;
}

static void hear(struct gatherer *gatherer, struct source *source) {
    struct error error = {""};
    size_t taken = 0;
    source->is_hungry = false;
    while (source->state != GONE && taken < TURN_BYTES && has_out_room(source)) {
        size_t room = sizeof source->in - source->in_size;
        ssize_t got = channel_read(&source->channel, source->in + source->in_size, room, &error);
        if (got < 0) {
            lose(gatherer, source, error.message);
        }
        if (got <= 0) {
            return;
        }
        source->heard_ns = clock_now_ns();
        source->in_size += (size_t)got;
        taken += (size_t)got;
        take_frames(gatherer, source);
    }
    source->is_hungry = true;
}

static void say(struct gatherer *gatherer, struct source *source) {
    struct error error = {""};
    while (source->out_size != 0 && source->state != GONE) {
        ssize_t put = channel_write(&source->channel, source->out, source->out_size, &error);
        if (put < 0) {
            lose(gatherer, source, error.message);
        }
        if (put <= 0) {
            return;
        }
        source->said_ns = clock_now_ns();
        memmove(source->out, source->out + put, source->out_size - (size_t)put);
        source->out_size -= (size_t)put;
    }
    if (source->state == PARTING && !source->is_half) {
        shutdown(source->channel.fd, SHUT_WR);
        source->is_half = true;
    }
}

/* Puts bytes on the disk and acknowledges them, when enough of them have come. */
static void acknowledge(struct gatherer *gatherer, struct source *source, uint64_t now) {
    struct arrival *arrival = &source->arrival;
    if (source->state != GREETED || source->waiting_ns == 0 || !has_out_room(source) ||
        (now < source->waiting_ns + SYNC_NS && arrival->next - arrival->synced < SYNC_BYTES)) {
        return;
    }
    source->waiting_ns = 0;
    uint64_t before = arrival->size;
    if (arrival->next != arrival->synced && arrival_sync(arrival) != 0) {
        int reason = errno;
        gatherer->used_bytes -= before - arrival->size;
        fail(gatherer, source, reason);
        return;
    }
    source->out_size += wire_put_ack(out_of(source), arrival->synced);
}

static void compare(struct gatherer *gatherer, struct source *source) {
    struct arrival *arrival = &source->arrival;
    struct number n;
    int same;
    if (source->state != GREETED || arrival->hash.state == NULL || !has_out_room(source)) {
        return;
    }
    same = arrival_step(arrival);
    if (same > 0) {
        source->is_done = true;
        source->out_size += wire_put_end(out_of(source), arrival->size, arrival->wanted_hash);
        tell(gatherer, "%s: complete, %s", arrival->name, number_bytes(&n, arrival->size));
    } else if (same < 0) {
        source->out_size += wire_put_welcome(out_of(source), 0, WINDOW);
        tell(gatherer, "%s: differs from what its sender has: comes anew", arrival->name);
    }
}

/* Those that connect and say nothing, or no longer do. */
static void check_times(struct gatherer *gatherer, struct source *source, uint64_t now) {
    if (source->state == FRESH && now > source->born_ns + HELLO_NS) {
        lose(gatherer, source, "connected and said nothing for 10 s");
    } else if (source->state == GREETED && now > source->heard_ns + SILENCE_NS) {
        lose(gatherer, source, "silent for 20 s");
    } else if (source->state == PARTING && now > source->born_ns + PARTING_NS) {
        source->state = GONE;
    }
    if (source->state == GREETED && now >= source->said_ns + ALIVE_NS && source->out_size == 0) {
        source->out_size += wire_put_alive(out_of(source));
    }
}

static void shake_hands(struct gatherer *gatherer, struct source *source) {
    struct error error = {""};
    if (!source->looked && !look_at_first(gatherer, source)) {
        return;
    }
    if (channel_handshake(&source->channel, &error) < 0) {
        bool is_tls = strncmp(error.message, "TLS:", 4) == 0;
        tell(gatherer, "%s: refused: %s%s%s", source->peer, is_tls ? "not our token (" : "",
             error.message, is_tls ? ")" : "");
        source->state = GONE;
    }
}

static void serve(struct gatherer *gatherer, struct source *source, short events) {
    uint64_t now = clock_now_ns();
    if (source->state == FRESH && (!source->looked || !source->channel.is_ready)) {
        shake_hands(gatherer, source);
    }
    if (source->looked && source->channel.is_ready && source->state != GONE) {
        if (events != 0 || source->is_hungry) {
            hear(gatherer, source);
        }
        compare(gatherer, source);
        acknowledge(gatherer, source, now);
        say(gatherer, source);
    }
    check_times(gatherer, source, now);
}

/* ---- All sources ---- */

static void drop(struct source *source) {
    channel_close(&source->channel);
    arrival_close(&source->arrival);
    free(source);
}

static void take_connection(struct gatherer *gatherer, uint64_t now) {
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    struct source *source;
    int fd = accept4(gatherer->listener, (struct sockaddr *)&address, &size,
                     SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            tell(gatherer, "no further connection can be taken: %s", strerror(errno));
            gatherer->rest_until_ns = now + SECOND;
        }
        return;
    }
    source = gatherer->count < SOURCES_MOST ? calloc(1, sizeof *source) : NULL;
    if (source == NULL) {
        close(fd);
        return;
    }
    source->arrival = ARRIVAL_NONE;
    source->born_ns = source->heard_ns = source->said_ns = now;
    channel_show((struct sockaddr *)&address, source->peer);
    if (channel_open(&source->channel, fd, true, gatherer->options->token) != 0) {
        free(source);
        return;
    }
    gatherer->sources[gatherer->count++] = source;
}

static void remove_gone(struct gatherer *gatherer) {
    size_t kept = 0;
    for (size_t i = 0; i < gatherer->count; i++) {
        if (gatherer->sources[i]->state == GONE) {
            drop(gatherer->sources[i]);
        } else {
            gatherer->sources[kept++] = gatherer->sources[i];
        }
    }
    gatherer->count = kept;
}

/* What poll() waits for; returns for how long, in ms. */
static int prepare_polls(struct gatherer *gatherer, uint64_t now) {
    int timeout = 500;
    gatherer->polls[0] =
        (struct pollfd){now < gatherer->rest_until_ns ? -1 : gatherer->listener, POLLIN, 0};
    for (size_t i = 0; i < gatherer->count; i++) {
        const struct source *source = gatherer->sources[i];
        bool writes = source->out_size != 0 || source->channel.wants_write;
        gatherer->polls[i + 1] = (struct pollfd){
            source->channel.fd,
            (short)((has_out_room(source) ? POLLIN : 0) | (writes ? POLLOUT : 0)), 0};
        if (source->is_hungry || source->arrival.hash.state != NULL) {
            timeout = 0;
        } else if (source->waiting_ns != 0 && timeout > 10) {
            timeout = 10;
        }
    }
    return timeout;
}

static void gather(struct gatherer *gatherer) {
    while (*gatherer->options->stop == 0) {
        size_t count = gatherer->count;
        int timeout = prepare_polls(gatherer, clock_now_ns());
        if (poll(gatherer->polls, count + 1, timeout) < 0) {
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            serve(gatherer, gatherer->sources[i], gatherer->polls[i + 1].revents);
        }
        remove_gone(gatherer);
        if (gatherer->polls[0].revents != 0) {
            take_connection(gatherer, clock_now_ns());
        }
    }
    for (size_t i = 0; i < gatherer->count; i++) {
        lose(gatherer, gatherer->sources[i], "stopped");
        drop(gatherer->sources[i]);
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

static int try_address(struct gatherer *gatherer, const struct addrinfo *address,
                       struct error *error) {
    int on = 1;
    int fd;
    if (gatherer->options->token == NULL && !channel_is_loopback(address->ai_addr)) {
        return error_set(error, "others are listened to with --token FILE only: without, use this "
                                "machine's own address, 127.0.0.1");
    }
    fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) {
        gatherer->listener = fd;
        return 0;
    }
    error_set(error, "cannot listen at %s:%u: %s", gatherer->options->host, gatherer->options->port,
              strerror(errno));
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

static int open_listener(struct gatherer *gatherer, struct error *error) {
    const struct gatherer_options *options = gatherer->options;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    const char *host = options->host[0] != '\0' ? options->host : "127.0.0.1";
    struct addrinfo *all;
    char port[8];
    int found;
    snprintf(port, sizeof port, "%u", options->port);
    found = getaddrinfo(host, port, &hints, &all);
    if (found != 0) {
        return error_set(error, "%s: %s", host, gai_strerror(found));
    }
    for (const struct addrinfo *one = all; one != NULL && gatherer->listener < 0;
         one = one->ai_next) {
        try_address(gatherer, one, error);
    }
    freeaddrinfo(all);
    return gatherer->listener >= 0 ? 0 : -1;
}

/* Each source takes two descriptors. */
static void raise_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int gatherer_run(const struct gatherer_options *options, struct error *error) {
    struct gatherer *gatherer = calloc(1, sizeof *gatherer);
    int result = -1;
    if (gatherer == NULL) {
        return error_set(error, "out of memory");
    }
    gatherer->options = options;
    gatherer->folder = gatherer->listener = -1;
    raise_limit();
    if (open_folder(gatherer, error) == 0 && open_listener(gatherer, error) == 0) {
        struct sockaddr_storage address = {0};
        socklen_t size = sizeof address;
        char shown[CHANNEL_SHOWN];
        getsockname(gatherer->listener, (struct sockaddr *)&address, &size);
        channel_show((struct sockaddr *)&address, shown);
        tell(gatherer, "listening at %s, %s; recordings go to %s", shown,
             options->token != NULL ? "TLS with the token" : "this machine only, no token",
             options->folder);
        gather(gatherer);
        result = 0;
    }
    if (gatherer->listener >= 0) {
        close(gatherer->listener);
    }
    if (gatherer->folder >= 0) {
        close(gatherer->folder);
    }
    free(gatherer);
    return result;
}
