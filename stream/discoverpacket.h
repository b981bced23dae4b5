/* SPDX-License-Identifier: MIT */
/*
 * discoverpacket.h: questions and answers by which machines find each other: bytes, no socket.
 * docs/stream.md says the same in words.
 *
 * Called by stream/discovery. Any thread.
 *
 * A question has DISCOVER_BYTES, an answer never more, so nobody can make us send more than he
 * does. Who has no token gets no answer from those who have one, and an answer counts only for the
 * one question whose nonce is in its proof.
 */
#ifndef STREAM_DISCOVERPACKET_H
#define STREAM_DISCOVERPACKET_H

#include "stream/channel.h"

enum {
    DISCOVER_BYTES = 512,
    DISCOVER_NONCE = 16,
    DISCOVER_ID = 16,
    DISCOVER_NAME = 128, /* with the zero at its end */
};

enum discover_kind {
    DISCOVER_GATHERER = 1, /* receives recordings */
    DISCOVER_OFFER = 2,    /* has some to be pulled */
};

struct discover_question {
    uint32_t kinds; /* of enum discover_kind, whose bits may be or-ed */
    uint8_t nonce[DISCOVER_NONCE];
};

struct discover_answer {
    uint32_t kind;  /* enum discover_kind */
    uint16_t port;  /* TCP; of the address that the answer comes from, where `address` is empty */
    uint32_t count; /* recordings that can be pulled */
    uint8_t id[DISCOVER_ID]; /* of this gatherer or offer, as long as it runs, or of its folder */
    char address[64];
    char host[DISCOVER_NAME];
    char what[DISCOVER_NAME]; /* the folder, or the program */
};

enum discover_verdict {
    DISCOVER_FINE,
    DISCOVER_MALFORMED, /* also one of another version */
    DISCOVER_FOREIGN,   /* without our token, or with one where we have none */
};

/* token NULL: without a proof. Returns the packet's size. */
size_t discover_put_question(uint8_t to[DISCOVER_BYTES], const struct discover_question *question,
                             const struct token *token);
size_t discover_put_answer(uint8_t to[DISCOVER_BYTES], const struct discover_answer *answer,
                           const uint8_t nonce[DISCOVER_NONCE], const struct token *token);

enum discover_verdict discover_read_question(const uint8_t *bytes, size_t size,
                                             const struct token *token,
                                             struct discover_question *question);
/* To the question with this nonce: one to another question is foreign. */
enum discover_verdict discover_read_answer(const uint8_t *bytes, size_t size,
                                           const uint8_t nonce[DISCOVER_NONCE],
                                           const struct token *token,
                                           struct discover_answer *answer);

#endif
