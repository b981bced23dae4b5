/* SPDX-License-Identifier: MIT */
/* detach.h: what `memtrace attach` and `memtrace detach` share. Called by cli/attach. */
#ifndef CLI_DETACH_H
#define CLI_DETACH_H

#include "cli/cli.h"

#include <stdbool.h>
#include <sys/types.h>

/* What files are called where the user names none. */
extern const char attach_profile_pattern[], attach_recording_pattern[];

/* The process ids of a command: all are understood before anything is done with one. CLI_OK, or the
 * exit status with the line printed. */
int detach_read_pids(const struct command *command, int argc, char **argv, pid_t **pids);

/* The command that shows what process `pid` holds. */
struct detach_shown {
    char text[48];
};
struct detach_shown detach_shown_by(pid_t pid);

/* Says why the library in process `pid` did not do what it was asked to (enum
 * memtrace_attach_result). CLI_FAILURE. */
int detach_explain(pid_t pid, int result);

/* Leaves the program and says where its profile is. CLI_OK, or the line is printed. */
int detach_process(pid_t pid, bool is_forced);

#endif
