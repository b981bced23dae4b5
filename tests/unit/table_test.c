/* SPDX-License-Identifier: MIT */
/* table_test.c: analyze/rows/table: one table in its forms. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "analyze/rows/table.h"
#include "tests/unit/profile_builder.h"

#include <yajl/yajl_tree.h>

static const struct table_column columns[] = {
    {"count", "count", TABLE_COUNT, 0},     {"bytes", "bytes", TABLE_BYTES, 0},
    {"percent", "share", TABLE_PERCENT, 0}, {"ns", "time", TABLE_DURATION, 0},
    {"address", NULL, TABLE_ADDRESS, 0},    {NULL, "text for people", TABLE_TEXT, 20},
    {"text", "text", TABLE_TEXT, 0},
};
enum { COLUMNS = 7 };
#define NASTY "a \"b\", <c>|d*\x01"

/* One table with a full row and one of which nothing is known; the caller frees the text. */
static char *write_table(enum report_format format, bool is_record, uint64_t hidden) {
    struct error error;
    struct builder *builder = builder_new();
    struct profile *profile = profile_wrap(builder->bytes, builder_size(builder), "test", &error);
    struct model *model = model_load(profile, &error);
    struct names *names = names_open(model, NULL, &error);
    char *text = NULL;
    size_t size = 0;
    struct report report = {.model = model,
                            .names = names,
                            .options = {.format = format},
                            .source = "test",
                            .out = open_memstream(&text, &size)};
    struct table_document document;
    struct table table;
    table_document_open(&document, &report);
    report.document = &document;
    table = is_record ? table_open_record(&report, "name", "A title", columns, COLUMNS)
                      : table_open(&report, "name", "A title", columns, COLUMNS);
    table_note(&table, "a %s", "note");
    table_row(&table,
              (struct table_cell[]){table_number(1234567), table_number(1536), table_share(1, 8),
                                    table_number(1500), table_number(0xabc), table_text("some"),
                                    table_text(NASTY)});
    if (!is_record) {
        table_row(&table, (struct table_cell[COLUMNS]){0});
    }
    table.hidden = hidden;
    table_close(&table);
    table_document_close(&document, &report);
    fclose(report.out);
    names_close(names);
    model_free(model);
    profile_close(profile);
    free(builder);
    return text;
}

static void expect(enum report_format format, bool is_record, uint64_t hidden, const char *want) {
    char *text = write_table(format, is_record, hidden);
    if (strcmp(text, want) != 0) {
        fail_msg("got:\n%s\nexpected:\n%s", text, want);
    }
    free(text);
}

static void as_text(void **state) {
    (void)state;
    expect(REPORT_TEXT, false, 3,
           "\nA title\n"
           "a note\n"
           "       count       bytes   share       time  text for people       text\n"
           "   1,234,567     1.5 KiB   12.5%     1.5 us  some                  a \"b\", <c>|d*?\n"
           "           -           -       -          -  -                     -\n"
           "(3 more not shown)\n");
    expect(REPORT_TEXT, true, 0,
           "\nA title\n"
           "a note\n"
           "  count                      1,234,567\n"
           "  bytes                      1.5 KiB\n"
           "  share                      12.5%\n"
           "  time                       1.5 us\n"
           "  text for people            some\n"
           "  text                       a \"b\", <c>|d*?\n");
}

static void as_markdown(void **state) {
    (void)state;
    expect(REPORT_MARKDOWN, false, 0,
           "## A title\n\na note\n\n"
           "| count | bytes | share | time | text for people | text |\n"
           "|---:|---:|---:|---:|---|---|\n"
           "| 1,234,567 | 1.5 KiB | 12.5% | 1.5 us | some | a \"b\", \\<c\\>\\|d\\*? |\n"
           "| - | - | - | - | - | - |\n");
}

static void as_csv(void **state) {
    (void)state;
    expect(REPORT_CSV, false, 3,
           "count,bytes,percent,ns,address,text\r\n"
           "1234567,1536,12.5,1500,0xabc,\"a \"\"b\"\", <c>|d*?\"\r\n"
           ",,,,,\r\n");
}

static yajl_val at(yajl_val value, const char *name) {
    const char *path[] = {name, NULL};
    yajl_val found = yajl_tree_get(value, path, yajl_t_any);
    assert_non_null(found);
    return found;
}

