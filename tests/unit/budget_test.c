/* SPDX-License-Identifier: MIT */
/* budget_test.c: cli/budget.c: what lines mean, and that no line of any words is more than refused.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on

#include "cli/budget.h"

#include <stdlib.h>
#include <string.h>

/* The only budget of a line; the caller frees the list. */
static const struct check_budget *parse(struct budgets *budgets, const char *line) {
    struct error error = {""};
    *budgets = (struct budgets){0};
    if (budget_add(budgets, line, "", "/folder", &error) != 0) {
        fail_msg("%s: %s", line, error.message);
    }
    assert_int_equal(budgets->count, 1);
    return &budgets->items[0];
}

static void totals(void **state) {
    struct budgets budgets;
    const struct check_budget *budget = parse(&budgets, " maximum<=64M  # as much as fits\n");
    (void)state;
    assert_int_equal(budget->kind, CHECK_TOTAL);
    assert_int_equal(budget->metric, METRIC_MAXIMUM);
    assert_int_equal(budget->limit, 64 << 20);
    assert_string_equal(budget->text, "maximum <= 64M");
    budget = parse(&budgets, "leaked <= 1.5K not in file \"a b#c\" in function ^x$ in scope load");
    assert_int_equal(budget->limit, 1536);
    assert_int_equal(budget->where_count, 2);
    assert_int_equal(budget->where[0].part, SELECTION_FILE);
    assert_true(budget->where[0].negative);
    assert_string_equal(budget->where[0].regex, "a b#c");
    assert_int_equal(budget->where[1].part, SELECTION_FUNCTION);
    assert_false(budget->where[1].negative);
    assert_string_equal(budget->scope, "load");
    assert_string_equal(budget->text,
                        "leaked <= 1.5K not in file \"a b#c\" in function ^x$ in scope load");
}

static void scopes_and_growth(void **state) {
    struct budgets budgets;
    const struct check_budget *budget = parse(&budgets, "allocations <= 7 per scope request");
    (void)state;
    assert_int_equal(budget->kind, CHECK_PER_SCOPE);
    assert_int_equal(budget->limit, 7);
    assert_string_equal(budget->scope, "request");
    budget = parse(&budgets, "growth <= 150.5% over base.mtp of temporary");
    assert_int_equal(budget->kind, CHECK_GROWTH);
    assert_int_equal(budget->metric, METRIC_TEMPORARY);
    assert_true(budget->is_percent);
    assert_true(budget->percent > 150.4 && budget->percent < 150.6);
    assert_string_equal(budget->baseline, "/folder/base.mtp");
    budget = parse(&budgets, "growth <= 2K of leaked over /abs.mtp");
    assert_false(budget->is_percent);
    assert_int_equal(budget->limit, 2048);
    assert_string_equal(budget->baseline, "/abs.mtp");
}

static void nothing(void **state) {
    static const char *const lines[] = {"", "\n", "   # only a comment", "\t\r\n"};
    struct budgets budgets = {0};
    struct error error = {""};
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(budget_add(&budgets, lines[i], "f:1", NULL, &error), 0);
    }
    assert_int_equal(budgets.count, 0);
}

/* Random words of the language: each line is a budget, nothing, or refused with its origin. */
static void any_words(void **state) {
    static const char *const words[] = {
        "maximum", "leaked", "allocations", "growth",   "<=",   "<=",    "5",   "64M",
        "5%",      "in",     "not",         "function", "file", "scope", "per", "of",
        "over",    "^a(b",   "^x",          "\"",       "#",    "<",     "",    "temporary"};
    struct budgets budgets = {0};
    size_t refused = 0;
    (void)state;
    srand(4);
    for (size_t round = 0; round < 50000; round++) {
        char line[256] = "";
        struct error error = {""};
        size_t before = budgets.count;
        for (int i = rand() % 12; i > 0; i--) {
            strcat(line, words[(size_t)rand() % (sizeof words / sizeof words[0])]);
            strcat(line, rand() % 6 != 0 ? " " : "");
        }
        if (budget_add(&budgets, line, "file:9", NULL, &error) != 0) {
            refused++;
            assert_int_equal(strncmp(error.message, "file:9: ", 8), 0);
            assert_int_equal(budgets.count, before);
        }
        assert_true(budgets.count <= before + 1);
    }
    assert_true(refused > 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals),
        cmocka_unit_test(scopes_and_growth),
        cmocka_unit_test(nothing),
        cmocka_unit_test(any_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
