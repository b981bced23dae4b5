/* SPDX-License-Identifier: MIT */
/*
 * child.h: a program started as our child, and the signals between it, us and the terminal.
 *
 * Called by cli/run, and by streaming and attach for a part; there is one child a process. From
 * child_start() on, the signals that end, stop or notify a process are blocked here and come
 * through child.signals: those that the terminal sent reached the child as well (it is in our
 * process group); any other is passed on to it.
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdnoreturn.h>
#include <sys/types.h>
#include <time.h>

/* One variable to set for the child. A pattern of a file, as MEMTRACE_OUTPUT has it, is expanded
 * for it: its program, as typed, is set, and when it starts. */
struct child_variable {
    const char *name;
    const char *value;
    const char *program; /* NULL: the value is no pattern */
    time_t time;
};

struct child {
    pid_t pid;
    int signals;      /* readable when child_handle_signals() has something to do */
    bool stop_wanted; /* the terminal asked for a stop: we stop when the child does */
    bool ended;
    bool asked_to_end; /* we were, by SIGTERM or SIGHUP, which it has had, too */
    int status;        /* ended: as of waitpid */
    sigset_t mask;     /* ours before child_start */
    struct sigaction old_child;
    struct sigaction old_pipe;
    struct sigaction old_size;
};

/* Starts path with argv. 0; else the exit status for it (126, 127, or 1 where no process could be
 * made), with errno set. The child is not waited for before child_reap(). */
int child_start(struct child *child, const char *path, char **argv,
                const struct child_variable *variables, size_t count);

/* The file that a variable's pattern means for this pid. */
void child_expand(const struct child_variable *variable, pid_t pid, char path[PATH_MAX]);
/* A percent sign has no meaning in the name of a folder or a program. */
void child_put_quoted(FILE *out, const char *text);

/* Passes signals on, stops and goes on with the child, and notices its end (child.ended; the child
 * stays a zombie, so that its pid is not given to another). */
void child_handle_signals(struct child *child);

/* Takes the ended child's status. */
void child_reap(struct child *child);

/* Ends like the child: returns its exit status, or dies by the signal that killed it, without a
 * second core file. */
int child_imitate(const struct child *child);

/* Runs `path` in place of this process, with our environment; a script without "#!" by /bin/sh.
 * Returns only if that failed: the errno of it. */
int execute_program(const char *path, char **argv);
/* In a forked child: this command again, with other arguments, not in our process group: Ctrl-C
 * while the program runs is for the program. output: its standard output; -1: none. */
noreturn void child_become(char *const argv[], int output);
/* The exit status of a shell for such an errno: 127 (not there) or 126. */
int execute_status(int reason);

#endif
