/* SPDX-License-Identifier: MIT */
/* discovery.c: the sockets of questions and answers. See discovery.h. */
#define XXH_INLINE_ALL
#include "stream/discovery.h"

#include "analyze/base/anyaddress.h"
#include "analyze/base/scope.h"
#include "collect/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <xxhash.h>

#define SAME_NS     (2 * SECOND) /* one question comes by several networks */
#define ASK_ANEW_NS (250 * MS)

enum {
    NONCES = 4096,
    ANSWERS_A_SECOND = 100, /* of one address */
    ASKERS = 256,           /* addresses that are counted */
    FOUND_MOST = 256,
    PACKETS_A_TURN = 64,
};

/* ---- To be found ---- */

enum ignored { MALFORMED, OVERSIZED, FOREIGN, REPLAYED, TOO_MANY, IGNORED_KINDS };

struct seen {
    uint8_t nonce[DISCOVER_NONCE];
    uint64_t at_ns;
};

struct asker {
    struct in_addr address;
    uint64_t second;   /* which one; 0: nobody */
    unsigned answered; /* in it */
};

struct discovery_beacon {
    int fd;
    const struct token *token;
    struct discover_answer answer;
    void (*tell)(const char *line);
    struct seen seen[NONCES]; /* a ring */
    size_t next;
    struct asker askers[ASKERS];
    uint64_t ignored[IGNORED_KINDS];
};

static void beacon_ignore(struct discovery_beacon *beacon, enum ignored why,
                          const struct sockaddr_in *from) {
    static const char *const reasons[] = {
        [MALFORMED] = "is not a question",
        [OVERSIZED] = "is too large for a question",
        [FOREIGN] = "asks without our token",
        [REPLAYED] = "repeats a question that was answered",
        [TOO_MANY] = "asks more often than is answered",
    };
    char shown[CHANNEL_SHOWN];
    if (beacon->ignored[why]++ == 0) {
        channel_show((const struct sockaddr *)from, shown);
        tell_line(beacon->tell, "discovery: %s %s: ignored, as are others like it", shown,
                  reasons[why]);
    }
}

enum repeated { NEVER, A_MOMENT_AGO, A_REPLAY };

static enum repeated beacon_find_repeated(const struct discovery_beacon *beacon,
                                          const uint8_t *nonce, uint64_t now) {
    for (size_t i = 0; i < NONCES; i++) {
        const struct seen *seen = &beacon->seen[i];
        if (seen->at_ns != 0 && memcmp(seen->nonce, nonce, DISCOVER_NONCE) == 0) {
            return now - seen->at_ns < SAME_NS ? A_MOMENT_AGO : A_REPLAY;
        }
    }
    return NEVER;
}

/* Of each address by itself: who asks too often uses up nobody else's answers. Only who knows the
 * token comes here. Where more addresses ask in a second than are counted, one of those that asked
 * longest ago is counted anew. */
static bool beacon_has_time(struct discovery_beacon *beacon, struct in_addr address, uint64_t now) {
    struct asker *asker = &beacon->askers[0];
    for (size_t i = 0; i < ASKERS; i++) {
        struct asker *one = &beacon->askers[i];
        if (one->second != 0 && one->address.s_addr == address.s_addr) {
            asker = one;
            break;
        }
        if (one->second < asker->second) {
            asker = one;
        }
    }
    if (asker->address.s_addr != address.s_addr || asker->second != now / SECOND) {
        *asker = (struct asker){.address = address, .second = now / SECOND};
    }
    return asker->answered++ < ANSWERS_A_SECOND;
}

