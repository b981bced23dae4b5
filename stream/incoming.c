/* SPDX-License-Identifier: MIT */
/* incoming.c: one connection over which a recording comes, or the list of those that can be pulled.
 * See gatherer.h. */
#include "stream/gatherer.h"

#include "analyze/rows/number.h"
#include "collect/clock.h"
#include "stream/channel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELLO_NS   (10 * SECOND)  /* from the connection to what it says of itself */
#define OFFERED_NS (300 * SECOND) /* the same, of a recording that is read through before */
/* Received bytes wait so long for others to be synced with them; the longer, the more sources there
 * are, so that all of them ask for at most 500 syncs a second. */
#define SYNC_NS     (50 * MS)
#define SYNC_NS_ONE (2 * MS)
#define PARTING_NS  (2 * SECOND) /* for a refusal to be read */

enum {
    WINDOW = 4 << 20,
    SYNC_BYTES = WINDOW / 4,
    TURN_BYTES = 1 << 20, /* taken of one source before others have their turn */
};

/* ---- What a source is told ---- */

uint8_t *incoming_out(struct source *source) {
    return source->out + source->out_size;
}

bool incoming_has_room(const struct source *source) {
    return source->out_size + WIRE_SMALL_MOST <= OUT_BYTES;
}

/* What is on its way to the disk is not of interest any more. */
static void forget_sync(struct source *source) {
    if (source->sync != NULL) {
        source->sync->owner = NULL;
        source->sync = NULL;
    }
}

bool incoming_is_stranger(const struct source *source) {
    return source->state == FRESH && source->host == NULL;
}

static void tell_refused(struct gatherer *gatherer, const struct source *source,
                         const char *reason) {
    if (!incoming_is_stranger(source) || gatherer_may_tell_stranger(gatherer)) {
        tell_line(gatherer->options->tell, "%s: refused: %s",
                  source->state == GREETED ? source->arrival.name : source->peer, reason);
    }
}

static void tell_come(const struct gatherer *gatherer, struct source *source) {
    const char *behind = source->arrival.synced != 0 ? ", goes on behind " : "";
    struct number n = {""};
    source->owes_line = false;
    tell_line(gatherer->options->tell, "%s: from %s%s%s%s", source->arrival.name, source->peer,
              source->allows_control ? ", may be controlled" : "", behind,
              behind[0] != '\0' ? number_bytes(&n, source->arrival.synced) : "");
}

/* It goes away with a reason, which was told. */
static void turn_away(struct source *source, enum wire_code code, const char *reason) {
    if (incoming_has_room(source)) {
        source->out_size += wire_put_refusal(incoming_out(source), code, reason);
    }
    forget_sync(source);
    arrival_close(&source->arrival);
    source->is_refused = code != WIRE_NO_SPACE && code != WIRE_TAKEN;
    source->state = PARTING;
    source->born_ns = clock_now_ns();
}

static void incoming_refuse(struct gatherer *gatherer, struct source *source, enum wire_code code,
                            const char *reason) {
    tell_refused(gatherer, source, reason);
    turn_away(source, code, reason);
}

/* It can come again. Where nothing can be written all of them do, again and again: one line for all
 * until something could be. */
static void incoming_put_off(struct gatherer *gatherer, struct source *source, int reason,
                             const char *text) {
    char line[WIRE_REASON_MOST + 64];
    if (gatherer->full_reason != reason) {
        snprintf(line, sizeof line, "%s; this is tried again, without a line each time", text);
        tell_refused(gatherer, source, line);
    }
    gatherer->full_reason = reason;
    turn_away(source, WIRE_NO_SPACE, text);
}

/* Each connection ends here. */
static void incoming_leave(struct gatherer *gatherer, struct source *source, const char *why) {
    bool is_new = source->state != GONE;
    source->state = GONE;
    if (is_new && source->host != NULL) {
        puller_lost(gatherer, source, why);
    }
}

void incoming_lose(struct gatherer *gatherer, struct source *source, const char *why) {
    struct number n;
    if (source->state == GREETED && !source->is_done && !source->owes_line) {
        tell_line(gatherer->options->tell, "%s: %s; %s are here", source->arrival.name, why,
                  number_bytes(&n, source->arrival.next));
    } else if (incoming_is_stranger(source) && gatherer_may_tell_stranger(gatherer)) {
        tell_line(gatherer->options->tell, "%s: %s", source->peer, why);
    }
    incoming_leave(gatherer, source, why);
}

