/* SPDX-License-Identifier: MIT */
/* budget.c: see budget.h. */
#include "cli/budget.h"

#include "analyze/base/job.h"
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Words ---- */

enum { MOST_WORDS = 64 };

/* A line cut into words, which lie in one copy of it. */
struct words {
    const char *items[MOST_WORDS + 1]; /* the last is NULL */
    size_t count;
};

static bool budget_is_operator(const char *at) {
    return at[0] == '<' && at[1] == '=';
}

/* Copies one word to `to` and ends it. NULL: a quote is open. */
static const char *budget_take_word(const char *at, char **to) {
    bool quoted = false;
    if (budget_is_operator(at)) {
        memcpy(*to, at, 2);
        *to += 2;
        at += 2;
    } else {
        for (; *at != '\0' && (quoted || (!isspace((unsigned char)*at) && !budget_is_operator(at)));
             at++) {
            if (*at == '"') {
                quoted = !quoted;
            } else {
                *(*to)++ = *at;
            }
        }
    }
    *(*to)++ = '\0';
    return quoted ? NULL : at;
}

static int budget_split(struct words *words, const char *line, struct error *error) {
    const char *at = line;
    char *to;
    *words = (struct words){0};
    to = job_alloc(2 * strlen(line) + 2);
    for (;;) {
        at += strspn(at, " \t\r\n\f\v");
        if (*at == '\0' || *at == '#') {
            return 0;
        }
        if (words->count == MOST_WORDS) {
            return error_set(error, "more than %d words", MOST_WORDS);
        }
        words->items[words->count++] = to;
        at = budget_take_word(at, &to);
        if (at == NULL) {
            return error_set(error, "a quote is not closed");
        }
    }
}

/* ---- The language ---- */

struct parse {
    const char *const *next; /* the word that comes */
    struct check_budget *budget;
    const char *limit;
    bool growth;
    const char *folder;
    struct error *error;
};

static bool budget_is_word(const char *word, const char *what) {
    return word != NULL && strcmp(word, what) == 0;
}

static int budget_find_metric(struct parse *parse, const char *word) {
    if (word != NULL && metric_named(word, &parse->budget->metric)) {
        return 0;
    }
    return error_set(parse->error, "'%s' cannot have a budget: %s" METRIC_WORDS " can",
                     word != NULL ? word : "", parse->growth ? "" : "growth, ");
}

/* The word behind the one that stands here, both taken. NULL: there is none. */
static const char *budget_take_value(struct parse *parse) {
    const char *word = *parse->next++;
    if (*parse->next == NULL) {
        error_set(parse->error, "a word is missing after '%s'", word);
        return NULL;
    }
    return *parse->next++;
}

static int budget_add_where(struct parse *parse, enum selection_part part, bool negative,
                            const char *regex) {
    struct check_budget *budget = parse->budget;
    struct selection trial = selection_all();
    int status = selection_add_pattern(&trial, part, negative, regex, parse->error);
    job_grow(&budget->where, &budget->where_room, budget->where_count, sizeof *budget->where);
    budget->where[budget->where_count++] = (struct check_where){part, negative, regex};
    return status;
}

/* Behind "in": function, file, module or scope. */
static int budget_take_in(struct parse *parse, bool negative) {
    static const char *const parts[] = {[SELECTION_FUNCTION] = "function",
                                        [SELECTION_FILE] = "file",
                                        [SELECTION_MODULE] = "module"};
    const char *word = *++parse->next;
    const char *value;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (budget_is_word(word, parts[i])) {
            value = budget_take_value(parse);
            return value != NULL ? budget_add_where(parse, (enum selection_part)i, negative, value)
                                 : -1;
        }
    }
    if (budget_is_word(word, "scope") && !negative) {
        parse->budget->scope = budget_take_value(parse);
        return parse->budget->scope != NULL ? 0 : -1;
    }
    return error_set(parse->error, "'in' is followed by function, file, module%s, not by '%s'",
                     negative ? "" : " or scope", word != NULL ? word : "");
}

static int budget_take_per(struct parse *parse) {
    if (!budget_is_word(*++parse->next, "scope")) {
        return error_set(parse->error, "'per' is followed by scope NAME");
    }
    if (parse->growth || (parse->budget->metric != METRIC_ALLOCATIONS &&
                          parse->budget->metric != METRIC_CUMULATIVE)) {
        return error_set(parse->error,
                         "per scope there are budgets of allocations and of allocated bytes");
    }
    parse->budget->kind = CHECK_PER_SCOPE;
    parse->budget->scope = budget_take_value(parse);
    return parse->budget->scope != NULL ? 0 : -1;
}

/* Names of files begin at the folder of the file they stand in. */
static int budget_take_over(struct parse *parse) {
    const char *value = budget_take_value(parse);
    bool is_below = value != NULL && parse->folder != NULL && value[0] != '/';
    parse->budget->baseline = is_below ? job_text("%s/%s", parse->folder, value) : value;
    return value != NULL ? 0 : -1;
}

