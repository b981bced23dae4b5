/* SPDX-License-Identifier: MIT */
/* sender.c: one connection after the other, until all is sent. See sender.h. */
#include "stream/sender.h"

#include "analyze/base/scope.h"
#include "analyze/rows/number.h"
#include "collect/clock.h"
#include "stream/channel.h"
#include "stream/controlled.h"
#include "stream/discovery.h"
#include "stream/filehash.h"
#include "stream/punch.h"
#include "stream/reuse.h"
#include "stream/sourcename.h"
#include "stream/tail.h"
#include "stream/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_NS  (10 * SECOND) /* for a connection, a handshake, a welcome */
#define QUEUED_MOST (2 * SECOND)  /* between two attempts where a queue fills meanwhile */
#define LOOK_NS     (50 * MS)
#define CONTROL_NS  (10 * MS) /* between two looks whether the program has done it */

enum { ANEW_MOST = 3, IN_BYTES = 4 * WIRE_SMALL_MOST, READS_A_TURN = 64 };

enum outcome { GOING, ENDED, LOST, REFUSED, PAUSED };

struct sender {
    const struct sender_options *options;
    struct error *error; /* why LOST or REFUSED */
    struct wire_hello hello;
    struct tail tail;
    struct filehash hash;
    struct discovery_found gatherer; /* `auto`: which one, the last time */
    char wanted[CHANNEL_HOST];       /* that one alone; "": any */
    char peer[CHANNEL_HOST + CHANNEL_SHOWN];
    struct reuse reuse;
    struct punch punch;
    bool frees; /* what is acknowledged */
    int fd;
    bool tried_before; /* the outage was told */
    bool was_full;     /* the receiver had no room, and has acknowledged nothing since */
    unsigned anew;     /* so often all was sent again */
    uint64_t there;    /* so much the receiver has, as far as is known */
    uint64_t looked_ns;
    uint64_t late_ns; /* the file has ended: until when it may take; 0: not so */

    /* Of the present connection. */
    struct channel channel;
    bool is_welcome;
    bool end_said;
    uint64_t next, acked, window;
    uint64_t heard_ns, said_ns;
    bool is_hungry; /* more may be there to read at once */
    struct controlled controlled;
    size_t in_size, out_size, out_done;
    uint8_t in[IN_BYTES];
    uint8_t out[WIRE_FRAME_MOST];
};

static const char *sender_name_of(const struct sender *sender) {
    return sender->options->name != NULL ? sender->options->name : sender->options->path;
}

/* Or is late. */
static bool sender_is_stopped(const struct sender *sender) {
    return *sender->options->stop != 0 ||
           (sender->late_ns != 0 && clock_now_ns() >= sender->late_ns);
}

/* ---- The file ---- */

/* 0, or -1 with the error: it cannot be read. */
static int sender_look(struct sender *sender) {
    const struct sender_options *options = sender->options;
    uint64_t now = clock_now_ns();
    if (sender->tail.ended || now - sender->looked_ns < LOOK_NS) {
        return 0;
    }
    sender->looked_ns = now;
    sender->tail.leaves_index = options->reopener != 0 && getppid() == options->reopener;
    if (tail_look(&sender->tail, now) != 0) {
        return error_set(sender->error, "cannot read %s: %s", sender_name_of(sender),
                         strerror(errno));
    }
    if (sender->tail.ended && options->linger_ns != 0) {
        sender->late_ns = clock_now_ns() + options->linger_ns;
    }
    return 0;
}

/* ---- Connecting ---- */

/* Waits for a socket; false: in vain. */
static bool sender_wait_for(struct sender *sender, int fd, short events, uint64_t until_ns) {
    while (!sender_is_stopped(sender) && clock_now_ns() < until_ns) {
        struct pollfd one = {fd, events, 0};
        if (poll(&one, 1, 100) > 0) {
            return true;
        }
        if (sender_look(sender) != 0) {
            return false;
        }
    }
    errno = sender_is_stopped(sender) ? EINTR : ETIMEDOUT;
    return false;
}

