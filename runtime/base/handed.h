/* SPDX-License-Identifier: MIT */
/*
 * handed.h: arrays of strings with NULL at their end, as argv and environ are, that the program
 * hands over. They may be no such thing, for which the kernel has EFAULT; and another thread may
 * change environ meanwhile, whose old array is freed then. So each page of them is asked for before
 * it is read (where a filter denies that, and under valgrind, they are read as they are).
 *
 * Any thread, handlers and children of vfork too: no allocation, no lock.
 */
#ifndef RUNTIME_BASE_HANDED_H
#define RUNTIME_BASE_HANDED_H

#include <stddef.h>
#include <stdint.h>

struct handed {
    char *const *next;         /* NULL: an empty array, as Linux has it */
    uintptr_t page, text_page; /* of the array, and of a word: known to be readable */
    int can_ask;
    int is_bad; /* set at the first word that cannot be read, which is then the last */
};

struct handed handed_of(char *const array[]);
/* The next, whole readable; NULL: there are no more, or is_bad. */
char *handed_next(struct handed *handed);

/* Whether this text can be read to its end. */
int handed_is_readable(const char *text);
/* How many there are before the NULL; SIZE_MAX: not all can be read. */
size_t handed_count(char *const array[]);
/* Copies at most `capacity` words, and NULL behind them. 0, or -1: one of them cannot be read. */
int handed_copy(char *const from[], char **to, size_t capacity);
/* The value of the first variable whose entry begins so ("NAME="); NULL: none. The C library's
 * getenv may be the program's own. */
const char *handed_variable(char *const environment[], const char *name);

/* Sets `path` to the first program of this name in $PATH. An empty folder there is passed over, or
 * is the present one, as execvp() takes it. 1, or 0: there is none. */
enum handed_empty { HANDED_SKIP_EMPTY, HANDED_TAKE_EMPTY };
int handed_program(char *const environment[], enum handed_empty empty, const char *name, char *path,
                   size_t capacity);

#endif
