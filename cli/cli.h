/* SPDX-License-Identifier: MIT */
/*
 * cli.h: what the subcommands of `memtrace` share: their entry points, options, messages, numbers.
 *
 * Each subcommand has its own file: cli/report.c defines report_command (command.h), and so on;
 * only code in cli/ prints and exits.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "analyze/ask/quantity.h"
#include "cli/command.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_status { CLI_OK = 0, CLI_FAILURE = 1, CLI_USAGE = 2 };

/* Prints "memtrace: <message>" to stderr, as one line. Returns CLI_FAILURE. */
int cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a wrong command line, with "(try: memtrace <command> --help)" added. Returns
 * CLI_USAGE. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Carries out `memtrace NAME ARGUMENT...`, or prints its help. Returns the exit status. */
int cli_run(const struct command *command, int argc, char **argv);

/*
 * Reads a command line into the request by the command's table of options: `--name value`,
 * `--name=value`, `-x value`; `--` ends them; operands may stand between them, but where a
 * program's own options follow. Then argv[0] to argv[argc - 1] are the operands. --help is not seen
 * here. CLI_OK, or CLI_USAGE after the line was printed.
 */
int cli_read(const struct command *command, int *argc, char ***argv, void *request);

/* The one operand (NULL: none; where `what` says what it is, that is wrong). CLI_OK or CLI_USAGE.
 */
int cli_one(const struct command *command, int argc, char **argv, const char *what,
            const char **operand);

/* Whether to colour what goes to descriptor fd: `when` is "auto", "always" or "never" (NULL: auto;
 * auto minds the terminal, NO_COLOR and TERM=dumb). -1: none of the three. */
int cli_color(const char *when, int fd);

/* Flushes stdout and says so if what was printed could not be written. Returns the status, or
 * CLI_FAILURE. A closed pipe is no failure worth a line. */
int cli_finish(int status);

#endif