/* A connected socket; -1: errno. */
static int sender_connect_to(struct sender *sender, const struct addrinfo *address) {
    SCOPE_FD int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || (connect(fd, address->ai_addr, address->ai_addrlen) != 0 &&
                   (errno != EINPROGRESS ||
                    !sender_wait_for(sender, fd, POLLOUT, clock_now_ns() + CONNECT_NS)))) {
        return -1;
    }
    errno = connecting_result(fd);
    return errno == 0 ? scope_keep(&fd) : -1;
}

/* Asks for one, the first time for any, then for that one: what it has is not at another. */
static enum outcome sender_find_gatherer(struct sender *sender) {
    const struct sender_options *options = sender->options;
    const char *host = sender->wanted[0] != '\0' ? sender->wanted : options->host;
    bool is_any = strchr(host, '@') == NULL;
    int found = discovery_find_gatherer(host, options->port, options->token, options->stop,
                                        &sender->gatherer, sender->error);
    if (found != 1) {
        if (found == 0) {
            error_set(sender->error,
                      is_any ? "no gatherer answers" : "that gatherer does not answer");
        }
        return LOST;
    }
    if (is_any) {
        discovery_auto_host(sender->gatherer.answer.id, sender->wanted);
        tell_line(sender->options->tell, "the gatherer at %s, of %s on %s, has answered",
                  sender->gatherer.shown, sender->gatherer.answer.what,
                  sender->gatherer.answer.host);
    }
    snprintf(sender->peer, sizeof sender->peer, "%s", sender->gatherer.shown);
    return GOING;
}

static void lookup_leave(struct lookup *const *lookup) {
    lookup_end(*lookup);
}

/* To the first of its addresses that can be reached. Names are looked up each time: the other
 * machine may have moved. */
static enum outcome sender_reach(struct sender *sender) {
    const struct sender_options *options = sender->options;
    bool is_auto = discovery_is_auto(options->host);
    enum outcome outcome = is_auto ? sender_find_gatherer(sender) : GOING;
    const struct addrinfo *one;
    int found;
    SCOPE_FD int fd = -1;
    if (outcome != GOING) {
        return outcome;
    }
    SCOPE(lookup_leave)
    struct lookup *lookup = lookup_begin(is_auto ? sender->gatherer.address : options->host,
                                         is_auto ? sender->gatherer.answer.port : options->port);
    if (lookup == NULL) {
        error_set(sender->error, "out of memory");
        return LOST;
    }
    while ((found = lookup_result(lookup, &one)) == EAI_INPROGRESS && !sender_is_stopped(sender) &&
           sender_look(sender) == 0) {
        lookup_wait(lookup, 100);
    }
    if (found != 0) {
        error_set(sender->error, "%s", gai_strerror(found));
        return lookup_is_final(found) ? REFUSED : LOST;
    }
    for (; one != NULL && fd < 0; one = one->ai_next) {
        if (options->token == NULL && !channel_is_loopback(one->ai_addr)) {
            error_set(sender->error, "sending to another machine needs --token FILE");
            return REFUSED;
        }
        fd = sender_connect_to(sender, one);
    }
    if (fd < 0) {
        error_set(sender->error, "%s", strerror(errno));
        return LOST;
    }
    if (channel_open(&sender->channel, scope_keep(&fd), false, options->token) != 0) {
        error_set(sender->error, "out of memory");
        return REFUSED;
    }
    return GOING;
}

static enum outcome sender_shake_hands(struct sender *sender) {
    uint64_t until = clock_now_ns() + CONNECT_NS;
    for (;;) {
        int done = channel_handshake(&sender->channel, sender->error);
        if (done == 1) {
            return GOING;
        }
        if (done < 0) {
            bool is_tls = strncmp(sender->error->message, "TLS:", 4) == 0;
            struct error why = *sender->error;
            if (is_tls) {
                error_set(sender->error, "does not take the token (%s)", why.message);
            }
            return is_tls ? REFUSED : LOST;
        }
        if (!sender_wait_for(sender, sender->channel.fd,
                             sender->channel.wants_write ? POLLOUT : POLLIN, until)) {
            error_set(sender->error, "no answer");
            return LOST;
        }
    }
}

/* ---- What the receiver says ---- */

/* Bytes below were freed here. */
static uint64_t sender_first_held(const struct sender *sender) {
    const struct memtrace_sent *sent = &sender->punch.sent.last;
    return sent->hashed < sent->end ? sent->hashed : sent->end;
}

