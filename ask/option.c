/* SPDX-License-Identifier: MIT */
/* option.c: tables of options, row by row, and values into their places. See option.h. */
#include "ask/option.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Rows ---- */

static const struct option help_table[] = {
    {.name = "help", .letter = 'h', .help = "show this", .key = OPTION_HELP}, OPTION_END};

bool option_is_end(const struct option *option) {
    return option->name == NULL && option->help == NULL && option->part == NULL;
}

struct option_walk option_walk_start(const struct option *options) {
    return options != NULL ? (struct option_walk){.next = {help_table, options}, .depth = 1}
                           : (struct option_walk){.next = {help_table}, .depth = 0};
}

const struct option *option_walk_next(struct option_walk *walk) {
    while (walk->depth >= 0) {
        const struct option *option = walk->next[walk->depth];
        size_t here = walk->bases[walk->depth];
        if (option_is_end(option)) {
            walk->depth--;
            continue;
        }
        walk->next[walk->depth]++;
        if (option->part == NULL || option_is_prefix(option)) {
            walk->base = here;
            return option;
        }
        if (option->part != walk->without) {
            walk->next[++walk->depth] = option->part;
            walk->bases[walk->depth] = here + option->offset;
        }
    }
    return NULL;
}

bool option_has_part(const struct option *options, const struct option *part) {
    for (; options != NULL && !option_is_end(options); options++) {
        if (options->part == part && !option_is_prefix(options)) {
            return true;
        }
    }
    return false;
}

bool option_is_heading(const struct option *option) {
    return option->name == NULL;
}

bool option_is_prefix(const struct option *option) {
    return option->name != NULL && option->part != NULL;
}

bool option_is_alias(const struct option *option) {
    return option->name != NULL && option->help == NULL;
}

/* ---- Words ---- */

bool option_has_words(const char *value) {
    return value != NULL && islower((unsigned char)value[0]);
}

int option_word(const char *words, const char *word) {
    size_t length = strlen(word);
    for (int i = 0; words != NULL; i++) {
        if (strcspn(words, "|") == length && strncmp(words, word, length) == 0) {
            return i;
        }
        words = strchr(words, '|');
        words += words != NULL;
    }
    return -1;
}

/* "a, b or c" */
static void spell_words(const char *words, char *text, size_t capacity) {
    size_t used = 0;
    while (words != NULL && used < capacity) {
        size_t length = strcspn(words, "|");
        const char *next = words[length] == '|' ? words + length + 1 : NULL;
        const char *joint = next == NULL ? "" : strchr(next, '|') == NULL ? " or " : ", ";
        used += (size_t)snprintf(text + used, capacity - used, "%.*s%s", (int)length, words, joint);
        words = next;
    }
}

/* ---- Numbers, sizes and times as people write them ---- */

int quantity_u64(const char *text, uint64_t *value) {
    char *end;
    unsigned long long number;
    if (text == NULL || !isdigit((unsigned char)text[0])) {
        return -1;
    }
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return -1;
    }
    *value = number;
    return 0;
}

/* A decimal number with perhaps a fraction, at most 1e18; *end is what follows it. */
static int parse_decimal(const char *text, double *number, const char **end) {
    size_t length = text != NULL ? strspn(text, "0123456789.") : 0;
    char digits[32];
    char *stop;
    if (length == 0 || length >= sizeof digits || !isdigit((unsigned char)text[0])) {
        return -1;
    }
    memcpy(digits, text, length);
    digits[length] = '\0';
    *number = strtod(digits, &stop);
    *end = text + length;
    return *stop == '\0' && *number <= 1e18 ? 0 : -1;
}

static int scale(double number, double unit, uint64_t *value) {
    number *= unit;
    if (number > 9e18) {
        return -1;
    }
    *value = (uint64_t)(number + 0.5);
    return 0;
}

int quantity_bytes(const char *text, uint64_t *bytes) {
    static const char suffixes[] = "KMGT";
    const char *suffix;
    const char *which;
    double number;
    double unit = 1;
    if (parse_decimal(text, &number, &suffix) != 0) {
        return -1;
    }
    which = suffix[0] != '\0' ? strchr(suffixes, toupper((unsigned char)suffix[0])) : NULL;
    if (which != NULL) {
        unit = (double)(UINT64_C(1) << (10 * (which - suffixes + 1)));
        suffix += strcasecmp(suffix + 1, "iB") == 0 || strcasecmp(suffix + 1, "B") == 0
                      ? strlen(suffix)
                      : 1;
    } else if (strcasecmp(suffix, "B") == 0) {
        suffix++;
    }
    return *suffix == '\0' ? scale(number, unit, bytes) : -1;
}

