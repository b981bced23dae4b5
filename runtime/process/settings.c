/* SPDX-License-Identifier: MIT */
/* settings.c: reading the environment. See settings.h. */
#define _GNU_SOURCE
#include "runtime/process/settings.h"

#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/process/exec_environment.h"

#include <link.h>
#include <sys/auxv.h>

/* Odd, so that different times stay different: neighbours differ in many bits. */
#define RUN_SPREAD UINT64_C(0x9e3779b97f4a7c15)

/* "NAME=value" strings, an empty one at the end: memtrace_instrument() links them in. */
extern const char memtrace_defaults[] __attribute__((weak));

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
    result = variable_set(settings, name, entry + length + 1);
    if (result > 0) {
        log_line("no such environment variable: %s; the nearest is %s", name,
                 variable_nearest(name));
    } else if (result < 0) {
        log_line("bad value, the default is used: %s", entry);
    }
}

/* What may be said about the others is read before them. */
static int is_log_level(const char *entry) {
    return text_starts(entry, "MEMTRACE_LOG_LEVEL=");
}

static void apply_all(struct settings *settings, char **environment, int log_level) {
    for (char **at = environment; *at != NULL; at++) {
        if ((text_starts(*at, "MEMTRACE_") || text_starts(*at, "MEMTRACE=")) &&
            is_log_level(*at) == log_level) {
            apply(settings, *at);
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

/* To programs that this one starts, which take it out of their environment again. */
static void hand_on_run(uint64_t run) {
    char buffer[64];
    text_print(buffer, sizeof buffer, "MEMTRACE_RUN=%" PRIu64 ".0", run);
    exec_keep(buffer, text_length(buffer));
    exec_keep("MEMTRACE_ADDED=MEMTRACE_RUN", sizeof "MEMTRACE_ADDED=MEMTRACE_RUN" - 1);
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
        apply(settings, at);
    }
    apply_all(settings, environment, 1);
    log_set_level((enum log_level)settings->log_level);
    apply_all(settings, environment, 0);
    if (settings->modules[0] != '\0') {
        settings->recording.flags |= MEMTRACE_RECORDING_MODULES;
    }
    if (settings->run == 0) { /* a run of our own; its forked children inherit the number */
        settings->run = sys_clock_ns(CLOCK_REALTIME) * RUN_SPREAD ^ sys_getpid();
        if (exec_is_preloaded(environment)) {
            hand_on_run(settings->run);
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

/* Of what qemu was told to set, the last if it is LD_PRELOAD, in place; 1: nothing is left of it.
 * That it is to be told is found out again for each program (exec_environment.c). */
static int drop_emulator_preload(char *entry) {
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
static void keep(const char *entry) {
    size_t length = 0;
    int is_list = text_starts(entry, "LD_PRELOAD=");
    while (entry[length] != '\0' && !(is_list && (entry[length] == ':' || entry[length] == ' '))) {
        length++;
    }
    exec_keep(entry, length);
}

static const char *find_added(char **environment) {
    const char *added = NULL;
    for (char **at = environment; *at != NULL; at++) {
        if (text_starts(*at, "MEMTRACE_ADDED=")) {
            added = *at + sizeof "MEMTRACE_ADDED=" - 1;
        }
    }
    return added;
}

/* 1: nothing of the entry is to stay. */
static int take_added(const char *added, char *entry) {
    if (text_starts(entry, "QEMU_SET_ENV=")) {
        return drop_emulator_preload(entry);
    }
    if (!in_list(added, entry) && !text_starts(entry, "MEMTRACE_ADDED=")) {
        return 0;
    }
    keep(entry);
    return text_starts(entry, "LD_PRELOAD=") ? drop_first_preload(entry) : 1;
}

/* The kernel put the auxiliary vector right behind the NULL, where programs look for it, and the C
 * library knows it by its place: so it stays, and the room between the NULL and it becomes entries
 * "to be ignored" of two words each. A word too many becomes the first variable a second time, in
 * front of where `environ` points: only who finds the array by argv sees it. */
static char **join_auxv(char **environment, size_t kept, size_t removed) {
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
    const char *added = find_added(environment);
    size_t kept = 0;
    size_t removed = 0;
    for (char **at = environment; added != NULL && *at != NULL; at++) {
        if (take_added(added, *at)) {
            removed++;
        } else {
            environment[kept++] = *at;
        }
    }
    if (removed != 0) {
        environment[kept] = NULL;
    }
    return is_initial ? join_auxv(environment, kept, removed) : environment;
}