static enum outcome sender_refuse_freed(struct sender *sender, const char *what) {
    struct number n;
    error_set(sender->error, "%s the first %s of %s, which are not here any more", what,
              number_bytes(&n, sender_first_held(sender)), sender_name_of(sender));
    return REFUSED;
}

static enum outcome sender_begin_anew(struct sender *sender, uint64_t from) {
    if (from < sender_first_held(sender)) {
        return sender_refuse_freed(sender, "has other bytes than were sent, and would need");
    }
    if (++sender->anew > ANEW_MOST) {
        error_set(sender->error, "received other bytes than were sent, %d times", (int)ANEW_MOST);
        return REFUSED;
    }
    tell_line(sender->options->tell, "%s has other bytes of %s than are here: sending it anew",
              sender->peer, sender_name_of(sender));
    sender->next = sender->acked = sender->there = from;
    reuse_stop(&sender->reuse, from);
    sender->end_said = false;
    return GOING;
}

static void sender_tell_end_of_outage(struct sender *sender, uint64_t there) {
    struct number n;
    if (sender->tried_before) {
        tell_line(sender->options->tell, "connected to %s again: goes on behind %s", sender->peer,
                  number_bytes(&n, there));
    }
    sender->tried_before = sender->was_full = false;
}

static enum outcome sender_take_welcome(struct sender *sender, const struct wire_frame *frame) {
    uint32_t window;
    if (wire_read_welcome(frame, &window) != 0) {
        return REFUSED;
    }
    sender->window = window;
    if (sender->is_welcome) {
        return sender->end_said && frame->offset <= sender->next
                   ? sender_begin_anew(sender, frame->offset)
                   : REFUSED;
    }
    sender->is_welcome = true;
    punch_name(&sender->punch, sender->peer);
    if (!sender->was_full) {
        sender_tell_end_of_outage(sender, frame->offset);
    }
    if (frame->offset > sender->tail.steady) {
        return sender_begin_anew(sender, 0);
    }
    if (frame->offset < sender_first_held(sender)) {
        return sender_refuse_freed(sender, "lacks");
    }
    sender->next = sender->acked = sender->there = frame->offset;
    reuse_begin(&sender->reuse, frame->offset);
    return GOING;
}

/* REFUSED with an empty error: it makes no sense. */
static enum outcome sender_take_frame(struct sender *sender, const struct wire_frame *frame) {
    struct wire_refusal refusal;
    uint64_t hash;
    switch (frame->type) {
    case WIRE_WELCOME:
        return sender_take_welcome(sender, frame);
    case WIRE_ACK:
        if (!sender->is_welcome || frame->offset > sender->next) {
            return REFUSED;
        }
        if (sender->was_full && frame->offset > sender->acked) {
            sender_tell_end_of_outage(sender, sender->acked);
        }
        sender->acked = sender->there = frame->offset;
        return GOING;
    case WIRE_ALIVE:
        return GOING;
    case WIRE_END:
        wire_read_end(frame, &hash);
        if (!sender->end_said || frame->offset != sender->tail.steady ||
            hash != sender->hash.hash) {
            return REFUSED;
        }
        sender->there = frame->offset;
        return ENDED;
    case WIRE_REFUSE:
        wire_read_refusal(frame, &refusal);
        error_set(sender->error, "refuses: %s", refusal.reason);
        sender->was_full = refusal.code == WIRE_NO_SPACE;
        return sender->was_full ? LOST : REFUSED;
    case WIRE_HAS:
        return reuse_take(&sender->reuse, frame) == 0 ? GOING : REFUSED;
    case WIRE_CONTROL:
        return sender->is_welcome && controlled_take(&sender->controlled, frame) == 0 ? GOING
                                                                                      : REFUSED;
    default:
        return REFUSED;
    }
}

static enum outcome sender_take_frames(struct sender *sender) {
    struct wire_frame frame;
    size_t at = 0;
    enum outcome outcome = GOING;
    long size = 0;
    while (outcome == GOING &&
           (size = wire_parse(sender->in + at, sender->in_size - at, &frame)) > 0) {
        sender->error->message[0] = '\0';
        outcome = sender_take_frame(sender, &frame);
        at += (size_t)size;
    }
    memmove(sender->in, sender->in + at, sender->in_size - at);
    sender->in_size -= at;
    if (size < 0 || sender->in_size == IN_BYTES ||
        (outcome == REFUSED && sender->error->message[0] == '\0')) {
        error_set(sender->error, "does not speak MemTrace's protocol");
        /* In the middle of a good connection it is that which is broken. */
        outcome = sender->is_welcome ? LOST : REFUSED;
    }
    return outcome;
}

