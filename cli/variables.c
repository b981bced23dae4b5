/* SPDX-License-Identifier: MIT */
/* variables.c: options that become variables. See variables.h. */
#include "cli/variables.h"

#include "analyze/base/filemode.h"
#include "analyze/base/job.h"
#include "cli/cli.h"
#include "collect/allocators/allocspec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TEXT_LIMIT = 1024,
    ALLOC_LIMIT = 4096 /* as the runtime has room for */,
    NUMBER_SIZE = 48,
    NS_PER_MS = 1000000
};

/* Its place; that behind the last one where it is not set. */
static size_t variables_find(const struct variables *variables, const char *name) {
    size_t i = 0;
    while (i < variables->count && strcmp(variables->list[i].name, name) != 0) {
        i++;
    }
    return i;
}

static void variables_put(struct variables *variables, const struct child_variable *variable) {
    size_t i = variables_find(variables, variable->name);
    if (i < VARIABLES_LIMIT) {
        variables->list[i] = *variable;
        variables->count += i == variables->count;
    }
}

void variables_set(struct variables *variables, const char *name, const char *value) {
    variables_put(variables, &(struct child_variable){.name = name, .value = value});
}

void variables_set_pattern(struct variables *variables, const char *name, const char *value,
                           const char *program, time_t now) {
    variables_put(variables, &(struct child_variable){name, value, program, now});
}

const char *variables_absolute(const char *pattern) {
    struct job_printing *absolute = job_print();
    char folder[PATH_MAX];
    if (pattern[0] != '/' && getcwd(folder, sizeof folder) != NULL) {
        child_put_quoted(absolute->out, strcmp(folder, "/") != 0 ? folder : "");
        fputc('/', absolute->out);
    }
    fputs(pattern, absolute->out);
    return job_printed(absolute);
}

const struct child_variable *variables_pattern(const struct variables *variables,
                                               const char *name) {
    return &variables->list[variables_find(variables, name)];
}

const char *variables_get(const struct variables *variables, const char *name) {
    size_t i = variables_find(variables, name);
    return i < variables->count ? variables->list[i].value : getenv(name);
}

void variables_set_number(struct variables *variables, const char *name, uint64_t value,
                          const char *unit) {
    variables_set(variables, name, job_text("%" PRIu64 "%s", value, unit));
}

/* --- values ----------------------------------------------------------------------------------- */

static int take_duration(void *variables, const struct option *option, const char *value,
                         struct error *error) {
    uint64_t ns;
    if (quantity_duration(value, &ns) != 0 || (ns > 0 && ns < NS_PER_MS)) {
        return option_refuse(option, value, "a time such as 500ms, 30s, 5m or 1h", error);
    }
    variables_set_number(variables, option->data, ns / NS_PER_MS, "ms");
    return 0;
}

static int take_size(void *variables, const struct option *option, const char *value,
                     struct error *error) {
    uint64_t bytes;
    if (quantity_bytes(value, &bytes) != 0) {
        return option_refuse(option, value, "a size such as 64M or 1G", error);
    }
    variables_set_number(variables, option->data, bytes, "");
    return 0;
}

static int take_memory(void *variables, const struct option *option, const char *value,
                       struct error *error) {
    const char *percent = strchr(value, '%');
    uint64_t bytes;
    double part;
    if (percent == NULL && quantity_bytes(value, &bytes) == 0 && bytes > 0) {
        return take_size(variables, option, value, error);
    }
    if (percent == NULL || quantity_percent(value, &part) != 0 || part < 1) {
        return option_refuse(option, value, "a size such as 2G, or 1% to 100%", error);
    }
    variables_set_number(variables, option->data, (uint64_t)part, "%");
    return 0;
}

static int take_count(void *variables, const struct option *option, const char *value,
                      struct error *error) {
    uint64_t count;
    if (quantity_u64(value, &count) != 0 || count > UINT32_MAX || count < option->least) {
        return option_refuse(option, value, "a number", error);
    }
    variables_set(variables, option->data, value);
    return 0;
}

static int take_text(void *variables, const struct option *option, const char *value,
                     struct error *error) {
    if (value[0] == '\0' || strlen(value) >= TEXT_LIMIT) {
        return error_set(error, "--%s takes 1 to %d bytes", option->name, TEXT_LIMIT - 1);
    }
    variables_set(variables, option->data, value);
    return 0;
}

