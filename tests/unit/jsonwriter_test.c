/* SPDX-License-Identifier: MIT */
/* jsonwriter_test.c: analyze/rows/jsonwriter: text from outside, numbers, the three styles. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/rows/jsonwriter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What write() makes in a style is `expected`. */
static void expect(enum jsonwriter_style style, void (*write)(struct jsonwriter *json),
                   const char *expected) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct jsonwriter *json = jsonwriter_open(out, style);
    assert_non_null(json);
    write(json);
    jsonwriter_close(json);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static void write_values(struct jsonwriter *json) {
    static const uint8_t bytes[] = {0, 0xab, 0x7f};
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "most", UINT64_MAX);
    jsonwriter_integer(json, "least", INT64_MIN);
    jsonwriter_double(json, "half", 0.5);
    jsonwriter_double(json, "none", (double)NAN);
    jsonwriter_bool(json, "yes", true);
    jsonwriter_string(json, "null", NULL);
    jsonwriter_hex(json, "id", bytes, sizeof bytes);
    jsonwriter_array(json, "list");
    jsonwriter_number(json, NULL, 1);
    jsonwriter_string(json, NULL, "a");
    jsonwriter_end_array(json);
    jsonwriter_end_map(json);
}

static void values(void **state) {
    (void)state;
    expect(JSONWRITER_COMPACT, write_values,
           "{\"most\":18446744073709551615,\"least\":-9223372036854775808,\"half\":0.5,"
           "\"none\":null,\"yes\":true,\"null\":null,\"id\":\"00ab7f\",\"list\":[1,\"a\"]}");
}

static void write_nested(struct jsonwriter *json) {
    jsonwriter_array(json, NULL);
    jsonwriter_map(json, NULL);
    jsonwriter_number(json, "a", 1);
    jsonwriter_end_map(json);
    jsonwriter_end_array(json);
}

static void indents(void **state) {
    (void)state;
    expect(JSONWRITER_INDENTED, write_nested, "[\n {\n  \"a\": 1\n }\n]\n");
}

static void write_markup(struct jsonwriter *json) {
    jsonwriter_map(json, NULL);
    jsonwriter_string(json, "</script>", "<!--<script>\"\\");
    jsonwriter_end_map(json);
}

static void markup(void **state) {
    (void)state;
    expect(JSONWRITER_COMPACT, write_markup, "{\"</script>\":\"<!--<script>\\\"\\\\\"}");
}

static void write_bytes(struct jsonwriter *json) {
    jsonwriter_array(json, NULL);
    jsonwriter_string(json, NULL, "\xc3\xbc\xf0\x9f\x98\x80"); /* whole characters */
    jsonwriter_string(json, NULL, "a\xff\xc3");                /* no beginning; cut off */
    jsonwriter_string(json, NULL, "\xed\xa0\x80");             /* a surrogate */
    jsonwriter_string(json, NULL, "\xc0\xaf");                 /* longer than need be */
    jsonwriter_string(json, NULL, "\x01\n");
    jsonwriter_end_array(json);
}

static void bytes(void **state) {
    (void)state;
#define BAD "\xef\xbf\xbd"
    expect(JSONWRITER_COMPACT, write_bytes,
           "[\"\xc3\xbc\xf0\x9f\x98\x80\",\"a" BAD BAD "\",\"" BAD BAD BAD "\",\"" BAD BAD
           "\",\"\\u0001\\n\"]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(indents),
        cmocka_unit_test(markup),
        cmocka_unit_test(bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
