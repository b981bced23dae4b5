/* SPDX-License-Identifier: MIT */
/* cli.c: the table of subcommands, reading command lines, messages. See cli.h. */
#include "cli/cli.h"

#include "analyze/base/job.h"
#include "analyze/rows/report.h"
#include "analyze/rows/safetext.h"
#include "ask/cleanup.h"
#include "ask/memorylimit.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Which parts of the command this build has, and CMake's option that brings them. */
#define ALWAYS(...)   __VA_ARGS__
#define ALWAYS_OPTION NULL
#ifdef MEMTRACE_AGENT
#define WHOLE(...)
#else
#define WHOLE(...) __VA_ARGS__
#endif
#define WHOLE_OPTION "-DMEMTRACE_TOOLS=all"
#ifdef MEMTRACE_WEB
#define WEB(...) __VA_ARGS__
#else
#define WEB(...)
#endif
#define WEB_OPTION "-DMEMTRACE_WEB=ON"
#ifdef MEMTRACE_TOP
#define TOP(...) __VA_ARGS__
#else
#define TOP(...)
#endif
#define TOP_OPTION "-DMEMTRACE_TOP=ON"
#ifdef MEMTRACE_STREAM
#define STREAM(...) __VA_ARGS__
#define GATHER(...) WHOLE(__VA_ARGS__)
#else
#define STREAM(...)
#define GATHER(...)
#endif
#define STREAM_OPTION "-DMEMTRACE_STREAM=ON"
#define GATHER_OPTION STREAM_OPTION

/* In the order of the help. */
#define COMMANDS(X)                                                                                \
    X(ALWAYS, run)                                                                                 \
    X(ALWAYS, record)                                                                              \
    X(WHOLE, report)                                                                               \
    X(WHOLE, diff)                                                                                 \
    X(WHOLE, query)                                                                                \
    X(WEB, serve)                                                                                  \
    X(TOP, top)                                                                                    \
    X(WHOLE, check)                                                                                \
    X(WHOLE, export)                                                                               \
    X(WHOLE, replay)                                                                               \
    X(WHOLE, import)                                                                               \
    X(WHOLE, extract)                                                                              \
    X(WHOLE, repack)                                                                               \
    X(WHOLE, strip)                                                                                \
    X(WHOLE, anonymize)                                                                            \
    X(WHOLE, merge)                                                                                \
    X(WHOLE, info)                                                                                 \
    X(ALWAYS, list)                                                                                \
    X(WHOLE, allocators)                                                                           \
    X(WHOLE, trace)                                                                                \
    X(STREAM, send)                                                                                \
    X(GATHER, gather)                                                                              \
    X(STREAM, sender)                                                                              \
    X(STREAM, offerer)                                                                             \
    X(ALWAYS, control)                                                                             \
    X(ALWAYS, attach)                                                                              \
    X(ALWAYS, detach)                                                                              \
    X(WHOLE, symbolize)                                                                            \
    X(WHOLE, flags)                                                                                \
    X(ALWAYS, completion)                                                                          \
    X(ALWAYS, complete)                                                                            \
    X(ALWAYS, companion)                                                                           \
    X(WEB, openapi)                                                                                \
    X(WHOLE, replaychild)                                                                          \
    X(ALWAYS, manual)
#define ENTRY(part, name) part(&name##_command, )
#define NAMED(part, name) {#name, part##_OPTION},

const struct command *const commands[] = {COMMANDS(ENTRY) NULL};

const char *command_left_out(const char *name) {
    static const struct { const char *name, *option; } all[] = {COMMANDS(NAMED)};
    for (size_t i = 0; i < sizeof all / sizeof all[0] && command_find(name) == NULL; i++) {
        if (strcmp(all[i].name, name) == 0) {
            return all[i].option;
        }
    }
    return NULL;
}

const struct command *command_find(const char *name) {
    for (const struct command *const *command = commands; *command != NULL; command++) {
        if (strcmp((*command)->name, name) == 0) {
            return *command;
        }
    }
    return NULL;
}

/* ---- Messages ---- */

/* One line in one write, so that it stays whole between lines of the program under us. Names in
 * messages come from outside. What is too long loses its middle: the reason stands at the end. */
static void print_message(const char *command, const char *format, va_list arguments) {
    enum { BEGIN = 900, END = 300 };
    char line[2048] = "memtrace: ";
    size_t used = strlen(line);
    size_t room = sizeof line - 1 - used;
    char *text = NULL;
    int length = vasprintf(&text, format, arguments);
    if (length < 0) {
        snprintf(line + used, room, "out of memory");
    } else if (length > BEGIN + END) {
        snprintf(line + used, room, "%.*s ... %s", BEGIN, text, text + length - END);
    } else {
        bool is_memory = length <= BEGIN && strstr(text, "out of memory") != NULL;
        snprintf(line + used, room, "%s%s", text, is_memory ? memorylimit_note() : "");
    }
    free(length >= 0 ? text : NULL);
    if (command != NULL) {
        used = strlen(line);
        snprintf(line + used, sizeof line - 1 - used, " (try: memtrace %s%s--help)", command,
                 command[0] != '\0' ? " " : "");
    }
    used = strlen(make_safe(line));
    line[used] = '\n';
    fflush(stdout);
    if (write(STDERR_FILENO, line, used + 1) < 0) {
        return; /* nobody to tell */
    }
}

