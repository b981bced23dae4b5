/* SPDX-License-Identifier: MIT */
/* variables.c: options that become variables. See variables.h. */
#include "cli/variables.h"

#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_LIMIT = 1024, NS_PER_MS = 1000000 };

const struct option variables_options[] = {
    OPTION_WITH("every", 'e', VARIABLES_KEY, "TIME",
                "print the largest call paths every TIME: 500ms, 30s, 5m, 1h",
                VARIABLES_TARGET(VARIABLES_TIME, "MEMTRACE_EVERY")),
    OPTION_WITH("churn", 'c', VARIABLES_KEY, "SIZE",
                "... and/or every SIZE bytes allocated plus freed: 64M, 1G",
                VARIABLES_TARGET(VARIABLES_SIZE, "MEMTRACE_CHURN")),
    OPTION_WITH("top", 'n', VARIABLES_KEY, "N", "how many call paths; 0: all (default: 10)",
                VARIABLES_TARGET(VARIABLES_COUNT, "MEMTRACE_TOP")),
    OPTION_WITH("log", 'l', VARIABLES_KEY, "FILE", "print them to FILE, not to stderr",
                VARIABLES_TARGET(VARIABLES_FILE, "MEMTRACE_LOG")),
    OPTION_WITH("summary", 0, VARIABLES_KEY, NULL, "a summary at the end (default)",
                VARIABLES_SETTING(VARIABLES_SET, "MEMTRACE_SUMMARY", "1")),
    OPTION_WITH("no-summary", 0, VARIABLES_KEY, NULL, "no summary",
                VARIABLES_SETTING(VARIABLES_SET, "MEMTRACE_SUMMARY", "0")),
    OPTION_WITH("stacks", 0, VARIABLES_KEY, "none|short|full",
                "none: totals only; short: the program's own modules; full (default)",
                VARIABLES_TARGET(VARIABLES_WORD, "MEMTRACE_STACKS")),
    OPTION_WITH("contexts", 0, VARIABLES_KEY, "N", "the most call paths to keep apart",
                VARIABLES_TARGET(VARIABLES_POSITIVE, "MEMTRACE_CONTEXTS")),
    OPTION_WITH("unwind", 0, VARIABLES_KEY, "auto|patch|verify|fp|libunwind",
                "how prebuilt code is walked (default: auto)",
                VARIABLES_TARGET(VARIABLES_WORD, "MEMTRACE_UNWIND")),
    OPTION_WITH("inject", 0, VARIABLES_KEY, NULL,
                "also follow libraries that bind an allocator of their own",
                VARIABLES_SETTING(VARIABLES_SET, "MEMTRACE_INJECT", "1")),
    OPTION_WITH("limit", 0, VARIABLES_KEY, "HOW-MUCH",
                "watch the program's memory: 2G, or 80% of what it may use",
                VARIABLES_TARGET(VARIABLES_MEMORY, "MEMTRACE_LIMIT")),
    OPTION_WITH("on-limit", 0, VARIABLES_KEY, "report|dump|abort",
                "report (default), dump: also copy the profile, abort: also end it",
                VARIABLES_TARGET(VARIABLES_WORD, "MEMTRACE_ON_LIMIT")),
    OPTION_WITH("start-off", 0, VARIABLES_KEY, NULL,
                "count nothing until the program or a signal switches it on",
                VARIABLES_SETTING(VARIABLES_SET, "MEMTRACE_START", "off")),
    OPTION_WITH("signals", 0, VARIABLES_KEY, "LIST",
                "signals that do so: USR1, snapshot:USR2; none",
                VARIABLES_TARGET(VARIABLES_TEXT, "MEMTRACE_SIGNALS")),
    OPTION_WITH(
        "children", 0, VARIABLES_KEY, "all|exec|none",
        "all (default): also what it forks and starts; exec: what the process itself becomes; none",
        VARIABLES_TARGET(VARIABLES_WORD, "MEMTRACE_CHILDREN")),
    OPTION_WITH("follow-children", 0, VARIABLES_KEY, NULL, "the same as --children all",
                VARIABLES_SETTING(VARIABLES_SET, "MEMTRACE_CHILDREN", "all")),
    OPTION_WITH("keep-small", 0, VARIABLES_KEY, NULL,
                "files of their own also for processes that allocate hardly anything",
                VARIABLES_SETTING(VARIABLES_SET, "MEMTRACE_KEEP_SMALL", "1")),
    OPTION_END};

