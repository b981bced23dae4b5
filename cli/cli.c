/* SPDX-License-Identifier: MIT */
/* cli.c: messages of all subcommands. See cli.h. */
#include "cli/cli.h"

#include "analyze/rows/safetext.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One line in one write, so that it stays whole between lines of the program under us. Names in
 * messages come from outside. */
static void print_line(const char *text, const char *command) {
    char line[2048];
    size_t size;
    if (command == NULL) {
        snprintf(line, sizeof line - 1, "memtrace: %s", text);
    } else {
        snprintf(line, sizeof line - 1, "memtrace: %s (try: memtrace %s%s--help)", text, command,
                 command[0] != '\0' ? " " : "");
    }
    size = strlen(make_safe(line));
    line[size] = '\n';
    fflush(stdout);
    if (write(STDERR_FILENO, line, size + 1) < 0) {
        return; /* nobody to tell */
    }
}

int cli_error(const char *format, ...) {
    char text[1900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_line(text, NULL);
    return CLI_FAILURE;
}

int cli_usage(const char *command, const char *format, ...) {
    char text[1900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_line(text, command != NULL ? command : "");
    return CLI_USAGE;
}

int cli_color(const char *when, int fd) {
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (when == NULL || strcmp(when, "auto") == 0) {
        return isatty(fd) && (no_color == NULL || no_color[0] == '\0') &&
               (term == NULL || strcmp(term, "dumb") != 0);
    }
    if (strcmp(when, "always") == 0) {
        return 1;
    }
    return strcmp(when, "never") == 0 ? 0 : -1;
}

int cli_finish(int status) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (errno != EPIPE) {
            cli_error("cannot write the output: %s", strerror(errno));
        }
        return CLI_FAILURE;
    }
    return status;
}
