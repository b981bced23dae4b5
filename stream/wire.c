/* SPDX-License-Identifier: MIT */
/* wire.c: frames as bytes. See wire.h. */
#include "stream/wire.h"

#include <stdio.h>
#include <string.h>

static const uint8_t magic[3] = {'M', 'T', 'S'};

/* ---- Numbers ---- */

static void wire_put(uint8_t *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t wire_get(const uint8_t *from, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint64_t)from[i] << (8 * i);
    }
    return value;
}

/* ---- Reading ---- */

long wire_parse(const uint8_t *bytes, size_t size, struct wire_frame *frame) {
    static const struct {
        uint32_t least, most;
    } payloads[] = {
        [WIRE_HELLO] = {4, WIRE_SMALL_MOST - WIRE_HEADER},
        [WIRE_WELCOME] = {4, 4},
        [WIRE_DATA] = {1, WIRE_DATA_MOST},
        [WIRE_ACK] = {0, 0},
        [WIRE_ALIVE] = {0, 0},
        [WIRE_END] = {8, 8},
        [WIRE_REFUSE] = {4, 4 + WIRE_REASON_MOST},
        [WIRE_CONTROL] = {12, 12 + WIRE_REASON_MOST},
        [WIRE_ANSWER] = {4, 4 + WIRE_REASON_MOST},
        [WIRE_PULL] = {4, 4 + WIRE_ID},
        [WIRE_OFFER] = {WIRE_HELLO_FIXED, WIRE_SMALL_MOST - WIRE_HEADER},
        [WIRE_ASK] = {4 + WIRE_DIGEST, 4 + WIRE_DIGEST},
        [WIRE_HAS] = {4, 4},
        [WIRE_KNOWN] = {4 + WIRE_DIGEST, 4 + WIRE_DIGEST},
    };
    uint8_t type;
    if (memcmp(bytes, magic, size < sizeof magic ? size : sizeof magic) != 0) {
        return -1;
    }
    if (size < WIRE_HEADER) {
        return 0;
    }
    type = bytes[3];
    frame->length = (uint32_t)wire_get(bytes + 4, 4);
    frame->offset = wire_get(bytes + 8, 8);
    frame->payload = bytes + WIRE_HEADER;
    /* Offsets are those of files, so that sums of two of them never overflow. */
    if (type == 0 || type >= sizeof payloads / sizeof *payloads ||
        frame->length < payloads[type].least || frame->length > payloads[type].most ||
        frame->offset > INT64_MAX / 2) {
        return -1;
    }
    frame->type = type;
    return size - WIRE_HEADER < frame->length ? 0 : (long)WIRE_HEADER + (long)frame->length;
}

/* A text that ends with a zero within *size bytes; what is behind it is left. 0 or -1. */
static int wire_read_name(const uint8_t **from, size_t *size, char *name) {
    size_t length = strnlen((const char *)*from, *size);
    if (length == *size || length == 0 || length > WIRE_NAME_MOST) {
        return -1;
    }
    memcpy(name, *from, length + 1);
    *from += length + 1;
    *size -= length + 1;
    return 0;
}

int wire_read_hello(const struct wire_frame *frame, struct wire_hello *hello) {
    const uint8_t *at = frame->payload;
    size_t left = frame->length;
    memset(hello, 0, sizeof *hello);
    hello->version = (uint32_t)wire_get(at, 4);
    if (hello->version != WIRE_VERSION) {
        return 0;
    }
    if (left < WIRE_HELLO_FIXED) {
        return -1;
    }
    hello->pid = (uint32_t)wire_get(at + 4, 4);
    hello->part = (uint32_t)wire_get(at + 8, 4);
    hello->flags = (uint32_t)wire_get(at + 12, 4);
    hello->started_ns = wire_get(at + 16, 8);
    memcpy(hello->id, at + 24, WIRE_ID);
    hello->held_from = wire_get(at + 40, 8);
    at += WIRE_HELLO_FIXED;
    left -= WIRE_HELLO_FIXED;
    return wire_read_name(&at, &left, hello->host) == 0 &&
                   wire_read_name(&at, &left, hello->program) == 0 && left == 0
               ? 0
               : -1;
}