/* Not for as long as somebody likes to talk. */
static enum outcome sender_hear(struct sender *sender) {
    sender->is_hungry = false;
    for (int reads = 0; reads < READS_A_TURN; reads++) {
        ssize_t got = channel_read(&sender->channel, sender->in + sender->in_size,
                                   IN_BYTES - sender->in_size, sender->error);
        if (got <= 0) {
            return got == 0 ? GOING : LOST;
        }
        sender->heard_ns = clock_now_ns();
        sender->in_size += (size_t)got;
        enum outcome outcome = sender_take_frames(sender);
        if (outcome != GOING) {
            return outcome;
        }
    }
    sender->is_hungry = true;
    return GOING;
}

/* ---- What is said ---- */

static uint64_t sender_sendable(const struct sender *sender) {
    uint64_t end = sender->acked + sender->window;
    if (!sender->is_welcome) {
        return 0;
    }
    end = end < sender->tail.steady ? end : sender->tail.steady;
    return end > sender->next ? reuse_sendable(&sender->reuse, sender->next, end - sender->next)
                              : 0;
}

/* All is sent, and only the end is to be said. */
static bool sender_is_over(const struct sender *sender) {
    return sender->is_welcome && sender->tail.ended && sender->next == sender->tail.steady &&
           !sender->end_said;
}

/* One slice of the hash, or the frame when it is done. */
static int sender_put_end(struct sender *sender) {
    struct filehash *hash = &sender->hash;
    int done;
    if (!hash->is_running) {
        *hash = sender->punch.hash;
        filehash_start(hash, sender->fd, sender->tail.steady);
    }
    done = hash->done == hash->size && hash->size != 0 ? 1 : filehash_step(hash);
    if (done < 0) {
        return error_set(sender->error, "cannot read %s", sender_name_of(sender));
    }
    if (done == 1) {
        sender->out_size = wire_put_end(sender->out, hash->size, hash->hash);
        sender->end_said = true;
    }
    return 0;
}

/* The next frame into the empty buffer, if there is one. 0 or -1. */
static int sender_choose(struct sender *sender, uint64_t now) {
    uint64_t bytes;
    sender->out_done = 0;
    sender->out_size = controlled_put(&sender->controlled, sender->out);
    if (sender->out_size == 0 && sender->is_welcome) {
        uint64_t known; /* bytes that the receiver has already */
        sender->out_size = reuse_put(&sender->reuse, sender->next, sender->out, &known);
        sender->next += known;
    }
    if (sender->out_size != 0) {
        return 0;
    }
    bytes = sender_sendable(sender);
    if (bytes != 0) {
        size_t size = bytes < WIRE_DATA_MOST ? (size_t)bytes : WIRE_DATA_MOST;
        if (block_read_at(sender->fd, sender->out + WIRE_HEADER, size, sender->next) !=
            (ssize_t)size) {
            return error_set(sender->error, "cannot read %s", sender_name_of(sender));
        }
        wire_put_data(sender->out, sender->next, (uint32_t)size);
        sender->out_size = WIRE_HEADER + size;
        sender->next += size;
        return 0;
    }
    if (sender_is_over(sender) && sender_put_end(sender) != 0) {
        return -1;
    }
    if (sender->out_size == 0 && sender->is_welcome && now >= sender->said_ns + WIRE_ALIVE_NS) {
        sender->out_size = wire_put_alive(sender->out);
    }
    return 0;
}

static enum outcome sender_say(struct sender *sender) {
    for (;;) {
        uint64_t now = clock_now_ns();
        if (sender->out_done == sender->out_size && sender_choose(sender, now) != 0) {
            return REFUSED;
        }
        if (sender->out_size == 0) {
            return GOING;
        }
        ssize_t put = channel_write(&sender->channel, sender->out + sender->out_done,
                                    sender->out_size - sender->out_done, sender->error);
        if (put <= 0) {
            return put == 0 ? GOING : LOST;
        }
        sender->said_ns = now;
        sender->out_done += (size_t)put;
    }
}

