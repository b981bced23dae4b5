/* SPDX-License-Identifier: MIT */
/* channel.c: sockets, with TLS or bare. See channel.h. */
#define _GNU_SOURCE
#include "stream/channel.h"

#include "analyze/base/anyaddress.h"
#include "analyze/base/scope.h"
#include "collect/clock.h"
#include "stream/wire.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The name of the key, which goes over the network in clear and into the key. */
static const char identity[] = "memtrace stream 1";
/* Of another key, which never goes over the network. */
static const char proving[] = "memtrace discovery 1";
static const char ciphers[] = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};

enum { TOKEN_LEAST = 16, TOKEN_MOST = 4096, KEY_BYTES = 32, FOREVER_S = INT32_MAX };

struct token {
    unsigned char key[KEY_BYTES];
    unsigned char proving_key[KEY_BYTES];
    SSL_CTX *server;
    SSL_CTX *client;
};

/* ---- The token ---- */

static int token_derive(const char *secret, size_t size, const char *name,
                        unsigned char key[KEY_BYTES]) {
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *context = kdf != NULL ? EVP_KDF_CTX_new(kdf) : NULL;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"SHA256", 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)secret, size),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)(uintptr_t)name,
                                          strlen(name)),
        OSSL_PARAM_construct_end()};
    int result = context != NULL && EVP_KDF_derive(context, key, KEY_BYTES, params) == 1 ? 0 : -1;
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
    return result;
}

/* Those that TLS asks for the key: application data of the context is the token. The key does not
 * become old: the clock may be set by years in the middle of a handshake, as on a device that asks
 * for the time when it is on the network. */
static SSL_SESSION *token_session(SSL *ssl) {
    const struct token *token = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
    SSL_SESSION *session = SSL_SESSION_new();
    if (session == NULL || cipher == NULL ||
        SSL_SESSION_set1_master_key(session, token->key, sizeof token->key) != 1 ||
        SSL_SESSION_set_cipher(session, cipher) != 1 ||
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1 ||
        SSL_SESSION_set_timeout(session, FOREVER_S) != 1) {
        SSL_SESSION_free(session);
        return NULL;
    }
    return session;
}

static int token_use_session(SSL *ssl, const EVP_MD *digest, const unsigned char **id,
                             size_t *id_size, SSL_SESSION **session) {
    *session = NULL;
    if (digest != NULL && !EVP_MD_is_a(digest, "SHA256")) {
        return 1;
    }
    *session = token_session(ssl);
    *id = (const unsigned char *)identity;
    *id_size = sizeof identity - 1;
    return *session != NULL;
}

static int token_find_session(SSL *ssl, const unsigned char *id, size_t id_size,
                              SSL_SESSION **session) {
    *session = NULL;
    if (id_size != sizeof identity - 1 || memcmp(id, identity, id_size) != 0) {
        return 1; /* no such key: the handshake fails */
    }
    *session = token_session(ssl);
    return *session != NULL;
}