/* Its place; that behind the last one where it is not set. */
static size_t find(const struct variables *variables, const char *name) {
    size_t i = 0;
    while (i < variables->count && strcmp(variables->list[i].name, name) != 0) {
        i++;
    }
    return i;
}

static void set(struct variables *variables, const struct child_variable *variable) {
    size_t i = find(variables, variable->name);
    if (i < VARIABLES_LIMIT) {
        variables->list[i] = *variable;
        variables->count += i == variables->count;
    }
}

void variables_set(struct variables *variables, const char *name, const char *value) {
    set(variables, &(struct child_variable){.name = name, .value = value});
}

void variables_set_pattern(struct variables *variables, const char *name, const char *value) {
    set(variables, &(struct child_variable){.name = name, .value = value, .is_pattern = true});
}

const char *variables_get(const struct variables *variables, const char *name) {
    size_t i = find(variables, name);
    return i < variables->count ? variables->list[i].value : getenv(name);
}

void variables_set_number(struct variables *variables, const char *name, uint64_t value,
                          const char *unit) {
    size_t i = find(variables, name);
    if (i < VARIABLES_LIMIT) {
        snprintf(variables->numbers[i], VARIABLES_NUMBER_SIZE, "%" PRIu64 "%s", value, unit);
        variables_set(variables, name, variables->numbers[i]);
    }
}

/* --- values: each 0, or CLI_USAGE with the line printed --------------------------------------- */

static int wrong(const struct cli_scan *scan, const char *wanted) {
    return cli_usage(scan->command, "%s \"%s\": %s", scan->name, scan->value, wanted);
}

static int take_time(struct variables *variables, const struct cli_scan *scan, const char *name) {
    uint64_t ns;
    if (quantity_duration(scan->value, &ns) != 0 || (ns > 0 && ns < NS_PER_MS)) {
        return wrong(scan, "a time such as 500ms, 30s, 5m or 1h is wanted");
    }
    variables_set_number(variables, name, ns / NS_PER_MS, "ms");
    return 0;
}

static int take_size(struct variables *variables, const struct cli_scan *scan, const char *name) {
    uint64_t bytes;
    if (quantity_bytes(scan->value, &bytes) != 0) {
        return wrong(scan, "a size such as 64M or 1G is wanted");
    }
    variables_set_number(variables, name, bytes, "");
    return 0;
}

static int take_memory(struct variables *variables, const struct cli_scan *scan, const char *name) {
    const char *percent = strchr(scan->value, '%');
    uint64_t bytes;
    double part;
    if (percent == NULL && quantity_bytes(scan->value, &bytes) == 0 && bytes > 0) {
        return take_size(variables, scan, name);
    }
    if (percent == NULL || quantity_percent(scan->value, &part) != 0 || part < 1) {
        return wrong(scan, "a size such as 2G, or 1% to 100%, is wanted");
    }
    variables_set_number(variables, name, (uint64_t)part, "%");
    return 0;
}

static int take_count(struct variables *variables, const struct cli_scan *scan, const char *name,
                      uint64_t least) {
    uint64_t value;
    if (quantity_u64(scan->value, &value) != 0 || value > UINT32_MAX || value < least) {
        return wrong(scan, "a number is wanted");
    }
    variables_set(variables, name, scan->value);
    return 0;
}

static int take_text(struct variables *variables, const struct cli_scan *scan, const char *name) {
    if (scan->value[0] == '\0' || strlen(scan->value) >= TEXT_LIMIT) {
        return wrong(scan, "1 to 1,023 bytes are wanted");
    }
    variables_set(variables, name, scan->value);
    return 0;
}

/* Whether the file can be made there: a program would run for hours before it is told. What stands
 * for something in a folder's name is known only then. */
static int take_file(struct variables *variables, const struct cli_scan *scan, const char *name) {
    const char *slash = strrchr(scan->value, '/');
    char folder[TEXT_LIMIT];
    struct stat status;
    int result = take_text(variables, scan, name);
    if (result != 0) {
        return result;
    }
    snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - scan->value) + 1,
             slash == NULL ? "." : scan->value);
    if (strchr(folder, '%') != NULL) {
        return 0;
    }
    if (stat(folder, &status) != 0) {
        return cli_usage(scan->command, "%s \"%s\": folder %s: %s", scan->name, scan->value, folder,
                         strerror(errno));
    }
    return access(scan->value, F_OK) == 0 || access(folder, W_OK | X_OK) == 0
               ? 0
               : cli_usage(scan->command, "%s \"%s\": folder %s: %s", scan->name, scan->value,
                           folder, strerror(errno));
}

