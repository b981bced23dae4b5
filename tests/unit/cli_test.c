/* SPDX-License-Identifier: MIT */
/* cli_test.c: cli/cli.c and ask/option.c: options and numbers. */
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

struct inner {
    const char *name;
    bool is_deep;
};
struct request {
    bool json;
    bool top_given;
    uint32_t top;
    size_t rows;
    const char *color;
    enum { KIND_A, KIND_B, KIND_C } kind;
    uint64_t bytes;
    uint64_t time_ns;
    double share;
    struct inner inner;
    size_t calls;
};
#define IN(member) OPTION_IN(struct request, member)

static int count_call(void *member, const struct option *option, const char *value,
                      struct error *error) {
    struct request *request = member;
    request->calls += *(const size_t *)option->data;
    return strcmp(value, "good") == 0 ? 0 : option_refuse(option, value, "good", error);
}

static const struct option inner_options[] = {
    {"name", 0, "NAME", "a name", OPTION_TEXT, OPTION_IN(struct inner, name)},
    {"deep", 0, NULL, "a flag", OPTION_FLAG, OPTION_IN(struct inner, is_deep)},
    OPTION_END};
static const struct option options[] = {
    OPTION_HEADING("all of them"),
    {"top", 'n', "N", "rows", OPTION_NUMBER, IN(top), OPTION_GIVEN(struct request, top_given)},
    {"rows", 0, "N", "rows", OPTION_NUMBER, IN(rows), .least = 2, .most = 9},
    {"json", 0, NULL, "for programs", OPTION_FLAG, IN(json)},
    {"color", 0, "auto|always|never", "colours", OPTION_TEXT, IN(color)},
    {"kind", 0, "a|b|c", "a kind", OPTION_WORD, IN(kind), .is_choice = true},
    {"c", 0, NULL, "the same as --kind c", OPTION_WORD, IN(kind), .words = "a|b|c", .implied = "c",
     .is_choice = true},
    {"bytes", 0, "SIZE", "bytes", OPTION_SIZE, IN(bytes)},
    {"time", 0, "T", "a time", OPTION_DURATION, IN(time_ns)},
    {"share", 0, "P", "a percentage", OPTION_PERCENT, IN(share)},
    {"call", 0, "WORD", "a call", OPTION_CALL, .call = count_call, .data = &(const size_t){3}},
    {.part = inner_options, IN(inner)},
    OPTION_END};

/* The line that is read. */
static const struct command *line_command;
static int line_count;
static char **line_words;
static struct request *line_request;

static int read_it(int argc, char **argv) {
    line_count = argc;
    line_words = argv;
    cli_read(line_command, &line_count, &line_words, line_request);
    return CLI_OK;
}

static const struct command report = {.name = "report", .options = options, .run = read_it};
static const struct command run = {
    .name = "run", .options = options, .takes_program = true, .run = read_it};

/* Reads a line of words, NULL at the end; what stays are the operands. */
static int read_line(const struct command *command, char ***words, int *count,
                     struct request *request) {
    int status;
    *count = 0;
    while ((*words)[*count] != NULL) {
        ++*count;
    }
    *request = (struct request){0};
    line_command = command;
    line_request = request;
    status = cli_run(command, *count, *words);
    *count = line_count;
    *words = line_words;
    return status;
}

static void mixed_with_operands(void **state) {
    char *line[] = {"report",        "one", "--top", "5",  "two",    "--json",
                    "--color=never", "-n7", "-",     "--", "--json", NULL};
    char **words = line;
    struct request request;
    int count;
    (void)state;
    assert_int_equal(read_line(&report, &words, &count, &request), CLI_OK);
    assert_true(request.json);
    assert_true(request.top_given);
    assert_int_equal(request.top, 7);
    assert_string_equal(request.color, "never");
    assert_int_equal(count, 4);
    assert_string_equal(words[0], "one");
    assert_string_equal(words[1], "two");
    assert_string_equal(words[2], "-");
    assert_string_equal(words[3], "--json");
}

static void stops_at_operand(void **state) {
    char *line[] = {"run", "--json", "prog", "--top", NULL};
    char **words = line;
    struct request request;
    int count;
    (void)state;
    assert_int_equal(read_line(&run, &words, &count, &request), CLI_OK);
    assert_int_equal(count, 2);
    assert_string_equal(words[0], "prog");
    assert_string_equal(words[1], "--top");
}

/* Each type into its member, and nothing beside it. */
static void values(void **state) {
    char *line[] = {"report", "--kind",  "c",      "--c",    "--bytes",    "1.5K",   "--time",
                    "10ms",   "--share", "2.5%",   "--call", "good",       "--rows", "9",
                    "--name", "x",       "--deep", "--top",  "4294967295", NULL};
    char **words = line;
    struct request request;
    int count;
    (void)state;
    assert_int_equal(read_line(&report, &words, &count, &request), CLI_OK);
    assert_int_equal(request.kind, KIND_C);
    assert_int_equal(request.bytes, 1536);
    assert_int_equal(request.time_ns, 10000000);
    assert_true(request.share == 2.5);
    assert_int_equal(request.calls, 3);
    assert_int_equal(request.rows, 9);
    assert_string_equal(request.inner.name, "x");
    assert_true(request.inner.is_deep);
    assert_int_equal(request.top, UINT32_MAX);
    assert_false(request.json);
    assert_null(request.color);
}

static void wrong_lines(void **state) {
    static char *lines[][4] = {{"report", "--tops"},          {"report", "file", "--top"},
                               {"report", "--json=yes"},      {"report", "--top", "x"},
                               {"report", "--top", "-1"},     {"report", "--top", "4294967296"},
                               {"report", "--top", ""},       {"report", "--rows", "1"},
                               {"report", "--rows", "10"},    {"report", "--kind", "d"},
                               {"report", "--kind", "a|b"},   {"report", "--kind", ""},
                               {"report", "--kind=a", "--c"}, {"report", "--c", "--kind=b"},
                               {"report", "--color", "x"},    {"report", "--bytes", "1X"},
                               {"report", "--time", "5x"},    {"report", "--share", "101"},
                               {"report", "--call", "bad"},   {"report", "-x"},
                               {"report", "--share", "NaN"}};
    int keep = dup(STDERR_FILENO);
    (void)state;
    assert_non_null(freopen("/dev/null", "w", stderr));
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char **words = lines[i];
        struct request request;
        int count;
        assert_int_equal(read_line(&report, &words, &count, &request), CLI_USAGE);
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
        cmocka_unit_test(values),
        cmocka_unit_test(wrong_lines),
        cmocka_unit_test(numbers),
        cmocka_unit_test(colors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
