/* SPDX-License-Identifier: MIT */
/*
 * cli.h: what the subcommands of `memtrace` share: what a command is, reading its line, messages.
 *
 * Each subcommand has its own file: cli/report.c defines report_command, and so on;
 * only code in cli/ prints and exits.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "ask/option.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdnoreturn.h>

/* One subcommand; each is defined in the file of its name. */
struct command {
    const char *name;
    /* A job (analyze/base/job.h): argv[0] is its name. Returns the exit status. */
    int (*run)(int argc, char **argv);
    const char *summary;          /* in the list of commands; NULL: not for people */
    const char *usage;            /* behind the name, a line for each form */
    const char *about;            /* what it does, whole sentences */
    const struct option *options; /* NULL: none but --help */
    /* What its operands are, one word each, as values of options are; the last one may be repeated.
     * PROFILE: a profile, a recording or a run; RECORDING; PID. NULL: it takes none. */
    const char *operands;
    void (*more)(void); /* prints what stands behind the options; or NULL */
    /* Prints what a value of this name in the help may be, a line each (completion.c); false: that
     * is of no name that it knows. NULL: it knows none. */
    bool (*offer)(const char *value);
    bool takes_program; /* options end where the program's own begin */
    int failure;        /* its exit status where its job is ended; 0: CLI_FAILURE */
};

/* The subcommands, in the order of the help; NULL ends them. */
extern const struct command run_command, record_command, report_command, diff_command,
    query_command, serve_command, top_command, check_command, export_command, import_command,
    extract_command, repack_command, strip_command, anonymize_command, merge_command, info_command,
    list_command, trace_command, control_command, attach_command, detach_command, symbolize_command,
    flags_command, completion_command, complete_command, send_command, gather_command,
    sender_command, offerer_command, companion_command, allocators_command, manual_command,
    openapi_command, replay_command, replaychild_command;
extern const struct command *const commands[];
const struct command *command_find(const char *name); /* NULL: there is none */
/* Of a command that was left out of this build: CMake's option that brings it. NULL: it was not. */
const char *command_left_out(const char *name);

/* What `memtrace COMMAND --help` prints. */
void help_print(const struct command *command);

enum cli_status { CLI_OK = 0, CLI_FAILURE = 1, CLI_USAGE = 2 };

/* Prints "memtrace: <message>" to stderr, as one line. Returns CLI_FAILURE. */
int cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same of one text, for those who are told what people are to know. */
void cli_tell(const char *line);

/* Ends the command, of whose job this is the innermost, with an exit status: what there was to say
 * is printed. */
noreturn void cli_end(int status);
/* Ends it with CLI_USAGE for a wrong command line: prints as cli_error(), with "(try: memtrace
 * <command> --help)" added. */
noreturn void cli_usage(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Carries out `memtrace NAME ARGUMENT...` as a job, or prints its help. Returns the exit status:
 * where the job is ended, that of cli_end(), or the command's failure, and why was printed. */
int cli_run(const struct command *command, int argc, char **argv);

/*
 * Reads a command line into the request by the command's table of options: `--name value`,
 * `--name=value`, `-x value`; `--` ends them; operands may stand between them, but where a
 * program's own options follow. Then argv[0] to argv[argc - 1] are the operands. --help is not seen
 * here. A wrong line ends the command.
 */
void cli_read(const struct command *command, int *argc, char ***argv, void *request);

/* The option that an argument ("--name", "--name=value", "-x") names, and the value in it (NULL:
 * none is). NULL: there is none of that name. */
const struct option *cli_option(const struct command *command, const char *argument,
                                const char **value);

/* The one operand (NULL: none; where `what` says what it is, that is wrong). */
const char *cli_one(const struct command *command, int argc, char **argv, const char *what);
/* A process id, as an operand names it. */
pid_t cli_pid(const struct command *command, const char *operand);

/* Whether to colour what goes to descriptor fd: `when` is "auto", "always" or "never" (NULL: auto;
 * auto minds the terminal, NO_COLOR and TERM=dumb). -1: none of the three. */
int cli_color(const char *when, int fd);
/* Sets colour, lines and width of a report for this output (NULL, "-": stdout). color: as the user
 * said, NULL: nothing, which is "auto" on stdout and "never" in a file. */
struct report_options;
void cli_style(struct report_options *options, const char *output, const char *color);

/* Flushes stdout and says so if what was printed could not be written. Returns the status, or
 * CLI_FAILURE. A closed pipe is no failure worth a line. */
int cli_finish(int status);

/* SIGINT, SIGTERM and SIGHUP. */
sigset_t cli_endings(void);
/* Of commands that go on until Ctrl-C and then put things in order: from here on SIGINT and SIGTERM
 * end nothing but calls that wait. */
void cli_catch_stop(void);
/* The signal that came since; 0: none. */
extern volatile sig_atomic_t cli_stop;

/*
 * Which known name somebody meant who misspelt it.
 *
 *     struct nearest nearest = nearest_to("reprot", 6);
 *     nearest_offer(&nearest, "run"); nearest_offer(&nearest, "report");
 *     ... nearest.name is "report"; NULL where none is near
 */
struct nearest {
    const char *text;
    size_t length;    /* of text, so that it need not end there */
    const char *name; /* NULL: none is near */
    size_t distance;
};

struct nearest nearest_to(const char *text, size_t length);
void nearest_offer(struct nearest *nearest, const char *name);

#endif
