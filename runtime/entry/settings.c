/* SPDX-License-Identifier: MIT */
/* settings.c: reading the environment. See settings.h. */
#define _GNU_SOURCE
#include "runtime/entry/settings.h"

#include "runtime/base/text.h"

#include <sys/auxv.h>

enum { DEFAULT_TOP = 10 };

/* "NAME=value" strings, an empty one at the end: memtrace_instrument() links them in. */
extern const char memtrace_defaults[] __attribute__((weak));

/* --- values ----------------------------------------------------------------------------------- */

static int read_number(const char *text, uint64_t *number, const char **rest) {
    *number = 0;
    if (*text < '0' || *text > '9') {
        return -1;
    }
    for (; *text >= '0' && *text <= '9'; text++) {
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(*text - '0'), number)) {
            return -1;
        }
    }
    *rest = text;
    return 0;
}

static int read_count(const char *text, uint64_t *value) {
    const char *rest;
    return read_number(text, value, &rest) == 0 && *rest == '\0' ? 0 : -1;
}

struct unit {
    const char *name;
    uint64_t factor;
};

static int read_with_unit(const char *text, const struct unit *units, uint64_t *value) {
    const char *rest;
    if (read_number(text, value, &rest) != 0) {
        return -1;
    }
    for (; units->name != NULL; units++) {
        if (text_equal(rest, units->name)) {
            return __builtin_mul_overflow(*value, units->factor, value) ? -1 : 0;
        }
    }
    return -1;
}

static const struct unit time_units[] = {{"", 1000000000},     {"ms", 1000000},
                                         {"s", 1000000000},    {"m", 60000000000},
                                         {"h", 3600000000000}, {NULL, 0}};

static const struct unit size_units[] = {{"", 1},          {"K", 1 << 10},   {"M", 1 << 20},
                                         {"G", 1 << 30},   {"KiB", 1 << 10}, {"MiB", 1 << 20},
                                         {"GiB", 1 << 30}, {NULL, 0}};

/* --- variables -------------------------------------------------------------------------------- */

static int set_stacks(struct settings *settings, const char *value) {
    static const char *const names[] = {"none", "short", "full"};
    for (uint32_t i = 0; i < 3; i++) {
        if (text_equal(value, names[i])) {
            settings->stacks = (enum memtrace_stacks)i;
            return 0;
        }
    }
    return -1;
}

static int set_unwind(struct settings *settings, const char *value) {
    static const char *const names[UNWIND_MODES] = {"auto", "verify", "patch", "fp", "libunwind"};
    for (uint32_t i = 0; i < UNWIND_MODES; i++) {
        if (text_equal(value, names[i])) {
            settings->unwind = (enum walk_unwind)i;
            return 0;
        }
    }
    return -1;
}

static int set_text(char *to, size_t capacity, const char *value) {
    if (value[0] == '\0' || text_length(value) >= capacity) {
        return -1;
    }
    text_copy(to, capacity, value);
    return 0;
}

/* The value counts only if all of it was understood. */
static int set_number(uint64_t *to, int bad, uint64_t number, uint64_t least, uint64_t most) {
    if (bad || number < least || number > most) {
        return -1;
    }
    *to = number;
    return 0;
}

static int set_small(uint32_t *to, const char *value, uint32_t most) {
    uint64_t number = 0;
    if (read_count(value, &number) != 0 || number > most) {
        return -1;
    }
    *to = (uint32_t)number;
    return 0;
}

static int set_periods(struct settings *settings, const char *name, const char *value) {
    uint64_t number = 0;
    if (text_equal(name, "MEMTRACE_EVERY")) {
        int bad = read_with_unit(value, time_units, &number);
        return set_number(&settings->every_ns, bad, number, 0, INT64_MAX);
    }
    if (text_equal(name, "MEMTRACE_CHURN")) {
        int bad = read_with_unit(value, size_units, &number);
        return set_number(&settings->churn_bytes, bad, number, 0, INT64_MAX);
    }
    return 1;
}

static int set_numbers(struct settings *settings, const char *name, const char *value) {
    uint64_t number = 0;
    if (text_equal(name, "MEMTRACE_CONTEXTS")) {
        int bad = read_count(value, &number);
        return set_number(&settings->context_limit, bad, number, 1, UINT64_C(1) << 24);
    }
    if (text_equal(name, "MEMTRACE_TOP")) {
        return set_small(&settings->top, value, UINT32_MAX);
    }
    if (text_equal(name, "MEMTRACE_SUMMARY")) {
        return set_small(&settings->summary, value, 1);
    }
    if (text_equal(name, "MEMTRACE_INJECT")) {
        return set_small(&settings->inject, value, 1);
    }
    if (text_equal(name, "MEMTRACE_COLLECTOR")) {
        return set_small(&settings->collector_pid, value, UINT32_MAX);
    }
    return set_periods(settings, name, value);
}

static int set_switch(const char *value) {
    return text_equal(value, "on") || text_equal(value, "1") ? 0 : -1; /* "off" never comes here */
}

