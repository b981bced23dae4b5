/* SPDX-License-Identifier: MIT */
/*
 * puller.c: the machines to connect to, and what each of them has. See gatherer.h.
 *
 * A host has one connection for the list of its recordings, which stays as long as there may be
 * more, and one for each recording. Each is made again when it is lost.
 */
#include "stream/gatherer.h"

#include "collect/clock.h"
#include "stream/channel.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OFFERS_MOST = 4096, /* of one host */
    PULLED_MOST = 64,   /* of its recordings at the same time */
};

struct pull_offer {
    uint8_t id[WIRE_ID];
    bool is_connected;
    bool is_done;
    bool is_failed; /* the host does not let us have it */
    uint64_t next_ns, backoff_ns;
};

struct pull_host {
    const char *text; /* as it was asked for */
    char name[CHANNEL_HOST];
    uint16_t port;
    struct lookup *lookup;          /* of its addresses; NULL: not begun */
    const struct addrinfo *address; /* the next to try; then the one that worked */
    bool works;                     /* it does */
    /* The list. */
    bool is_connected;
    bool is_listed; /* all that there will be was told */
    bool is_failed; /* it refuses */
    bool was_there; /* ever */
    bool is_heard;  /* it is, on this connection */
    bool told_lost; /* the outage was told */
    bool told_done;
    uint64_t next_ns, backoff_ns;
    uint64_t contact_ns; /* the last time that it could be reached */
    struct pull_offer *offers;
    size_t count, pulled;
};

struct puller {
    const struct gatherer_options *options;
    struct pull_host *hosts;
    size_t count;
};

/* ---- Hosts ---- */

struct puller *puller_new(const struct gatherer_options *options) {
    struct puller *puller = calloc(1, sizeof *puller);
    struct error error;
    size_t count = 0;
    while (options->hosts[count] != NULL) {
        count++;
    }
    if (puller == NULL || (puller->hosts = calloc(count, sizeof *puller->hosts)) == NULL) {
        free(puller);
        return NULL;
    }
    puller->options = options;
    puller->count = count;
    for (size_t i = 0; i < count; i++) {
        struct pull_host *host = &puller->hosts[i];
        host->text = options->hosts[i];
        channel_peer(host->text, host->name, &host->port, &error); /* gather.c has looked at it */
        host->backoff_ns = BACKOFF_LEAST;
        host->contact_ns = clock_now_ns();
    }
    return puller;
}

static void host_forget_addresses(struct pull_host *host) {
    lookup_end(host->lookup);
    host->lookup = NULL;
    host->address = NULL;
    host->works = false;
}

void puller_free(struct puller *puller) {
    for (size_t i = 0; puller != NULL && i < puller->count; i++) {
        struct pull_host *host = &puller->hosts[i];
        host_forget_addresses(host);
        free(host->offers);
    }
    if (puller != NULL) {
        free(puller->hosts);
        free(puller);
    }
}

/* All of it is here, as far as the host lets us. */
static bool host_is_complete(const struct pull_host *host) {
    for (size_t i = 0; i < host->count; i++) {
        if (!host->offers[i].is_done && !host->offers[i].is_failed) {
            return false;
        }
    }
    return host->is_listed;
}

bool puller_is_over(const struct puller *puller, bool *failed) {
    *failed = false;
    for (size_t i = 0; i < puller->count; i++) {
        const struct pull_host *host = &puller->hosts[i];
        if (!host->is_failed && !host_is_complete(host)) {
            return false;
        }
        *failed = *failed || host->is_failed;
        for (size_t k = 0; k < host->count; k++) {
            *failed = *failed || host->offers[k].is_failed;
        }
    }
    return true;
}

/* ---- Connecting ---- */

static void host_fail(struct gatherer *gatherer, struct pull_host *host, const char *why) {
    host->is_failed = true;
    tell_line(gatherer->options->tell, "%s: %s", host->text, why);
}

