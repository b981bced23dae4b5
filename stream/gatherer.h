/* SPDX-License-Identifier: MIT */
/*
 * gatherer.h: receives recordings of many senders into a folder: one thread, one poll; threads that
 * wait for the disk (syncing.h). cli/gather calls gatherer_run().
 *
 * The rest is what its files share: connections over which recordings come. Some have come by
 * themselves (gatherer.c), others were made to those who offer recordings (puller.c); what is said
 * on them is the same (incoming.c). All of it belongs to the gatherer's one thread, but for what
 * syncing.c does.
 */
#ifndef STREAM_GATHERER_H
#define STREAM_GATHERER_H

#include "stream/arrival.h"
#include "stream/channel.h"
#include "stream/knownpieces.h"
#include "stream/syncing.h"
#include "stream/wire.h"

#include <poll.h>
#include <signal.h>

struct gatherer_options {
    const char *folder;        /* is made where it is not there */
    const char *host;          /* where to listen; "": this machine's own address; NULL: nowhere */
    uint16_t port;             /* 0: one that is free */
    uint16_t discovery_port;   /* UDP: others may find where it listens; 0: they may not */
    const char *const *hosts;  /* to connect to, HOST[:PORT] up to NULL; may be NULL */
    uint64_t give_up_ns;       /* one that cannot be reached for so long; 0: never */
    const struct token *token; /* NULL: loopback only, in clear */
    uint64_t quota_bytes;      /* of one recording; 0: no limit */
    uint64_t total_bytes;      /* of all in the folder; 0: no limit */
    const volatile sig_atomic_t *stop; /* not 0: end */
    void (*tell)(const char *line);    /* what people are to know */
};

/* Blocks until it is stopped, or, where it listens nowhere, until all that the hosts have is here.
 * 0; -1: it could not begin, or not all of it is here (error). */
int gatherer_run(const struct gatherer_options *options, struct error *error);

/* ---- What its files share ---- */

enum {
    SOURCES_MOST = 4096,
    OUT_BYTES = 4 * WIRE_SMALL_MOST,
    LACKING_MOST = 32, /* a sender asks for 16 ahead */
};

/* A sender has asked for it, and sends it. */
struct lacking {
    uint64_t offset;
    struct wire_piece piece;
};

/*
 * CALLING    we connect to it
 * FRESH      connected: handshake, then who it is
 * LISTING    it tells what can be pulled
 * GREETED    its recording comes
 * PARTING    it is told why it must go
 */
enum source_state { CALLING, FRESH, LISTING, GREETED, PARTING, GONE };

struct source {
    struct channel channel;
    enum source_state state;
    struct arrival arrival;
    char peer[CHANNEL_SHOWN];
    /* We connected to it, puller.c's: which host, and which of its recordings (NO_OFFER: the list).
     */
    struct pull_host *host;
    size_t offer;
    bool looked;       /* the first byte was looked at: TLS or not */
    bool is_half;      /* PARTING: nothing is sent any more */
    bool is_hungry;    /* more may be there to read at once */
    bool is_done;      /* all of it is there */
    bool is_refused;   /* to come again makes no sense */
    bool owes_welcome; /* until what is there is on the disk */
    bool owes_end;     /* all has come, and is not compared yet */
    bool owes_line;    /* that it came was not told yet */
    bool allows_control;
    uint64_t held_from;    /* the sender has freed what is below: all of that was acknowledged */
    uint64_t asked;        /* a control that it has not answered; 0 */
    struct sync_job *sync; /* on its way to the disk; NULL: nothing */
    uint64_t born_ns, heard_ns, said_ns, waiting_ns; /* waiting: since when bytes are not synced */
    size_t taken;                                    /* bytes, in this turn */
    struct lacking lacking[LACKING_MOST];
    size_t lacking_count;
    size_t in_size, out_size;
    uint8_t out[OUT_BYTES];
    uint8_t in[WIRE_FRAME_MOST];
};
#define NO_OFFER SIZE_MAX

/* What else poll() waits for, before the sources. */
enum { POLL_LISTENER, POLL_BEACON, POLL_SYNCING, POLL_CONTROL, POLLS_OWN };

/* Lines about whoever comes without having shown who he is are as many as he likes: so many at
 * once, then one now and then. */
