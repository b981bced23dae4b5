/* SPDX-License-Identifier: MIT */
/* discoverpacket_test.c: questions and answers come back as they were put; what is cut, changed or
 * for another question does not. */
#include "stream/discoverpacket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct token *make_token(const char *secret) {
    char path[] = "/tmp/memtrace-token-XXXXXX"; /* of mode 600 */
    struct error error;
    struct token *token;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, secret, strlen(secret)) == (ssize_t)strlen(secret));
    close(fd);
    token = token_read(path, &error);
    assert_non_null(token);
    unlink(path);
    return token;
}

static void test_question(void **state) {
    struct token *token = make_token("a secret of some length");
    struct token *other = make_token("a secret of other length");
    struct discover_question question = {.kinds = 3, .nonce = "fifteen letters"};
    struct discover_question read;
    uint8_t bytes[DISCOVER_BYTES + 1] = {0};
    (void)state;
    for (const struct token *of = token;; of = NULL) {
        assert_int_equal(discover_put_question(bytes, &question, of), DISCOVER_BYTES);
        assert_int_equal(discover_read_question(bytes, DISCOVER_BYTES, of, &read), DISCOVER_FINE);
        assert_memory_equal(&read, &question, sizeof read);
        assert_int_equal(discover_read_question(bytes, DISCOVER_BYTES, other, &read),
                         DISCOVER_FOREIGN);
        assert_int_equal(discover_read_question(bytes, DISCOVER_BYTES - 1, of, &read),
                         DISCOVER_MALFORMED);
        assert_int_equal(discover_read_question(bytes, DISCOVER_BYTES + 1, of, &read),
                         DISCOVER_MALFORMED);
        if (of == NULL) {
            break;
        }
        assert_int_equal(discover_read_question(bytes, DISCOVER_BYTES, NULL, &read),
                         DISCOVER_FOREIGN);
        bytes[20] ^= 1;
        assert_int_equal(discover_read_question(bytes, DISCOVER_BYTES, of, &read),
                         DISCOVER_FOREIGN);
    }
    token_free(token);
    token_free(other);
}

static void test_answer(void **state) {
    struct token *token = make_token("a secret of some length");
    struct discover_answer answer = {
        .kind = DISCOVER_OFFER, .port = 6364, .count = 70000, .id = "fifteen letters"};
    struct discover_answer read;
    uint8_t bytes[DISCOVER_BYTES] = {0};
    uint8_t nonce[DISCOVER_NONCE] = "a nonce, longer";
    size_t size;
    (void)state;
    memset(answer.address, 'a', sizeof answer.address - 1); /* as long as can be */
    memset(answer.host, 'h', sizeof answer.host - 1);
    memset(answer.what, 'w', sizeof answer.what - 1);
    size = discover_put_answer(bytes, &answer, nonce, token);
    assert_true(size <= DISCOVER_BYTES);
    assert_int_equal(discover_read_answer(bytes, size, nonce, token, &read), DISCOVER_FINE);
    assert_memory_equal(&read, &answer, sizeof read);
    for (size_t i = 0; i < size; i++) { /* each byte is proved, or has to be what it is */
        bytes[i] ^= 1;
        assert_int_not_equal(discover_read_answer(bytes, size, nonce, token, &read), DISCOVER_FINE);
        bytes[i] ^= 1;
        assert_int_not_equal(discover_read_answer(bytes, i, nonce, token, &read), DISCOVER_FINE);
    }
    nonce[0]++;
    assert_int_equal(discover_read_answer(bytes, size, nonce, token, &read), DISCOVER_FOREIGN);
    assert_int_equal(discover_read_answer(bytes, size, nonce, NULL, &read), DISCOVER_FOREIGN);
    size = discover_put_answer(bytes, &answer, nonce, NULL);
    assert_int_equal(discover_read_answer(bytes, size, nonce, NULL, &read), DISCOVER_FINE);
    assert_int_equal(discover_read_answer(bytes, size, nonce, token, &read), DISCOVER_FOREIGN);
    nonce[0]++;
    assert_int_equal(discover_read_answer(bytes, size, nonce, NULL, &read), DISCOVER_FOREIGN);
    token_free(token);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_question),
        cmocka_unit_test(test_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