static SSL_CTX *token_context(const SSL_METHOD *method, struct token *token) {
    SSL_CTX *context = SSL_CTX_new(method);
    if (context == NULL || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(context, ciphers) != 1 ||
        SSL_CTX_set_num_tickets(context, 0) != 1) {
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_app_data(context, token);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_psk_use_session_callback(context, token_use_session);
    SSL_CTX_set_psk_find_session_callback(context, token_find_session);
    return context;
}

/* What the file holds, without spaces around it; its size, or -1 with error. */
static ssize_t token_read_secret(const char *path, char *text, size_t room, const char **secret,
                                 struct error *error) {
    struct stat status;
    SCOPE_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = fd >= 0 && fstat(fd, &status) == 0 ? read(fd, text, room) : -1;
    *secret = text;
    if (size < 0) {
        return error_set(error, "cannot read the token %s: %s", path, strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return error_set(error, "the token %s is not a file", path); /* senders read it again */
    }
    if ((status.st_mode & 077) != 0) {
        return error_set(error, "the token %s can be read by others: chmod 600 it", path);
    }
    for (; size > 0 && isspace((unsigned char)**secret); size--) {
        ++*secret;
    }
    while (size > 0 && isspace((unsigned char)(*secret)[size - 1])) {
        size--;
    }
    return size;
}

struct token *token_read(const char *path, struct error *error) {
    char text[TOKEN_MOST + 1];
    const char *secret;
    struct token *token;
    ssize_t size = token_read_secret(path, text, sizeof text, &secret, error);
    if (size < 0) {
        return NULL;
    }
    if (size < TOKEN_LEAST || size > TOKEN_MOST) {
        error_set(error, "the token %s has %s than %d bytes", path,
                  size < TOKEN_LEAST ? "fewer" : "more",
                  size < TOKEN_LEAST ? (int)TOKEN_LEAST : (int)TOKEN_MOST);
        return NULL;
    }
    token = calloc(1, sizeof *token);
    if (token != NULL && token_derive(secret, (size_t)size, identity, token->key) == 0 &&
        token_derive(secret, (size_t)size, proving, token->proving_key) == 0) {
        token->server = token_context(TLS_server_method(), token);
        token->client = token_context(TLS_client_method(), token);
    }
    OPENSSL_cleanse(text, sizeof text);
    if (token == NULL || token->server == NULL || token->client == NULL) {
        token_free(token);
        error_set(error, "OpenSSL cannot make a key of the token %s", path);
        return NULL;
    }
    return token;
}

void token_free(struct token *token) {
    if (token != NULL) {
        SSL_CTX_free(token->server);
        SSL_CTX_free(token->client);
        OPENSSL_cleanse(token->key, sizeof token->key);
        OPENSSL_cleanse(token->proving_key, sizeof token->proving_key);
        free(token);
    }
}

void token_prove(const struct token *token, const void *bytes, size_t size,
                 uint8_t proof[TOKEN_PROOF]) {
    unsigned length = TOKEN_PROOF;
    if (HMAC(EVP_sha256(), token->proving_key, KEY_BYTES, bytes, size, proof, &length) == NULL) {
        memset(proof, 0, TOKEN_PROOF); /* proves nothing */
    }
}

bool token_is_proved(const struct token *token, const void *bytes, size_t size,
                     const uint8_t proof[TOKEN_PROOF]) {
    uint8_t right[TOKEN_PROOF] = {0};
    unsigned length = TOKEN_PROOF;
    return HMAC(EVP_sha256(), token->proving_key, KEY_BYTES, bytes, size, right, &length) != NULL &&
           CRYPTO_memcmp(right, proof, TOKEN_PROOF) == 0;
}

/* ---- Addresses ---- */

int channel_split(const char *text, char host[CHANNEL_HOST], uint16_t *port, struct error *error) {
    const char *colon = strrchr(text, ':');
    size_t size;
    if (text[0] == '[') {
        const char *end = strchr(text, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':')) {
            return error_set(error, "'%s' is not HOST:PORT", text);
        }
        colon = end[1] == ':' ? end + 1 : NULL;
        size = (size_t)(end - ++text);
    } else {
        if (colon != NULL && strchr(text, ':') != colon) {
            colon = NULL; /* an IPv6 address alone */
        }
        size = colon != NULL ? (size_t)(colon - text) : strlen(text);
    }
    *port = CHANNEL_PORT;
    if (colon != NULL) {
        char *end;
        unsigned long number = strtoul(colon + 1, &end, 10);
        if (!isdigit((unsigned char)colon[1]) || *end != '\0' || number > UINT16_MAX) {
            return error_set(error, "'%s' is not a port", colon + 1);
        }
        *port = (uint16_t)number;
    }
    if (size >= CHANNEL_HOST) {
        return error_set(error, "the name of the host is too long");
    }
    memcpy(host, text, size);
    host[size] = '\0';
    return 0;
}

int channel_peer(const char *text, char host[CHANNEL_HOST], uint16_t *port, struct error *error) {
    if (channel_split(text, host, port, error) != 0) {
        return -1;
    }
    return *port != 0 && host[0] != '\0' ? 0 : error_set(error, "a host and a port are needed");
}

bool channel_is_loopback(const struct sockaddr *address) {
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)address;
        return IN6_IS_ADDR_LOOPBACK(&in->sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&in->sin6_addr) &&
                in->sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
    }
    return false;
}

