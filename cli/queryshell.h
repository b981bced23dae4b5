/* SPDX-License-Identifier: MIT */
/*
 * queryshell.h: statements and dot commands, from a text, a file or a terminal.
 *
 * Called by cli/query.c. Errors are printed; what is returned is an exit status.
 */
#ifndef CLI_QUERYSHELL_H
#define CLI_QUERYSHELL_H

#include "analyze/query/query.h"

#include <stdatomic.h>

struct queryshell {
    struct query *query;
    struct statement_writer writer;
    atomic_int is_printing; /* rows come: no progress any more (an int: not every machine exchanges
                               a bool) */
    char *pending;          /* lines of a statement that is not complete yet */
    size_t pending_size;
    bool wants_to_quit;
};

/* For the session's replay_options, the shell as context. */
void queryshell_progress(void *context, uint64_t done, uint64_t total);

/* All statements of a text, which is no shell's: no dot commands. */
int queryshell_text(struct queryshell *shell, const char *sql);
/* The next line: a dot command, or a part of a statement, which is run when it is complete. */
int queryshell_line(struct queryshell *shell, const char *line);
/* All lines of a file, up to the first error. */
int queryshell_lines(struct queryshell *shell, FILE *in);

/* queryterminal.c. Asks a person until he has enough. */
int queryterminal_run(struct queryshell *shell, const char *source);

extern const char queryshell_help[];

#endif