/* The disk, mostly. What was acknowledged stays. */
static void incoming_fail(struct gatherer *gatherer, struct source *source, int reason) {
    char text[WIRE_REASON_MOST];
    if (reason == EBADMSG) {
        incoming_refuse(gatherer, source, WIRE_BAD,
                        "these are not the bytes of the recording that it named");
        return;
    }
    snprintf(text, sizeof text, "cannot write there: %s", strerror(reason));
    incoming_put_off(gatherer, source, reason, text);
}

/* ---- What a source says ---- */

static bool incoming_is_other(void *context, const char *name, const uint8_t *id) {
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
static void incoming_take_over(struct gatherer *gatherer, const struct source *newer) {
    for (size_t i = 0; i < gatherer->count; i++) {
        struct source *source = gatherer->sources[i];
        if (source != newer && source->state == GREETED &&
            strcmp(source->arrival.name, newer->arrival.name) == 0) {
            incoming_refuse(gatherer, source, WIRE_TAKEN, "another sender goes on with it");
        }
    }
}

static void incoming_take_hello(struct gatherer *gatherer, struct source *source,
                                const struct wire_frame *frame) {
    struct wire_hello hello;
    struct error error = {""};
    char text[WIRE_REASON_MOST];
    if (wire_read_hello(frame, &hello) != 0) {
        incoming_refuse(gatherer, source, WIRE_BAD, "its greeting makes no sense");
    } else if (hello.version != WIRE_VERSION) {
        snprintf(text, sizeof text, "it speaks version %u of the protocol, this is version %d",
                 hello.version, WIRE_VERSION);
        incoming_refuse(gatherer, source, WIRE_OTHER_VERSION, text);
    } else if (arrival_open(&source->arrival, gatherer->folder, &hello, incoming_is_other, gatherer,
                            &error) != 0) {
        incoming_put_off(gatherer, source, errno, error.message);
    } else {
        incoming_take_over(gatherer, source);
        source->state = GREETED;
        source->held_from = hello.held_from;
        source->allows_control = (hello.flags & WIRE_ALLOWS_CONTROL) != 0;
        if (source->arrival.next != 0) {
            source->owes_welcome = true;
        } else {
            source->out_size += wire_put_welcome(incoming_out(source), 0, WINDOW);
        }
        source->owes_line = true;
        if (gatherer->full_reason == 0) {
            tell_come(gatherer, source);
        }
    }
}

/* As far as was counted last. */
static bool is_over_total(const struct gatherer *gatherer, uint64_t more) {
    uint64_t most = gatherer->options->total_bytes;
    return most != 0 && more != 0 && gatherer->used_bytes + more > most;
}

/* Whether there is no place for a file of this size. */
static bool is_over_quota(struct gatherer *gatherer, const struct source *source, uint64_t size,
                          char text[WIRE_REASON_MOST]) {
    const struct gatherer_options *options = gatherer->options;
    uint64_t more = size > source->arrival.size ? size - source->arrival.size : 0;
    struct number n;
    if (options->quota_bytes != 0 && more != 0 && size > options->quota_bytes) {
        snprintf(text, WIRE_REASON_MOST, "it is larger than the quota of one recording, %s",
                 number_bytes(&n, options->quota_bytes));
        return true;
    }
    if (is_over_total(gatherer, more)) {
        gatherer_count(gatherer);
    }
    if (is_over_total(gatherer, more)) {
        snprintf(text, WIRE_REASON_MOST, "the quota of all recordings, %s, is used up",
                 number_bytes(&n, options->total_bytes));
        return true;
    }
    return false;
}

/* Whether so many bytes may come at this offset; if not, it was told why. */
static bool incoming_is_next(struct gatherer *gatherer, struct source *source, uint64_t offset,
                             uint64_t size) {
    const struct arrival *arrival = &source->arrival;
    char text[WIRE_REASON_MOST];
    if (offset != arrival->next || source->owes_welcome || source->owes_end ||
        arrival->hash.is_running) {
        incoming_refuse(gatherer, source, WIRE_BAD, "its bytes do not follow each other");
        return false;
    }
    if (is_over_quota(gatherer, source, offset + size, text)) {
        incoming_refuse(gatherer, source, WIRE_QUOTA, text);
        return false;
    }
    if (source->waiting_ns == 0) {
        source->waiting_ns = clock_now_ns();
    }
    return true;
}

static void incoming_take_data(struct gatherer *gatherer, struct source *source,
                               const struct wire_frame *frame) {
    struct arrival *arrival = &source->arrival;
    uint64_t before = arrival->size;
    size_t kept = 0;
    int reason = 0;
    if (frame->offset == 0) {
        forget_sync(source);
        arrival->next = arrival->synced = 0; /* the file here has more than there is: all anew */
    }
    if (!incoming_is_next(gatherer, source, frame->offset, frame->length)) {
        return;
    }
    if (arrival_write(arrival, frame->payload, frame->length) != 0) {
        reason = errno;
    }
    gatherer->used_bytes += arrival->size - before;
    if (reason != 0) {
        incoming_fail(gatherer, source, reason);
        return;
    }
    for (size_t i = 0; i < source->lacking_count; i++) {
        const struct lacking *lacking = &source->lacking[i];
        if (lacking->offset + lacking->piece.size <= arrival->next) { /* need not come again */
            knownpieces_add(gatherer->known, &lacking->piece, arrival->name, lacking->offset);
        } else {
            source->lacking[kept++] = *lacking;
        }
    }
    source->lacking_count = kept;
}

/* Whether what comes later in this recording is in another one. If not, it is in this one then. */
static void incoming_take_question(struct gatherer *gatherer, struct source *source,
                                   const struct wire_frame *frame) {
    struct wire_piece piece;
    bool has;
    if (wire_read_piece(frame, &piece) != 0 || frame->offset < source->arrival.next ||
        source->lacking_count == LACKING_MOST) {
        incoming_refuse(gatherer, source, WIRE_BAD, "what it asks for makes no sense");
        return;
    }
    has = knownpieces_has(gatherer->known, gatherer->folder, &piece);
    source->taken += has ? piece.size : 0;
    if (!has) {
        source->lacking[source->lacking_count++] = (struct lacking){frame->offset, piece};
    }
    source->out_size += wire_put_has(incoming_out(source), frame->offset, has);
}

/* They are put here from where they are. */
static void incoming_take_known(struct gatherer *gatherer, struct source *source,
                                const struct wire_frame *frame) {
    struct arrival *arrival = &source->arrival;
    uint64_t before = arrival->size;
    struct wire_piece piece;
    int written;
    int reason;
    if (wire_read_piece(frame, &piece) != 0 || frame->offset == 0) {
        incoming_refuse(gatherer, source, WIRE_BAD, "what it says is known makes no sense");
        return;
    }
    if (!incoming_is_next(gatherer, source, frame->offset, piece.size)) {
        return;
    }
    written = knownpieces_write(gatherer->known, gatherer->folder, &piece, arrival);
    reason = errno;
    gatherer->used_bytes += arrival->size - before;
    source->taken += piece.size;
    if (written < 0) {
        incoming_fail(gatherer, source, reason);
    } else if (written == 0) {
        turn_away(source, WIRE_NO_SPACE, "symbols that were known are not there any more");
    }
}

static void incoming_take_end(struct gatherer *gatherer, struct source *source,
                              const struct wire_frame *frame) {
    struct arrival *arrival = &source->arrival;
    uint64_t before = arrival->size;
    uint64_t hash;
    wire_read_end(frame, &hash);
    if (frame->offset != arrival->next || source->owes_end || arrival->hash.is_running) {
        incoming_refuse(gatherer, source, WIRE_BAD, "its end is not where its bytes end");
    } else if (arrival_end(arrival, frame->offset, hash) != 0) {
        incoming_fail(gatherer, source, errno);
    } else {
        source->owes_end = true;
        gatherer->used_bytes -= before - arrival->size;
    }
}

static void incoming_take_frame(struct gatherer *gatherer, struct source *source,
                                const struct wire_frame *frame) {
    bool is_greeted = source->state == GREETED;
    bool is_listing = source->state == LISTING;
    if (frame->type == WIRE_HELLO && source->state == FRESH) {
        incoming_take_hello(gatherer, source, frame);
    } else if (frame->type == WIRE_DATA && is_greeted) {
        incoming_take_data(gatherer, source, frame);
    } else if (frame->type == WIRE_ASK && is_greeted) {
        incoming_take_question(gatherer, source, frame);
    } else if (frame->type == WIRE_KNOWN && is_greeted) {
        incoming_take_known(gatherer, source, frame);
    } else if (frame->type == WIRE_END && is_greeted) {
        incoming_take_end(gatherer, source, frame);
    } else if (frame->type == WIRE_ANSWER && is_greeted &&
               controlling_take_answer(gatherer, source, frame) == 0) {
        return;
    } else if (frame->type == WIRE_OFFER && is_listing) {
        puller_take_offer(gatherer, source, frame);
    } else if (frame->type == WIRE_END && is_listing) {
        puller_take_end(gatherer, source);
    } else if (frame->type == WIRE_PULL && source->host == NULL && source->state == FRESH) {
        incoming_refuse(gatherer, source, WIRE_BAD,
                        "recordings are received here, not taken from here");
    } else if (frame->type == WIRE_REFUSE && source->host != NULL) {
        /* Whom we connected to does not let us have it. */
        struct wire_refusal refusal;
        char why[WIRE_REASON_MOST + 16];
        wire_read_refusal(frame, &refusal);
        snprintf(why, sizeof why, "refuses: %s", refusal.reason);
        source->is_refused = true;
        incoming_lose(gatherer, source, why);
    } else if (frame->type != WIRE_ALIVE || !(is_greeted || is_listing)) {
        incoming_refuse(gatherer, source, WIRE_BAD, "it does not speak MemTrace's protocol");
    }
}

static void incoming_take_frames(struct gatherer *gatherer, struct source *source) {
    struct wire_frame frame;
    size_t at = 0;
    long size = 0;
    while (source->state < PARTING && incoming_has_room(source) && source->taken < TURN_BYTES &&
           (size = wire_parse(source->in + at, source->in_size - at, &frame)) > 0) {
        incoming_take_frame(gatherer, source, &frame);
        at += (size_t)size;
    }
    if (size < 0 && source->state < PARTING) {
        incoming_refuse(gatherer, source, WIRE_BAD, "it does not speak MemTrace's protocol");
    }
    if (source->state >= PARTING) {
        at = source->in_size;
    }
    memmove(source->in, source->in + at, source->in_size - at);
    source->in_size -= at;
}

/* ---- One source's turn ---- */

static void incoming_hear(struct gatherer *gatherer, struct source *source) {
    struct error error = {""};
    source->is_hungry = false;
    source->taken = 0;
    incoming_take_frames(gatherer, source); /* for which there was no room, or no time */
    while (source->state != GONE && source->taken < TURN_BYTES && incoming_has_room(source)) {
        size_t room = sizeof source->in - source->in_size;
        ssize_t got = channel_read(&source->channel, source->in + source->in_size, room, &error);
        if (got < 0) {
            incoming_lose(gatherer, source, error.message);
        }
        if (got <= 0) {
            return;
        }
        source->heard_ns = clock_now_ns();
        source->in_size += (size_t)got;
        source->taken += (size_t)got;
        incoming_take_frames(gatherer, source);
    }
    source->is_hungry = source->state != GONE;
}

static void incoming_say(struct gatherer *gatherer, struct source *source) {
    struct error error = {""};
    while (source->out_size != 0 && source->state != GONE) {
        ssize_t put = channel_write(&source->channel, source->out, source->out_size, &error);
        if (put < 0) {
            incoming_lose(gatherer, source, error.message);
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

/* If it is time to put on the disk what has come. The answer follows in tell_synced(). */
static void begin_sync(struct gatherer *gatherer, struct source *source, uint64_t now) {
    struct arrival *arrival = &source->arrival;
    uint64_t patience = SYNC_NS_ONE * gatherer->count;
    bool is_due = source->owes_welcome || source->owes_end ||
                  (source->waiting_ns != 0 &&
                   (now >= source->waiting_ns + (patience > SYNC_NS ? patience : SYNC_NS) ||
                    arrival->next - arrival->synced >= SYNC_BYTES));
    /* Or a received file would not be found after a power failure. */
    const int folders[SYNCING_FOLDERS] = {arrival->folder,
                                          arrival->folder >= 0 ? gatherer->folder : -1};
    if (!is_due || source->state != GREETED || source->sync != NULL || !incoming_has_room(source) ||
        syncing_has(gatherer->syncing, arrival->fd)) {
        return;
    }
    /* Of what was here before it came, it is known only of what the sender has not got any more. */
    uint64_t safe = !source->owes_welcome                 ? arrival->synced
                    : source->held_from < arrival->synced ? source->held_from
                                                          : arrival->synced;
    source->sync =
        syncing_begin(gatherer->syncing, source, arrival->next, safe, arrival->fd, folders);
    if (source->sync == NULL) {
        incoming_fail(gatherer, source, errno);
    }
    source->waiting_ns = 0;
}

/* Whoever receives this file goes on with what is left of it, and what fails is its failure. */
static void incoming_cut(struct gatherer *gatherer, const struct sync_job *job) {
    gatherer->used_bytes -= syncing_cut(job);
    for (size_t i = 0; i < gatherer->count; i++) {
        struct source *source = gatherer->sources[i];
        if (source->state == GREETED && syncing_is_of(job, source->arrival.fd)) {
            arrival_cut(&source->arrival, job->safe);
            incoming_fail(gatherer, source, job->reason);
        }
    }
}

/* Says what it was waited for with. */
static void tell_synced(struct gatherer *gatherer, struct source *source,
                        const struct sync_job *job) {
    struct arrival *arrival = &source->arrival;
    source->sync = NULL;
    if (gatherer_is_removed(arrival->fd)) {
        incoming_refuse(gatherer, source, WIRE_NO_SPACE, "it was removed here while it came");
        return;
    }
    if (job->target > arrival->synced) {
        gatherer->full_reason = 0;
    }
    if (source->owes_line && gatherer->full_reason == 0) {
        tell_come(gatherer, source);
    }
    arrival_synced(arrival, job->target);
    if (source->owes_welcome) {
        source->owes_welcome = false;
        source->out_size += wire_put_welcome(incoming_out(source), arrival->next, WINDOW);
        return;
    }
    source->out_size += wire_put_ack(incoming_out(source), arrival->synced);
    if (source->owes_end && arrival->synced == arrival->next) {
        source->owes_end = false;
        arrival_compare(arrival);
    }
}

void incoming_synced(struct gatherer *gatherer) {
    for (struct sync_job *job; (job = syncing_take(gatherer->syncing)) != NULL;) {
        struct source *source = job->owner;
        if (job->reason != 0) {
            if (source != NULL) {
                source->sync = NULL;
            }
            incoming_cut(gatherer, job);
        } else if (source != NULL) {
            tell_synced(gatherer, source, job);
        }
        syncing_free_job(job);
    }
}

static void incoming_compare(struct gatherer *gatherer, struct source *source) {
    struct arrival *arrival = &source->arrival;
    struct number n;
    int same;
    if (source->state != GREETED || !arrival->hash.is_running || !incoming_has_room(source)) {
        return;
    }
    same = arrival_step(arrival);
    if (same > 0) {
        source->is_done = true;
        source->out_size += wire_put_end(incoming_out(source), arrival->size, arrival->wanted_hash);
        tell_line(gatherer->options->tell, "%s: complete, %s", arrival->name,
                  number_bytes(&n, arrival->size));
    } else if (same < 0) {
        source->out_size += wire_put_welcome(incoming_out(source), 0, WINDOW);
        tell_line(gatherer->options->tell, "%s: differs from what its sender has: comes anew",
                  arrival->name);
    }
}

/* Those that connect and say nothing, or no longer do. */
static void check_times(struct gatherer *gatherer, struct source *source, uint64_t now) {
    uint64_t hello = source->host != NULL && source->looked ? OFFERED_NS : HELLO_NS;
    if (source->state <= FRESH && now > source->born_ns + hello) {
        incoming_lose(gatherer, source,
                      source->host != NULL ? "no answer" : "connected and said nothing for 10 s");
    } else if ((source->state == GREETED || source->state == LISTING) &&
               now > source->heard_ns + WIRE_SILENCE_NS) {
        incoming_lose(gatherer, source, "silent for 20 s");
    } else if (source->state == PARTING && now > source->born_ns + PARTING_NS) {
        incoming_leave(gatherer, source, "");
    }
    if ((source->state == GREETED || source->state == LISTING) &&
        now >= source->said_ns + WIRE_ALIVE_NS && source->out_size == 0) {
        source->out_size += wire_put_alive(incoming_out(source));
    }
}

/* With whom has come. */
static void incoming_shake_hands(struct gatherer *gatherer, struct source *source) {
    struct error error = {""};
    const char *why = "";
    if (!source->looked) {
        switch (listening_look(&source->channel, gatherer->options->token != NULL, &why)) {
        case LISTENING_LATER:
            return;
        case LISTENING_LEFT:
            incoming_lose(gatherer, source, "left without a word");
            return;
        case LISTENING_FINE:
            source->looked = true;
            break;
        case LISTENING_REFUSED:
            tell_refused(gatherer, source, why);
            source->looked = true;
            /* What was sent is to be read before the socket is gone. */
            source->is_half = shutdown(source->channel.fd, SHUT_WR) == 0;
            source->state = PARTING;
            source->born_ns = clock_now_ns();
            return;
        }
    }
    if (channel_handshake(&source->channel, &error) < 0) {
        bool is_tls = strncmp(error.message, "TLS:", 4) == 0;
        if (gatherer_may_tell_stranger(gatherer)) {
            tell_line(gatherer->options->tell, "%s: refused: %s%s%s", source->peer,
                      is_tls ? "not our token (" : "", error.message, is_tls ? ")" : "");
        }
        incoming_leave(gatherer, source, "");
    }
}

/* With whom we have connected to; then says what is wanted. */
static void shake_first(struct gatherer *gatherer, struct source *source) {
    struct error error = {""};
    char why[sizeof error.message + 32];
    int done = channel_handshake(&source->channel, &error);
    if (done == 1) {
        source->looked = true;
        puller_ask(source);
    } else if (done < 0) {
        source->is_refused = strncmp(error.message, "TLS:", 4) == 0;
        snprintf(why, sizeof why, source->is_refused ? "does not take the token (%s)" : "%s",
                 error.message);
        incoming_lose(gatherer, source, why);
    }
}

void incoming_serve(struct gatherer *gatherer, struct source *source, short events) {
    uint64_t now = clock_now_ns();
    if (source->state == CALLING && events != 0) {
        puller_connected(gatherer, source);
    }
    if (source->state == FRESH && source->host != NULL && !source->looked) {
        shake_first(gatherer, source);
    } else if (source->state == FRESH && (!source->looked || !source->channel.is_ready)) {
        incoming_shake_hands(gatherer, source);
    }
    if (source->looked && source->channel.is_ready && source->state != GONE) {
        if (events != 0 || source->is_hungry) {
            incoming_hear(gatherer, source);
        }
        incoming_compare(gatherer, source);
        begin_sync(gatherer, source, now);
        incoming_say(gatherer, source);
    }
    check_times(gatherer, source, now);
}

/* ---- Coming and going ---- */

struct source *incoming_add(struct gatherer *gatherer, int fd, bool is_server, const char *peer) {
    struct source *source = gatherer->count < SOURCES_MOST ? calloc(1, sizeof *source) : NULL;
    if (source == NULL) {
        close(fd);
        return NULL;
    }
    source->arrival = ARRIVAL_NONE;
    source->state = FRESH;
    source->born_ns = source->heard_ns = source->said_ns = clock_now_ns();
    snprintf(source->peer, sizeof source->peer, "%s", peer);
    if (channel_open(&source->channel, fd, is_server, gatherer->options->token) != 0) {
        free(source);
        return NULL;
    }
    gatherer->sources[gatherer->count++] = source;
    return source;
}

short incoming_waits(const struct source *source, int *timeout_ms) {
    bool writes = source->out_size != 0 || source->channel.wants_write || source->state == CALLING;
    if ((source->is_hungry && incoming_has_room(source)) || source->arrival.hash.is_running) {
        *timeout_ms = 0;
    } else if (source->waiting_ns != 0 && source->sync == NULL && *timeout_ms > 10) {
        *timeout_ms = 10;
    }
    return (short)((incoming_has_room(source) ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

void incoming_free(struct source *source) {
    forget_sync(source);
    channel_close(&source->channel);
    arrival_close(&source->arrival);
    free(source);
}