int wire_read_welcome(const struct wire_frame *frame, uint32_t *window) {
    *window = (uint32_t)wire_get(frame->payload, 4);
    return *window >= WIRE_DATA_MOST ? 0 : -1;
}

int wire_read_end(const struct wire_frame *frame, uint64_t *hash) {
    *hash = wire_get(frame->payload, 8);
    return 0;
}

/* What follows the first `fixed` bytes of a payload; wire_parse() has seen to it that it fits. */
static void wire_read_text(const struct wire_frame *frame, size_t fixed, char *text) {
    size_t length = frame->length - fixed;
    memcpy(text, frame->payload + fixed, length);
    text[length] = '\0';
}

int wire_read_refusal(const struct wire_frame *frame, struct wire_refusal *refusal) {
    refusal->code = (uint32_t)wire_get(frame->payload, 4);
    wire_read_text(frame, 4, refusal->reason);
    return 0;
}

int wire_read_control(const struct wire_frame *frame, struct programask_wish *wish) {
    wish->what = (uint32_t)wire_get(frame->payload, 4);
    wish->mean = wire_get(frame->payload + 4, 8);
    wire_read_text(frame, 12, wish->text);
    return wish->what != 0 && wish->what < PROGRAMASK_WISHES ? 0 : -1;
}

int wire_read_answer(const struct wire_frame *frame, struct programask_answer *answer) {
    uint64_t is_done = wire_get(frame->payload, 4);
    answer->is_done = is_done == 1;
    wire_read_text(frame, 4, answer->text);
    return is_done <= 1 ? 0 : -1;
}

int wire_read_piece(const struct wire_frame *frame, struct wire_piece *piece) {
    piece->size = (uint32_t)wire_get(frame->payload, 4);
    memcpy(piece->digest, frame->payload + 4, WIRE_DIGEST);
    return piece->size != 0 && piece->size <= WIRE_PIECE_MOST ? 0 : -1;
}

int wire_read_has(const struct wire_frame *frame, bool *has) {
    uint64_t there = wire_get(frame->payload, 4);
    *has = there == 1;
    return there <= 1 ? 0 : -1;
}

int wire_read_pull(const struct wire_frame *frame, uint32_t *version, uint8_t id[WIRE_ID]) {
    memset(id, 0, WIRE_ID);
    *version = (uint32_t)wire_get(frame->payload, 4);
    if (*version != WIRE_VERSION) {
        return 0;
    }
    if (frame->length != 4 + WIRE_ID) {
        return -1;
    }
    memcpy(id, frame->payload + 4, WIRE_ID);
    return 0;
}

/* ---- Writing ---- */

static size_t wire_put_header(uint8_t *to, enum wire_type type, size_t length, uint64_t offset) {
    memcpy(to, magic, sizeof magic);
    to[3] = (uint8_t)type;
    wire_put(to + 4, length, 4);
    wire_put(to + 8, offset, 8);
    return WIRE_HEADER + length;
}

_Static_assert(WIRE_REASON_MOST == WIRE_NAME_MOST && PROGRAMASK_TEXT == WIRE_REASON_MOST + 1,
               "put_name() and read_text() are for all of them");

static size_t wire_put_name(uint8_t *to, const char *name) {
    size_t length = strnlen(name, WIRE_NAME_MOST);
    snprintf((char *)to, length + 1, "%s", name);
    return length + 1;
}