/* 0, -1: a bad value, 1: no such variable. */
static int set(struct settings *settings, const char *name, const char *value) {
    if (text_equal(name, "MEMTRACE_OUTPUT")) {
        return set_text(settings->output, sizeof settings->output, value);
    }
    if (text_equal(name, "MEMTRACE_LOG")) {
        return set_text(settings->log, sizeof settings->log, value);
    }
    if (text_equal(name, "MEMTRACE_REGION_DIR")) {
        return set_text(settings->folder, sizeof settings->folder, value);
    }
    if (text_equal(name, "MEMTRACE_COMMAND")) {
        return set_text(settings->command, sizeof settings->command, value);
    }
    if (text_equal(name, "MEMTRACE_STACKS")) {
        return set_stacks(settings, value);
    }
    if (text_equal(name, "MEMTRACE_UNWIND")) {
        return set_unwind(settings, value);
    }
    if (text_equal(name, "MEMTRACE")) {
        return set_switch(value);
    }
    if (text_equal(name, "MEMTRACE_ADDED") || text_equal(name, "MEMTRACE_LIBRARY")) {
        return 0; /* for `memtrace run` */
    }
    return set_numbers(settings, name, value);
}

static const char *const known_names[] = {
    "MEMTRACE",          "MEMTRACE_OUTPUT", "MEMTRACE_LOG",     "MEMTRACE_REGION_DIR",
    "MEMTRACE_COMMAND",  "MEMTRACE_STACKS", "MEMTRACE_EVERY",   "MEMTRACE_CHURN",
    "MEMTRACE_CONTEXTS", "MEMTRACE_TOP",    "MEMTRACE_SUMMARY", "MEMTRACE_LIBRARY",
    "MEMTRACE_UNWIND",   "MEMTRACE_INJECT"};

/* Levenshtein's distance, for names shorter than 32 letters. */
static unsigned distance(const char *a, const char *b) {
    unsigned row[33];
    size_t length = text_length(b);
    for (unsigned i = 0; i <= length; i++) {
        row[i] = i;
    }
    for (unsigned i = 1; *a != '\0'; a++, i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            unsigned change = diagonal + (*a != b[j - 1]);
            unsigned shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < shift ? change : shift;
        }
    }
    return row[length];
}

static void report_unknown(const char *name) {
    const char *nearest = known_names[0];
    char buffer[160];
    struct text text;
    for (size_t i = 1; i < sizeof known_names / sizeof known_names[0]; i++) {
        if (distance(name, known_names[i]) < distance(name, nearest)) {
            nearest = known_names[i];
        }
    }
    text_init(&text, buffer, sizeof buffer);
    text_add(&text, "; the nearest is ");
    text_add(&text, nearest);
    log_line("no such environment variable: ", name, buffer);
}

/* "NAME=value". */
static void apply(struct settings *settings, const char *entry) {
    char name[64];
    size_t length = 0;
    int result;
    while (entry[length] != '\0' && entry[length] != '=' && length < sizeof name - 1) {
        name[length] = entry[length];
        length++;
    }
    name[length] = '\0';
    if (entry[length] != '=') {
        return;
    }
    result = set(settings, name, entry + length + 1);
    if (result > 0) {
        report_unknown(name);
    } else if (result < 0) {
        log_line("bad value, the default is used: ", entry, NULL);
    }
}

static int is_off(char **environment) {
    for (char **at = environment; *at != NULL; at++) {
        if (text_equal(*at, "MEMTRACE=off") || text_equal(*at, "MEMTRACE=0")) {
            return 1;
        }
    }
    return 0;
}

int settings_read(struct settings *settings, char **environment) {
    *settings = (struct settings){.top = DEFAULT_TOP,
                                  .summary = 1,
                                  .stacks = MEMTRACE_STACKS_FULL,
                                  .context_limit = 1u << MEMTRACE_CONTEXT_BITS,
                                  .output = "memtrace.%e.%p.mtp"};
    if (getauxval(AT_SECURE) != 0 || is_off(environment)) {
        return 0;
    }
    for (const char *at = memtrace_defaults; at != NULL && *at != '\0'; at += text_length(at) + 1) {
        apply(settings, at);
    }
    for (char **at = environment; *at != NULL; at++) {
        if (text_starts(*at, "MEMTRACE_") || text_starts(*at, "MEMTRACE=")) {
            apply(settings, *at);
        }
    }
    return 1;
}

/* --- leaving no trace ------------------------------------------------------------------------- */

static int in_list(const char *list, const char *entry) {
    while (*list != '\0') {
        size_t length = 0;
        while (list[length] != '\0' && list[length] != ',') {
            length++;
        }
        if (length != 0 && __builtin_strncmp(entry, list, length) == 0 && entry[length] == '=') {
            return 1;
        }
        list += length + (list[length] == ',');
    }
    return 0;
}

static void remove_entry(char **at) {
    do {
        at[0] = at[1];
    } while (*at++ != NULL);
}

/* LD_PRELOAD=ours:theirs becomes LD_PRELOAD=theirs, in place; 1: nothing is left of it. */
static int drop_first_preload(char *entry) {
    char *value = entry + sizeof "LD_PRELOAD=" - 1;
    char *rest = value;
    while (*rest != '\0' && *rest != ':' && *rest != ' ') {
        rest++;
    }
    if (*rest == '\0') {
        return 1;
    }
    for (rest++; (*value = *rest) != '\0'; value++, rest++) {
    }
    return 0;
}

void settings_clean_environment(char **environment) {
    const char *added = NULL;
    for (char **at = environment; *at != NULL; at++) {
        if (text_starts(*at, "MEMTRACE_ADDED=")) {
            added = *at + sizeof "MEMTRACE_ADDED=" - 1;
        }
    }
    for (char **at = environment; added != NULL && *at != NULL;) {
        int ours = in_list(added, *at) || text_starts(*at, "MEMTRACE_ADDED=");
        if (ours && text_starts(*at, "LD_PRELOAD=")) {
            ours = drop_first_preload(*at);
        }
        if (ours) {
            remove_entry(at);
        } else {
            at++;
        }
    }
}