/* ---- One connection ---- */

static enum outcome sender_talk(struct sender *sender) {
    enum outcome outcome = GOING;
    controlled_forget(&sender->controlled);
    sender->is_welcome = sender->end_said = false;
    sender->next = sender->acked = 0;
    sender->in_size = sender->out_done = 0;
    sender->hello.held_from = sender_first_held(sender);
    sender->out_size = wire_put_hello(sender->out, &sender->hello);
    sender->heard_ns = sender->said_ns = clock_now_ns();
    while (outcome == GOING && !sender_is_stopped(sender)) {
        uint64_t now = clock_now_ns();
        struct error error = {""};
        outcome = sender_look(sender) == 0 ? sender_hear(sender) : REFUSED;
        controlled_look(&sender->controlled, now);
        if (sender->frees && punch_free(&sender->punch, sender->acked, now, &error) != 0) {
            sender->frees = false;
            tell_line(sender->options->tell, "%s: %s; it stays whole", sender_name_of(sender),
                      error.message);
        }
        outcome = outcome == GOING ? sender_say(sender) : outcome;
        uint64_t silence = sender->is_welcome ? WIRE_SILENCE_NS : CONNECT_NS;
        bool has_all_but_index = sender->options->accepted == NULL && sender->is_welcome &&
                                 sender->tail.indexed && !sender->tail.ended &&
                                 sender->acked == sender->tail.steady;
        if (outcome == GOING && now > sender->heard_ns + silence) {
            error_set(sender->error, "no answer for %d s", (int)(silence / SECOND));
            outcome = LOST;
        } else if (outcome == GOING && has_all_but_index) {
            outcome = PAUSED;
        } else if (outcome == GOING) {
            bool is_pending = sender->out_done < sender->out_size;
            struct pollfd one = {sender->channel.fd, (short)(POLLIN | (is_pending ? POLLOUT : 0)),
                                 0};
            int timeout = sender->controlled.is_asked ? (int)(CONTROL_NS / MS)
                          : sender->tail.ended        ? 500
                                                      : (int)(LOOK_NS / MS);
            poll(&one, 1,
                 sender->is_hungry || (sender_is_over(sender) && !is_pending) ? 0 : timeout);
        }
    }
    controlled_forget(&sender->controlled);
    if (outcome == LOST) {
        /* Why it was refused may have come before the connection broke. */
        struct error why = *sender->error;
        enum outcome last = sender_hear(sender);
        if (last == REFUSED || last == ENDED) {
            return last;
        }
        *sender->error = why;
    }
    return outcome;
}

/* ---- All of them ---- */

/* 0, or -1 with the error. */
static int pause_for(struct sender *sender, uint64_t duration_ns) {
    uint64_t until = clock_now_ns() + duration_ns;
    int result = 0;
    while (result == 0 && !sender_is_stopped(sender) && clock_now_ns() < until) {
        poll(NULL, 0, 50);
        result = sender_look(sender);
    }
    return result;
}

static void sender_tell_outage(struct sender *sender) {
    struct number n;
    if (!sender->tried_before && sender->there != 0) {
        tell_line(sender->options->tell, "%s: %s; %s are there, trying again", sender->peer,
                  sender->error->message, number_bytes(&n, sender->there));
    } else if (!sender->tried_before) {
        tell_line(sender->options->tell, "%s: %s; trying again", sender->peer,
                  sender->error->message);
    }
    sender->tried_before = true;
}

