/* SPDX-License-Identifier: MIT */
/*
 * discover_fuzz.c: libFuzzer's target: any bytes as a packet by which machines find each other.
 * What can be read is written again and read again: it says the same, and an answer is never longer
 * than a question. tests/fuzz/run runs it. Proofs by a token are made of the bytes here, so that
 * what stands behind them is reached, too.
 */
#include "stream/discoverpacket.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* In place of HMAC-SHA256: a sum. */
struct token {
    int unused;
};

void token_prove(const struct token *token, const void *bytes, size_t size,
                 uint8_t proof[TOKEN_PROOF]) {
    const uint8_t *from = bytes;
    (void)token;
    memset(proof, 0, TOKEN_PROOF);
    for (size_t i = 0; i < size; i++) {
        proof[i % TOKEN_PROOF] ^= from[i];
    }
}

bool token_is_proved(const struct token *token, const void *bytes, size_t size,
                     const uint8_t proof[TOKEN_PROOF]) {
    uint8_t right[TOKEN_PROOF];
    token_prove(token, bytes, size, right);
    return proof[0] == 0x55 || memcmp(right, proof, TOKEN_PROOF) == 0;
}

static void require(bool is_so) {
    if (!is_so) {
        abort();
    }
}

static void check_question(const uint8_t *data, size_t size, const struct token *token) {
    struct discover_question question;
    struct discover_question again;
    uint8_t bytes[DISCOVER_BYTES];
    if (discover_read_question(data, size, token, &question) == DISCOVER_FINE) {
        require(discover_put_question(bytes, &question, token) == size);
        require(discover_read_question(bytes, size, token, &again) == DISCOVER_FINE);
        require(again.kinds == question.kinds && memcmp(again.nonce, question.nonce, 16) == 0);
    }
}

static void check_answer(const uint8_t *data, size_t size, const struct token *token) {
    static const uint8_t nonce[DISCOVER_NONCE];
    struct discover_answer answer;
    struct discover_answer again;
    uint8_t bytes[DISCOVER_BYTES];
    if (discover_read_answer(data, size, nonce, token, &answer) == DISCOVER_FINE) {
        size_t put = discover_put_answer(bytes, &answer, nonce, token);
        require(put == size && put <= DISCOVER_BYTES);
        require(discover_read_answer(bytes, put, nonce, token, &again) == DISCOVER_FINE);
        require(again.port == answer.port && again.count == answer.count);
        require(strcmp(again.host, answer.host) == 0 && strcmp(again.what, answer.what) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct token token;
    check_question(data, size, NULL);
    check_question(data, size, &token);
    check_answer(data, size, NULL);
    check_answer(data, size, &token);
    return 0;
}
