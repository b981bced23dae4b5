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
 * Options. `--name value`, `--name=value`, `-x value`; `--` ends them. --help is not seen here.
 *
 *     static const struct option options[] = {{"top", 'n', 't', "N", "so many rows"}, {0}};
 *     struct cli_scan scan = cli_scan_start("run", argc, argv, options);
 *     int key;
 *     while ((key = cli_scan_next(&scan)) > 0) { switch (key) { case 't': ... scan.value ... } }
 *     if (key < 0) return CLI_USAGE;  // the line was printed
 *     // operands: argv[scan.index] .. argv[argc - 1]
 */
struct cli_scan {
    const char *command;
    int argc;
    char **argv;
    const struct option *options;
    int index;                   /* next argument; at the end of options: the first operand */
    const struct option *option; /* the one just returned */
    const char *value;           /* its value; NULL if it has none */
    const char *name;            /* as written, for messages: "--top" */
    bool permute;  /* set it: operands may stand between options; they are moved behind them */
    bool is_quiet; /* nothing is printed */
    int operands;  /* internal */
};
struct cli_scan cli_scan_start(const char *command, int argc, char **argv,
                               const struct option *options);
/* The key of the next option, 0 at the end, -1 after an error (line printed). */
int cli_scan_next(struct cli_scan *scan);
/* Hands every option to take(), operands between them allowed. take() returns CLI_OK, or a status
 * after it printed a line, which ends the scan and is returned. CLI_OK: operands as above. */
int cli_scan_all(struct cli_scan *scan,
                 int (*take)(void *request, const struct cli_scan *scan, int key), void *request);

/* Of options of which a command line has one: notes the choice in *chosen, NULL before. CLI_OK, or
 * CLI_USAGE after the line was printed: another one was chosen already. Twice the same is fine. */
int cli_choose(const struct cli_scan *scan, const char **chosen, const char *choice);

/* Whether to colour what goes to descriptor fd: `when` is "auto", "always" or "never" (NULL: auto;
 * auto minds the terminal, NO_COLOR and TERM=dumb). -1: none of the three. */
int cli_color(const char *when, int fd);

/* Flushes stdout and says so if what was printed could not be written. Returns the status, or
 * CLI_FAILURE. A closed pipe is no failure worth a line. */
int cli_finish(int status);

#endif
