/* SPDX-License-Identifier: MIT */
/* access.c: see access.h. */
#include "web/server/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

int access_start(struct access *access, struct error *error) {
    unsigned char bytes[ACCESS_TOKEN / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return error_set(error, "cannot make a token: %s", strerror(errno));
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        snprintf(access->token + 2 * i, 3, "%02x", bytes[i]);
    }
    return 0;
}

/* ":6363"; a browser leaves ":80" out. */
static bool is_port(const char *text, uint16_t port) {
    char wanted[8];
    snprintf(wanted, sizeof wanted, ":%u", port);
    return strcmp(text, wanted) == 0 || (port == 80 && text[0] == '\0');
}

static bool is_host(const char *text, const char *host, uint16_t port) {
    size_t length = strlen(host);
    return strncasecmp(text, host, length) == 0 && is_port(text + length, port);
}

/* "192.0.2.1:6363", "[2001:db8::1]:6363": what is no name cannot be made to point at us. */
static bool is_address(const char *text, uint16_t port) {
    char host[INET6_ADDRSTRLEN];
    unsigned char address[sizeof(struct in6_addr)];
    bool is_six = text[0] == '[';
    const char *begin = text + is_six;
    size_t length = strcspn(begin, is_six ? "]" : ":");
    if (length >= sizeof host) {
        return false;
    }
    memcpy(host, begin, length);
    host[length] = '\0';
    return inet_pton(is_six ? AF_INET6 : AF_INET, host, address) == 1 &&
           (!is_six || begin[length] == ']') && is_port(begin + length + is_six, port);
}

/* A page of another name that was made to point at us (DNS rebinding) has that name in Host. */
static bool access_is_ours(const struct access *access, const char *text) {
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (is_host(text, names[i], access->port)) {
            return true;
        }
    }
    return (access->host[0] != '\0' && is_host(text, access->host, access->port)) ||
           (access->is_any && is_address(text, access->port));
}

static bool is_our_origin(const struct access *access, const char *origin) {
    static const char scheme[] = "http://";
    return strncmp(origin, scheme, sizeof scheme - 1) == 0 &&
           access_is_ours(access, origin + sizeof scheme - 1);
}

/* Without telling by the time how much of it was right. */
static bool is_token(const struct access *access, const char *authorization) {
    static const char scheme[] = "Bearer ";
    volatile unsigned char different = 0;
    const char *token;
    if (authorization == NULL || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0) {
        return false;
    }
    token = authorization + sizeof scheme - 1;
    if (strlen(token) != ACCESS_TOKEN) {
        return false;
    }
    for (size_t i = 0; i < ACCESS_TOKEN; i++) {
        different = (unsigned char)(different | (token[i] ^ access->token[i]));
    }
    return different == 0;
}

int access_check(const struct access *access, const struct access_headers *headers, bool is_page,
                 const char **reason) {
    const char *site = headers->fetch_site;
    if (headers->host == NULL || !access_is_ours(access, headers->host)) {
        *reason = "the request was sent to another host than this server";
        return 403;
    }
    if (headers->origin != NULL && !is_our_origin(access, headers->origin)) {
        *reason = "the request comes from another page";
        return 403;
    }
    /* "none": typed by the user, or a bookmark. A link on another page may open our page, which
     * holds no data, but nothing else. */
    if (site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0 && !is_page) {
        *reason = "the request comes from another page";
        return 403;
    }
    if (!is_page && !is_token(access, headers->authorization)) {
        *reason = "the token is missing or not this server's; use the address that memtrace "
                  "printed";
        return 401;
    }
    return 0;
}
