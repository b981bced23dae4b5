/* SPDX-License-Identifier: MIT */
/* variables.c: one table of all variables, and the few ways to read a value. See settings.h. */
#include "runtime/process/settings.h"

#include "runtime/base/text.h"
#include "runtime/process/signals.h"

#include <stddef.h>

struct variable {
    const char *name;
    /* 0, or -1 with *field as it was. NULL: the variable is not for the runtime. */
    int (*set)(const struct variable *variable, void *field, const char *value);
    uint32_t offset, size;    /* of its field in struct settings */
    uint64_t least, most;     /* of a number; of a flag: whether 1 takes it out, and its bit */
    const struct unit *units; /* of a number; NULL: it has none */
    const char *const *words; /* of a choice, ended by NULL; the field gets the index */
};

/* --- numbers ---------------------------------------------------------------------------------- */

static int read_digits(const char *text, uint64_t *number, const char **rest) {
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

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit no_units[] = {{"", 1}, {NULL, 0}};
static const struct unit time_units[] = {{"", 1000000000},     {"ms", 1000000},
                                         {"s", 1000000000},    {"m", 60000000000},
                                         {"h", 3600000000000}, {NULL, 0}};
static const struct unit size_units[] = {{"", 1},          {"K", 1 << 10},   {"M", 1 << 20},
                                         {"G", 1 << 30},   {"KiB", 1 << 10}, {"MiB", 1 << 20},
                                         {"GiB", 1 << 30}, {NULL, 0}};
static const struct unit percent_units[] = {{"%", 1}, {NULL, 0}};

static int read_with_unit(const char *text, const struct unit *units, uint64_t *value) {
    const char *rest;
    if (read_digits(text, value, &rest) != 0) {
        return -1;
    }
    for (; units->name != NULL; units++) {
        if (text_equal(rest, units->name)) {
            return __builtin_mul_overflow(*value, units->factor, value) ? -1 : 0;
        }
    }
    return -1;
}

static void store(const struct variable *variable, void *field, uint64_t number) {
    if (variable->size == sizeof(uint64_t)) {
        *(uint64_t *)field = number;
    } else {
        *(uint32_t *)field = (uint32_t)number;
    }
}

static int set_number(const struct variable *variable, void *field, const char *value) {
    const struct unit *units = variable->units != NULL ? variable->units : no_units;
    uint64_t number = 0;
    if (read_with_unit(value, units, &number) != 0 || number < variable->least ||
        number > variable->most) {
        return -1;
    }
    store(variable, field, number);
    return 0;
}

/* --- words ------------------------------------------------------------------------------------ */

static int set_text(const struct variable *variable, void *field, const char *value) {
    if (value[0] == '\0' || text_length(value) >= variable->size) {
        return -1;
    }
    text_copy(field, variable->size, value);
    return 0;
}

static int set_word(const struct variable *variable, void *field, const char *value) {
    for (uint32_t i = 0; variable->words[i] != NULL; i++) {
        if (text_equal(value, variable->words[i])) {
            store(variable, field, i);
            return 0;
        }
    }
    return -1;
}

/* 0 or 1: takes out or sets one bit; the other way round where `least` is 1. */
static int set_flag(const struct variable *variable, void *field, const char *value) {
    uint32_t bit = (uint32_t)variable->most;
    int is_one = text_equal(value, "1");
    uint32_t *flags = field;
    if (!is_one && !text_equal(value, "0")) {
        return -1;
    }
    *flags = is_one != (int)variable->least ? *flags | bit : *flags & ~bit;
    return 0;
}

/* "off" never comes here. */
static int set_on(const struct variable *variable, void *field, const char *value) {
    (void)variable;
    (void)field;
    return text_equal(value, "on") || text_equal(value, "1") ? 0 : -1;
}

/* --- what has a form of its own --------------------------------------------------------------- */

/* 80% or 2G. */
static int set_limit(const struct variable *variable, void *field, const char *value) {
    struct memtrace_limit *limit = field;
    uint64_t number = 0;
    (void)variable;
    if (read_with_unit(value, percent_units, &number) == 0) {
        if (number == 0 || number > 100) {
            return -1;
        }
        limit->percent = (uint32_t)number;
        limit->bytes = 0;
        return 0;
    }
    if (read_with_unit(value, size_units, &number) != 0) {
        return -1;
    }
    limit->percent = 0;
    limit->bytes = number;
    return 0;
}

/* MIN-MAX; either may be left out. The field is the first of two. */
static int set_sizes(const struct variable *variable, void *field, const char *value) {
    uint64_t *sizes = field;
    uint64_t least = 0;
    uint64_t most = INT64_MAX;
    char first[32];
    size_t length = 0;
    (void)variable;
    while (value[length] != '\0' && value[length] != '-' && length + 1 < sizeof first) {
        first[length] = value[length];
        length++;
    }
    first[length] = '\0';
    if (value[length] != '-' || (length != 0 && read_with_unit(first, size_units, &least) != 0) ||
        (value[length + 1] != '\0' && read_with_unit(value + length + 1, size_units, &most) != 0) ||
        least > most || most == 0) {
        return -1;
    }
    sizes[0] = least;
    sizes[1] = most;
    return 0;
}

/* UID:GID */
static int set_owner(const struct variable *variable, void *field, const char *value) {
    struct memtrace_owner *owner = field;
    const char *rest;
    uint64_t uid = 0;
    uint64_t gid = 0;
    (void)variable;
    if (read_digits(value, &uid, &rest) != 0 || *rest != ':' ||
        read_digits(rest + 1, &gid, &rest) != 0 || *rest != '\0' || uid >= UINT32_MAX ||
        gid >= UINT32_MAX) {
        return -1;
    }
    *owner = (struct memtrace_owner){.is_set = 1, .uid = (uint32_t)uid, .gid = (uint32_t)gid};
    return 0;
}

/* Octal; the owner can read and write it. */
static int set_mode(const struct variable *variable, void *field, const char *value) {
    uint32_t mode = 0;
    const char *digit = value;
    (void)variable;
    for (; *digit >= '0' && *digit <= '7' && digit - value < 4; digit++) {
        mode = mode * 8 + (uint32_t)(*digit - '0');
    }
    if (*digit != '\0' || digit - value < 3 || (mode & 0600) != 0600 || mode > 0777) {
        return -1;
    }
    *(uint32_t *)field = mode;
    return 0;
}

/* ID.NAMESPACE, both decimal: of `memtrace run`. The field is the first of two. */
static int set_run(const struct variable *variable, void *field, const char *value) {
    uint64_t *run = field;
    const char *rest;
    uint64_t id = 0;
    uint64_t name_space = 0;
    (void)variable;
    if (read_digits(value, &id, &rest) != 0 || *rest != '.' ||
        read_digits(rest + 1, &name_space, &rest) != 0 || *rest != '\0' || id == 0) {
        return -1;
    }
    run[0] = id;
    run[1] = name_space;
    return 0;
}

/* What MEMTRACE_CHILDREN=all says, too. */
static int set_follow(const struct variable *variable, void *field, const char *value) {
    if (!text_equal(value, "0") && !text_equal(value, "1")) {
        return -1;
    }
    if (value[0] == '1') {
        store(variable, field, MEMTRACE_CHILDREN_ALL);
    }
    return 0;
}

static int set_signals(const struct variable *variable, void *field, const char *value) {
    (void)variable;
    return signals_parse(value, field);
}

/* --- the table -------------------------------------------------------------------------------- */

static const char *const stacks[] = {"none", "short", "full", NULL};
static const char *const unwind[] = {"auto", "verify", "patch", "fp", "libunwind", NULL};
static const char *const levels[] = {"none", "error", "warning", "info", NULL};
static const char *const starts[] = {"on", "off", NULL};
static const char *const lags[] = {"wait", "drop", "thin", NULL};
static const char *const embeds[] = {"symbols", "none", "all", NULL};
static const char *const children[] = {"none", "exec", "all", NULL};
static const char *const actions[] = {"report", "dump", "abort", NULL};

/* A variable, how it is read, and its field of struct settings. */
#define SETS(variable, how, field, ...)                                                            \
    {                                                                                              \
        .name = "MEMTRACE_" variable, .set = how, .offset = offsetof(struct settings, field),      \
        .size = sizeof(((struct settings *)NULL)->field), __VA_ARGS__                              \
    }
#define SWITCH .most = 1
#define ANY    .most = INT64_MAX

static const struct variable variables[] = {
    {.name = "MEMTRACE", .set = set_on},
    {.name = "MEMTRACE_LIBRARY"},
    {.name = "MEMTRACE_CACHE"}, /* the command's */
    {.name = "MEMTRACE_KEEP_SMALL"},
    SETS("OUTPUT", set_text, output),
    SETS("PROFILE", set_flag, recording.flags, .most = MEMTRACE_RECORDING_PROFILE),
    SETS("OWNER", set_owner, owner),
    SETS("MODE", set_mode, file_mode),
    SETS("SUMMARY", set_number, summary, SWITCH),
    SETS("EVERY", set_number, every_ns, ANY, .units = time_units),
    SETS("CHURN", set_number, churn_bytes, ANY, .units = size_units),
    SETS("TOP", set_number, top, .most = UINT32_MAX),
    SETS("LOG", set_text, log),
    SETS("LOG_SIZE", set_number, log_size_bytes, ANY, .units = size_units),
    SETS("LOG_LEVEL", set_word, log_level, .words = levels),
    SETS("STACKS", set_word, stacks, .words = stacks),
    SETS("UNWIND", set_word, unwind, .words = unwind),
    SETS("INJECT", set_number, inject, SWITCH),
    SETS("CONTEXTS", set_number, context_limit, .least = 1, .most = UINT64_C(1) << 24),
    SETS("ZERO", set_number, zero, SWITCH),
    SETS("START", set_word, starts_off, .words = starts),
    SETS("SIGNALS", set_signals, signals),
    SETS("CHILDREN", set_word, children, .words = children),
    SETS("FOLLOW", set_follow, children),
    SETS("LIMIT", set_limit, limit),
    SETS("ON_LIMIT", set_word, limit.action, .words = actions),
    SETS("RECORD", set_number, recording.state, SWITCH),
    SETS("RECORD_OUTPUT", set_text, recording.path),
    SETS("ON_LAG", set_word, recording.on_lag, .words = lags),
    SETS("PRECISE", set_flag, recording.flags, .most = MEMTRACE_RECORDING_PRECISE),
    SETS("FREE_STACKS", set_flag, recording.flags, .most = MEMTRACE_RECORDING_FREE_STACKS),
    SETS("ADDRESSES", set_flag, recording.flags, .least = 1,
         .most = MEMTRACE_RECORDING_NO_ADDRESSES),
    SETS("SLICES", set_flag, recording.flags, .least = 1, .most = MEMTRACE_RECORDING_NO_SLICES),
    SETS("SAMPLE", set_number, recording.sample_bytes, ANY, .units = size_units),
    SETS("RECORD_SIZES", set_sizes, recording.size_least),
    SETS("RECORD_MODULES", set_text, modules),
    SETS("ROTATE", set_number, recording.rotate_bytes, ANY, .units = size_units),
    SETS("DURATION", set_number, recording.duration_ns, ANY, .units = time_units),
    SETS("CULL", set_number, recording.cull_ns, ANY, .units = time_units),
    SETS("CULL_PENDING", set_number, recording.cull_pending, ANY),
    SETS("QUEUE", set_number, recording.queue_bytes, ANY, .units = size_units),
    SETS("EMBED", set_word, recording.embed, .words = embeds),
    SETS("ALLOC", set_text, alloc),
    SETS("REGION_DIR", set_text, folder),
    SETS("COMMAND", set_text, command),
    /* between `memtrace run` and us */
    SETS("COLLECTOR", set_number, collector_pid, .most = UINT32_MAX),
    SETS("RUN", set_run, run),
    {.name = "MEMTRACE_ADDED"},
    {.name = "MEMTRACE_EVEN"},
    {.name = "MEMTRACE_LIBRARIES"},
};

enum { VARIABLES = sizeof variables / sizeof variables[0], OURS = 5 };

int variable_set(struct settings *settings, const char *name, const char *value) {
    for (uint32_t i = 0; i < VARIABLES; i++) {
        const struct variable *variable = &variables[i];
        if (text_equal(name, variable->name)) {
            return variable->set != NULL
                       ? variable->set(variable, (char *)settings + variable->offset, value)
                       : 0;
        }
    }
    return 1;
}

/* --- names that are no variables -------------------------------------------------------------- */

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

const char *variable_nearest(const char *name) {
    const char *nearest = variables[0].name;
    for (uint32_t i = 1; i < VARIABLES - OURS; i++) {
        if (distance(name, variables[i].name) < distance(name, nearest)) {
            nearest = variables[i].name;
        }
    }
    return nearest;
}
