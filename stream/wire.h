/* SPDX-License-Identifier: MIT */
/*
 * wire.h: the frames by which a recording goes to another machine: bytes to frames and back. No
 * socket, no file; docs/stream.md says the same in words.
 *
 * Called by stream/sender and stream/gatherer. Any thread.
 *
 * A frame is a header of 16 bytes and a payload; numbers are little-endian:
 *
 *     0  "MTS", then the type    4  u32 bytes of the payload    8  u64 offset
 */
#ifndef STREAM_WIRE_H
#define STREAM_WIRE_H

#include "collect/programask.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_type {
    WIRE_HELLO = 1,   /* sender: which recording, struct wire_hello */
    WIRE_WELCOME = 2, /* receiver: send from `offset` on, `window` bytes at most ahead of acks */
    WIRE_DATA = 3,    /* sender: bytes of the file at `offset`, at least one */
    WIRE_ACK = 4,     /* receiver: all bytes below `offset` are on its disk */
    WIRE_ALIVE = 5,   /* either: nothing to say, but still there */
    WIRE_END = 6,    /* sender: the file has `offset` bytes with this hash; receiver: so has mine */
    WIRE_REFUSE = 7, /* receiver: why not, struct wire_refusal */
    WIRE_CONTROL = 8, /* receiver: what is to be done to the program, struct programask_wish */
    WIRE_ANSWER = 9,  /* sender: what has become of that, struct programask_answer */
    WIRE_PULL = 10,   /* receiver that has connected: which recording it wants, or the list */
    WIRE_OFFER = 11,  /* sender: one of those that it has, of `offset` bytes: struct wire_hello */
    WIRE_ASK = 12,    /* sender: has the receiver got these bytes of a file? struct wire_piece */
    WIRE_HAS = 13,    /* receiver: whether it has those that come at `offset` */
    WIRE_KNOWN = 14,  /* sender, instead of DATA: those which the receiver has, struct wire_piece */
};

enum {
    WIRE_VERSION = 3,
    WIRE_HEADER = 16,
    WIRE_ID = 16,
    WIRE_DIGEST = 32,
    WIRE_NAME_MOST = 255,      /* of a host or a program */
    WIRE_REASON_MOST = 255,    /* text of a refusal, a mark, an answer */
    WIRE_DATA_MOST = 1 << 16,  /* payload of one DATA frame */
    WIRE_PIECE_MOST = 8 << 20, /* bytes of a file that one ASK or KNOWN stands for */
    WIRE_FRAME_MOST = WIRE_HEADER + WIRE_DATA_MOST,
    WIRE_HELLO_FIXED = 48,
    WIRE_SMALL_MOST = 640, /* any other frame, header included */
};

/* In nanoseconds: what is said at least so often, and how long nothing may be heard. */
#define WIRE_ALIVE_NS   (UINT64_C(5) * 1000000000)
#define WIRE_SILENCE_NS (UINT64_C(20) * 1000000000)

struct wire_hello {
    uint32_t version;
    uint32_t pid;
    uint32_t part;       /* of a rotated recording */
    uint32_t flags;      /* enum wire_hello_flag */
    uint64_t started_ns; /* of the program, by the clock of its machine */
    uint64_t held_from;  /* bytes below are not there any more: a receiver has them */
    uint8_t id[WIRE_ID]; /* what the file begins with tells: source_id() */
    char host[WIRE_NAME_MOST + 1];
    char program[WIRE_NAME_MOST + 1];
};

enum wire_hello_flag {
    WIRE_ALLOWS_CONTROL = 1, /* the receiver may send WIRE_CONTROL */
};

enum wire_code {
    WIRE_OTHER_VERSION = 1,
    WIRE_QUOTA = 2,    /* the place that this recording, or all, may take is used up */
    WIRE_NO_SPACE = 3, /* the disk is full: may be over later */
    WIRE_TAKEN = 4,    /* another sender goes on with this recording */
    WIRE_BAD = 5,      /* what was said makes no sense here */
};

struct wire_refusal {
    uint32_t code; /* enum wire_code, or one of a later version */
    char reason[WIRE_REASON_MOST + 1];
};

/* Bytes that may be in other recordings, too: the frame's offset is where they stand in this one.
 */
struct wire_piece {
    uint32_t size;
    uint8_t
        digest[WIRE_DIGEST]; /* SHA-256 of them: who has the token cannot pass others off as them */
};

/* A frame among received bytes; the payload is not copied. */
struct wire_frame {
    enum wire_type type;
    uint32_t length;
    uint64_t offset;
    const uint8_t *payload;
};

/* The frame that begins at `bytes`: its whole size; 0: more bytes are needed; -1: these are no
 * frames. A frame that cannot be right is found by its header alone. */
long wire_parse(const uint8_t *bytes, size_t size, struct wire_frame *frame);

/* What the payload of a parsed frame says. 0, or -1: it makes no sense. A hello of another version
 * has only its version. */
int wire_read_hello(const struct wire_frame *frame, struct wire_hello *hello);
int wire_read_welcome(const struct wire_frame *frame, uint32_t *window);
int wire_read_end(const struct wire_frame *frame, uint64_t *hash);
int wire_read_refusal(const struct wire_frame *frame, struct wire_refusal *refusal);
/* The frame's offset is a number: an answer has that of its control. */
int wire_read_control(const struct wire_frame *frame, struct programask_wish *wish);
int wire_read_answer(const struct wire_frame *frame, struct programask_answer *answer);
int wire_read_piece(const struct wire_frame *frame, struct wire_piece *piece); /* ASK, KNOWN */
int wire_read_has(const struct wire_frame *frame, bool *has);
/* The recording's id, all zeros for the list; a pull of another version has only its version. */
int wire_read_pull(const struct wire_frame *frame, uint32_t *version, uint8_t id[WIRE_ID]);

/* Each writes a whole frame and returns its size; there is room for WIRE_SMALL_MOST bytes. */
size_t wire_put_hello(uint8_t *to, const struct wire_hello *hello);
size_t wire_put_welcome(uint8_t *to, uint64_t offset, uint32_t window);
size_t wire_put_ack(uint8_t *to, uint64_t offset);
size_t wire_put_alive(uint8_t *to);
size_t wire_put_end(uint8_t *to, uint64_t size, uint64_t hash);
size_t wire_put_refusal(uint8_t *to, enum wire_code code, const char *reason);
size_t wire_put_control(uint8_t *to, uint64_t number, const struct programask_wish *wish);
size_t wire_put_answer(uint8_t *to, uint64_t number, const struct programask_answer *answer);
size_t wire_put_pull(uint8_t *to, const uint8_t id[WIRE_ID]);
size_t wire_put_offer(uint8_t *to, const struct wire_hello *hello, uint64_t size);
size_t wire_put_piece(uint8_t *to, enum wire_type type, uint64_t offset,
                      const struct wire_piece *piece); /* ASK, KNOWN */
size_t wire_put_has(uint8_t *to, uint64_t offset, bool has);
/* The header alone: `length` bytes of the file follow. */
size_t wire_put_data(uint8_t *to, uint64_t offset, uint32_t length);

#endif