static void beacon_take(struct discovery_beacon *beacon, const uint8_t *bytes, size_t size,
                        const struct sockaddr_in *from) {
    struct discover_question question;
    uint8_t answer[DISCOVER_BYTES];
    uint64_t now = clock_now_ns();
    enum repeated repeated;
    size_t length;
    if (size > DISCOVER_BYTES) {
        beacon_ignore(beacon, OVERSIZED, from);
        return;
    }
    if (beacon->token == NULL && !channel_is_loopback((const struct sockaddr *)from)) {
        beacon_ignore(beacon, FOREIGN, from);
        return;
    }
    switch (discover_read_question(bytes, size, beacon->token, &question)) {
    case DISCOVER_MALFORMED:
        beacon_ignore(beacon, MALFORMED, from);
        return;
    case DISCOVER_FOREIGN:
        beacon_ignore(beacon, FOREIGN, from);
        return;
    case DISCOVER_FINE:
        break;
    }
    repeated = beacon_find_repeated(beacon, question.nonce, now);
    if (repeated == A_REPLAY) {
        beacon_ignore(beacon, REPLAYED, from);
    } else if (repeated == NEVER && !beacon_has_time(beacon, from->sin_addr, now)) {
        beacon_ignore(beacon, TOO_MANY, from);
    } else if (repeated == NEVER) {
        memcpy(beacon->seen[beacon->next].nonce, question.nonce, DISCOVER_NONCE);
        beacon->seen[beacon->next].at_ns = now;
        beacon->next = (beacon->next + 1) % NONCES;
        if ((question.kinds & beacon->answer.kind) == 0) {
            return;
        }
        length = discover_put_answer(answer, &beacon->answer, question.nonce, beacon->token);
        sendto(beacon->fd, answer, length, MSG_DONTWAIT, (const struct sockaddr *)from,
               sizeof *from);
    }
}

void discovery_answer(struct discovery_beacon *beacon, uint32_t count, const char *what) {
    uint8_t bytes[DISCOVER_BYTES + 1];
    beacon->answer.count = count;
    if (what != NULL) {
        snprintf(beacon->answer.what, sizeof beacon->answer.what, "%.*s", DISCOVER_NAME - 1, what);
    }
    for (int i = 0; i < PACKETS_A_TURN; i++) { /* others have their turn, too */
        struct sockaddr_in from = {0};
        socklen_t from_size = sizeof from;
        ssize_t size = recvfrom(beacon->fd, bytes, sizeof bytes, MSG_DONTWAIT,
                                (struct sockaddr *)&from, &from_size);
        if (size < 0) {
            return;
        }
        if (from.sin_family == AF_INET) {
            beacon_take(beacon, bytes, (size_t)size, &from);
        }
    }
}

/* What is told of the listening socket: its port, and its address where it has one. */
static void beacon_describe(struct discover_answer *answer, int listener) {
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    bool is_any;
    getsockname(listener, (struct sockaddr *)&address, &size);
    is_any = anyaddress_is((struct sockaddr *)&address);
    if (address.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&address;
        answer->port = ntohs(in->sin_port);
        if (!is_any) {
            inet_ntop(AF_INET, &in->sin_addr, answer->address, sizeof answer->address);
        }
    } else {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&address;
        answer->port = ntohs(in->sin6_port);
        if (!is_any) {
            inet_ntop(AF_INET6, &in->sin6_addr, answer->address, sizeof answer->address);
        }
    }
}

struct discovery_beacon *discovery_open(uint16_t port, const struct token *token,
                                        enum discover_kind kind, int listener, const char *what,
                                        const uint8_t id[DISCOVER_ID],
                                        void (*tell)(const char *line), struct error *error) {
    struct discovery_beacon *beacon = calloc(1, sizeof *beacon);
    /* The address of this machine's own broadcasts is reached by itself alone. */
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr =
                                      htonl(token != NULL ? INADDR_ANY : 0x7fffffff)};
    int on = 1;
    if (beacon == NULL) {
        error_set(error, "out of memory");
        return NULL;
    }
    beacon->token = token;
    beacon->tell = tell;
    beacon->answer.kind = kind;
    memcpy(beacon->answer.id, id, DISCOVER_ID);
    snprintf(beacon->answer.what, sizeof beacon->answer.what, "%s", what);
    if (gethostname(beacon->answer.host, sizeof beacon->answer.host - 1) != 0) {
        strcpy(beacon->answer.host, "host");
    }
    beacon_describe(&beacon->answer, listener);
    beacon->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (beacon->fd < 0 || setsockopt(beacon->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(beacon->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        error_set(error, "cannot be found by UDP at port %u: %s", port, strerror(errno));
        scope_close(&beacon->fd);
        free(beacon);
        return NULL;
    }
    return beacon;
}

int discovery_fd(const struct discovery_beacon *beacon) {
    return beacon != NULL ? beacon->fd : -1;
}

void discovery_close(struct discovery_beacon *beacon) {
    uint64_t all = 0;
    if (beacon == NULL) {
        return;
    }
    for (int i = 0; i < IGNORED_KINDS; i++) {
        all += beacon->ignored[i];
    }
    if (all != 0) {
        tell_line(beacon->tell, "discovery: %llu packets were ignored", (unsigned long long)all);
    }
    close(beacon->fd);
    free(beacon);
}

void discovery_id(const char *name, uint8_t id[DISCOVER_ID]) {
    char text[4096 + 256] = "";
    XXH128_canonical_t canonical;
    size_t length;
    gethostname(text, 255);
    length = strlen(text) + 1;
    snprintf(text + length, sizeof text - length, "%s", name);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(text, length + strlen(text + length)));
    memcpy(id, canonical.digest, DISCOVER_ID);
}

