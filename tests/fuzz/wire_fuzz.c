/* SPDX-License-Identifier: MIT */
/*
 * wire_fuzz.c: libFuzzer's target: any bytes as what came over a connection. Each frame that can be
 * read is written again and must be the same bytes; a frame that is whole stays so whatever comes
 * behind it, and is not whole without its last byte. tests/fuzz/run runs it.
 */
#include "stream/wire.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void require(bool is_so) {
    if (!is_so) {
        abort();
    }
}

/* Writes what was read; 0: the frame has no sense, or is not to come back as it was. */
static size_t put_again(const struct wire_frame *frame, uint8_t *to) {
    struct wire_hello hello;
    struct wire_refusal refusal;
    struct programask_wish wish;
    struct programask_answer answer;
    uint8_t id[WIRE_ID];
    uint32_t window;
    uint64_t hash;
    struct wire_piece piece;
    bool has;
    switch (frame->type) {
    case WIRE_HELLO:
        if (wire_read_hello(frame, &hello) != 0 || hello.version != WIRE_VERSION) {
            return 0;
        }
        return frame->offset == 0 ? wire_put_hello(to, &hello) : 0;
    case WIRE_WELCOME:
        return wire_read_welcome(frame, &window) == 0 ? wire_put_welcome(to, frame->offset, window)
                                                      : 0;
    case WIRE_DATA:
        memcpy(to + WIRE_HEADER, frame->payload, frame->length);
        return wire_put_data(to, frame->offset, frame->length) + frame->length;
    case WIRE_ACK:
        return wire_put_ack(to, frame->offset);
    case WIRE_ALIVE:
        return frame->offset == 0 ? wire_put_alive(to) : 0;
    case WIRE_END:
        wire_read_end(frame, &hash);
        return wire_put_end(to, frame->offset, hash);
    case WIRE_REFUSE:
        wire_read_refusal(frame, &refusal);
        return strlen(refusal.reason) == frame->length - 4 && frame->offset == 0
                   ? wire_put_refusal(to, refusal.code, refusal.reason)
                   : 0;
    case WIRE_CONTROL:
        return wire_read_control(frame, &wish) == 0 && strlen(wish.text) == frame->length - 12
                   ? wire_put_control(to, frame->offset, &wish)
                   : 0;
    case WIRE_ANSWER:
        return wire_read_answer(frame, &answer) == 0 && strlen(answer.text) == frame->length - 4
                   ? wire_put_answer(to, frame->offset, &answer)
                   : 0;
    case WIRE_PULL:
        return wire_read_pull(frame, &window, id) == 0 && window == WIRE_VERSION &&
                       frame->offset == 0
                   ? wire_put_pull(to, id)
                   : 0;
    case WIRE_OFFER:
        if (wire_read_hello(frame, &hello) != 0 || hello.version != WIRE_VERSION) {
            return 0;
        }
        return wire_put_offer(to, &hello, frame->offset);
    case WIRE_ASK:
    case WIRE_KNOWN:
        return wire_read_piece(frame, &piece) == 0
                   ? wire_put_piece(to, frame->type, frame->offset, &piece)
                   : 0;
    case WIRE_HAS:
        return wire_read_has(frame, &has) == 0 ? wire_put_has(to, frame->offset, has) : 0;
    }
    abort(); /* a type that there is not */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t again[WIRE_FRAME_MOST];
    struct wire_frame frame;
    struct wire_frame other;
    long whole;
    for (size_t at = 0; (whole = wire_parse(data + at, size - at, &frame)) > 0;
         at += (size_t)whole) {
        require((size_t)whole <= size - at && frame.length + WIRE_HEADER == (size_t)whole);
        require(wire_parse(data + at, (size_t)whole, &other) == whole);
        require(wire_parse(data + at, (size_t)whole - 1, &other) == 0);
        size_t put = put_again(&frame, again);
        require(put == 0 || (put == (size_t)whole && memcmp(again, data + at, put) == 0));
    }
    return 0;
}
