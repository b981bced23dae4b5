/* SPDX-License-Identifier: MIT */
/*
 * sources.c: many senders in one process, each with a recording that grows at a steady pace, for
 * the benchmark of `memtrace gather` and its test. Beside them connections that say nothing, and
 * others that say garbage.
 *
 *     sources PORT TOKEN SOURCES BYTES-A-SECOND SECONDS SILENT GARBAGE [FOLDER]
 *
 * "ready" goes to stdout when all are connected, then it waits for a line on stdin; "sent" when the
 * time is over, then it waits again, ends all recordings and prints in one line what was measured.
 * With FOLDER what was sent is put there.
 */
#include "stream/channel.h"
#include "stream/wire.h"

#define XXH_INLINE_ALL
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define MS UINT64_C(1000000)

enum {
    TURNS_A_SECOND = 20, /* as often as a sender looks at its file */
    PATTERN = 1 << 20,
    HEAD = 144, /* what an identity is made of */
    SENT_MOST = 4096,
    ANSWER_MOST = 60000, /* ms that the receiver may take for all ends */
};

struct sent {
    uint64_t end, at_ns;
};

struct one {
    struct channel channel;
    struct wire_hello hello;
    uint8_t head[HEAD];
    bool is_welcome, has_ended;
    uint64_t next, window, acked;
    struct sent sent[SENT_MOST]; /* not acknowledged yet: a ring */
    size_t first, count;
    size_t in_size;
    uint8_t in[4 * WIRE_SMALL_MOST];
};

static uint8_t pattern[PATTERN];
static struct one *ones;
static size_t sources;
static struct pollfd *polls;
static uint64_t *latencies;
static size_t measured, room;
static struct sockaddr_in receiver;
static struct token *token;

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

static _Noreturn void die(size_t number, const char *what, const char *why) {
    fprintf(stderr, "sources: number %zu: %s: %s\n", number, what, why);
    exit(1);
}

/* ---- What is sent ---- */

/* Each recording is its head, then the pattern from a place of its own on. */
static void fill(const struct one *one, uint64_t at, uint8_t *to, size_t size) {
    size_t shift = (size_t)one->hello.pid * 4099;
    for (size_t done = 0; done < size;) {
        size_t place = (size_t)((at + done + shift) % PATTERN);
        size_t part = size - done < PATTERN - place ? size - done : PATTERN - place;
        memcpy(to + done, pattern + place, part);
        done += part;
    }
    for (uint64_t i = at; i < HEAD && i < at + size; i++) {
        to[i - at] = one->head[i];
    }
}

static uint64_t hash_of(const struct one *one, const char *folder) {
    static uint8_t piece[1 << 16];
    char path[4096];
    uint64_t hash = 0;
    FILE *file = NULL;
    if (folder != NULL) {
        snprintf(path, sizeof path, "%s/%u", folder, one->hello.pid);
        file = fopen(path, "wb");
    }
    for (uint64_t at = 0; at < one->next; at += sizeof piece) {
        size_t size = one->next - at < sizeof piece ? (size_t)(one->next - at) : sizeof piece;
        fill(one, at, piece, size);
        hash = XXH3_64bits_withSeed(piece, size, hash);
        if (file != NULL) {
            fwrite(piece, 1, size, file);
        }
    }
    if (file != NULL && fclose(file) != 0) {
        die(one->hello.pid, "cannot write", path);
    }
    return hash;
}

static void write_all(size_t number, const uint8_t *bytes, size_t size) {
    struct channel *channel = &ones[number].channel;
    struct error error = {""};
    while (size > 0) {
        ssize_t put = channel_write(channel, bytes, size, &error);
        if (put < 0) {
            die(number, "write", error.message);
        }
        if (put == 0) {
            struct pollfd wait = {channel->fd, POLLOUT, 0};
            poll(&wait, 1, -1);
        }
        bytes += put;
        size -= (size_t)put;
    }
}

static void send_some(size_t number, uint64_t bytes, uint64_t now) {
    static uint8_t frame[WIRE_FRAME_MOST];
    struct one *one = &ones[number];
    for (uint64_t left = bytes; left > 0;) {
        size_t size = left < WIRE_DATA_MOST ? (size_t)left : WIRE_DATA_MOST;
        wire_put_data(frame, one->next, (uint32_t)size);
        fill(one, one->next, frame + WIRE_HEADER, size);
        write_all(number, frame, WIRE_HEADER + size);
        one->next += size;
        left -= size;
    }
    if (one->count == SENT_MOST || one->next - one->acked > one->window) {
        die(number, "the receiver", "does not keep up");
    }
    one->sent[(one->first + one->count++) % SENT_MOST] = (struct sent){one->next, now};
}