int variables_add_mode(void *variables, const struct option *option, const char *value,
                       struct error *error) {
    mode_t mode;
    if (!filemode_read(value, &mode)) {
        return option_refuse(option, value,
                             "an octal mode such as 0640 that you can read and write", error);
    }
    /* the collector, this process, makes files, too */
    if (setenv("MEMTRACE_MODE", value, 1) != 0) {
        return error_set(error, "out of memory");
    }
    variables_set(variables, "MEMTRACE_MODE", value);
    return 0;
}

static int take_word(void *variables, const struct option *option, const char *value,
                     struct error *error) {
    const char *word;
    struct option text = *option;
    text.type = OPTION_TEXT;
    text.offset = 0;
    if (option_store(&text, value, &word, error) != 0) {
        return -1;
    }
    variables_set(variables, option->data, word);
    return 0;
}

int variables_check_file(const struct option *option, const char *value, struct error *error) {
    const char *slash = strrchr(value, '/');
    char folder[TEXT_LIMIT];
    struct stat status;
    snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - value) + 1,
             slash == NULL ? "." : value);
    if (strchr(folder, '%') != NULL ||
        (stat(folder, &status) == 0 &&
         (access(value, F_OK) == 0 || access(folder, W_OK | X_OK) == 0))) {
        return 0;
    }
    return error_set(error, "--%s \"%s\": folder %s: %s", option->name, value, folder,
                     strerror(errno));
}

static int take_file(void *variables, const struct option *option, const char *value,
                     struct error *error) {
    return take_text(variables, option, value, error) == 0
               ? variables_check_file(option, value, error)
               : -1;
}

static int take_sizes(void *variables, const struct option *option, const char *value,
                      struct error *error) {
    const char *dash = strchr(value, '-');
    uint64_t least = 0;
    uint64_t most = UINT64_MAX;
    char text[2 * NUMBER_SIZE] = "";
    if (dash != NULL && dash - value < (ptrdiff_t)sizeof text) {
        memcpy(text, value, (size_t)(dash - value));
    }
    if (dash == NULL || dash - value >= (ptrdiff_t)sizeof text ||
        (text[0] != '\0' && quantity_bytes(text, &least) != 0) ||
        (dash[1] != '\0' && quantity_bytes(dash + 1, &most) != 0) || least > most || most == 0) {
        return option_refuse(option, value, "sizes such as 4K-1M, 4K- or -100, the smaller first",
                             error);
    }
    variables_set(variables, option->data, value);
    return 0;
}

int variables_join_alloc(void *member, const struct option *option, const char *value,
                         struct error *error) {
    const char **lines = member;
    struct job_printing *joined = job_print();
    struct error why;
    fputs(*lines != NULL ? *lines : "", joined->out);
    if (allocspec_expand(value, joined->out, &why) != 0) {
        return error_set(error, "--%s %s", option->name, why.message);
    }
    *lines = job_printed(joined);
    return 0;
}

int variables_add_alloc(void *member, const struct option *option, const char *value,
                        struct error *error) {
    struct variables *variables = member;
    const char *lines = variables->alloc;
    if (variables_join_alloc(&lines, option, value, error) != 0) {
        return -1;
    }
    if (strlen(lines) >= ALLOC_LIMIT) {
        return error_set(error,
                         "--%s: they have %zu bytes in all, and may have at most %d; patterns "
                         "and sets are shorter",
                         option->name, strlen(lines), ALLOC_LIMIT - 1);
    }
    variables->alloc = lines;
    variables_set(variables, "MEMTRACE_ALLOC", lines);
    return 0;
}

/* --- the tables ------------------------------------------------------------------------------- */

#define VARIABLE(name_, letter_, value_, help_, set, variable)                                     \
    {                                                                                              \
        .name = (name_), .letter = (letter_), .value = (value_), .help = (help_),                  \
        .type = OPTION_CALL, .call = (set), .data = (variable)                                     \
    }
/* Takes no value: the variable becomes that text. */
#define SETTING(name_, help_, variable, text)                                                      \
    {                                                                                              \
        .name = (name_), .help = (help_), .type = OPTION_CALL, .call = take_text,                  \
        .data = (variable), .implied = (text)                                                      \
    }