static int take_sizes(struct variables *variables, const struct cli_scan *scan, const char *name) {
    static const char wanted[] = "sizes such as 4K-1M, 4K- or -100 are wanted, the smaller first";
    const char *dash = strchr(scan->value, '-');
    uint64_t least = 0;
    uint64_t most = UINT64_MAX;
    char text[2 * VARIABLES_NUMBER_SIZE];
    if (dash == NULL || dash - scan->value >= (ptrdiff_t)sizeof text) {
        return wrong(scan, wanted);
    }
    snprintf(text, sizeof text, "%.*s", (int)(dash - scan->value), scan->value);
    if ((text[0] != '\0' && quantity_bytes(text, &least) != 0) ||
        (dash[1] != '\0' && quantity_bytes(dash + 1, &most) != 0) || least > most || most == 0) {
        return wrong(scan, wanted);
    }
    variables_set(variables, name, scan->value);
    return 0;
}

/* Whether `words`, "a|b|c", has the word. */
static bool has_word(const char *words, const char *word) {
    size_t length = strlen(word);
    while (words != NULL) {
        if (strcspn(words, "|") == length && strncmp(words, word, length) == 0) {
            return true;
        }
        words = strchr(words, '|');
        words += words != NULL;
    }
    return false;
}

/* "a, b or c is wanted". */
static void spell_words(const char *words, char *text, size_t capacity) {
    size_t used = 0;
    while (used < capacity) {
        size_t length = strcspn(words, "|");
        const char *next = words[length] == '|' ? words + length + 1 : NULL;
        const char *joint = next == NULL ? " is wanted" : strchr(next, '|') == NULL ? " or " : ", ";
        used += (size_t)snprintf(text + used, capacity - used, "%.*s%s", (int)length, words, joint);
        if (next == NULL) {
            return;
        }
        words = next;
    }
}

static int take_word(struct variables *variables, const struct cli_scan *scan, const char *name) {
    char wanted[160];
    if (!has_word(scan->option->value, scan->value)) {
        spell_words(scan->option->value, wanted, sizeof wanted);
        return wrong(scan, wanted);
    }
    variables_set(variables, name, scan->value);
    return 0;
}

static int take(struct variables *variables, const struct cli_scan *scan) {
    const struct variables_target *target = scan->option->data;
    switch (target->kind) {
    case VARIABLES_SET:
        variables_set(variables, target->name, target->value);
        return 0;
    case VARIABLES_TEXT:
        return take_text(variables, scan, target->name);
    case VARIABLES_FILE:
        return take_file(variables, scan, target->name);
    case VARIABLES_SIZES:
        return take_sizes(variables, scan, target->name);
    case VARIABLES_WORD:
        return take_word(variables, scan, target->name);
    case VARIABLES_COUNT:
    case VARIABLES_POSITIVE:
        return take_count(variables, scan, target->name, target->kind == VARIABLES_POSITIVE);
    case VARIABLES_TIME:
        return take_time(variables, scan, target->name);
    case VARIABLES_SIZE:
        return take_size(variables, scan, target->name);
    case VARIABLES_MEMORY:
        return take_memory(variables, scan, target->name);
    }
    return 0;
}

/* --- the command line ------------------------------------------------------------------------- */

int variables_parse(struct variables *variables, int argc, char **argv,
                    const struct option *options, int *first) {
    struct cli_scan scan = cli_scan_start(argv[0], argc, argv, options);
    int status = 0;
    int key;
    while (status == 0 && (key = cli_scan_next(&scan)) > 0) {
        status = take(variables, &scan);
    }
    if (status != 0 || key < 0) {
        return CLI_USAGE;
    }
    *first = scan.index;
    return scan.index < argc ? 0 : cli_usage(argv[0], "a program is needed");
}

void variables_print_more(void) {
    puts("Each option is also an environment variable: see docs/environment.md or man memtrace.");
}