struct told_strangers {
    unsigned lines;    /* of the last so many */
    uint64_t since_ns; /* so long the next counts as one less */
    uint64_t hidden;   /* were not told */
    bool has_no_room;  /* that no further connection can be taken was told */
};

struct gatherer {
    const struct gatherer_options *options;
    int folder;
    int listener;          /* -1: only those whom we connect to */
    uint64_t used_bytes;   /* of all recordings in the folder */
    uint64_t looked_ns;    /* after the folder */
    bool is_removed;       /* it is */
    size_t strangers_most; /* connections of whom nothing is known yet */
    struct told_strangers told;
    int full_reason;        /* nothing could be written, for this errno, and was since; 0 */
    uint64_t rest_until_ns; /* no descriptors were left: no connection is taken before */
    struct puller *puller;  /* NULL: we connect to nobody */
    struct discovery_beacon *beacon; /* NULL: nobody is to find us */
    struct syncing *syncing;
    struct knownpieces *known;
    struct controlling *controlling; /* NULL: nobody can ask for anything */
    struct source *sources[SOURCES_MOST];
    struct pollfd polls[SOURCES_MOST + POLLS_OWN];
    size_t count;
};

/* Whether a line about a stranger is told now; if not, it is counted. */
bool gatherer_may_tell_stranger(struct gatherer *gatherer);
/* Whether nobody can find the open file or folder any more: what is put there is not here. */
bool gatherer_is_removed(int fd);
/* Counts again what is in the folder, of which somebody may have deleted something. */
void gatherer_count(struct gatherer *gatherer);

/* ---- incoming.c ---- */

/* A source of this connected, or connecting, socket, which is taken over. NULL: there is no room.
 */
struct source *incoming_add(struct gatherer *gatherer, int fd, bool is_server, const char *peer);
/* Its turn. */
void incoming_serve(struct gatherer *gatherer, struct source *source, short events);
/* What poll() is to wait for. Sets *timeout_ms lower where it must not wait so long. */
short incoming_waits(const struct source *source, int *timeout_ms);
/* Bytes are on the disk: acknowledges them. */
void incoming_synced(struct gatherer *gatherer);
/* Nobody knows yet who it is. */
bool incoming_is_stranger(const struct source *source);
/* It is not heard any more. */
void incoming_lose(struct gatherer *gatherer, struct source *source, const char *why);
void incoming_free(struct source *source);
/* Puts a frame of this size into what it is told; the frame was written to incoming_out(). */
uint8_t *incoming_out(struct source *source);
/* Whether there is room for that. */
bool incoming_has_room(const struct source *source);

/* ---- controlling.c ---- */

struct controlling;

/* NULL: error says why nobody can ask. */
struct controlling *controlling_open(int folder, struct error *error);
void controlling_close(struct controlling *controlling); /* NULL is allowed */
/* Readable when it has something to do; -1: NULL. Sets *timeout_ms lower where it must not be
 * waited for so long. */
int controlling_fd(const struct controlling *controlling, int *timeout_ms);
/* Its turn. */
void controlling_serve(struct gatherer *gatherer, uint64_t now);
/* A source has answered. 0; -1: it was not asked that. */
int controlling_take_answer(struct gatherer *gatherer, struct source *source,
                            const struct wire_frame *frame);
/* A source is about to be freed. */
void controlling_lost(struct controlling *controlling, const struct source *source);

/* ---- puller.c ---- */

struct puller;

struct puller *puller_new(const struct gatherer_options *options);
void puller_free(struct puller *puller);
/* Connects to whom it is time to. */
void puller_tick(struct gatherer *gatherer, uint64_t now);
/* All that was to be had is here, or cannot be had: *failed. */
bool puller_is_over(const struct puller *puller, bool *failed);
/* Whether the connection could be made (state CALLING). */
void puller_connected(struct gatherer *gatherer, struct source *source);
/* The host has a recording; it has no more. */
void puller_take_offer(struct gatherer *gatherer, struct source *source,
                       const struct wire_frame *frame);
void puller_take_end(struct gatherer *gatherer, struct source *source);
/* The handshake is over: says what is wanted. */
void puller_ask(struct source *source);
/* The connection is over, or could not be made. */
void puller_lost(struct gatherer *gatherer, struct source *source, const char *why);

#endif