int cli_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_message(NULL, format, arguments);
    va_end(arguments);
    return CLI_FAILURE;
}

void cli_tell(const char *line) {
    cli_error("%s", line);
}

static struct call {
    const struct command *command;
    int argc;
    char **argv;
    int status;
    bool is_ended; /* by cli_end() */
} * call_running;

noreturn void cli_end(int status) {
    if (call_running == NULL) {
        exit(status);
    }
    call_running->status = status;
    call_running->is_ended = true;
    job_fail("%s", "");
}

noreturn void cli_usage(const char *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_message(command != NULL ? command : "", format, arguments);
    va_end(arguments);
    cli_end(CLI_USAGE);
}

int cli_color(const char *when, int fd) {
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (when == NULL || strcmp(when, "auto") == 0) {
        return isatty(fd) && (no_color == NULL || no_color[0] == '\0') &&
               (term == NULL || strcmp(term, "dumb") != 0);
    }
    if (strcmp(when, "always") == 0) {
        return 1;
    }
    return strcmp(when, "never") == 0 ? 0 : -1;
}

enum { NARROWEST = 60 }; /* what is narrower is not minded */

/* What is no terminal gets lines as long as they are. COLUMNS, where it is exported, is somebody's
 * wish. */
static size_t stdout_width(void) {
    struct winsize size;
    uint64_t columns = 0;
    if (isatty(STDOUT_FILENO) == 0) {
        return 0;
    }
    if (quantity_u64(getenv("COLUMNS"), &columns) != 0 || columns < NARROWEST) {
        columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
    }
    return columns >= NARROWEST && columns <= UINT16_MAX ? (size_t)columns : 0;
}

void cli_style(struct report_options *options, const char *output, const char *color) {
    bool to_stdout = output == NULL || strcmp(output, "-") == 0;
    setlocale(LC_CTYPE, "");
    options->unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    options->width = to_stdout ? stdout_width() : 0;
    options->color = cli_color(color != NULL || to_stdout ? color : "never", STDOUT_FILENO) == 1;
}

int cli_finish(int status) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (errno != EPIPE) {
            cli_error("cannot write the output: %s", strerror(errno));
        }
        return CLI_FAILURE;
    }
    return status;
}

volatile sig_atomic_t cli_stop;

static void note_stop(int signal) {
    cli_stop = signal;
}

sigset_t cli_endings(void) {
    sigset_t endings;
    sigemptyset(&endings);
    sigaddset(&endings, SIGINT);
    sigaddset(&endings, SIGTERM);
    sigaddset(&endings, SIGHUP);
    return endings;
}

void cli_catch_stop(void) {
    const struct sigaction action = {.sa_handler = note_stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- Misspelt names ---- */

enum { LONGEST = 48 }; /* letters of a name */

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Letters to add, drop or change, or neighbours to swap. Rows of the usual table: the last two. */
static size_t nearest_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= b_length; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = least(least(row[j - 1], above[j]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = least(row[j], rows[(i - 2) % 3][j - 2] + 1);
            }
        }
    }
    return rows[a_length % 3][b_length];
}

struct nearest nearest_to(const char *text, size_t length) {
    return (struct nearest){.text = text, .length = length, .distance = SIZE_MAX};
}

void nearest_offer(struct nearest *nearest, const char *name) {
    size_t length = strlen(name);
    size_t away; /* in halves of a letter */
    if (nearest->length < 2 || nearest->length > LONGEST || length > LONGEST) {
        return;
    }
    away = 2 * nearest_distance(nearest->text, nearest->length, name, length);
    if (nearest->length >= 3 && strncmp(name, nearest->text, nearest->length) == 0) {
        away = least(away, 1); /* its beginning: nearer than another with one wrong letter */
    } else if (nearest->length >= 4 &&
               memmem(name, length, nearest->text, nearest->length) != NULL) {
        away = least(away, 4); /* a word of it */
    }
    if (away <= 2 + nearest->length / 4 * 2 && away < nearest->distance) {
        nearest->distance = away;
        nearest->name = name;
    }
}

/* ---- Command lines ---- */

enum { CHOICES = 16 };

/* One answer to a question that has one answer. */
struct choice {
    size_t at; /* where it is stored in the request */
    const char *value;
    const struct option *option;
};

