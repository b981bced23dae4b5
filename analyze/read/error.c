/* SPDX-License-Identifier: MIT */
/*
 * error.c: fills struct error. See error.h.
 */
#include "analyze/read/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is too long loses its middle: the reason stands at the end. */
static void shorten(struct error *error, const char *text, size_t length) {
    static const char joint[] = " ... ";
    size_t end = sizeof error->message / 3;
    char *tail = error->message + sizeof error->message - end - 1;
    memcpy(tail - strlen(joint), joint, strlen(joint));
    memcpy(tail, text + length - end, end + 1);
}

int error_set(struct error *error, const char *format, ...) {
    if (error) {
        char *text = NULL;
        va_list arguments;
        va_start(arguments, format);
        int length = vasprintf(&text, format, arguments);
        va_end(arguments);
        snprintf(error->message, sizeof error->message, "%s", length >= 0 ? text : "out of memory");
        if (length >= (int)sizeof error->message)
            shorten(error, text, (size_t)length);
        free(length >= 0 ? text : NULL);
    }
    return -1;
}