static const struct option common_options[] = {
    VARIABLE("every", 'e', "TIME", "print the largest call paths every TIME: 500ms, 30s, 5m, 1h",
             take_duration, "MEMTRACE_EVERY"),
    VARIABLE("churn", 'c', "SIZE", "... and/or every SIZE bytes allocated plus freed: 64M, 1G",
             take_size, "MEMTRACE_CHURN"),
    VARIABLE("top", 'n', "N", "how many call paths; 0: all (default: 10)", take_count,
             "MEMTRACE_TOP"),
    VARIABLE("mode", 0, "MODE", VARIABLES_MODE_HELP, variables_add_mode, "MEMTRACE_MODE"),
    VARIABLE("log", 'l', "FILE", "print them to FILE, not to stderr", take_file, "MEMTRACE_LOG"),
    SETTING("summary", "a summary at the end (default)", "MEMTRACE_SUMMARY", "1"),
    SETTING("no-summary", "no summary", "MEMTRACE_SUMMARY", "0"),
    VARIABLE("stacks", 0, "none|short|full",
             "none: totals only; short: the program's own modules; full (default)", take_word,
             "MEMTRACE_STACKS"),
    {"contexts", 0, "N", "keep at most N call paths apart", OPTION_CALL, .call = take_count,
     .data = "MEMTRACE_CONTEXTS", .least = 1},
    VARIABLE("unwind", 0, "auto|patch|verify|fp|libunwind",
             "how prebuilt code is walked (default: auto)", take_word, "MEMTRACE_UNWIND"),
    SETTING("inject", "also follow libraries that bind an allocator of their own",
            "MEMTRACE_INJECT", "1"),
#ifdef MEMTRACE_WEB
    {"serve", 0, NULL, "show it in the browser while it runs, and until Ctrl-C (memtrace serve)",
     OPTION_FLAG, OPTION_IN(struct variables, serves)},
#endif
    VARIABLE("alloc", 0, "SPECIFICATION", VARIABLES_ALLOC_HELP, variables_add_alloc,
             "MEMTRACE_ALLOC"),
    VARIABLE("limit", 0, "HOW-MUCH", "watch the program's memory: 2G, or 80% of what it may use",
             take_memory, "MEMTRACE_LIMIT"),
    VARIABLE("on-limit", 0, "report|dump|abort",
             "report (default), dump: also copy the profile, abort: also end it", take_word,
             "MEMTRACE_ON_LIMIT"),
    SETTING("start-off", "count nothing until the program or a signal switches counting on",
            "MEMTRACE_START", "off"),
    VARIABLE("signals", 0, "LIST", "the signals that do so: USR1, snapshot:USR2; none", take_text,
             "MEMTRACE_SIGNALS"),
    VARIABLE("toggle-signal", 0, "SIGNAL", "the same as --signals SIGNAL", take_text,
             "MEMTRACE_SIGNALS"),
    VARIABLE(
        "children", 0, "all|exec|none",
        "all (default): also what it forks and starts; exec: what the process itself becomes; none",
        take_word, "MEMTRACE_CHILDREN"),
    SETTING("follow-children", "the same as --children all", "MEMTRACE_CHILDREN", "all"),
    {"library", 0, "FILE",
     "the libmemtrace.so to load (default: that of this installation); for an emulator, one that "
     "was built for its program's machine",
     OPTION_TEXT, OPTION_IN(struct variables, library)},
    SETTING("keep-small", "write files also for processes that allocate hardly anything",
            "MEMTRACE_KEEP_SMALL", "1"),
    OPTION_END};

const struct option variables_of_profiles[] = {
    VARIABLE("output", 'o', "PATTERN",
             "where the profile goes: %p pid, %e program, %t time, %n number (default: "
             "memtrace.%e.%p.mtp)",
             take_file, "MEMTRACE_OUTPUT"),
    VARIABLE("sample", 0, "SIZE", "count one allocation in SIZE bytes on average, chosen at random",
             take_size, "MEMTRACE_SAMPLE"),
    {.part = common_options},
    OPTION_END};

