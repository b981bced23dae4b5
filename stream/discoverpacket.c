/* SPDX-License-Identifier: MIT */
/* discoverpacket.c: see discoverpacket.h. */
#include "stream/discoverpacket.h"

#include <stdio.h>
#include <string.h>

/*
 *     0  "MTD?" or "MTD!"    4  version, a byte; what, a byte; u16 port
 *     8  u32 count          12  zeros
 *    16  question: nonce; answer: id
 *    32  proof: of (question) all before it; (answer) the nonce and all but the proof
 *    64  answer: address, host, what, each with a zero at its end
 */
enum { VERSION = 1, PROOF_AT = 32, TEXT_AT = 64, QUESTION = '?', ANSWER = '!' };

static const uint8_t magic[3] = {'M', 'T', 'D'};
static const uint8_t no_proof[TOKEN_PROOF];

static void discover_put_head(uint8_t *to, uint8_t kind, uint32_t what) {
    memset(to, 0, DISCOVER_BYTES);
    memcpy(to, magic, sizeof magic);
    to[3] = kind;
    to[4] = VERSION;
    to[5] = (uint8_t)what;
}

static bool discover_has_head(const uint8_t *bytes, size_t size, uint8_t kind) {
    return size >= TEXT_AT && memcmp(bytes, magic, sizeof magic) == 0 && bytes[3] == kind &&
           bytes[4] == VERSION;
}

/* ---- Questions ---- */

size_t discover_put_question(uint8_t to[DISCOVER_BYTES], const struct discover_question *question,
                             const struct token *token) {
    discover_put_head(to, QUESTION, question->kinds);
    memcpy(to + 16, question->nonce, DISCOVER_NONCE);
    if (token != NULL) {
        token_prove(token, to, PROOF_AT, to + PROOF_AT);
    }
    return DISCOVER_BYTES;
}

enum discover_verdict discover_read_question(const uint8_t *bytes, size_t size,
                                             const struct token *token,
                                             struct discover_question *question) {
    if (size != DISCOVER_BYTES || !discover_has_head(bytes, size, QUESTION)) {
        return DISCOVER_MALFORMED;
    }
    question->kinds = bytes[5];
    memcpy(question->nonce, bytes + 16, DISCOVER_NONCE);
    if (token != NULL ? !token_is_proved(token, bytes, PROOF_AT, bytes + PROOF_AT)
                      : memcmp(bytes + PROOF_AT, no_proof, sizeof no_proof) != 0) {
        return DISCOVER_FOREIGN;
    }
    return DISCOVER_FINE;
}

/* ---- Answers ---- */

/* What an answer's proof is of; returns its size. */
static size_t put_proved(uint8_t *to, const uint8_t *bytes, size_t size, const uint8_t *nonce) {
    memcpy(to, nonce, DISCOVER_NONCE);
    memcpy(to + DISCOVER_NONCE, bytes, PROOF_AT);
    memcpy(to + DISCOVER_NONCE + PROOF_AT, bytes + TEXT_AT, size - TEXT_AT);
    return DISCOVER_NONCE + PROOF_AT + size - TEXT_AT;
}

static uint8_t *discover_put_text(uint8_t *to, const char *text, size_t room) {
    size_t length = strnlen(text, room - 1);
    memcpy(to, text, length);
    to[length] = '\0';
    return to + length + 1;
}

size_t discover_put_answer(uint8_t to[DISCOVER_BYTES], const struct discover_answer *answer,
                           const uint8_t nonce[DISCOVER_NONCE], const struct token *token) {
    uint8_t proved[DISCOVER_NONCE + DISCOVER_BYTES];
    uint8_t *end = to + TEXT_AT;
    size_t size;
    discover_put_head(to, ANSWER, answer->kind);
    to[6] = (uint8_t)answer->port;
    to[7] = (uint8_t)(answer->port >> 8);
    for (int i = 0; i < 4; i++) {
        to[8 + i] = (uint8_t)(answer->count >> (8 * i));
    }
    memcpy(to + 16, answer->id, DISCOVER_ID);
    end = discover_put_text(end, answer->address, sizeof answer->address);
    end = discover_put_text(end, answer->host, sizeof answer->host);
    end = discover_put_text(end, answer->what, sizeof answer->what);
    size = (size_t)(end - to);
    if (token != NULL) {
        token_prove(token, proved, put_proved(proved, to, size, nonce), to + PROOF_AT);
    } else {
        memcpy(to + PROOF_AT, nonce, DISCOVER_NONCE); /* of this machine itself: which question */
    }
    return size;
}

/* A text that ends with a zero before `end`; NULL: none. */
static const uint8_t *discover_read_text(const uint8_t *from, const uint8_t *end, char *text,
                                         size_t room) {
    size_t length = from != NULL ? strnlen((const char *)from, (size_t)(end - from)) : 0;
    if (from == NULL || from + length == end || length >= room) {
        return NULL;
    }
    memcpy(text, from, length + 1);
    return from + length + 1;
}

enum discover_verdict discover_read_answer(const uint8_t *bytes, size_t size,
                                           const uint8_t nonce[DISCOVER_NONCE],
                                           const struct token *token,
                                           struct discover_answer *answer) {
    uint8_t proved[DISCOVER_NONCE + DISCOVER_BYTES];
    uint8_t expected[TOKEN_PROOF] = {0};
    const uint8_t *at = bytes + TEXT_AT;
    const uint8_t *end = bytes + size;
    memset(answer, 0, sizeof *answer);
    if (size > DISCOVER_BYTES || !discover_has_head(bytes, size, ANSWER)) {
        return DISCOVER_MALFORMED;
    }
    memcpy(expected, nonce, DISCOVER_NONCE);
    if (token != NULL ? !token_is_proved(token, proved, put_proved(proved, bytes, size, nonce),
                                         bytes + PROOF_AT)
                      : memcmp(bytes + PROOF_AT, expected, sizeof expected) != 0) {
        return DISCOVER_FOREIGN;
    }
    answer->kind = bytes[5];
    answer->port = (uint16_t)(bytes[6] | bytes[7] << 8);
    for (int i = 0; i < 4; i++) {
        answer->count |= (uint32_t)bytes[8 + i] << (8 * i);
    }
    memcpy(answer->id, bytes + 16, DISCOVER_ID);
    at = discover_read_text(at, end, answer->address, sizeof answer->address);
    at = discover_read_text(at, end, answer->host, sizeof answer->host);
    at = discover_read_text(at, end, answer->what, sizeof answer->what);
    if (at != end || answer->port == 0 ||
        (answer->kind != DISCOVER_GATHERER && answer->kind != DISCOVER_OFFER)) {
        return DISCOVER_MALFORMED;
    }
    return DISCOVER_FINE;
}
