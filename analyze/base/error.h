/* SPDX-License-Identifier: MIT */
/*
 * error.h: why a library function of the tools failed, as one line for the user.
 *
 * Used by analyze, collect and cli. The caller owns the struct; only cli prints it.
 */
#ifndef ANALYZE_BASE_ERROR_H
#define ANALYZE_BASE_ERROR_H

struct error {
    char message[512];
};

/* Fills the message (without its middle if too long) and returns -1, so that a failing function can
 * say `return error_set(...)`. error may be NULL. */
int error_set(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Tells somebody a line of at most 1023 bytes. */
void tell_line(void (*tell)(const char *line), const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
