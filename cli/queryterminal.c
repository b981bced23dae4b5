/* SPDX-License-Identifier: MIT */
/*
 * queryterminal.c: a person asks, line by line (libedit). Ctrl-C drops the line or ends the query
 * that runs, Ctrl-D ends. What was asked is kept in $XDG_STATE_HOME/memtrace/query_history.
 */
#include "analyze/base/filemode.h"
#include "cli/cli.h"
#include "cli/queryshell.h"

#include <editline/readline.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HISTORY_MOST = 1000 };

/* For the handler: the query that runs; NULL: none does. */
static struct query *volatile running;
static volatile sig_atomic_t was_interrupted;

static void interrupt(int number) {
    struct query *query = running;
    (void)number;
    was_interrupted = 1;
    if (query != NULL) {
        query_interrupt(query);
    }
}

/* The caller frees it. NULL: there is no place for it. */
static char *history_path(void) {
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    char *path = NULL;
    int size = -1;
    if (state != NULL && *state == '/') {
        size = asprintf(&path, "%s/memtrace/query_history", state);
    } else if (home != NULL && *home == '/') {
        size = asprintf(&path, "%s/.local/state/memtrace/query_history", home);
    }
    if (size < 0) {
        return NULL;
    }
    filemode_folders(path, S_IRWXU);
    return path;
}

static void drop_pending(struct queryshell *shell) {
    free(shell->pending);
    shell->pending = NULL;
    shell->pending_size = 0;
    fputc('\n', shell->writer.report.out);
}

static void ask(struct queryshell *shell) {
    while (!shell->wants_to_quit) {
        char *line;
        was_interrupted = 0;
        query_resume(shell->query);
        line = readline(shell->pending == NULL ? "memtrace> " : "     ...> ");
        if (line == NULL && was_interrupted == 0) {
            break;
        }
        running = shell->query; /* Ctrl-C is the query's from now on, also before it begins */
        if (was_interrupted != 0) {
            drop_pending(shell);
        } else {
            if (*line != '\0') {
                add_history(line);
            }
            queryshell_line(shell, line);
            fflush(shell->writer.report.out);
        }
        running = NULL;
        if (was_interrupted != 0) {
            clearerr(shell->writer.report.out); /* a write that Ctrl-C cut off */
        }
        free(line);
    }
}

int queryterminal_run(struct queryshell *shell, const char *source) {
    struct sigaction action = {.sa_handler = interrupt}; /* no SA_RESTART: readline() shall end */
    struct sigaction before;
    char *path = history_path();
    fprintf(shell->writer.report.out,
            "%s\nSQL, then a semicolon. .tables lists what there is, .help more.\n", source);
    using_history();
    stifle_history(HISTORY_MOST);
    if (path != NULL) {
        read_history(path);
    }
    sigaction(SIGINT, &action, &before);
    ask(shell);
    sigaction(SIGINT, &before, NULL);
    if (path != NULL) {
        write_history(path);
    }
    free(path);
    fputc('\n', shell->writer.report.out);
    return CLI_OK;
}
