/* SPDX-License-Identifier: MIT */
/*
 * text.h: text in a bounded buffer, and whole lines to stderr. Used where printf must not be:
 * handlers, forked children, before main. A text that does not fit is cut, never overrun.
 */
#ifndef RUNTIME_BASE_TEXT_H
#define RUNTIME_BASE_TEXT_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *start;
    size_t capacity; /* at least 1 */
    size_t length;   /* without the terminator, which is always there; < capacity */
    int cut;         /* something did not fit */
    int is_safe;     /* what text_format() adds for %s is made so, as text_add_safe() does */
};

void text_init(struct text *text, char *buffer, size_t capacity);
void text_add(struct text *text, const char *string);
void text_add_bytes(struct text *text, const char *bytes, size_t size);
/* What comes from outside (paths, names): '?' for what a terminal would obey. */
void text_add_safe(struct text *text, const char *string);
/* The same as one word for a shell: in quotes, if it needs any. */
void text_add_shell_word(struct text *text, const char *string);

/* Adds what printf would, which the compiler checks; of its conversions there are %s and %.*s, %d,
 * %u and %x, the last two with l and ll (PRIu64), %'u (1,234,567) and %#x (0x12ab, and 0x0). */
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What makes names different: ".2", ".3" and so on, nothing for the first. */
void text_add_suffix(struct text *text, unsigned number);
/* The same as text_format(), as the whole text of a buffer. 0, or -1: it was cut. */
int text_print(char *buffer, size_t capacity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "12.3 MiB", to be formatted by %s: text_size(bytes).text. */
struct text_size {
    char text[16];
};
struct text_size text_size(uint64_t bytes);

size_t text_length(const char *string);
/* The number whose digits begin at *at, which moves behind them: 0 where there are none, UINT64_MAX
 * if it is larger than that. */
uint64_t text_read_number(const char **at);
int text_equal(const char *a, const char *b);
int text_starts(const char *string, const char *prefix);
int text_holds(const char *string, const char *part);
void text_copy(char *to, size_t capacity, const char *from); /* always terminated */
const char *text_base_name(const char *path);

/* Which lines are written: those of a level and all that are graver. */
enum log_level { LOG_LEVEL_NONE, LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO };
void log_set_level(enum log_level level); /* LOG_LEVEL_WARNING at first */
/* One line "memtrace: ...\n", as text_format() has it, in one write to stderr; without %.*s: texts
 * are made safe, up to where they end. */
void log_at(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define log_line(...)  log_at(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__) /* something asked for is missing */
/* At the start: what standard error is. A file that the program opens as descriptor 2 later, once
 * it has closed that, is none of ours. */
void log_note_stderr(void);
int log_has_stderr(void);
/* Whole lines to standard error, if it is still what it was. */
void log_write(const char *text, size_t size);
/* All of it, in as many writes as the kernel wants. 0, or a negative errno; never a signal. */
long write_all(int fd, const void *bytes, size_t size);

#endif