static size_t wire_put_described(uint8_t *to, enum wire_type type, const struct wire_hello *hello,
                                 uint64_t offset) {
    uint8_t *payload = to + WIRE_HEADER;
    size_t length = WIRE_HELLO_FIXED;
    memset(payload, 0, WIRE_HELLO_FIXED);
    wire_put(payload, hello->version, 4);
    wire_put(payload + 4, hello->pid, 4);
    wire_put(payload + 8, hello->part, 4);
    wire_put(payload + 12, hello->flags, 4);
    wire_put(payload + 16, hello->started_ns, 8);
    memcpy(payload + 24, hello->id, WIRE_ID);
    wire_put(payload + 40, hello->held_from, 8);
    length += wire_put_name(payload + length, hello->host);
    length += wire_put_name(payload + length, hello->program);
    return wire_put_header(to, type, length, offset);
}

size_t wire_put_hello(uint8_t *to, const struct wire_hello *hello) {
    return wire_put_described(to, WIRE_HELLO, hello, 0);
}

size_t wire_put_offer(uint8_t *to, const struct wire_hello *hello, uint64_t size) {
    return wire_put_described(to, WIRE_OFFER, hello, size);
}

size_t wire_put_welcome(uint8_t *to, uint64_t offset, uint32_t window) {
    wire_put(to + WIRE_HEADER, window, 4);
    return wire_put_header(to, WIRE_WELCOME, 4, offset);
}

size_t wire_put_ack(uint8_t *to, uint64_t offset) {
    return wire_put_header(to, WIRE_ACK, 0, offset);
}

size_t wire_put_alive(uint8_t *to) {
    return wire_put_header(to, WIRE_ALIVE, 0, 0);
}

size_t wire_put_end(uint8_t *to, uint64_t size, uint64_t hash) {
    wire_put(to + WIRE_HEADER, hash, 8);
    return wire_put_header(to, WIRE_END, 8, size);
}

size_t wire_put_refusal(uint8_t *to, enum wire_code code, const char *reason) {
    size_t length =
        wire_put_name(to + WIRE_HEADER + 4, reason) - 1; /* the frame says how long it is */
    wire_put(to + WIRE_HEADER, code, 4);
    return wire_put_header(to, WIRE_REFUSE, 4 + length, 0);
}

size_t wire_put_control(uint8_t *to, uint64_t number, const struct programask_wish *wish) {
    size_t length = wire_put_name(to + WIRE_HEADER + 12, wish->text) - 1;
    wire_put(to + WIRE_HEADER, wish->what, 4);
    wire_put(to + WIRE_HEADER + 4, wish->mean, 8);
    return wire_put_header(to, WIRE_CONTROL, 12 + length, number);
}

size_t wire_put_answer(uint8_t *to, uint64_t number, const struct programask_answer *answer) {
    size_t length = wire_put_name(to + WIRE_HEADER + 4, answer->text) - 1;
    wire_put(to + WIRE_HEADER, answer->is_done, 4);
    return wire_put_header(to, WIRE_ANSWER, 4 + length, number);
}

size_t wire_put_pull(uint8_t *to, const uint8_t id[WIRE_ID]) {
    wire_put(to + WIRE_HEADER, WIRE_VERSION, 4);
    memcpy(to + WIRE_HEADER + 4, id, WIRE_ID);
    return wire_put_header(to, WIRE_PULL, 4 + WIRE_ID, 0);
}

size_t wire_put_piece(uint8_t *to, enum wire_type type, uint64_t offset,
                      const struct wire_piece *piece) {
    wire_put(to + WIRE_HEADER, piece->size, 4);
    memcpy(to + WIRE_HEADER + 4, piece->digest, WIRE_DIGEST);
    return wire_put_header(to, type, 4 + WIRE_DIGEST, offset);
}

size_t wire_put_has(uint8_t *to, uint64_t offset, bool has) {
    wire_put(to + WIRE_HEADER, has, 4);
    return wire_put_header(to, WIRE_HAS, 4, offset);
}

size_t wire_put_data(uint8_t *to, uint64_t offset, uint32_t length) {
    wire_put_header(to, WIRE_DATA, length, offset);
    return WIRE_HEADER;
}
