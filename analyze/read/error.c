/* SPDX-License-Identifier: MIT */
/*
 * error.c: fills struct error. See error.h.
 */
#include "analyze/read/error.h"

#include <stdarg.h>
#include <stdio.h>

int error_set(struct error *error, const char *format, ...) {
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return -1;
}