/* ---- To find ---- */

/* Asks this machine, and with a token all networks that it is on. Whether anybody could be asked.
 */
static bool asking_all(int fd, const uint8_t *bytes, size_t size, uint16_t port, bool only_us) {
    struct ifaddrs *all;
    bool asked = false;
    if (getifaddrs(&all) != 0) {
        return false;
    }
    for (const struct ifaddrs *one = all; one != NULL; one = one->ifa_next) {
        struct sockaddr_in to = {.sin_family = AF_INET};
        if (one->ifa_addr == NULL || one->ifa_addr->sa_family != AF_INET ||
            (one->ifa_flags & IFF_UP) == 0) {
            continue;
        }
        if ((one->ifa_flags & IFF_LOOPBACK) != 0) {
            to.sin_addr.s_addr = htonl(0x7fffffff);
        } else if ((one->ifa_flags & IFF_BROADCAST) != 0 && one->ifa_broadaddr != NULL &&
                   !only_us) {
            to.sin_addr = ((const struct sockaddr_in *)(const void *)one->ifa_broadaddr)->sin_addr;
        } else {
            continue;
        }
        to.sin_port = htons(port);
        asked = sendto(fd, bytes, size, MSG_DONTWAIT, (const struct sockaddr *)&to, sizeof to) ==
                    (ssize_t)size ||
                asked;
    }
    freeifaddrs(all);
    return asked;
}

struct asking {
    int fd;
    const struct token *token;
    uint8_t nonces[2][DISCOVER_NONCE]; /* of this question and the one before it */
    uint8_t known[FOUND_MOST][DISCOVER_ID + 2];
    size_t count;
};

/* False: none of ours, or one that was told. */
static bool asking_take(struct asking *asking, const uint8_t *bytes, size_t size,
                        const struct sockaddr_in *from, struct discovery_found *one) {
    uint8_t key[DISCOVER_ID + 2];
    bool is_fine = false;
    for (int i = 0; i < 2 && !is_fine; i++) {
        is_fine = discover_read_answer(bytes, size, asking->nonces[i], asking->token,
                                       &one->answer) == DISCOVER_FINE;
    }
    if (!is_fine ||
        (asking->token == NULL && !channel_is_loopback((const struct sockaddr *)from))) {
        return false;
    }
    memcpy(key, one->answer.id, DISCOVER_ID);
    memcpy(key + DISCOVER_ID, &one->answer.port, 2);
    for (size_t i = 0; i < asking->count; i++) {
        if (memcmp(asking->known[i], key, sizeof key) == 0) {
            return false;
        }
    }
    if (asking->count == FOUND_MOST) {
        return false;
    }
    memcpy(asking->known[asking->count++], key, sizeof key);
    if (one->answer.address[0] != '\0') {
        snprintf(one->address, sizeof one->address, "%s", one->answer.address);
    } else {
        inet_ntop(AF_INET, &from->sin_addr, one->address, sizeof one->address);
    }
    snprintf(one->shown, sizeof one->shown, strchr(one->address, ':') != NULL ? "[%s]:%u" : "%s:%u",
             one->address, one->answer.port);
    return true;
}

