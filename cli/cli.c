/* SPDX-License-Identifier: MIT */
/* cli.c: messages and numbers of all subcommands. See cli.h. */
#include "cli/cli.h"

#include "analyze/report/safetext.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* One line in one write, so that it stays whole between lines of the program under us. Names in
 * messages come from outside: control characters would move the cursor. */
static void print_line(const char *text, const char *command) {
    char line[2048];
    int size;
    if (command == NULL) {
        size = snprintf(line, sizeof line - 1, "memtrace: %s", text);
    } else {
        size = snprintf(line, sizeof line - 1, "memtrace: %s (try: memtrace %s%s--help)", text,
                        command, command[0] != '\0' ? " " : "");
    }
    if (size < 0) {
        return;
    }
    size = (int)strlen(make_safe(line));
    line[size] = '\n';
    fflush(stdout);
    if (write(STDERR_FILENO, line, (size_t)size + 1) < 0) {
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

int cli_parse_u64(const char *text, uint64_t *value) {
    char *end;
    unsigned long long number;
    if (text == NULL || !isdigit((unsigned char)text[0])) {
        return -1;
    }
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return -1;
    }
    *value = number;
    return 0;
}

/* A decimal number with perhaps a fraction, at most 1e18; *end is what follows it. */
static int parse_decimal(const char *text, double *number, const char **end) {
    size_t length = text != NULL ? strspn(text, "0123456789.") : 0;
    char digits[32];
    char *stop;
    if (length == 0 || length >= sizeof digits || !isdigit((unsigned char)text[0])) {
        return -1;
    }
    memcpy(digits, text, length);
    digits[length] = '\0';
    *number = strtod(digits, &stop);
    *end = text + length;
    return *stop == '\0' && *number <= 1e18 ? 0 : -1;
}

static int scale(double number, double unit, uint64_t *value) {
    number *= unit;
    if (number > 9e18) {
        return -1;
    }
    *value = (uint64_t)(number + 0.5);
    return 0;
}

int cli_parse_bytes(const char *text, uint64_t *bytes) {
    static const char suffixes[] = "KMGT";
    const char *suffix;
    const char *which;
    double number;
    double unit = 1;
    if (parse_decimal(text, &number, &suffix) != 0) {
        return -1;
    }
    which = suffix[0] != '\0' ? strchr(suffixes, toupper((unsigned char)suffix[0])) : NULL;
    if (which != NULL) {
        unit = (double)(UINT64_C(1) << (10 * (which - suffixes + 1)));
        suffix += strcasecmp(suffix + 1, "iB") == 0 || strcasecmp(suffix + 1, "B") == 0
                      ? strlen(suffix)
                      : 1;
    } else if (strcasecmp(suffix, "B") == 0) {
        suffix++;
    }
    return *suffix == '\0' ? scale(number, unit, bytes) : -1;
}

int cli_parse_duration(const char *text, uint64_t *ns) {
    static const struct {
        const char *suffix;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},
                 {"ns", 1}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
    const char *suffix;
    double number;
    if (parse_decimal(text, &number, &suffix) != 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(suffix, units[i].suffix) == 0) {
            return scale(number, units[i].ns, ns);
        }
    }
    return -1;
}

int cli_parse_percent(const char *text, double *percent) {
    const char *suffix;
    if (parse_decimal(text, percent, &suffix) != 0 || *percent > 100) {
        return -1;
    }
    return suffix[0] == '\0' || strcmp(suffix, "%") == 0 ? 0 : -1;
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