void channel_show(const struct sockaddr *address, char shown[CHANNEL_SHOWN]) {
    char text[INET6_ADDRSTRLEN] = "?";
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)address;
        inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text);
        snprintf(shown, CHANNEL_SHOWN, "[%s]:%u", text, ntohs(in->sin6_port));
    } else {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
        inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
        snprintf(shown, CHANNEL_SHOWN, "%s:%u", text, ntohs(in->sin_port));
    }
}

/* ---- Connections ---- */

int channel_open(struct channel *channel, int fd, bool is_server, const struct token *token) {
    *channel = (struct channel){.fd = fd, .is_ready = token == NULL};
    if (token == NULL) {
        return 0;
    }
    channel->ssl = SSL_new(is_server ? token->server : token->client);
    if (channel->ssl == NULL || SSL_set_fd(channel->ssl, fd) != 1) {
        channel_close(channel);
        return -1;
    }
    if (is_server) {
        SSL_set_accept_state(channel->ssl);
    } else {
        SSL_set_connect_state(channel->ssl);
    }
    return 0;
}

void channel_close(struct channel *channel) {
    if (channel->ssl != NULL) {
        if (channel->is_ready) {
            SSL_shutdown(channel->ssl);
        }
        SSL_free(channel->ssl);
    }
    scope_close(&channel->fd);
    *channel = CHANNEL_NONE;
}

void channel_make_bare(struct channel *channel) {
    SSL_free(channel->ssl);
    channel->ssl = NULL;
    channel->is_ready = true;
}

/* What a call of OpenSSL came to: 0: later; -1: error. `system` is errno behind it. */
static int channel_judge(struct channel *channel, int returned, int system, struct error *error) {
    int what = SSL_get_error(channel->ssl, returned);
    unsigned long code;
    if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE) {
        channel->wants_write = what == SSL_ERROR_WANT_WRITE;
        return 0;
    }
    code = ERR_get_error();
    ERR_clear_error();
    if (what == SSL_ERROR_SSL && code != 0 &&
        ERR_GET_REASON(code) != SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        const char *reason = ERR_reason_error_string(code);
        return error_set(error, "TLS: %s", reason != NULL ? reason : "failed");
    }
    return error_set(error, "%s",
                     what == SSL_ERROR_SYSCALL && system != 0 ? strerror(system)
                                                              : "the connection was closed");
}

int channel_handshake(struct channel *channel, struct error *error) {
    int result;
    channel->wants_write = false;
    if (channel->is_ready) {
        return 1;
    }
    ERR_clear_error();
    errno = 0;
    result = SSL_do_handshake(channel->ssl);
    if (result == 1) {
        /* Without a certificate there is no other way in, but it is what all stands on. */
        channel->is_ready = SSL_session_reused(channel->ssl) == 1;
        return channel->is_ready ? 1 : error_set(error, "TLS: without the token");
    }
    return channel_judge(channel, result, errno, error);
}

static ssize_t channel_bare(ssize_t moved, bool is_read, struct channel *channel,
                            struct error *error) {
    if (moved > 0) {
        return moved;
    }
    if (moved < 0 && (errno == EAGAIN || errno == EINTR)) {
        channel->wants_write = !is_read;
        return 0;
    }
    return error_set(error, "%s", moved < 0 ? strerror(errno) : "the connection was closed");
}

ssize_t channel_read(struct channel *channel, void *bytes, size_t size, struct error *error) {
    int got;
    channel->wants_write = false;
    if (channel->ssl == NULL) {
        return channel_bare(recv(channel->fd, bytes, size, 0), true, channel, error);
    }
    ERR_clear_error();
    errno = 0;
    got = SSL_read(channel->ssl, bytes, size < INT32_MAX ? (int)size : INT32_MAX);
    return got > 0 ? got : channel_judge(channel, got, errno, error);
}

