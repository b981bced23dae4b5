/* SPDX-License-Identifier: MIT */
/*
 * settings.c: one table of all MEMTRACE_* variables, and the few ways to read a value; reading the
 * environment, and taking out of it what is ours. See settings.h.
 */
#define _GNU_SOURCE
#include "runtime/process/settings.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/process/exec_environment.h"
#include "runtime/process/signals.h"

#include <link.h>
#include <stddef.h>
#include <sys/auxv.h>

/* Odd, so that different times stay different: neighbours differ in many bits. */
#define RUN_SPREAD UINT64_C(0x9e3779b97f4a7c15)

/* "NAME=value" strings, an empty one at the end: memtrace_instrument() links them in. */
extern const char memtrace_defaults[] __attribute__((weak));

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

/* 0, or -1: there are no digits, or too many. *text moves behind them. */
static int variable_read_digits(const char **text, uint64_t *number) {
    int is_digit = **text >= '0' && **text <= '9';
    *number = text_read_number(text);
    return is_digit && *number != UINT64_MAX ? 0 : -1;
}

/* Two numbers, and what stands between them. */
static int variable_read_pair(const char *text, char between, uint64_t *first, uint64_t *second) {
    return variable_read_digits(&text, first) == 0 && *text++ == between &&
                   variable_read_digits(&text, second) == 0 && *text == '\0'
               ? 0
               : -1;
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

static int variable_read_with_unit(const char *text, const struct unit *units, uint64_t *value) {
    if (variable_read_digits(&text, value) != 0) {
        return -1;
    }
    for (; units->name != NULL; units++) {
        if (text_equal(text, units->name)) {
            return __builtin_mul_overflow(*value, units->factor, value) ? -1 : 0;
        }
    }
    return -1;
}

static void variable_store(const struct variable *variable, void *field, uint64_t number) {
    if (variable->size == sizeof(uint64_t)) {
        *(uint64_t *)field = number;
    } else {
        *(uint32_t *)field = (uint32_t)number;
    }
}

static int variable_set_number(const struct variable *variable, void *field, const char *value) {
    const struct unit *units = variable->units != NULL ? variable->units : no_units;
    uint64_t number = 0;
    if (variable_read_with_unit(value, units, &number) != 0 || number < variable->least ||
        number > variable->most) {
        return -1;
    }
    variable_store(variable, field, number);
    return 0;
}

/* --- words ------------------------------------------------------------------------------------ */

static int variable_set_text(const struct variable *variable, void *field, const char *value) {
    if (value[0] == '\0' || text_length(value) >= variable->size) {
        return -1;
    }
    text_copy(field, variable->size, value);
    return 0;
}

static int variable_set_word(const struct variable *variable, void *field, const char *value) {
    for (uint32_t i = 0; variable->words[i] != NULL; i++) {
        if (text_equal(value, variable->words[i])) {
            variable_store(variable, field, i);
            return 0;
        }
    }
    return -1;
}

/* 0 or 1: takes out or sets one bit; the other way round where `least` is 1. */
static int variable_set_flag(const struct variable *variable, void *field, const char *value) {
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
static int variable_set_on(const struct variable *variable, void *field, const char *value) {
    (void)variable;
    (void)field;
    return text_equal(value, "on") || text_equal(value, "1") ? 0 : -1;
}

/* --- what has a form of its own --------------------------------------------------------------- */

/* 80% or 2G. */
static int variable_set_limit(const struct variable *variable, void *field, const char *value) {
    struct memtrace_limit *limit = field;
    uint64_t number = 0;
    (void)variable;
    if (variable_read_with_unit(value, percent_units, &number) == 0) {
        if (number == 0 || number > 100) {
            return -1;
        }
        limit->percent = (uint32_t)number;
        limit->bytes = 0;
        return 0;
    }
    if (variable_read_with_unit(value, size_units, &number) != 0) {
        return -1;
    }
    limit->percent = 0;
    limit->bytes = number;
    return 0;
}

/* MIN-MAX; either may be left out. The field is the first of two. */
static int variable_set_sizes(const struct variable *variable, void *field, const char *value) {
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
    if (value[length] != '-' ||
        (length != 0 && variable_read_with_unit(first, size_units, &least) != 0) ||
        (value[length + 1] != '\0' &&
         variable_read_with_unit(value + length + 1, size_units, &most) != 0) ||
        least > most || most == 0) {
        return -1;
    }
    sizes[0] = least;
    sizes[1] = most;
    return 0;
}

/* UID:GID */
static int variable_set_owner(const struct variable *variable, void *field, const char *value) {
    struct memtrace_owner *owner = field;
    uint64_t uid;
    uint64_t gid;
    (void)variable;
    if (variable_read_pair(value, ':', &uid, &gid) != 0 || uid >= UINT32_MAX || gid >= UINT32_MAX) {
        return -1;
    }
    *owner = (struct memtrace_owner){.is_set = 1, .uid = (uint32_t)uid, .gid = (uint32_t)gid};
    return 0;
}

/* Octal; the owner can read and write it. */
static int variable_set_mode(const struct variable *variable, void *field, const char *value) {
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
static int variable_set_run(const struct variable *variable, void *field, const char *value) {
    uint64_t *run = field;
    uint64_t id;
    uint64_t name_space;
    (void)variable;
    if (variable_read_pair(value, '.', &id, &name_space) != 0 || id == 0) {
        return -1;
    }
    run[0] = id;
    run[1] = name_space;
    return 0;
}

/* What MEMTRACE_CHILDREN=all says, too. */
static int variable_set_follow(const struct variable *variable, void *field, const char *value) {
    if (!text_equal(value, "0") && !text_equal(value, "1")) {
        return -1;
    }
    if (value[0] == '1') {
        variable_store(variable, field, MEMTRACE_CHILDREN_ALL);
    }
    return 0;
}

static int variable_set_signals(const struct variable *variable, void *field, const char *value) {
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
    {.name = "MEMTRACE", .set = variable_set_on},
    {.name = "MEMTRACE_LIBRARY"},
    {.name = "MEMTRACE_CACHE"}, /* the command's */
    {.name = "MEMTRACE_KEEP_SMALL"},
    SETS("OUTPUT", variable_set_text, output),
    SETS("PROFILE", variable_set_flag, recording.flags, .most = MEMTRACE_RECORDING_PROFILE),
    SETS("OWNER", variable_set_owner, owner),
    SETS("MODE", variable_set_mode, file_mode),
    SETS("SUMMARY", variable_set_number, summary, SWITCH),
    SETS("EVERY", variable_set_number, every_ns, ANY, .units = time_units),
    SETS("CHURN", variable_set_number, churn_bytes, ANY, .units = size_units),
    SETS("TOP", variable_set_number, top, .most = UINT32_MAX),
    SETS("LOG", variable_set_text, log),
    SETS("LOG_SIZE", variable_set_number, log_size_bytes, ANY, .units = size_units),
    SETS("LOG_LEVEL", variable_set_word, log_level, .words = levels),
    SETS("STACKS", variable_set_word, stacks, .words = stacks),
    SETS("UNWIND", variable_set_word, unwind, .words = unwind),
    SETS("INJECT", variable_set_number, inject, SWITCH),
    SETS("CONTEXTS", variable_set_number, context_limit, .least = 1, .most = UINT64_C(1) << 24),
    SETS("ZERO", variable_set_number, zero, SWITCH),
    SETS("START", variable_set_word, starts_off, .words = starts),
    SETS("SIGNALS", variable_set_signals, signals),
    SETS("CHILDREN", variable_set_word, children, .words = children),
    SETS("FOLLOW", variable_set_follow, children),
    SETS("LIMIT", variable_set_limit, limit),
    SETS("ON_LIMIT", variable_set_word, limit.action, .words = actions),
    SETS("RECORD", variable_set_number, recording.state, SWITCH),
    SETS("RECORD_OUTPUT", variable_set_text, recording.path),
    SETS("ON_LAG", variable_set_word, recording.on_lag, .words = lags),
    SETS("PRECISE", variable_set_flag, recording.flags, .most = MEMTRACE_RECORDING_PRECISE),
    SETS("FREE_STACKS", variable_set_flag, recording.flags, .most = MEMTRACE_RECORDING_FREE_STACKS),
    SETS("ADDRESSES", variable_set_flag, recording.flags, .least = 1,
         .most = MEMTRACE_RECORDING_NO_ADDRESSES),
    SETS("SLICES", variable_set_flag, recording.flags, .least = 1,
         .most = MEMTRACE_RECORDING_NO_SLICES),
    SETS("SAMPLE", variable_set_number, recording.sample_bytes, ANY, .units = size_units),
    SETS("RECORD_SIZES", variable_set_sizes, recording.size_least),
    SETS("RECORD_MODULES", variable_set_text, modules),
    SETS("ROTATE", variable_set_number, recording.rotate_bytes, ANY, .units = size_units),
    SETS("DURATION", variable_set_number, recording.duration_ns, ANY, .units = time_units),
    SETS("CULL", variable_set_number, recording.cull_ns, ANY, .units = time_units),
    SETS("CULL_PENDING", variable_set_number, recording.cull_pending, ANY),
    SETS("QUEUE", variable_set_number, recording.queue_bytes, ANY, .units = size_units),
    SETS("EMBED", variable_set_word, recording.embed, .words = embeds),
    SETS("ALLOC", variable_set_text, alloc),
    SETS("REGION_DIR", variable_set_text, folder),
    SETS("COMMAND", variable_set_text, command),
    /* between `memtrace run` and us */
    SETS("COLLECTOR", variable_set_number, collector_pid, .most = UINT32_MAX),
    SETS("RUN", variable_set_run, run),
    {.name = "MEMTRACE_ADDED"},
    {.name = "MEMTRACE_EVEN"},
    {.name = "MEMTRACE_LIBRARIES"},
};

enum { VARIABLES = sizeof variables / sizeof variables[0], OURS = 5 };

/* --- reading the environment ------------------------------------------------------------------ */

/* Levenshtein's distance, for names shorter than 32 letters. */
static unsigned variable_distance(const char *a, const char *b) {
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

/* The known name that is most like this one. */
static const char *variable_nearest(const char *name) {
    const char *nearest = variables[0].name;
    for (uint32_t i = 1; i < VARIABLES - OURS; i++) {
        if (variable_distance(name, variables[i].name) < variable_distance(name, nearest)) {
            nearest = variables[i].name;
        }
    }
    return nearest;
}

/* "NAME=value". */
static void settings_apply(struct settings *settings, const char *entry) {
    const struct variable *variable = variables;
    const char *value;
    char name[64];
    size_t length = 0;
    while (entry[length] != '\0' && entry[length] != '=' && length < sizeof name - 1) {
        name[length] = entry[length];
        length++;
    }
    name[length] = '\0';
    if (entry[length] != '=') {
        return;
    }
    value = entry + length + 1;
    while (variable != variables + VARIABLES && !text_equal(name, variable->name)) {
        variable++;
    }
    if (variable == variables + VARIABLES) {
        log_line("no such environment variable: %s; the nearest is %s", name,
                 variable_nearest(name));
    } else if (variable->set != NULL &&
               variable->set(variable, (char *)settings + variable->offset, value) != 0) {
        log_line("bad value, the default is used: %s", entry);
    }
}

/* What may be said about the others, the level, is read before them. */
static void settings_apply_all(struct settings *settings, char **environment, int is_level) {
    for (char **at = environment; *at != NULL; at++) {
        if ((text_starts(*at, "MEMTRACE_") || text_starts(*at, "MEMTRACE=")) &&
            text_starts(*at, "MEMTRACE_LOG_LEVEL=") == is_level) {
            settings_apply(settings, *at);
        }
    }
}

int settings_are_off(char *const environment[]) {
    for (char *const *at = environment; at != NULL && *at != NULL; at++) {
        if (text_equal(*at, "MEMTRACE=off") || text_equal(*at, "MEMTRACE=0")) {
            return 1;
        }
    }
    return 0;
}

int settings_read(struct settings *settings, char **environment) {
    *settings = (struct settings){.top = 10,
                                  .summary = 1,
                                  .log_level = LOG_LEVEL_WARNING,
                                  .stacks = MEMTRACE_STACKS_FULL,
                                  .context_limit = 1u << MEMTRACE_CONTEXT_BITS,
                                  .children = MEMTRACE_CHILDREN_ALL,
                                  .output = "memtrace.%e.%p.mtp",
                                  .recording.path = "memtrace.%e.%p.mtr"};
    if (getauxval(AT_SECURE) != 0 || settings_are_off(environment)) {
        return 0;
    }
    for (const char *at = memtrace_defaults; at != NULL && *at != '\0'; at += text_length(at) + 1) {
        settings_apply(settings, at);
    }
    settings_apply_all(settings, environment, 1);
    log_set_level((enum log_level)settings->log_level);
    settings_apply_all(settings, environment, 0);
    if (settings->modules[0] != '\0') {
        settings->recording.flags |= MEMTRACE_RECORDING_MODULES;
    }
    if (settings->run == 0) { /* a run of our own; its forked children inherit the number */
        settings->run = sys_clock_ns(CLOCK_REALTIME) * RUN_SPREAD ^ sys_getpid();
        if (exec_is_preloaded(environment)) { /* who started by it takes it out again */
            static const char added[] = "MEMTRACE_ADDED=MEMTRACE_RUN";
            char run[64];
            text_print(run, sizeof run, "MEMTRACE_RUN=%" PRIu64 ".0", settings->run);
            exec_keep(run, text_length(run));
            exec_keep(added, sizeof added - 1);
        }
    }
    return 1;
}

/* --- leaving no trace ------------------------------------------------------------------------- */

static int settings_is_listed(const char *list, const char *entry) {
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

/* LD_PRELOAD=ours:theirs becomes LD_PRELOAD=theirs, in place; 1: nothing is left of it. */
static int settings_drop_first_preload(char *entry) {
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

/* Of what qemu was told to set, the last if it is LD_PRELOAD, in place; 1: nothing is left of it.
 * That it is to be told is found out again for each program (exec_environment.c). */
static int settings_drop_emulator_preload(char *entry) {
    char *last = entry + sizeof "QEMU_SET_ENV=" - 1;
    int is_all;
    for (char *at = last; *at != '\0'; at++) {
        last = *at == ',' ? at + 1 : last;
    }
    if (!text_starts(last, "LD_PRELOAD=")) {
        return 0;
    }
    is_all = last[-1] == '=';
    if (!is_all) {
        last[-1] = '\0';
    }
    return is_all;
}

/* For what the process becomes by exec: of LD_PRELOAD the first, which is ours. */
static void settings_keep(const char *entry) {
    size_t length = 0;
    int is_list = text_starts(entry, "LD_PRELOAD=");
    while (entry[length] != '\0' && !(is_list && (entry[length] == ':' || entry[length] == ' '))) {
        length++;
    }
    exec_keep(entry, length);
}

/* 1: nothing of the entry is to stay. */
static int settings_take_added(const char *added, char *entry) {
    if (text_starts(entry, "QEMU_SET_ENV=")) {
        return settings_drop_emulator_preload(entry);
    }
    if (!settings_is_listed(added, entry) && !text_starts(entry, "MEMTRACE_ADDED=")) {
        return 0;
    }
    settings_keep(entry);
    return text_starts(entry, "LD_PRELOAD=") ? settings_drop_first_preload(entry) : 1;
}

/* The kernel put the auxiliary vector right behind the NULL, where programs look for it, and the C
 * library knows it by its place: so it stays, and the room between the NULL and it becomes entries
 * "to be ignored" of two words each. A word too many becomes the first variable a second time, in
 * front of where `environ` points: only who finds the array by argv sees it. */
static char **settings_join_auxv(char **environment, size_t kept, size_t removed) {
    const ElfW(auxv_t) ignored = {.a_type = AT_IGNORE};
    if (removed % 2 != 0) {
        for (size_t i = kept + 1; i > 0; i--) {
            environment[i] = environment[i - 1];
        }
        environment++;
        removed--;
    }
    for (size_t i = 0; i < removed; i += 2) {
        __builtin_memcpy(&environment[kept + 1 + i], &ignored, sizeof ignored);
    }
    return environment;
}

char **settings_clean_environment(char **environment, int is_initial) {
    const char *added = NULL;
    size_t kept = 0;
    size_t removed = 0;
    for (char **at = environment; *at != NULL; at++) {
        if (text_starts(*at, "MEMTRACE_ADDED=")) {
            added = *at + sizeof "MEMTRACE_ADDED=" - 1;
        }
    }
    for (char **at = environment; added != NULL && *at != NULL; at++) {
        if (settings_take_added(added, *at)) {
            removed++;
        } else {
            environment[kept++] = *at;
        }
    }
    if (removed != 0) {
        environment[kept] = NULL;
    }
    return is_initial ? settings_join_auxv(environment, kept, removed) : environment;
}