const struct option variables_of_recordings[] = {
    VARIABLE("output", 'o', "PATTERN",
             "where the recording goes: %p pid, %e program, %t time, %n number (default: "
             "memtrace.%e.%p.mtr)",
             take_file, "MEMTRACE_RECORD_OUTPUT"),
    SETTING("precise", "the exact time of each event, instead of one every few milliseconds",
            "MEMTRACE_PRECISE", "1"),
    SETTING("free-stacks", "record the call path of frees, too", "MEMTRACE_FREE_STACKS", "1"),
    SETTING("no-addresses", "a smaller file, without the addresses of blocks", "MEMTRACE_ADDRESSES",
            "0"),
    SETTING("no-slices", "leave out the sums that make its first report quick", "MEMTRACE_SLICES",
            "0"),
    VARIABLE("sample", 0, "SIZE", "count one allocation in SIZE bytes on average, chosen at random",
             take_size, "MEMTRACE_SAMPLE"),
    VARIABLE("sizes", 0, "MIN-MAX", "only blocks of such sizes: 4K-, -1M, 100-200", take_sizes,
             "MEMTRACE_RECORD_SIZES"),
    VARIABLE("modules", 0, "LIST",
             "only what these modules allocate: app,libssl; !libc: all but libc", take_text,
             "MEMTRACE_RECORD_MODULES"),
    VARIABLE("cull-below", 0, "TIME", "leave out what is freed sooner", take_duration,
             "MEMTRACE_CULL"),
    VARIABLE("cull-pending", 0, "COUNT",
             "at most COUNT blocks wait for that; beyond it all are kept", take_count,
             "MEMTRACE_CULL_PENDING"),
    VARIABLE("duration", 0, "TIME", "stop recording after TIME: 30s, 5m, 1h", take_duration,
             "MEMTRACE_DURATION"),
    VARIABLE("rotate", 0, "SIZE", "begin a new file whenever one has reached SIZE: 512M, 4G",
             take_size, "MEMTRACE_ROTATE"),
    VARIABLE("embed", 0, "symbols|all|none",
             "what of the program's files goes into the recording (default: symbols)", take_word,
             "MEMTRACE_EMBED"),
    VARIABLE("on-lag", 0, "wait|drop|thin",
             "where disk or network are too slow: the program waits a little (default), events are "
             "lost, or a part is recorded that stands for the rest",
             take_word, "MEMTRACE_ON_LAG"),
    SETTING("profile", "write a profile, too", "MEMTRACE_PROFILE", "1"),
#ifdef MEMTRACE_STREAM
    {"to", 0, "HOST[:PORT]|auto",
     "also send it, while it grows, to where `memtrace gather` listens; auto: find one",
     OPTION_TEXT, OPTION_IN(struct variables, to)},
    {"listen", 0, "ADDRESS[:PORT]",
     "or let `memtrace gather HOST` fetch it from here while it grows", OPTION_TEXT,
     OPTION_IN(struct variables, listen)},
    {"discoverable", 0, NULL, "with --listen: answer `memtrace gather --scan` by UDP", OPTION_FLAG,
     OPTION_IN(struct variables, discoverable)},
    {"discovery-port", 0, "PORT", "the UDP port of --discoverable (default: 6364)", OPTION_NUMBER,
     OPTION_IN(struct variables, discovery_port), .least = 1, .most = UINT16_MAX},
    {"token", 0, "FILE", "a secret that both sides know; needed between machines", OPTION_TEXT,
     OPTION_IN(struct variables, token)},
    VARIABLE("queue", 0, "SIZE",
             "keep no copy here: what has arrived is deleted, and at most SIZE waits to be sent "
             "(with --to)",
             take_size, "MEMTRACE_QUEUE"),
    {"allow-control", 0, NULL,
     "with --to or --listen: the receiver may switch counting, sample and set marks (memtrace "
     "control)",
     OPTION_FLAG, OPTION_IN(struct variables, allows_control)},
    {"linger", 0, "TIME", "how long sending the rest may take after the end (default: 60s)",
     OPTION_DURATION, OPTION_IN(struct variables, linger_ns), .least = 1},
#endif
    {.part = common_options},
    OPTION_END};

void variables_print_more(void) {
    puts("Each option is also an environment variable: see docs/environment.md or man memtrace.");
}