/* It could not be reached: later. */
static void host_put_off(struct gatherer *gatherer, struct pull_host *host, const char *why) {
    uint64_t give_up = gatherer->options->give_up_ns;
    host_forget_addresses(host);
    if (give_up != 0 && clock_now_ns() >= host->contact_ns + give_up) {
        host_fail(gatherer, host, why);
    } else if (!host->told_lost) {
        tell_line(gatherer->options->tell, "%s: %s; trying again", host->text, why);
    }
    host->told_lost = true;
    host->next_ns = clock_now_ns() + backoff_next(&host->backoff_ns);
}

/* Begins a connection for the list (NO_OFFER) or a recording. */
static void host_call(struct gatherer *gatherer, struct pull_host *host, size_t offer) {
    const struct addrinfo *address = host->address;
    char shown[CHANNEL_SHOWN];
    struct source *source;
    int fd;
    if (gatherer->options->token == NULL && !channel_is_loopback(address->ai_addr)) {
        host_fail(gatherer, host, "another machine is received from with --token FILE only");
        return;
    }
    fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        host_put_off(gatherer, host, strerror(errno));
        return;
    }
    channel_show(address->ai_addr, shown);
    source = incoming_add(gatherer, fd, false, shown);
    if (source == NULL) {
        return;
    }
    source->state = CALLING;
    source->host = host;
    source->offer = offer;
    if (offer == NO_OFFER) {
        host->is_connected = true;
    } else {
        host->offers[offer].is_connected = true;
        host->pulled++;
    }
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS) {
        incoming_lose(gatherer, source, strerror(errno));
    }
}

void puller_connected(struct gatherer *gatherer, struct source *source) {
    int reason = connecting_result(source->channel.fd);
    if (reason != 0) {
        incoming_lose(gatherer, source, strerror(reason));
        return;
    }
    source->state = FRESH;
    source->host->works = true;
    source->born_ns = source->heard_ns = clock_now_ns();
}

void puller_ask(struct source *source) {
    static const uint8_t all[WIRE_ID];
    bool is_list = source->offer == NO_OFFER;
    const uint8_t *id = is_list ? all : source->host->offers[source->offer].id;
    source->out_size += wire_put_pull(incoming_out(source), id);
    source->state = is_list ? LISTING : FRESH;
}

/* Whether an address is known. */
static bool host_look_up(struct gatherer *gatherer, struct pull_host *host) {
    int found;
    if (host->address != NULL) {
        return true;
    }
    if (host->lookup == NULL && (host->lookup = lookup_begin(host->name, host->port)) == NULL) {
        host_put_off(gatherer, host, "out of memory");
        return false;
    }
    found = lookup_result(host->lookup, &host->address);
    if (found != 0 && found != EAI_INPROGRESS && lookup_is_final(found)) {
        host_fail(gatherer, host, gai_strerror(found));
    } else if (found != 0 && found != EAI_INPROGRESS) {
        host_put_off(gatherer, host, gai_strerror(found));
    }
    return found == 0;
}

void puller_tick(struct gatherer *gatherer, uint64_t now) {
    struct puller *puller = gatherer->puller;
    for (size_t i = 0; i < puller->count; i++) {
        struct pull_host *host = &puller->hosts[i];
        if (host->is_failed) {
            continue;
        }
        if (!host->is_connected && !host_is_complete(host) && now >= host->next_ns &&
            host_look_up(gatherer, host)) {
            host_call(gatherer, host, NO_OFFER);
        }
        for (size_t k = 0; k < host->count && host->pulled < PULLED_MOST && host->works; k++) {
            const struct pull_offer *offer = &host->offers[k];
            if (!offer->is_connected && !offer->is_done && !offer->is_failed &&
                now >= offer->next_ns) {
                host_call(gatherer, host, k);
            }
        }
    }
}

/* ---- What a host says ---- */

