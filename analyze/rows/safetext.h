/* SPDX-License-Identifier: MIT */
/*
 * safetext.h: the one way by which foreign text comes to a terminal or into a line of a text
 * format: names of functions, files, threads, marks and pools, command lines, paths, whatever a
 * file says.
 *
 * What moves the cursor, changes the terminal or the order in which a line is read becomes '?':
 * the control characters C0, DEL and C1 (ECMA-48), line and paragraph separators, the marks and
 * overrides of the bidirectional algorithm (Unicode, UAX #9), and bytes that are no UTF-8, among
 * which older terminals see C1. Called by everything that prints. Any thread.
 */
#ifndef ANALYZE_ROWS_SAFETEXT_H
#define ANALYZE_ROWS_SAFETEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

void put_safe(FILE *out, const char *text);
/* The same up to `size` bytes or a zero. */
void put_safe_bytes(FILE *out, const char *text, size_t size);

/* The code of the whole character at text, which safetext_step() gave that length. */
uint32_t safetext_code(const char *text, size_t length);

/* Up to the first of the characters in `stops`, which a format writes in a way of its own; returns
 * where that is, or the end of the text. */
const char *put_safe_until(FILE *out, const char *text, const char *stops);

/* As printf(), all of it made safe but for one line end at the format's own end. */
void print_safe(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void vprint_safe(FILE *out, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* In place; it does not get longer. Returns the text. */
char *make_safe(char *text);

/* The bytes of the character at text, at least one; *is_safe: whether it may pass. For formats that
 * forbid more. */
size_t safetext_step(const char *text, bool *is_safe);

/* ---- Words of a command line that can be pasted into a shell ---- */

/* The word as it is, or between quotes where a shell would see more than a word in it, or a
 * terminal more than text; true: so. */
bool shellword_put(FILE *out, const char *word);
/* The same into text, which is cut where it does not fit. */
const char *shellword_print(char *text, size_t size, const char *word);

/* ---- UTF-8: names may be any bytes, but JSON, XML and HTML are UTF-8 ---- */

/* What stands for bytes that are no character: U+FFFD */
#define UTF8_BAD "\xef\xbf\xbd"

/* Bytes of the whole character at text, which ends with a zero; 0: no character begins there. */
size_t utf8_length(const char *text);

/* Whether the text is nothing but whole characters. */
bool utf8_is_valid(const char *text);

/* A copy with UTF8_BAD for each byte that belongs to no character; the caller frees it. NULL: out
 * of memory. */
char *utf8_repair(const char *text);

#endif