ssize_t channel_write(struct channel *channel, const void *bytes, size_t size,
                      struct error *error) {
    int put;
    channel->wants_write = false;
    if (channel->ssl == NULL) {
        return channel_bare(send(channel->fd, bytes, size, MSG_NOSIGNAL), false, channel, error);
    }
    ERR_clear_error();
    errno = 0;
    put = SSL_write(channel->ssl, bytes, size < INT32_MAX ? (int)size : INT32_MAX);
    return put > 0 ? put : channel_judge(channel, put, errno, error);
}

/* ---- Who waits for others ---- */

static int listening_try(const struct addrinfo *address, const char *host, uint16_t port,
                         const struct token *token, struct error *error) {
    int on = 1;
    if (token == NULL && !channel_is_loopback(address->ai_addr)) {
        return error_set(error, "other machines are listened to only with --token FILE: without it "
                                "use this machine's own address, 127.0.0.1");
    }
    SCOPE_FD int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                   bind(fd, address->ai_addr, address->ai_addrlen) == 0 &&
                   listen(fd, SOMAXCONN) == 0
               ? scope_keep(&fd)
               : error_set(error, "cannot listen at %s:%u: %s", host, port, strerror(errno));
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

/* ---- Who goes to others ---- */

#define BACKOFF_MOST (30 * SECOND)

struct lookup {
    struct gaicb request;
    struct addrinfo hints;
    char port[8];
    char host[];
};

struct lookup *lookup_begin(const char *host, uint16_t port) {
    size_t size = strlen(host) + 1;
    struct lookup *lookup = calloc(1, sizeof *lookup + size);
    struct gaicb *list[1];
    if (lookup == NULL) {
        return NULL;
    }
    memcpy(lookup->host, host, size);
    snprintf(lookup->port, sizeof lookup->port, "%u", port);
    lookup->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    lookup->request = (struct gaicb){
        .ar_name = lookup->host, .ar_service = lookup->port, .ar_request = &lookup->hints};
    list[0] = &lookup->request;
    if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) != 0) {
        free(lookup);
        return NULL;
    }
    return lookup;
}

int lookup_result(const struct lookup *lookup, const struct addrinfo **addresses) {
    /* (The C library takes what it only reads as if it wrote it.) */
    int found = gai_error((struct gaicb *)&lookup->request);
    *addresses = found == 0 ? lookup->request.ar_result : NULL;
    return found;
}

bool lookup_is_final(int reason) {
    return reason != EAI_AGAIN && reason != EAI_SYSTEM && reason != EAI_INPROGRESS;
}

void lookup_wait(const struct lookup *lookup, unsigned ms) {
    const struct gaicb *const list[] = {&lookup->request};
    const struct timespec longest = {ms / 1000, (long)(ms % 1000) * 1000000};
    gai_suspend(list, 1, &longest);
}

void lookup_end(struct lookup *lookup) {
    if (lookup == NULL || gai_cancel(&lookup->request) == EAI_NOTCANCELED) {
        return; /* the thread will write to it */
    }
    if (lookup->request.ar_result != NULL) {
        freeaddrinfo(lookup->request.ar_result);
    }
    free(lookup);
}

int connecting_result(int fd) {
    int on = 1;
    int reason = 0;
    socklen_t size = sizeof reason;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &size) != 0) {
        reason = errno;
    }
    if (reason == 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    return reason;
}

uint64_t backoff_next(uint64_t *backoff_ns) {
    uint64_t now = *backoff_ns;
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) {
        random = (uint32_t)clock_now_ns();
    }
    *backoff_ns = now * 2 < BACKOFF_MOST ? now * 2 : BACKOFF_MOST;
    return now / 2 + now / 2 * (random % 1024) / 1024;
}
