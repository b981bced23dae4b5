/* SPDX-License-Identifier: MIT */
/* rows_test.c: analyze/rows/rows: what is not known is not 0, and what a limit leaves out is told.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/rows/rows.h"

#include <stdlib.h>
#include <string.h>

static struct table_cell cell_of(const struct rows *rows, const void *record, size_t column) {
    const struct rows_of of = {0};
    return rows_cell(rows, &of, record, column);
}

/* An address of 0 was not recorded, and a time of 0 is one. */
static void unknown_numbers(void **state) {
    const struct rows_allocation nowhere = {.life = {.address = 0, .death_ns = LIFE_ALIVE}};
    const struct rows_allocation somewhere = {.life = {.address = 0x1000, .death_ns = 0}};
    struct table_cell cell;
    (void)state;
    assert_false(cell_of(&rows_allocations, &nowhere, ALLOCATION_ADDRESS).is_known);
    assert_false(cell_of(&rows_allocations, &nowhere, ALLOCATION_FREED).is_known);
    assert_true(cell_of(&rows_allocations, &nowhere, ALLOCATION_BORN).is_known);
    cell = cell_of(&rows_allocations, &somewhere, ALLOCATION_ADDRESS);
    assert_true(cell.is_known);
    assert_int_equal(cell.number, 0x1000);
    cell = cell_of(&rows_allocations, &somewhere, ALLOCATION_FREED);
    assert_true(cell.is_known);
    assert_int_equal(cell.number, 0);
}

/* SQL knows no name where there is none; people and other programs get an empty one. */
static void unknown_names(void **state) {
    const struct model_mark nameless = {.what = MEMTRACE_MARK_POINT, .name = ""};
    const struct model_mark named = {.what = MEMTRACE_MARK_POINT, .name = "here"};
    (void)state;
    assert_false(cell_of(&rows_marks, &nameless, MARK_NAME).is_known);
    assert_string_equal(cell_of(&rows_marks, &nameless, MARK_ANY_NAME).text, "");
    assert_string_equal(cell_of(&rows_marks, &named, MARK_NAME).text, "here");
}

static void expect_command(const char *command, size_t size, const char *want) {
    const struct run_process process = {.command = {(char *)command, size}};
    struct table_cell cell = cell_of(&rows_processes, &process, PROCESS_COMMAND);
    assert_int_equal(cell.is_known, want != NULL);
    if (want != NULL) {
        assert_string_equal(cell.text, want);
        assert_true(cell.is_owned);
        free((char *)cell.text);
    }
}

/* Arguments end with a zero each. */
static void commands(void **state) {
    (void)state;
    expect_command("cc\0-c\0a b.c", 12, "cc -c a b.c");
    expect_command("cc\0\0-c\0", 8, "cc '' -c ''");
    expect_command("true", 5, "true");
    expect_command("cut", 3, "cut"); /* no room for its end */
    expect_command("", 1, "''");
    expect_command("", 0, NULL);
}

/* ---- How many are not shown ---- */

enum { MARKS = 5 };

static bool is_late(const void *record) {
    return ((const struct model_mark *)record)->time_ns > 1;
}

/* The times of marks at 0 to 4 ns. The caller frees the text. */
static char *write_marks(enum report_format format, size_t limit, bool is_sorted) {
    static const unsigned char shown[] = {MARK_TIME};
    struct model_mark marks[MARKS] = {{0}};
    const struct model model = {.marks = marks, .mark_count = MARKS};
    char *text = NULL;
    size_t size = 0;
    struct report report = {.model = &model,
                            .options = {.format = format, .limit = limit},
                            .out = open_memstream(&text, &size)};
    struct rows_view view = rows_view(&report, &rows_marks, shown, sizeof shown);
    struct table table = table_open(&report, "marks", "Marks", view.columns, view.count);
    for (size_t i = 0; i < MARKS; i++) {
        marks[i].time_ns = i;
    }
    if (is_sorted) {
        view.is_wanted = is_late;
        view.sort[view.sort_count++] = MARK_TIME;
    }
    rows_put_all(&table, &view);
    table_close(&table);
    fclose(report.out);
    return text;
}

static void expect_marks(enum report_format format, size_t limit, bool is_sorted,
                         const char *want) {
    char *text = write_marks(format, limit, is_sorted);
    assert_string_equal(text, want);
    free(text);
}

static void limits(void **state) {
    (void)state;
    expect_marks(REPORT_TEXT, 2, false,
                 "\nMarks\n      time\n      0 ns\n      1 ns\n(3 more not shown)\n");
    expect_marks(REPORT_TEXT, 2, true,
                 "\nMarks\n      time\n      4 ns\n      3 ns\n(1 more not shown)\n");
    expect_marks(REPORT_TEXT, 3, true, "\nMarks\n      time\n      4 ns\n      3 ns\n      2 ns\n");
    expect_marks(REPORT_TEXT, 0, true, "\nMarks\n      time\n      4 ns\n      3 ns\n      2 ns\n");
    expect_marks(REPORT_MARKDOWN, 1, true,
                 "## Marks\n\n| time |\n|---:|\n| 4 ns |\n\n(2 more not shown)\n");
    expect_marks(REPORT_CSV, 2, true, "time_ns\r\n4\r\n3\r\n");
}

/* A command that says less than it holds, or does not end, is read as far as its header goes. */
static void command_of(uint64_t bytes, size_t letters, const char *end, size_t want) {
    struct memtrace_header *header = calloc(1, sizeof *header);
    char *text;
    assert_non_null(header);
    memset(header->command, 'A', letters);
    memcpy(header->command + letters, end, letters < sizeof header->command);
    header->command_bytes = bytes;
    text = rows_join_arguments(arguments_of(header));
    assert_int_equal(strlen(text), want);
    free(text);
    free(header);
}

static void damaged_commands(void **state) {
    const size_t room = sizeof((struct memtrace_header *)0)->command;
    (void)state;
    command_of(1, room - 1, "", room - 1);
    command_of(1000, room - 1, "", room - 1);
    command_of(1, room, "", 0); /* of no end at all nothing is believed */
    command_of(UINT64_MAX, room, "", 0);
    command_of(0, room, "", 0);
    command_of(5, 4, "", 4);
    command_of(2, 4, "", 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_numbers), cmocka_unit_test(unknown_names),
        cmocka_unit_test(commands), cmocka_unit_test(limits), cmocka_unit_test(damaged_commands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
