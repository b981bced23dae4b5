/* SPDX-License-Identifier: MIT */
/* cli_test.c: cli/scan.c and cli/cli.c: options and numbers. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option options[] = {OPTION("top", 'n', 1, "N", "rows"),
                                        OPTION("json", 0, 2, NULL, "for programs"),
                                        OPTION("color", 0, 3, "WHEN", "colours"), OPTION_END};

static int count(char **argv) {
    int argc = 0;
    while (argv[argc] != NULL) {
        argc++;
    }
    return argc;
}

static void mixed_with_operands(void **state) {
    char *argv[] = {"report",        "one", "--top", "5",  "two",    "--json",
                    "--color=never", "-n7", "-",     "--", "--json", NULL};
    struct cli_scan scan = cli_scan_start("report", count(argv), argv, options);
    (void)state;
    scan.permute = true;
    assert_int_equal(cli_scan_next(&scan), 1);
    assert_string_equal(scan.value, "5");
    assert_int_equal(cli_scan_next(&scan), 2);
    assert_int_equal(cli_scan_next(&scan), 3);
    assert_string_equal(scan.value, "never");
    assert_int_equal(cli_scan_next(&scan), 1);
    assert_string_equal(scan.value, "7");
    assert_int_equal(cli_scan_next(&scan), 0);
    assert_int_equal(count(argv) - scan.index, 4);
    assert_string_equal(argv[scan.index], "one");
    assert_string_equal(argv[scan.index + 1], "two");
    assert_string_equal(argv[scan.index + 2], "-");
    assert_string_equal(argv[scan.index + 3], "--json");
}

static void stops_at_operand(void **state) {
    char *argv[] = {"run", "--json", "prog", "--top", NULL};
    struct cli_scan scan = cli_scan_start("run", count(argv), argv, options);
    (void)state;
    assert_int_equal(cli_scan_next(&scan), 2);
    assert_int_equal(cli_scan_next(&scan), 0);
    assert_string_equal(argv[scan.index], "prog");
    assert_string_equal(argv[scan.index + 1], "--top");
}

static void wrong_lines(void **state) {
    char *unknown[] = {"report", "--tops", NULL};
    char *missing[] = {"report", "file", "--top", NULL};
    char *surplus[] = {"report", "--json=yes", NULL};
    char **lines[] = {unknown, missing, surplus};
    int keep = dup(STDERR_FILENO);
    (void)state;
    assert_non_null(freopen("/dev/null", "w", stderr));
    for (size_t i = 0; i < 3; i++) {
        struct cli_scan scan = cli_scan_start("report", count(lines[i]), lines[i], options);
        scan.permute = true;
        assert_int_equal(cli_scan_next(&scan), -1);
    }
    dup2(keep, STDERR_FILENO);
    close(keep);
}

static void numbers(void **state) {
    uint64_t value;
    double percent;
    (void)state;
    assert_int_equal(quantity_u64("12", &value), 0);
    assert_int_equal(value, 12);
    assert_int_equal(quantity_u64("18446744073709551616", &value), -1);
    assert_int_equal(quantity_u64("-1", &value), -1);
    assert_int_equal(quantity_u64("1x", &value), -1);
    assert_int_equal(quantity_u64("", &value), -1);
    assert_int_equal(quantity_bytes("64M", &value), 0);
    assert_int_equal(value, 64 << 20);
    assert_int_equal(quantity_bytes("1.5KiB", &value), 0);
    assert_int_equal(value, 1536);
    assert_int_equal(quantity_bytes("7", &value), 0);
    assert_int_equal(value, 7);
    assert_int_equal(quantity_bytes("7X", &value), -1);
    assert_int_equal(quantity_bytes("9999999999T", &value), -1);
    assert_int_equal(quantity_bytes("1.2.3K", &value), -1);
    assert_int_equal(quantity_duration("30s", &value), 0);
    assert_true(value == UINT64_C(30000000000));
    assert_int_equal(quantity_duration("250ms", &value), 0);
    assert_int_equal(value, 250000000);
    assert_int_equal(quantity_duration("2h", &value), 0);
    assert_true(value == UINT64_C(7200000000000));
    assert_int_equal(quantity_duration("5 m", &value), -1);
    assert_int_equal(quantity_percent("0.5%", &percent), 0);
    assert_true(percent == 0.5);
    assert_int_equal(quantity_percent("101", &percent), -1);
    assert_int_equal(quantity_percent("nan", &percent), -1);
}

static void colors(void **state) {
    (void)state;
    assert_int_equal(cli_color("always", STDOUT_FILENO), 1);
    assert_int_equal(cli_color("never", STDOUT_FILENO), 0);
    assert_int_equal(cli_color("sometimes", STDOUT_FILENO), -1);
    setenv("NO_COLOR", "1", 1);
    assert_int_equal(cli_color(NULL, STDOUT_FILENO), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed_with_operands),
        cmocka_unit_test(stops_at_operand),
        cmocka_unit_test(wrong_lines),
        cmocka_unit_test(numbers),
        cmocka_unit_test(colors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