/* False: found() wants no more. */
static bool asking_hear(struct asking *asking,
                        bool (*found)(void *context, const struct discovery_found *one),
                        void *context) {
    uint8_t bytes[DISCOVER_BYTES + 1];
    struct discovery_found one;
    struct sockaddr_in from = {0};
    socklen_t from_size = sizeof from;
    ssize_t size;
    while ((size = recvfrom(asking->fd, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&from,
                            &from_size)) >= 0) {
        if (from.sin_family == AF_INET && asking_take(asking, bytes, (size_t)size, &from, &one) &&
            !found(context, &one)) {
            return false;
        }
        from_size = sizeof from;
    }
    return true;
}

/* A new question. Whether anybody could be asked. */
static bool asking_again(struct asking *asking, uint16_t port, uint32_t kinds) {
    struct discover_question question = {.kinds = kinds};
    uint8_t bytes[DISCOVER_BYTES];
    if (getrandom(question.nonce, sizeof question.nonce, 0) != (ssize_t)sizeof question.nonce) {
        return false;
    }
    memcpy(asking->nonces[1], asking->nonces[0], DISCOVER_NONCE);
    memcpy(asking->nonces[0], question.nonce, DISCOVER_NONCE);
    return asking_all(asking->fd, bytes, discover_put_question(bytes, &question, asking->token),
                      port, asking->token == NULL);
}

int discovery_ask(uint16_t port, const struct token *token, uint32_t kinds, uint64_t wait_ns,
                  const volatile sig_atomic_t *stop,
                  bool (*found)(void *context, const struct discovery_found *one), void *context,
                  struct error *error) {
    SCOPE_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct asking asking = {.fd = fd, .token = token};
    uint64_t end = clock_now_ns() + wait_ns;
    uint64_t again = 0;
    bool asked = false;
    bool goes_on = true;
    int on = 1;
    if (asking.fd < 0 || setsockopt(asking.fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof on) != 0 ||
        getrandom(asking.nonces, sizeof asking.nonces, 0) != (ssize_t)sizeof asking.nonces) {
        return error_set(error, "cannot ask by UDP: %s", strerror(errno));
    }
    for (uint64_t now = clock_now_ns(); goes_on && *stop == 0 && now < end; now = clock_now_ns()) {
        struct pollfd one = {asking.fd, POLLIN, 0};
        if (now >= again) {
            asked = asking_again(&asking, port, kinds) || asked;
            again = now + ASK_ANEW_NS;
        }
        if (poll(&one, 1, 50) > 0) {
            goes_on = asking_hear(&asking, found, context);
        }
    }
    return asked ? 0 : error_set(error, "nobody can be asked by UDP: no network is up");
}

/* ---- A gatherer in place of a name ---- */

static const char word[] = "auto";

bool discovery_is_auto(const char *host) {
    size_t length = sizeof word - 1;
    return strncmp(host, word, length) == 0 && (host[length] == '\0' || host[length] == '@');
}

void discovery_auto_host(const uint8_t id[DISCOVER_ID], char host[CHANNEL_HOST]) {
    int length = snprintf(host, CHANNEL_HOST, "%s@", word);
    for (int i = 0; i < DISCOVER_ID; i++) {
        length += snprintf(host + length, CHANNEL_HOST - (size_t)length, "%02x", id[i]);
    }
}

struct choice {
    const char *host;
    struct discovery_found *gatherer;
    bool is_found;
};

/* The first that is meant. */
static bool choice_take(void *context, const struct discovery_found *one) {
    struct choice *choice = context;
    char host[CHANNEL_HOST];
    discovery_auto_host(one->answer.id, host);
    if (strcmp(choice->host, word) != 0 && strcmp(choice->host, host) != 0) {
        return true;
    }
    *choice->gatherer = *one;
    choice->is_found = true;
    return false;
}

int discovery_find_gatherer(const char *host, uint16_t port, const struct token *token,
                            const volatile sig_atomic_t *stop, struct discovery_found *gatherer,
                            struct error *error) {
    struct choice choice = {.host = host, .gatherer = gatherer};
    if (discovery_ask(port, token, DISCOVER_GATHERER, SECOND, stop, choice_take, &choice, error) !=
        0) {
        return -1;
    }
    return choice.is_found ? 1 : 0;
}
