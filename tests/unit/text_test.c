/* SPDX-License-Identifier: MIT */
/* Tests of runtime/base/text.c: a text that does not fit is cut, never overrun. */
#include "runtime/base/text.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static char spelled[64];

#define SPELL(...) (text_print(spelled, sizeof spelled, __VA_ARGS__), spelled)

static void numbers(void **state) {
    (void)state;
    assert_string_equal(SPELL("%" PRIu64, UINT64_C(0)), "0");
    assert_string_equal(SPELL("%" PRIu64, UINT64_MAX), "18446744073709551615");
    assert_string_equal(SPELL("%'" PRIu64, UINT64_C(999)), "999");
    assert_string_equal(SPELL("%'" PRIu64, UINT64_C(1234567)), "1,234,567");
    assert_string_equal(SPELL("%'u", 1000000u), "1,000,000");
    assert_string_equal(SPELL("%#" PRIx64, UINT64_C(0x12ab)), "0x12ab");
    assert_string_equal(SPELL("%#x", 0u), "0x0");
    assert_string_equal(SPELL("%d,%d,%d", -7, 0, 7), "-7,0,7");
    assert_string_equal(SPELL("%d", INT32_MIN), "-2147483648");
    assert_string_equal(SPELL("%u.%llu-%x", 1u, ULLONG_MAX, 0xfeu), "1.18446744073709551615-fe");
}

static void formatted(void **state) {
    char buffer[8];
    struct text text;
    (void)state;
    assert_string_equal(SPELL("%s", ""), "");
    assert_string_equal(SPELL("plain"), "plain");
    assert_string_equal(SPELL("<%s|%.*s|%.*s>", "all", 2, "cut", 9, "short"), "<all|cu|short>");
    assert_int_equal(text_print(buffer, sizeof buffer, "%s%u", "abcde", 12), 0);
    assert_string_equal(buffer, "abcde12");
    assert_int_equal(text_print(buffer, sizeof buffer, "%s%u", "abcde", 123), -1);
    assert_string_equal(buffer, "abcde12");
    text_init(&text, buffer, sizeof buffer);
    text.is_safe = 1;
    text_format(&text, "%s\t%u", "a\nb", 1);
    assert_string_equal(buffer, "a?b\t1");
}

static void sizes(void **state) {
    (void)state;
    assert_string_equal(text_size(0).text, "0 B");
    assert_string_equal(text_size(1024).text, "1.0 KiB");
    assert_string_equal(text_size(12903424).text, "12.3 MiB");
    assert_string_equal(text_size(UINT64_MAX).text, "16384.0 PiB");
}

static void cut_not_overrun(void **state) {
    char buffer[16];
    (void)state;
    for (size_t capacity = 1; capacity < sizeof buffer; capacity++) {
        struct text text;
        memset(buffer, '#', sizeof buffer);
        text_init(&text, buffer, capacity);
        text_add(&text, "abcdefgh");
        text_format(&text, "%u", 1234567890u);
        assert_int_equal(strlen(buffer), capacity - 1);
        assert_int_equal(text.length, capacity - 1);
        assert_true(text.cut);
        assert_int_equal(buffer[capacity], '#');
    }
}

static void strings(void **state) {
    char small[4];
    (void)state;
    assert_true(text_equal("a", "a"));
    assert_false(text_equal("a", "ab"));
    assert_true(text_starts("MEMTRACE_TOP", "MEMTRACE_"));
    assert_false(text_starts("MEM", "MEMTRACE_"));
    assert_string_equal(text_base_name("/usr/bin/ls"), "ls");
    assert_string_equal(text_base_name("ls"), "ls");
    text_copy(small, sizeof small, "longer");
    assert_string_equal(small, "lon");
}

static volatile int signals;

static void count_signal(int number) {
    (void)number;
    signals++;
}

/* Writes to a pipe that nobody reads and past the limit for file sizes. */
static void write_where_it_cannot(void) {
    struct rlimit old;
    struct rlimit none;
    FILE *file = tmpfile();
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(write_all(ends[1], "x", 1), -EPIPE);
    close(ends[1]);
    getrlimit(RLIMIT_FSIZE, &old);
    none = (struct rlimit){0, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
    assert_int_equal(write_all(fileno(file), "x", 1), -EFBIG);
    setrlimit(RLIMIT_FSIZE, &old);
    fclose(file);
}

static void no_signal_by_writing(void **state) {
    struct sigaction action = {.sa_handler = count_signal};
    sigset_t both;
    sigset_t seen;
    (void)state;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
    write_where_it_cannot();
    assert_int_equal(signals, 0);
    sigemptyset(&both);
    sigaddset(&both, SIGPIPE);
    sigaddset(&both, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &both, NULL);
    raise(SIGPIPE); /* the program's own stays, blocked as it was */
    write_where_it_cannot();
    sigpending(&seen);
    assert_true(sigismember(&seen, SIGPIPE));
    assert_false(sigismember(&seen, SIGXFSZ));
    sigprocmask(SIG_UNBLOCK, &both, NULL);
    assert_int_equal(signals, 1);
}

static void foreign(void **state) {
    static const char *const pairs[][2] = {
        {"plain ~", "plain ~"},
        {"F\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80", "F\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"},
        {"a\n\033[2J\177", "a??[2J?"},
        {"\xc2\x9b\xc2\xa0", "?\xc2\xa0"},
        {"\xe2\x80\xae\xe2\x80\xaf\xe2\x81\xa6\xd8\x9c", "?\xe2\x80\xaf??"},
        {"\x9b\xff", "??"},
        {"\xe2\x80", "\xe2\x80"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char buffer[64];
        struct text text;
        text_init(&text, buffer, sizeof buffer);
        text_add_safe(&text, pairs[i][0]);
        assert_string_equal(buffer, pairs[i][1]);
    }
}

static void words(void **state) {
    static const char *const pairs[][2] = {
        {"/a/b-1.2.mtp", "/a/b-1.2.mtp"}, {"", "''"},       {"/a b/$(x)", "'/a b/$(x)'"},
        {"it's", "'it'\\''s'"},           {"'", "''\\'''"}, {"a\033[2J'b", "'a?[2J'\\''b'"},
        {"\303\244", "\303\244"},
    };
    char buffer[64];
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct text text;
        text_init(&text, buffer, sizeof buffer);
        text_add_shell_word(&text, pairs[i][0]);
        assert_string_equal(buffer, pairs[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),   cmocka_unit_test(foreign),
        cmocka_unit_test(numbers), cmocka_unit_test(formatted),
        cmocka_unit_test(sizes),   cmocka_unit_test(cut_not_overrun),
        cmocka_unit_test(strings), cmocka_unit_test(no_signal_by_writing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