/* ---- What is answered ---- */

static void take_ack(struct one *one, uint64_t acked, uint64_t now) {
    one->acked = acked;
    while (one->count != 0 && one->sent[one->first].end <= acked) {
        if (measured < room) {
            latencies[measured++] = now - one->sent[one->first].at_ns;
        }
        one->first = (one->first + 1) % SENT_MOST;
        one->count--;
    }
}

static void take_frame(size_t number, const struct wire_frame *frame) {
    struct one *one = &ones[number];
    struct wire_refusal refusal;
    uint32_t window;
    switch (frame->type) {
    case WIRE_WELCOME:
        wire_read_welcome(frame, &window);
        if (one->is_welcome) {
            die(number, "the receiver", "has other bytes");
        }
        one->is_welcome = true;
        one->next = one->acked = frame->offset;
        one->window = window;
        break;
    case WIRE_ACK:
        take_ack(one, frame->offset, now_ns());
        break;
    case WIRE_END:
        one->has_ended = true;
        break;
    case WIRE_REFUSE:
        wire_read_refusal(frame, &refusal);
        die(number, "refused", refusal.reason);
    default:
        break;
    }
}

static void hear(size_t number) {
    struct one *one = &ones[number];
    struct error error = {""};
    struct wire_frame frame;
    ssize_t got;
    while ((got = channel_read(&one->channel, one->in + one->in_size, sizeof one->in - one->in_size,
                               &error)) > 0) {
        size_t at = 0;
        long size;
        one->in_size += (size_t)got;
        while ((size = wire_parse(one->in + at, one->in_size - at, &frame)) > 0) {
            take_frame(number, &frame);
            at += (size_t)size;
        }
        memmove(one->in, one->in + at, one->in_size - at);
        one->in_size -= at;
        if (size < 0) {
            die(number, "the receiver", "does not speak the protocol");
        }
    }
    if (got < 0 && !one->has_ended) {
        die(number, "read", error.message);
    }
}

static void hear_all(int timeout_ms) {
    for (size_t i = 0; i < sources; i++) {
        polls[i] = (struct pollfd){ones[i].has_ended ? -1 : ones[i].channel.fd, POLLIN, 0};
    }
    if (poll(polls, sources, timeout_ms) > 0) {
        for (size_t i = 0; i < sources; i++) {
            if (polls[i].revents != 0) {
                hear(i);
            }
        }
    }
}

/* ---- Connecting ---- */

static int connect_one(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&receiver, sizeof receiver) != 0) {
        perror("sources: cannot connect");
        exit(1);
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void greet(size_t number) {
    struct one *one = &ones[number];
    uint8_t bytes[WIRE_SMALL_MOST];
    struct error error = {""};
    int on = 1;
    int fd = connect_one();
    int done;
    XXH128_canonical_t id;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (channel_open(&one->channel, fd, false, token) != 0) {
        die(number, "connect", "out of memory");
    }
    while ((done = channel_handshake(&one->channel, &error)) == 0) {
        struct pollfd wait = {fd, POLLIN, 0};
        poll(&wait, 1, -1);
    }
    if (done < 0) {
        die(number, "handshake", error.message);
    }
    snprintf((char *)one->head, sizeof one->head, "recording %zu", number);
    XXH128_canonicalFromHash(&id, XXH3_128bits(one->head, sizeof one->head));
    one->hello = (struct wire_hello){
        .version = WIRE_VERSION, .pid = (uint32_t)number + 1, .started_ns = 1000000000};
    memcpy(one->hello.id, id.digest, sizeof one->hello.id);
    snprintf(one->hello.host, sizeof one->hello.host, "device-%zu", number);
    snprintf(one->hello.program, sizeof one->hello.program, "program");
    write_all(number, bytes, wire_put_hello(bytes, &one->hello));
}

/* Those that are of no use. They come again when the receiver has closed them. */
static void disturb(int *fds, size_t count, bool is_garbage) {
    char bytes[300];
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0) {
            ssize_t got = recv(fds[i], bytes, sizeof bytes, 0);
            if (got == 0 || (got < 0 && errno != EAGAIN)) {
                close(fds[i]);
                fds[i] = -1;
            }
        }
        if (fds[i] < 0) {
            fds[i] = connect_one();
            if (is_garbage) {
                /* Half of it begins as TLS does. */
                memcpy(bytes, pattern + (i * 977 + (size_t)now_ns()) % (PATTERN - sizeof bytes),
                       sizeof bytes);
                memcpy(bytes, "\x16\x03\x01\x00\x80\x01", i % 2 == 0 ? 6 : 0);
                send(fds[i], bytes, sizeof bytes, MSG_NOSIGNAL);
            }
        }
    }
}

