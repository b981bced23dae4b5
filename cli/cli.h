/* SPDX-License-Identifier: MIT */
/*
 * cli.h: what the subcommands of `memtrace` share: their entry points, options, messages, numbers.
 *
 * Each subcommand has its own file: cli/report.c defines cmd_report(), and so on. argv[0] is the
 * subcommand's name. It returns the exit status; only code in cli/ prints and exits.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_status { CLI_OK = 0, CLI_FAILURE = 1, CLI_USAGE = 2 };

int cmd_export(int argc, char **argv);
int cmd_anonymize(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_extract(int argc, char **argv);
int cmd_query(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_repack(int argc, char **argv);
int cmd_strip(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_control(int argc, char **argv);
int cmd_symbolize(int argc, char **argv);
int cmd_flags(int argc, char **argv);
int cmd_companion(int argc, char **argv); /* started by the runtime, not listed in the help */

/* Prints "memtrace: <message>" to stderr, as one line. Returns CLI_FAILURE. */
int cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a wrong command line, with "(try: memtrace <command> --help)" added. Returns
 * CLI_USAGE. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Options. `--name value`, `--name=value`, `-x value`; `--` ends them. Every command knows --help.
 *
 *     static const struct cli_option options[] = {{"top", 'n', true, 't'}, {0}};
 *     struct cli_scan scan = cli_scan_start("run", argc, argv, options);
 *     int key;
 *     while ((key = cli_scan_next(&scan)) > 0) { switch (key) { case 't': ... scan.value ... } }
 *     if (key < 0) return CLI_USAGE;  // the line was printed
 *     // operands: argv[scan.index] .. argv[argc - 1]
 */
struct cli_option {
    const char *name; /* without --; NULL ends the table */
    char letter;      /* short form; 0: none */
    bool has_value;
    int key; /* > 0 */
};
struct cli_scan {
    const char *command;
    int argc;
    char **argv;
    const struct cli_option *options;
    int index;         /* next argument; at the end of options: the first operand */
    const char *value; /* of the option just returned; NULL if it has none */
    const char *name;  /* as written, for messages: "--top" */
    bool permute;      /* set it: operands may stand between options; they are moved behind them */
    int operands;      /* internal */
};
struct cli_scan cli_scan_start(const char *command, int argc, char **argv,
                               const struct cli_option *options);
/* The key of the next option, 0 at the end, -1 after an error (line printed). */
int cli_scan_next(struct cli_scan *scan);
/* Hands every option to take(), operands between them allowed. take() returns CLI_OK, or a status
 * after it printed a line, which ends the scan and is returned. CLI_OK: operands as above. */
int cli_scan_all(struct cli_scan *scan,
                 int (*take)(void *request, const struct cli_scan *scan, int key), void *request);

/* Of options of which a command line has one: notes the choice in *chosen, NULL before. CLI_OK, or
 * CLI_USAGE after the line was printed: another one was chosen already. Twice the same is fine. */
int cli_choose(const struct cli_scan *scan, const char **chosen, const char *choice);

/* Numbers. Each returns 0, or -1 where the text is not wholly such a number or too large. */
int cli_parse_u64(const char *text, uint64_t *value);     /* decimal */
int cli_parse_bytes(const char *text, uint64_t *bytes);   /* 64M: suffix K M G T, binary */
int cli_parse_duration(const char *text, uint64_t *ns);   /* 30s: ns us ms s m h; none: seconds */
int cli_parse_percent(const char *text, double *percent); /* 0.5 or 0.5%: 0..100 */

/* Whether to colour what goes to descriptor fd: `when` is "auto", "always" or "never" (NULL: auto;
 * auto minds the terminal, NO_COLOR and TERM=dumb). -1: none of the three. */
int cli_color(const char *when, int fd);

/* Flushes stdout and says so if what was printed could not be written. Returns the status, or
 * CLI_FAILURE. A closed pipe is no failure worth a line. */
int cli_finish(int status);

#endif