int quantity_duration(const char *text, uint64_t *ns) {
    static const struct {
        const char *suffix;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},
                 {"ns", 1}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
    const char *suffix;
    double number;
    if (parse_decimal(text, &number, &suffix) != 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(suffix, units[i].suffix) == 0) {
            return scale(number, units[i].ns, ns);
        }
    }
    return -1;
}

int quantity_percent(const char *text, double *percent) {
    const char *suffix;
    if (parse_decimal(text, percent, &suffix) != 0 || *percent > 100) {
        return -1;
    }
    return suffix[0] == '\0' || strcmp(suffix, "%") == 0 ? 0 : -1;
}

/* ---- Values ---- */

int option_refuse(const struct option *option, const char *value, const char *wanted,
                  struct error *error) {
    return error_set(error, "--%s is %s, not '%s'", option->name, wanted, value);
}

void option_prefix(struct error *error, const char *prefix) {
    struct error plain = *error;
    if (strncmp(plain.message, "--", 2) == 0) {
        error_set(error, "--%s%s", prefix, plain.message + 2);
    }
}

/* Its place among the words; -1: error is set. */
static int find_word(const struct option *option, const char *value, struct error *error) {
    const char *words = option->words != NULL ? option->words : option->value;
    int place = option_word(words, value);
    char wanted[200] = "";
    if (place < 0) {
        spell_words(words, wanted, sizeof wanted);
        option_refuse(option, value, wanted, error);
    }
    return place;
}

static uint64_t option_most(const struct option *option) {
    uint64_t most = option->size < sizeof(uint64_t) ? UINT32_MAX : UINT64_MAX;
    return option->most != 0 ? option->most : most;
}

static int refuse_amount(const struct option *option, const char *value, struct error *error) {
    char wanted[100];
    if (option->type == OPTION_SIZE) {
        return option_refuse(option, value, "a size such as 64K, 1.5M or 2G", error);
    }
    if (option->type == OPTION_DURATION) {
        return option_refuse(option, value, "a duration such as 10ms, 1s or 5m", error);
    }
    if (option->most != 0) {
        snprintf(wanted, sizeof wanted, "a number from %" PRIu64 " to %" PRIu64, option->least,
                 option->most);
    } else {
        snprintf(wanted, sizeof wanted,
                 option->least != 0 ? "a number from %" PRIu64 " on" : "a number", option->least);
    }
    return option_refuse(option, value, wanted, error);
}

static int store_amount(const struct option *option, const char *value, void *member,
                        struct error *error) {
    uint64_t amount;
    int result = option->type == OPTION_NUMBER ? quantity_u64(value, &amount)
                 : option->type == OPTION_SIZE ? quantity_bytes(value, &amount)
                                               : quantity_duration(value, &amount);
    if (result != 0 || amount < option->least || amount > option_most(option)) {
        return refuse_amount(option, value, error);
    }
    memcpy(member, &amount, option->size); /* the lower bytes come first */
    return 0;
}

/* A name that is empty would mean the root of the file system, or nothing. */
static int store_text(const struct option *option, const char *value, const char **member,
                      struct error *error) {
    bool is_name = strcmp(option->value, "FILE") == 0 || strcmp(option->value, "FOLDER") == 0;
    *member = value;
    if (is_name && value[0] == '\0') {
        return option_refuse(option, value, "a name", error);
    }
    return option_has_words(option->value) && find_word(option, value, error) < 0 ? -1 : 0;
}

static int store_value(const struct option *option, const char *value, void *member,
                       struct error *error) {
    int word;
    switch (option->type) {
    case OPTION_FLAG:
        *(bool *)member = true;
        return 0;
    case OPTION_TEXT:
        return store_text(option, value, member, error);
    case OPTION_WORD:
        word = find_word(option, value, error);
        memcpy(member, &word, option->size);
        return word < 0 ? -1 : 0;
    case OPTION_PERCENT:
        return quantity_percent(value, member) == 0
                   ? 0
                   : option_refuse(option, value, "a percentage", error);
    case OPTION_CALL:
        return option->call(member, option, value, error);
    default:
        return store_amount(option, value, member, error);
    }
}

int option_store(const struct option *option, const char *value, void *base, struct error *error) {
    value = option->implied != NULL ? option->implied : value;
    if (option->given != 0) {
        *((bool *)base + option->given - 1) = true;
    }
    return store_value(option, value, (char *)base + option->offset, error);
}
