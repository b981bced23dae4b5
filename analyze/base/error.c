/* SPDX-License-Identifier: MIT */
/*
 * error.c: fills struct error. See error.h.
 */
#include "analyze/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* What is too long loses its middle: the reason stands at the end. */
static void error_shorten(struct error *error, const char *text, size_t length) {
    enum { END = sizeof error->message / 3, JOINT = sizeof error->message - END - 8 };
    snprintf(error->message + JOINT, sizeof error->message - JOINT, " ... %s", text + length - END);
}

int error_set(struct error *error, const char *format, ...) {
    if (error) {
        char *text = NULL;
        va_list arguments;
        va_start(arguments, format);
        int length = vasprintf(&text, format, arguments);
        va_end(arguments);
        snprintf(error->message, sizeof error->message, "%s", length >= 0 ? text : "out of memory");
        if (length >= (int)sizeof error->message) {
            error_shorten(error, text, (size_t)length);
        }
        free(length >= 0 ? text : NULL);
    }
    return -1;
}

void tell_line(void (*tell)(const char *line), const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    tell(line);
}
