/* SPDX-License-Identifier: MIT */
/* listening.c: see listening.h. */
#include "stream/listening.h"

#include "analyze/base/anyaddress.h"
#include "stream/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int listening_try(const struct addrinfo *address, const char *host, uint16_t port,
                         const struct token *token, struct error *error) {
    int on = 1;
    int fd;
    if (token == NULL && !channel_is_loopback(address->ai_addr)) {
        return error_set(error, "other machines are listened to only with --token FILE: without it "
                                "use this machine's own address, 127.0.0.1");
    }
    fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) {
        return fd;
    }
    error_set(error, "cannot listen at %s:%u: %s", host, port, strerror(errno));
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

int listening_open(const char *host, uint16_t port, const struct token *token,
                   struct error *error) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    const char *wanted = host[0] != '\0' ? host : "127.0.0.1";
    struct addrinfo *all;
    char number[8];
    int fd = -1;
    int found;
    snprintf(number, sizeof number, "%u", port);
    found = getaddrinfo(wanted, number, &hints, &all);
    if (found != 0) {
        return error_set(error, "%s: %s", wanted, gai_strerror(found));
    }
    for (const struct addrinfo *one = all; one != NULL && fd < 0; one = one->ai_next) {
        fd = listening_try(one, wanted, port, token, error);
    }
    freeaddrinfo(all);
    return fd;
}

static struct sockaddr_storage listening_address(int fd) {
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    getsockname(fd, (struct sockaddr *)&address, &size);
    return address;
}

void listening_show(int fd, char shown[CHANNEL_SHOWN]) {
    struct sockaddr_storage address = listening_address(fd);
    channel_show((struct sockaddr *)&address, shown);
}

void listening_show_name(int fd, char shown[CHANNEL_SHOWN]) {
    struct sockaddr_storage address = listening_address(fd);
    char name[65]; /* HOST_NAME_MAX and its end */
    if (anyaddress_is((struct sockaddr *)&address) && gethostname(name, sizeof name) == 0) {
        /* the port lies in the same place in both families */
        in_port_t port = ((const struct sockaddr_in *)&address)->sin_port;
        snprintf(shown, CHANNEL_SHOWN, "%s:%u", name, ntohs(port));
    } else {
        channel_show((struct sockaddr *)&address, shown);
    }
}

int listening_accept(int fd, char peer[CHANNEL_SHOWN]) {
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    int accepted = accept4(fd, (struct sockaddr *)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted >= 0) {
        channel_show((struct sockaddr *)&address, peer);
    }
    return accepted;
}

size_t listening_raise_limit(void) {
    struct rlimit limit = {0};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_max;
}

enum listening_first listening_look(struct channel *channel, bool wants_tls, const char **why) {
    static const unsigned char access_denied[] = {0x15, 3, 1, 0, 2, 2, 49}; /* TLS's alert */
    uint8_t refusal[WIRE_SMALL_MOST];
    unsigned char first;
    ssize_t got = recv(channel->fd, &first, 1, MSG_PEEK);
    if (got <= 0) {
        return got == 0 || (errno != EAGAIN && errno != EINTR) ? LISTENING_LEFT : LISTENING_LATER;
    }
    if ((first == 0x16) == wants_tls) {
        return LISTENING_FINE;
    }
    if (wants_tls) {
        size_t size = wire_put_refusal(refusal, WIRE_BAD, "it wants a token (--token FILE)");
        send(channel->fd, refusal, size, MSG_NOSIGNAL);
        *why = "it comes without a token";
    } else {
        send(channel->fd, access_denied, sizeof access_denied, MSG_NOSIGNAL);
        *why = "it comes with a token, and there is none here";
    }
    channel_make_bare(channel);
    return LISTENING_REFUSED;
}
