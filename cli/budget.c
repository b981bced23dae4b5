/* SPDX-License-Identifier: MIT */
/* budget.c: see budget.h. */
#include "cli/budget.h"

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
    char *copy;
    const char *items[MOST_WORDS + 1]; /* the last is NULL */
    size_t count;
};

static bool is_operator(const char *at) {
    return at[0] == '<' && at[1] == '=';
}

/* Copies one word to `to` and ends it. NULL: a quote is open. */
static const char *take_word(const char *at, char **to) {
    bool quoted = false;
    if (is_operator(at)) {
        memcpy(*to, at, 2);
        *to += 2;
        at += 2;
    } else {
        for (; *at != '\0' && (quoted || (!isspace((unsigned char)*at) && !is_operator(at)));
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

static int split(struct words *words, const char *line, struct error *error) {
    const char *at = line;
    char *to;
    *words = (struct words){.copy = malloc(2 * strlen(line) + 2)};
    if (words->copy == NULL) {
        return error_set(error, "out of memory");
    }
    to = words->copy;
    for (;;) {
        at += strspn(at, " \t\r\n\f\v");
        if (*at == '\0' || *at == '#') {
            return 0;
        }
        if (words->count == MOST_WORDS) {
            return error_set(error, "more than %d words", MOST_WORDS);
        }
        words->items[words->count++] = to;
        at = take_word(at, &to);
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

static bool is_word(const char *word, const char *what) {
    return word != NULL && strcmp(word, what) == 0;
}

static int find_metric(struct parse *parse, const char *word) {
    if (word != NULL && metric_named(word, &parse->budget->metric)) {
        return 0;
    }
    return error_set(parse->error, "'%s' cannot have a budget: %s" METRIC_WORDS " can",
                     word != NULL ? word : "", parse->growth ? "" : "growth, ");
}

/* The word behind the one that stands here, both taken. NULL: there is none. */
static const char *take_value(struct parse *parse) {
    const char *word = *parse->next++;
    if (*parse->next == NULL) {
        error_set(parse->error, "a word is missing after '%s'", word);
        return NULL;
    }
    return *parse->next++;
}

static int keep(struct parse *parse, char **to, const char *text) {
    free(*to);
    *to = strdup(text);
    return *to != NULL ? 0 : error_set(parse->error, "out of memory");
}

static int add_where(struct parse *parse, enum selection_part part, bool negative,
                     const char *regex) {
    struct check_budget *budget = parse->budget;
    struct check_where *where = realloc(budget->where, (budget->where_count + 1) * sizeof *where);
    struct selection trial = selection_all();
    int status;
    if (where == NULL) {
        return error_set(parse->error, "out of memory");
    }
    budget->where = where;
    where[budget->where_count] = (struct check_where){part, negative, strdup(regex)};
    if (where[budget->where_count++].regex == NULL) {
        return error_set(parse->error, "out of memory");
    }
    status = selection_add_pattern(&trial, part, negative, regex, parse->error);
    selection_free(&trial);
    return status;
}

/* Behind "in": function, file, module or scope. */
static int take_in(struct parse *parse, bool negative) {
    static const char *const parts[] = {[SELECTION_FUNCTION] = "function",
                                        [SELECTION_FILE] = "file",
                                        [SELECTION_MODULE] = "module"};
    const char *word = *++parse->next;
    const char *value;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (is_word(word, parts[i])) {
            value = take_value(parse);
            return value != NULL ? add_where(parse, (enum selection_part)i, negative, value) : -1;
        }
    }
    if (is_word(word, "scope") && !negative) {
        value = take_value(parse);
        return value != NULL ? keep(parse, &parse->budget->scope, value) : -1;
    }
    return error_set(parse->error, "'in' is followed by function, file, module%s, not by '%s'",
                     negative ? "" : " or scope", word != NULL ? word : "");
}

static int take_per(struct parse *parse) {
    const char *value;
    if (!is_word(*++parse->next, "scope")) {
        return error_set(parse->error, "'per' is followed by scope NAME");
    }
    if (parse->growth || (parse->budget->metric != METRIC_ALLOCATIONS &&
                          parse->budget->metric != METRIC_CUMULATIVE)) {
        return error_set(parse->error,
                         "per scope there are budgets of allocations and of allocated bytes");
    }
    parse->budget->kind = CHECK_PER_SCOPE;
    value = take_value(parse);
    return value != NULL ? keep(parse, &parse->budget->scope, value) : -1;
}

/* Names of files begin at the folder of the file they stand in. */
static int take_over(struct parse *parse) {
    const char *value = take_value(parse);
    char *path = NULL;
    if (value == NULL) {
        return -1;
    }
    if (parse->folder == NULL || value[0] == '/') {
        return keep(parse, &parse->budget->baseline, value);
    }
    if (asprintf(&path, "%s/%s", parse->folder, value) < 0) {
        return error_set(parse->error, "out of memory");
    }
    free(parse->budget->baseline);
    parse->budget->baseline = path;
    return 0;
}

static int take_clause(struct parse *parse) {
    const char *word = *parse->next;
    if (is_word(word, "in")) {
        return take_in(parse, false);
    }
    if (is_word(word, "not") && is_word(parse->next[1], "in")) {
        parse->next++;
        return take_in(parse, true);
    }
    if (is_word(word, "per")) {
        return take_per(parse);
    }
    if (parse->growth && is_word(word, "of")) {
        return find_metric(parse, take_value(parse));
    }
    if (parse->growth && is_word(word, "over")) {
        return take_over(parse);
    }
    return error_set(parse->error, "'%s' is not understood here", word);
}

/* "5%", also more than 100. */
static bool read_percent(const char *text, double *percent) {
    size_t digits = strspn(text, "0123456789.");
    char *end;
    if (digits == 0 || strcmp(text + digits, "%") != 0) {
        return false;
    }
    *percent = strtod(text, &end);
    return end == text + digits;
}

static int read_limit(struct parse *parse) {
    struct check_budget *budget = parse->budget;
    bool counts = budget->metric == METRIC_ALLOCATIONS || budget->metric == METRIC_TEMPORARY;
    if (parse->growth && read_percent(parse->limit, &budget->percent)) {
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

static int parse_words(struct parse *parse) {
    const char *metric = *parse->next++;
    parse->growth = is_word(metric, "growth");
    if (!parse->growth && find_metric(parse, metric) != 0) {
        return -1;
    }
    if (!is_word(*parse->next, "<=") || parse->next[1] == NULL) {
        return error_set(parse->error, "a budget is written %s <= LIMIT", metric);
    }
    parse->limit = parse->next[1];
    parse->next += 2;
    if (parse->growth) {
        parse->budget->kind = CHECK_GROWTH;
        parse->budget->metric = METRIC_COUNT;
    }
    while (*parse->next != NULL) {
        if (take_clause(parse) != 0) {
            return -1;
        }
    }
    if (parse->growth && (parse->budget->metric == METRIC_COUNT || !parse->budget->baseline)) {
        return error_set(parse->error, "growth is written growth <= LIMIT of METRIC over FILE");
    }
    return read_limit(parse);
}

/* ---- ---- */

/* The line without blanks around and without a comment is what messages show. */
static char *shown(const struct words *words) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < words->count; i++) {
        const char *quote = strpbrk(words->items[i], " \t#") != NULL ? "\"" : "";
        fprintf(out, "%s%s%s%s", i != 0 ? " " : "", quote, words->items[i], quote);
    }
    return fclose(out) == 0 ? text : NULL;
}

static int append(struct budgets *budgets, const struct check_budget *budget) {
    struct check_budget *items =
        realloc(budgets->items, (budgets->count + 1) * sizeof *budgets->items);
    if (items == NULL) {
        return -1;
    }
    budgets->items = items;
    items[budgets->count++] = *budget;
    return 0;
}

static int add_words(struct budgets *budgets, const struct words *words, const char *origin,
                     const char *folder, struct error *error) {
    struct check_budget budget = {.text = shown(words), .origin = strdup(origin)};
    struct parse parse = {
        .next = words->items, .budget = &budget, .folder = folder, .error = error};
    if (budget.text == NULL || budget.origin == NULL) {
        error_set(error, "out of memory");
    } else if (parse_words(&parse) == 0) {
        if (append(budgets, &budget) == 0) {
            return 0;
        }
        error_set(error, "out of memory");
    }
    check_free_budget(&budget);
    return -1;
}

int budget_add(struct budgets *budgets, const char *line, const char *origin, const char *folder,
               struct error *error) {
    struct error why = {""};
    struct words words;
    int status = split(&words, line, &why);
    if (status == 0 && words.count != 0) {
        status = add_words(budgets, &words, origin, folder, &why);
    }
    if (status != 0) {
        error_set(error, "%s%s%s", origin, origin[0] != '\0' ? ": " : "", why.message);
    }
    free(words.copy);
    return status;
}

static int read_lines(struct budgets *budgets, FILE *file, const char *path, const char *folder,
                      struct error *error) {
    char *line = NULL;
    size_t size = 0;
    unsigned number = 0;
    int status = 0;
    while (status == 0 && getline(&line, &size, file) >= 0) {
        char *origin;
        if (asprintf(&origin, "%s:%u", path, ++number) < 0) {
            status = error_set(error, "out of memory");
            break;
        }
        status = budget_add(budgets, line, origin, folder, error);
        free(origin);
    }
    if (status == 0 && ferror(file)) {
        status = error_set(error, "cannot read %s: %s", path, strerror(errno));
    }
    free(line);
    return status;
}

int budget_read(struct budgets *budgets, const char *path, struct error *error) {
    const char *slash = strrchr(path, '/');
    char *folder = slash != NULL ? strndup(path, (size_t)(slash - path)) : strdup(".");
    FILE *file = fopen(path, "re");
    int status;
    if (file == NULL || folder == NULL) {
        status = error_set(error, "cannot read %s: %s", path, strerror(errno));
    } else {
        status = read_lines(budgets, file, path, slash != NULL ? folder : NULL, error);
    }
    if (file != NULL) {
        fclose(file);
    }
    free(folder);
    return status;
}

void budget_free(struct budgets *budgets) {
    for (size_t i = 0; i < budgets->count; i++) {
        check_free_budget(&budgets->items[i]);
    }
    free(budgets->items);
    *budgets = (struct budgets){0};
}
