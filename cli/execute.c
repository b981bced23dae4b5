/* SPDX-License-Identifier: MIT */
/* execute.c: becoming another program. See execute.h. */
#include "cli/execute.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As every shell and execvp do. */
static void execute_by_shell(const char *path, char **argv) {
    char name[] = "sh";
    size_t words = 0;
    char **shell;
    while (argv[words] != NULL) {
        words++;
    }
    shell = calloc(words + 2, sizeof *shell);
    if (shell != NULL) {
        shell[0] = name;
        shell[1] = (char *)(uintptr_t)path;
        memcpy(shell + 2, argv + 1, words * sizeof *shell);
        execv("/bin/sh", shell);
        free((void *)shell);
    }
}

int execute_program(const char *path, char **argv) {
    int reason;
    execv(path, argv);
    reason = errno;
    if (reason == ENOEXEC) {
        execute_by_shell(path, argv);
    }
    return reason;
}

int execute_status(int reason) {
    return reason == ENOENT || reason == ENOTDIR ? 127 : 126;
}