struct scan {
    const char *command;
    int argc;
    char **argv;
    const struct option *options;
    int index;    /* next argument; at the end of options: the first operand */
    int operands; /* met so far: they stand behind argv[index] */
    bool permute; /* operands may stand between options; they are moved behind them */
    bool is_quiet;
    /* The option that was found last. */
    const struct option *option;
    size_t base;        /* where its offsets count from */
    const char *prefix; /* of its name */
    const char *value;  /* NULL if it has none */
    struct choice choices[CHOICES];
    size_t choice_count;
};

static struct scan scan_start(const struct command *command, int argc, char **argv) {
    return (struct scan){.command = command->name,
                         .argc = argc,
                         .argv = argv,
                         .options = command->options,
                         .index = 1,
                         .permute = !command->takes_program};
}

/* Moves argv[from] down to argv[to]; those between move up. */
static void move_argument(char **argv, int from, int to) {
    char *argument = argv[from];
    memmove(&argv[to + 1], &argv[to], (size_t)(from - to) * sizeof *argv);
    argv[to] = argument;
}

/* Brings the next option to scan->index. Operands met so far stand behind it. */
static bool find_option(struct scan *scan) {
    for (int i = scan->index; i < scan->argc; i++) {
        if (scan->argv[i][0] == '-' && scan->argv[i][1] != '\0') {
            scan->operands = i - scan->index;
            move_argument(scan->argv, i, scan->index);
            return true;
        }
        if (!scan->permute) {
            break;
        }
    }
    return false;
}

/* How long the name is that an argument spells: "--json=3". */
static size_t name_length(const char *argument) {
    return strcspn(argument, "=") - 2;
}

/* The row of this name, which counts from *base; *prefix is what its table puts before its name.
 * NULL: there is none. */
static const struct option *find_named(const struct option *options, const char *name,
                                       size_t length, size_t *base, const char **prefix) {
    struct option_walk walk = option_walk_start(options);
    const struct option *option;
    while ((option = option_walk_next(&walk)) != NULL) {
        size_t skip = option_is_prefix(option) ? strlen(option->name) : 0;
        if (skip == 0 && option->name != NULL && strlen(option->name) == length &&
            strncmp(option->name, name, length) == 0) {
            *base = walk.base;
            return option;
        }
        if (skip != 0 && length > skip && strncmp(option->name, name, skip) == 0) {
            size_t inner = 0;
            const struct option *found =
                find_named(option->part, name + skip, length - skip, &inner, prefix);
            *base = walk.base + option->offset + inner;
            *prefix = option->name;
            return found;
        }
    }
    return NULL;
}

static const struct option *find_letter(const struct option *options, char letter, size_t *base) {
    struct option_walk walk = option_walk_start(options);
    const struct option *option;
    do {
        option = option_walk_next(&walk);
    } while (option != NULL && option->letter != letter);
    *base = walk.base;
    return option;
}

static void match_option(struct scan *scan, const char *argument) {
    const char *equals = strchr(argument, '=');
    scan->prefix = "";
    if (argument[1] == '-') {
        scan->option = find_named(scan->options, argument + 2, name_length(argument), &scan->base,
                                  &scan->prefix);
        scan->value = equals != NULL ? equals + 1 : NULL;
    } else {
        scan->option = find_letter(scan->options, argument[1], &scan->base);
        scan->value = argument[2] != '\0' ? argument + 2 : NULL;
    }
}

const struct option *cli_option(const struct command *command, const char *argument,
                                const char **value) {
    struct scan scan = {.options = command->options};
    match_option(&scan, argument);
    *value = scan.value;
    return scan.option;
}

/* "--jsno", "--jsno=3": which one was meant. */
static noreturn void refuse_option(const struct scan *scan, const char *argument) {
    bool is_long = argument[1] == '-';
    struct nearest nearest = nearest_to(argument + 2, is_long ? name_length(argument) : 0);
    struct option_walk walk = option_walk_start(scan->options);
    const struct option *option;
    while (is_long && (option = option_walk_next(&walk)) != NULL) {
        if (option->name != NULL) {
            nearest_offer(&nearest, option->name);
        }
    }
    cli_usage(scan->command, "there is no option %.*s%s%s%s", (int)strcspn(argument, "="), argument,
              nearest.name != NULL ? ": did you mean --" : "",
              nearest.name != NULL ? nearest.name : "", nearest.name != NULL ? "?" : "");
}

/* The value in the next argument, which stands behind the operands met so far. */
static const char *next_value(struct scan *scan) {
    int at = scan->index + scan->operands;
    if (at >= scan->argc) {
        return NULL;
    }
    move_argument(scan->argv, at, scan->index);
    return scan->argv[scan->index++];
}