static void as_json(void **state) {
    char *text = write_table(REPORT_JSON, false, 3);
    char message[256];
    yajl_val root = yajl_tree_parse(text, message, sizeof message);
    yajl_val table;
    yajl_val row;
    (void)state;
    assert_non_null(root);
    table = YAJL_GET_ARRAY(at(root, "reports"))->values[0];
    assert_string_equal(YAJL_GET_STRING(at(table, "title")), "A title");
    assert_string_equal(YAJL_GET_STRING(YAJL_GET_ARRAY(at(table, "notes"))->values[0]), "a note");
    assert_int_equal(YAJL_GET_INTEGER(at(table, "not_shown")), 3);
    row = YAJL_GET_ARRAY(at(table, "rows"))->values[0];
    assert_int_equal(YAJL_GET_INTEGER(at(row, "count")), 1234567);
    assert_int_equal(YAJL_GET_INTEGER(at(row, "bytes")), 1536);
    assert_true(YAJL_GET_DOUBLE(at(row, "percent")) == 12.5);
    assert_string_equal(YAJL_GET_STRING(at(row, "address")), "0xabc");
    assert_string_equal(YAJL_GET_STRING(at(row, "text")), NASTY);
    row = YAJL_GET_ARRAY(at(table, "rows"))->values[1];
    assert_int_equal(YAJL_GET_OBJECT(row)->len, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_true(YAJL_IS_NULL(YAJL_GET_OBJECT(row)->values[i]));
    }
    yajl_tree_free(root);
    free(text);
}

/* Numbers whose kind each row says, changes with their signs, a call path below its row, and a
 * sentence of ours on what is left out. */
static void changes(void **state) {
    static const struct table_column mixed[] = {
        {"what", "", TABLE_WORD, 6},          {"now", "now", TABLE_ANY, 10},
        {"change", "change", TABLE_ANY, 10},  {"state", "", TABLE_WORD, 5},
        {"path", "call path", TABLE_PATH, 0},
    };
    static const char *const want[] = {
        [REPORT_TEXT] = "\nTitle\n              now     change\n          call path\n"
                        "bytes     1.5 KiB   +1.0 KiB  new\n"
                        "          (no call path was recorded)\n"
                        "count       1,536       -500\n"
                        "          (no call path was recorded)\n"
                        "(7 smaller)\n",
        [REPORT_MARKDOWN] = "## Title\n\n|  | now | change |  | call path |\n"
                            "|---|---:|---:|---|---|\n"
                            "| bytes | 1.5 KiB | +1.0 KiB | new | (no call path was recorded) |\n"
                            "| count | 1,536 | -500 |  | (no call path was recorded) |\n\n"
                            "(7 smaller)\n",
        [REPORT_CSV] = "what,now,change,state,path\r\n"
                       "bytes,1536,1024,new,\"\"\r\ncount,1536,-500,,\"\"\r\n",
    };
    (void)state;
    for (enum report_format format = REPORT_TEXT; format <= REPORT_CSV; format++) {
        char *text = NULL;
        size_t size = 0;
        const struct report report = {.options = {.format = format},
                                      .out = open_memstream(&text, &size)};
        struct table table = table_open(&report, "name", "Title", mixed, 5);
        struct table_cell now = {.is_known = true, .number = 1536, .kind = TABLE_BYTES};
        struct table_cell change = {.is_known = true, .number = 1024, .kind = TABLE_BYTES_CHANGE};
        table.is_path_below = true;
        table_row(&table, (struct table_cell[]){table_text("bytes"), now, change, table_text("new"),
                                                table_path(0)});
        now.kind = TABLE_COUNT;
        change =
            (struct table_cell){.is_known = true, .number = (uint64_t)-500, .kind = TABLE_CHANGE};
        table_row(&table, (struct table_cell[]){table_text("count"), now, change, table_text(""),
                                                table_path(0)});
        table.hidden = 7;
        table.hidden_text = "7 smaller";
        table_close(&table);
        fclose(report.out);
        assert_string_equal(text, want[format]);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_text), cmocka_unit_test(changes),
                                       cmocka_unit_test(as_markdown), cmocka_unit_test(as_csv),
                                       cmocka_unit_test(as_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