static int *none_yet(size_t count) {
    int *fds = calloc(count + 1, sizeof *fds);
    for (size_t i = 0; fds != NULL && i < count; i++) {
        fds[i] = -1;
    }
    return fds;
}

/* ---- All of it ---- */

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void say(const char *word) {
    char line[16];
    puts(word);
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) {
        exit(1);
    }
}

/* Each has its turn in each interval, one after the other. */
static void send_for(unsigned seconds, uint64_t rate, int *silent, size_t silents, int *garbage,
                     size_t garbages) {
    uint64_t start = now_ns();
    uint64_t turns = (uint64_t)seconds * TURNS_A_SECOND * sources;
    uint64_t apart = 1000 * MS / TURNS_A_SECOND / sources;
    uint64_t disturbed = 0;
    for (uint64_t turn = 0; turn < turns;) {
        uint64_t now = now_ns();
        if (now < start + turn * apart) {
            hear_all((int)((start + turn * apart - now) / MS) + 1);
            continue;
        }
        if (turn / sources != disturbed && turn / sources % 10 == 0) {
            disturbed = turn / sources;
            disturb(silent, silents, false);
            disturb(garbage, garbages, true);
        }
        /* Late ones have their turn at once, but all are heard in between. */
        send_some(turn++ % sources, rate / TURNS_A_SECOND, now);
        hear_all(0);
    }
}

static void end_all(const char *folder) {
    uint8_t bytes[WIRE_SMALL_MOST];
    uint64_t until = now_ns() + ANSWER_MOST * MS;
    size_t ended = 0;
    for (size_t i = 0; i < sources; i++) {
        write_all(i, bytes, wire_put_end(bytes, ones[i].next, hash_of(&ones[i], folder)));
        hear_all(0);
    }
    while (ended < sources && now_ns() < until) {
        hear_all(100);
        ended = 0;
        for (size_t i = 0; i < sources; i++) {
            ended += ones[i].has_ended;
        }
    }
    qsort(latencies, measured, sizeof *latencies, compare);
    if (measured == 0) {
        die(0, "the receiver", "has acknowledged nothing");
    }
    printf("{\"ended\": %zu, \"bytes\": %llu, \"median_ms\": %.1f, \"p99_ms\": %.1f, "
           "\"most_ms\": %.1f}\n",
           ended, (unsigned long long)ones[0].next * sources, (double)latencies[measured / 2] / 1e6,
           (double)latencies[measured * 99 / 100] / 1e6, (double)latencies[measured - 1] / 1e6);
}

int main(int argc, char **argv) {
    struct error error = {""};
    uint64_t state = 1;
    if (argc < 8) {
        fprintf(stderr,
                "usage: %s PORT TOKEN SOURCES BYTES-A-SECOND SECONDS SILENT GARBAGE "
                "[FOLDER]\n",
                argv[0]);
        return 2;
    }
    size_t silents = (size_t)strtoul(argv[6], NULL, 10);
    size_t garbages = (size_t)strtoul(argv[7], NULL, 10);
    uint64_t rate = strtoull(argv[4], NULL, 10);
    unsigned seconds = (unsigned)strtoul(argv[5], NULL, 10);
    int *silent = none_yet(silents);
    int *garbage = none_yet(garbages);
    sources = (size_t)strtoul(argv[3], NULL, 10);
    room = sources * seconds * TURNS_A_SECOND;
    ones = calloc(sources, sizeof *ones);
    polls = calloc(sources, sizeof *polls);
    latencies = calloc(room + 1, sizeof *latencies);
    token = token_read(argv[2], &error);
    if (sources == 0 || seconds == 0 || rate < TURNS_A_SECOND || silent == NULL ||
        garbage == NULL || ones == NULL || polls == NULL || latencies == NULL || token == NULL) {
        die(0, "cannot begin", error.message);
    }
    signal(SIGPIPE, SIG_IGN);
    receiver.sin_family = AF_INET;
    receiver.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
    receiver.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (size_t i = 0; i < PATTERN; i++) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        pattern[i] = (uint8_t)(state >> 56);
    }
    for (size_t i = 0; i < sources; i++) {
        greet(i);
    }
    for (size_t welcome = 0; welcome < sources;) {
        hear_all(100);
        welcome = 0;
        for (size_t i = 0; i < sources; i++) {
            welcome += ones[i].is_welcome;
        }
    }
    disturb(silent, silents, false);
    say("ready");
    send_for(seconds, rate, silent, silents, garbage, garbages);
    say("sent");
    end_all(argc > 8 ? argv[8] : NULL);
    return 0;
}