static void host_note_contact(struct gatherer *gatherer, struct pull_host *host) {
    if (!host->was_there || host->told_lost) {
        tell_line(gatherer->options->tell,
                  host->was_there ? "%s: connected again" : "%s: connected", host->text);
    }
    host->was_there = host->is_heard = true;
    host->told_lost = false;
    host->backoff_ns = BACKOFF_LEAST;
    host->contact_ns = clock_now_ns();
}

void puller_take_offer(struct gatherer *gatherer, struct source *source,
                       const struct wire_frame *frame) {
    struct pull_host *host = source->host;
    struct wire_hello hello;
    host_note_contact(gatherer, host);
    if (wire_read_hello(frame, &hello) != 0 || hello.version != WIRE_VERSION) {
        source->is_refused = true;
        incoming_lose(gatherer, source, "speaks another version of MemTrace's protocol");
        return;
    }
    for (size_t i = 0; i < host->count; i++) {
        if (memcmp(host->offers[i].id, hello.id, WIRE_ID) == 0) {
            return; /* told before, on an earlier connection */
        }
    }
    if (host->count == OFFERS_MOST) {
        source->is_refused = true;
        incoming_lose(gatherer, source, "has more recordings than can be");
        return;
    }
    if (host->offers == NULL) {
        host->offers = calloc(OFFERS_MOST, sizeof *host->offers);
    }
    if (host->offers != NULL) {
        struct pull_offer *offer = &host->offers[host->count++];
        memcpy(offer->id, hello.id, WIRE_ID);
        offer->backoff_ns = BACKOFF_LEAST;
    }
}

/* ---- The end of a connection ---- */

/* All that the host has is here: it may go. */
static void host_hang_up(struct gatherer *gatherer, struct pull_host *host) {
    size_t here = 0;
    if (!host_is_complete(host) || host->told_done) {
        return;
    }
    for (size_t i = 0; i < host->count; i++) {
        here += host->offers[i].is_done;
    }
    host->told_done = true;
    tell_line(gatherer->options->tell, "%s: %s%zu of its %zu recording%s %s here", host->text,
              here == host->count ? "all, " : "", here, host->count, host->count == 1 ? "" : "s",
              here == 1 ? "is" : "are");
    for (size_t i = 0; i < gatherer->count; i++) {
        struct source *source = gatherer->sources[i];
        if (source->host == host) {
            source->state = GONE;
        }
    }
}

void puller_lost(struct gatherer *gatherer, struct source *source, const char *why) {
    struct pull_host *host = source->host;
    if (source->offer == NO_OFFER) {
        host->is_connected = false;
        host->contact_ns = host->is_heard ? source->heard_ns : host->contact_ns;
        host->is_heard = false;
        bool has_another = !host->works && host->address != NULL && host->address->ai_next != NULL;
        if (!host_is_complete(host) && source->is_refused) {
            host_fail(gatherer, host, why);
        } else if (!host_is_complete(host) && has_another) {
            host->address = host->address->ai_next; /* at once */
        } else if (!host_is_complete(host)) {
            host_put_off(gatherer, host, why);
        }
    } else {
        struct pull_offer *offer = &host->offers[source->offer];
        offer->is_connected = false;
        host->pulled--;
        offer->is_done |= source->is_done;
        offer->is_failed |= !source->is_done && source->is_refused;
        if (offer->is_failed && why[0] != '\0') {
            tell_line(gatherer->options->tell, "%s: %s", host->text, why);
        } else if (!source->is_done && !source->is_refused) {
            if (source->arrival.fd >= 0) {
                offer->backoff_ns = BACKOFF_LEAST; /* something came */
            }
            offer->next_ns = clock_now_ns() + backoff_next(&offer->backoff_ns);
        }
    }
    host_hang_up(gatherer, host);
}

void puller_take_end(struct gatherer *gatherer, struct source *source) {
    host_note_contact(gatherer, source->host);
    source->host->is_listed = true;
    host_hang_up(gatherer, source->host);
}