static enum sender_result sender_go(struct sender *sender) {
    uint64_t backoff = BACKOFF_LEAST;
    uint64_t contact = clock_now_ns();
    while (!sender_is_stopped(sender)) {
        enum outcome outcome = sender_reach(sender);
        outcome = outcome == GOING ? sender_shake_hands(sender) : outcome;
        outcome = outcome == GOING ? sender_talk(sender) : outcome;
        channel_close(&sender->channel);
        uint64_t now = clock_now_ns();
        if (outcome == ENDED || outcome == PAUSED) {
            return outcome == ENDED ? SENDER_DONE : SENDER_ALL_BUT_INDEX;
        }
        if (sender_is_stopped(sender)) {
            break;
        }
        if (sender->is_welcome) {
            contact = now;
            backoff = sender->was_full ? backoff : BACKOFF_LEAST;
        }
        sender->is_welcome = false;
        if (outcome == REFUSED ||
            (sender->options->give_up_ns != 0 && now - contact >= sender->options->give_up_ns)) {
            struct error why = *sender->error;
            error_set(sender->error, "%s: %s", sender->peer, why.message);
            return SENDER_FAILED;
        }
        sender_tell_outage(sender);
        if (sender->frees && backoff > QUEUED_MOST) {
            backoff = QUEUED_MOST;
        }
        if (pause_for(sender, backoff_next(&backoff)) != 0) {
            return SENDER_FAILED;
        }
    }
    return *sender->options->stop != 0 ? SENDER_STOPPED : SENDER_LATE;
}

/* Waits until the file says what it is, and finds out how much of it is there. */
static int sender_prepare(struct sender *sender) {
    uint64_t before;
    int known = 0;
    while (known == 0 && !sender_is_stopped(sender)) {
        known = source_describe(sender->fd, sender_name_of(sender), &sender->hello, sender->error);
        if (known == 0 && sender->tail.ended) {
            return error_set(sender->error, "%s is empty", sender_name_of(sender));
        }
        if (known == 0 && pause_for(sender, LOOK_NS) != 0) {
            return -1;
        }
    }
    do {
        before = sender->tail.steady;
        sender->looked_ns = 0;
        if (known == 1 && sender_look(sender) != 0) {
            return -1;
        }
    } while (sender->tail.steady != before && !sender_is_stopped(sender));
    sender->hello.flags = sender->options->allows_control ? WIRE_ALLOWS_CONTROL : 0;
    sender->controlled = (struct controlled){.fd = sender->fd,
                                             .started_ns = sender->hello.started_ns,
                                             .is_allowed = sender->options->allows_control};
    return known < 0 ? -1 : 0;
}

static int note_block(void *context, uint64_t offset, const struct memtrace_block_header *block) {
    struct sender *sender = context;
    reuse_note(&sender->reuse, offset, block);
    return sender->frees ? punch_note(&sender->punch, offset, block) : 0;
}

/* What an earlier sender freed is not looked at again. 0, or -1 with errno. */
static int sender_open_file(struct sender *sender) {
    sender->fd = open(sender->options->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    tail_start(&sender->tail, sender->fd);
    if (sender->fd < 0 || punch_open(&sender->punch, sender->fd) != 0) {
        return -1;
    }
    sender->frees = sender->options->frees_sent;
    sender->reuse.fd = sender->fd;
    sender->tail.passed = note_block;
    sender->tail.context = sender;
    sender->tail.steady = sender->punch.sent.last.end;
    return 0;
}

enum sender_result sender_run(const struct sender_options *options,
                              struct sender_progress *progress, struct error *error) {
    SCOPE_MEMORY struct sender *sender = calloc(1, sizeof *sender);
    enum sender_result result = SENDER_FAILED;
    *progress = (struct sender_progress){0};
    if (sender == NULL) {
        error_set(error, "out of memory");
        return SENDER_FAILED;
    }
    sender->options = options;
    sender->error = error;
    sender->channel = CHANNEL_NONE;
    snprintf(sender->peer, sizeof sender->peer, strchr(options->host, ':') ? "[%s]:%u" : "%s:%u",
             options->host, options->port);
    if (sender_open_file(sender) != 0) {
        error_set(error, "cannot read %s: %s", sender_name_of(sender), strerror(errno));
    } else if (sender_prepare(sender) == 0) {
        if (options->accepted == NULL) {
            result = sender_go(sender);
        } else { /* the receiver has come by itself, and does so again after a loss */
            sender->channel = *options->accepted;
            result = sender_talk(sender) == ENDED ? SENDER_DONE
                     : sender_is_stopped(sender)  ? SENDER_STOPPED
                                                  : SENDER_FAILED;
            channel_close(&sender->channel);
        }
        *progress =
            (struct sender_progress){sender->there, sender->tail.size, sender->tail.indexed};
    }
    tail_end(&sender->tail);
    reuse_end(&sender->reuse);
    punch_close(&sender->punch);
    scope_close(&sender->fd);
    return result;
}