static int budget_take_clause(struct parse *parse) {
    const char *word = *parse->next;
    if (budget_is_word(word, "in")) {
        return budget_take_in(parse, false);
    }
    if (budget_is_word(word, "not") && budget_is_word(parse->next[1], "in")) {
        parse->next++;
        return budget_take_in(parse, true);
    }
    if (budget_is_word(word, "per")) {
        return budget_take_per(parse);
    }
    if (parse->growth && budget_is_word(word, "of")) {
        return budget_find_metric(parse, budget_take_value(parse));
    }
    if (parse->growth && budget_is_word(word, "over")) {
        return budget_take_over(parse);
    }
    return error_set(parse->error, "'%s' is not understood here", word);
}

/* "5%", also more than 100. */
static bool budget_read_percent(const char *text, double *percent) {
    size_t digits = strspn(text, "0123456789.");
    char *end;
    if (digits == 0 || strcmp(text + digits, "%") != 0) {
        return false;
    }
    *percent = strtod(text, &end);
    return end == text + digits;
}

static int budget_read_limit(struct parse *parse) {
    struct check_budget *budget = parse->budget;
    bool counts = budget->metric == METRIC_ALLOCATIONS || budget->metric == METRIC_TEMPORARY;
    if (parse->growth && budget_read_percent(parse->limit, &budget->percent)) {
        budget->is_percent = true;
        return 0;
    }
    if ((counts ? quantity_u64 : quantity_bytes)(parse->limit, &budget->limit) != 0) {
        return error_set(parse->error, "'%s' is not a %s%s", parse->limit,
                         counts ? "number" : "size, such as 64M",
                         parse->growth ? " or a percentage, such as 5%" : "");
    }
    return 0;
}

static int budget_parse_words(struct parse *parse) {
    const char *metric = *parse->next++;
    parse->growth = budget_is_word(metric, "growth");
    if (!parse->growth && budget_find_metric(parse, metric) != 0) {
        return -1;
    }
    if (!budget_is_word(*parse->next, "<=") || parse->next[1] == NULL) {
        return error_set(parse->error, "a budget is written %s <= LIMIT", metric);
    }
    parse->limit = parse->next[1];
    parse->next += 2;
    if (parse->growth) {
        parse->budget->kind = CHECK_GROWTH;
        parse->budget->metric = METRIC_COUNT;
    }
    while (*parse->next != NULL) {
        if (budget_take_clause(parse) != 0) {
            return -1;
        }
    }
    if (parse->growth && (parse->budget->metric == METRIC_COUNT || !parse->budget->baseline)) {
        return error_set(parse->error, "growth is written growth <= LIMIT of METRIC over FILE");
    }
    return budget_read_limit(parse);
}

/* ---- Lines ---- */

int budget_add(struct budgets *budgets, const char *line, const char *origin, const char *folder,
               struct error *error) {
    struct error why = {""};
    struct check_budget budget = {.origin = job_string(origin)};
    struct parse parse = {.budget = &budget, .folder = folder, .error = &why};
    struct job_printing *text;
    struct words words;
    int status = budget_split(&words, line, &why);
    if (status == 0 && words.count == 0) {
        return 0;
    }
    /* The line without blanks around and without a comment is what messages show. */
    text = job_print();
    for (size_t i = 0; i < words.count; i++) {
        const char *quote = strpbrk(words.items[i], " \t#") != NULL ? "\"" : "";
        fprintf(text->out, "%s%s%s%s", i != 0 ? " " : "", quote, words.items[i], quote);
    }
    budget.text = job_printed(text);
    parse.next = words.items;
    if (status != 0 || budget_parse_words(&parse) != 0) {
        return error_set(error, "%s%s%s", origin, origin[0] != '\0' ? ": " : "", why.message);
    }
    job_grow(&budgets->items, &budgets->room, budgets->count, sizeof budget);
    budgets->items[budgets->count++] = budget;
    return 0;
}

static int budget_read_lines(struct budgets *budgets, FILE *file, const char *path,
                             const char *folder, struct error *error) {
    char *line = NULL;
    size_t size = 0;
    unsigned number = 0;
    int status = 0;
    while (status == 0 && getline(&line, &size, file) >= 0) {
        status = budget_add(budgets, line, job_text("%s:%u", path, ++number), folder, error);
    }
    if (status == 0 && ferror(file)) {
        status = error_set(error, "cannot read %s: %s", path, strerror(errno));
    }
    free(line);
    return status;
}

int budget_read(struct budgets *budgets, const char *path, struct error *error) {
    const char *slash = strrchr(path, '/');
    FILE *file = fopen(path, "re");
    int status;
    if (file == NULL) {
        return error_set(error, "cannot read %s: %s", path, strerror(errno));
    }
    status = budget_read_lines(budgets, file, path,
                               slash != NULL ? job_text("%.*s", (int)(slash - path), path) : NULL,
                               error);
    fclose(file);
    return status;
}
