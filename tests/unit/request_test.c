/* SPDX-License-Identifier: MIT */
/* Requests as they come: what is decoded, and what is refused. */
#include "web/server/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static struct request parse(const char *uri) {
    struct request request;
    struct error error = {""};
    assert_int_equal(request_parse(&request, uri, &error), 0);
    return request;
}

static void refuse(const char *uri) {
    struct request request;
    struct error error = {""};
    if (request_parse(&request, uri, &error) == 0) {
        fail_msg("%s is taken", uri);
    }
    assert_string_not_equal(error.message, "");
    request_free(&request);
}

static void decodes(void **state) {
    struct request request =
        parse("/api/v1/r/1?function=%5Ea%2Bb%20c&to=50%25&leaked&size=1K..&name=x+y&a=b=c&&e=#f=1");
    (void)state;
    assert_string_equal(request.path, "/api/v1/r/1");
    assert_int_equal(request.parameter_count, 7);
    assert_string_equal(request_parameter(&request, "function"), "^a+b c");
    assert_string_equal(request_parameter(&request, "to"), "50%");
    assert_string_equal(request_parameter(&request, "leaked"), "");
    assert_string_equal(request_parameter(&request, "name"), "x y");
    assert_string_equal(request_parameter(&request, "a"), "b=c");
    assert_string_equal(request_parameter(&request, "e"), "");
    assert_null(request_parameter(&request, "f"));
    assert_null(request_parameter(&request, "nothing"));
    request_free(&request);

    /* A plus is a space in a query alone; "..." is a name. */
    request = parse("/a+b/%C3%A9/...?x=%C3%A9&x=2");
    assert_string_equal(request.path, "/a+b/\xc3\xa9/...");
    assert_string_equal(request_parameter(&request, "x"), "\xc3\xa9");
    assert_int_equal(request.parameter_count, 2);
    request_free(&request);
}

static void refuses(void **state) {
    (void)state;
    refuse("");
    refuse("a");
    refuse("/..");
    refuse("/../a");
    refuse("/a/../b");
    refuse("/a/%2e%2e/b");
    refuse("/a/.");
    refuse("/a\\b");
    refuse("/%");
    refuse("/%4");
    refuse("/%4g");
    refuse("/%00");
    refuse("/%ff");
    refuse("/a?x=%00");
    refuse("/a?%00=1");
    refuse("/a?x=%ff");
    refuse("/a?x=%");
    refuse("/a?x=%c3");
}

static void counts(void **state) {
    char uri[8 * REQUEST_PARAMETERS] = "/?";
    struct request request;
    struct error error = {""};
    (void)state;
    for (int i = 0; i < REQUEST_PARAMETERS; i++) {
        strcat(uri, "a=1&");
    }
    request = parse(uri);
    assert_int_equal(request.parameter_count, REQUEST_PARAMETERS);
    request_free(&request);
    strcat(uri, "a=1");
    assert_int_equal(request_parse(&request, uri, &error), -1);
    assert_string_equal(error.message, "more than 256 parameters");
    request_free(&request);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes),
        cmocka_unit_test(refuses),
        cmocka_unit_test(counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
