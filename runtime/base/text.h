/* SPDX-License-Identifier: MIT */
/*
 * text.h: text in a bounded buffer, and whole lines to stderr. Used where printf must not be:
 * handlers, forked children, before main. A text that does not fit is cut, never overrun.
 */
#ifndef RUNTIME_BASE_TEXT_H
#define RUNTIME_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
    char *start;
    size_t capacity; /* at least 1 */
    size_t length;   /* without the terminator, which is always there; < capacity */
    int cut;         /* something did not fit */
};

void text_init(struct text *text, char *buffer, size_t capacity);
void text_add(struct text *text, const char *string);
void text_add_bytes(struct text *text, const char *bytes, size_t size);
/* What comes from outside (paths, names): '?' for what a terminal would obey. */
void text_add_safe(struct text *text, const char *string);
/* The same as one word for a shell: in quotes, if it needs any. */
void text_add_shell_word(struct text *text, const char *string);
void text_add_number(struct text *text, uint64_t number);
void text_add_grouped(struct text *text, uint64_t number); /* 1,234,567 */
void text_add_hex(struct text *text, uint64_t number);     /* 0x12ab */
void text_add_size(struct text *text, uint64_t bytes);     /* 12.3 MiB */

size_t text_length(const char *string);
int text_equal(const char *a, const char *b);
int text_starts(const char *string, const char *prefix);
int text_holds(const char *string, const char *part);
void text_copy(char *to, size_t capacity, const char *from); /* always terminated */
const char *text_base_name(const char *path);

/* Which lines are written: those of a level and all that are graver. */
enum log_level { LOG_LEVEL_NONE, LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO };
void log_set_level(enum log_level level); /* LOG_LEVEL_WARNING at first */
/* One line "memtrace: <a><b><c>\n" in one write to stderr. NULLs are left out. */
void log_at(enum log_level level, const char *a, const char *b, const char *c);
void log_line(const char *a, const char *b, const char *c);  /* a warning */
void log_error(const char *a, const char *b, const char *c); /* something asked for is missing */
/* At the start: what standard error is. A file that the program opens as descriptor 2 later, once
 * it has closed that, is none of ours. */
void log_note_stderr(void);
int log_has_stderr(void);
/* Whole lines to standard error, if it is still what it was. */
void log_write(const char *text, size_t size);
/* All of it, in as many writes as the kernel wants. 0, or a negative errno; never a signal. */
long write_all(int fd, const void *bytes, size_t size);

#endif
