/* SPDX-License-Identifier: MIT */
/*
 * command.h: what a subcommand is: what it takes, what it is for, who carries it out.
 *
 * Called by main, cli/help, cli/completion and cli/manual.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "analyze/ask/option.h"

/* One subcommand; each is defined in the file of its name. */
struct command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is its name. Returns the exit status. */
    const char *summary;               /* in the list of commands; NULL: not for people */
    const char *usage;                 /* behind the name, a line for each form */
    const char *about;                 /* what it does, whole sentences */
    const struct option *options;      /* NULL: none but --help */
    /* What its operands are, one word each, as values of options are; the last one may be repeated.
     * PROFILE: a profile, a recording or a run; RECORDING; PID. NULL: it takes none. */
    const char *operands;
    void (*more)(void); /* prints what stands behind the options; or NULL */
    bool takes_program; /* options end where the program's own begin */
};

/* The subcommands, in the order of the help; NULL ends them. */
extern const struct command run_command, record_command, report_command, diff_command,
    query_command, check_command, export_command, import_command, extract_command, repack_command,
    strip_command, anonymize_command, merge_command, info_command, list_command, trace_command,
    control_command, symbolize_command, flags_command, completion_command, companion_command,
    manual_command;
extern const struct command *const commands[];
const struct command *command_find(const char *name); /* NULL: there is none */

/* help.c: what `memtrace COMMAND --help` prints. */
void help_print(const struct command *command);
/* What help tells of an option, its other names included; `walk` has just returned it. */
enum { OPTION_HELP_SIZE = 600 };
void option_help(const struct option *option, const struct option_walk *walk, char *help,
                 size_t size);

#endif