/* Whether there is another option. One that is wrong ends the command; a quiet scan ends there. */
static bool scan_next(struct scan *scan) {
    const char *argument;
    const char *wrong = NULL;
    if (!find_option(scan)) {
        return false;
    }
    argument = scan->argv[scan->index++];
    if (strcmp(argument, "--") == 0) {
        return false;
    }
    match_option(scan, argument);
    if (scan->option != NULL && scan->option->value != NULL && scan->value == NULL) {
        scan->value = next_value(scan);
        wrong = scan->value == NULL ? "needs a value" : NULL;
    } else if (scan->option != NULL && scan->option->value == NULL && scan->value != NULL) {
        wrong = "takes no value";
    }
    if (scan->option != NULL && wrong == NULL) {
        return true;
    }
    if (!scan->is_quiet && scan->option == NULL) {
        refuse_option(scan, argument);
    } else if (!scan->is_quiet) {
        cli_usage(scan->command, "option --%s%s %s", scan->prefix, scan->option->name, wrong);
    }
    return false;
}

/* Of what has one answer: the same again is fine, another one is not. "--format json" or "--flat",
 * with the blank or without. */
static void scan_note_choice(struct scan *scan) {
    const struct option *option = scan->option;
    const char *value = option->implied != NULL ? option->implied : scan->value;
    size_t at = scan->base + option->offset;
    bool has_value = option->value != NULL;
    for (size_t i = 0; i < scan->choice_count; i++) {
        const struct choice *old = &scan->choices[i];
        bool had_value = old->option->value != NULL;
        if (old->at == at && strcmp(old->value, value) != 0) {
            cli_usage(scan->command, "--%s%s%s and --%s%s%s exclude each other", old->option->name,
                      had_value ? " " : "", had_value ? old->value : "", option->name,
                      has_value ? " " : "", has_value ? value : "");
        }
        if (old->at == at) {
            return;
        }
    }
    if (scan->choice_count < CHOICES) {
        scan->choices[scan->choice_count++] = (struct choice){at, value, option};
    }
}

/* Whether --memory-limit is among its options: those of commands that read files. */
static bool takes_limit(const struct option *options) {
    struct option_walk walk = option_walk_start(options);
    const struct option *option;
    while ((option = option_walk_next(&walk)) != NULL && option != memorylimit_options) {
    }
    return option != NULL;
}

void cli_read(const struct command *command, int *argc, char ***argv, void *request) {
    struct scan scan = scan_start(command, *argc, *argv);
    struct error error;
    if (takes_limit(command->options)) {
        memorylimit_start();
    }
    while (scan_next(&scan)) {
        if (option_store(scan.option, scan.value, (char *)request + scan.base, &error) != 0) {
            option_prefix(&error, scan.prefix);
            cli_usage(scan.command, "%s", error.message);
        }
        if (scan.option->is_choice) {
            scan_note_choice(&scan);
        }
    }
    *argc -= scan.index;
    *argv += scan.index;
}

const char *cli_one(const struct command *command, int argc, char **argv, const char *what) {
    if (argc > 1) {
        cli_usage(command->name, "one file at a time: '%s' is one too many", argv[1]);
    }
    if (argc == 0 && what != NULL) {
        cli_usage(command->name, "%s is needed", what);
    }
    return argc > 0 ? argv[0] : NULL;
}

pid_t cli_pid(const struct command *command, const char *operand) {
    uint64_t number;
    if (quantity_u64(operand, &number) != 0 || number == 0 || number > INT32_MAX) {
        cli_usage(command->name, "'%s' is not a process id", operand);
    }
    return (pid_t)number;
}

/* Whether --help stands where options do. */
static bool call_wants_help(const struct call *call) {
    char **copy = job_array((size_t)call->argc + 1, sizeof *copy);
    struct scan scan = scan_start(call->command, call->argc, copy);
    memcpy(copy, call->argv, (size_t)call->argc * sizeof *copy);
    scan.is_quiet = true;
    while (scan_next(&scan)) {
        if (scan.option->key == OPTION_HELP) {
            return true;
        }
    }
    return false;
}

static void call_command(void *what) {
    struct call *call = what;
    if (call_wants_help(call)) {
        help_print(call->command);
        call->status = cli_finish(CLI_OK);
    } else {
        call->status = call->command->run(call->argc, call->argv);
    }
}

int cli_run(const struct command *command, int argc, char **argv) {
    struct call call = {command, argc, argv, CLI_OK, false};
    struct error error;
    call_running = &call;
    if (job_run(call_command, &call, NULL, &error) != 0) {
        if (!call.is_ended) {
            call.status = command->failure != 0 ? command->failure : CLI_FAILURE;
        }
        cleanup_remove_all();
        if (error.message[0] != '\0') {
            cli_error("%s", error.message);
        }
    }
    call_running = NULL;
    return call.status;
}
