/* SPDX-License-Identifier: MIT */
/*
 * arguments.h: what a program was called with: texts, each ended by NUL, any of them empty.
 *
 * Called by whoever shows or writes a command. A value; the bytes are whose they were.
 */
#ifndef ANALYZE_READ_ARGUMENTS_H
#define ANALYZE_READ_ARGUMENTS_H

#include "memtrace/format.h"

#include <stdlib.h>
#include <string.h>

struct arguments {
    char *bytes; /* each text ends inside them, or at the NUL right behind them */
    size_t size; /* 0: not known */
};

/* Those of a header that anybody may have written: a text that its size cuts is taken whole, one
 * that does not end inside the header is left out. Headers of older versions do not say how long
 * they are: they end at the first empty one. */
static inline struct arguments arguments_of(const struct memtrace_header *header) {
    struct arguments all = {(char *)(uintptr_t)header->command, header->command_bytes};
    size_t most = sizeof header->command - 1;
    if (all.size == 0 || all.size > most) {
        all.size = 0;
        while (all.size < most && header->command[all.size] != '\0') {
            all.size += strnlen(header->command + all.size, most - all.size) + 1;
        }
    }
    all.size = all.size < most ? all.size : most;
    if (all.size != 0 && header->command[all.size - 1] != '\0') {
        all.size += strnlen(header->command + all.size, sizeof header->command - all.size);
        while (all.size == sizeof header->command && most != 0 && header->command[most] != '\0') {
            most--;
        }
        all.size = all.size < sizeof header->command ? all.size : most;
    }
    return all;
}

/* Takes the first one off. NULL: there is none. */
static inline const char *arguments_next(struct arguments *left) {
    const char *text = left->bytes;
    size_t used;
    if (left->size == 0) {
        return NULL;
    }
    used = strnlen(text, left->size);
    used += used < left->size;
    left->bytes += used;
    left->size -= used;
    return text;
}

/* Whose bytes are the caller's, to be freed; NULL: out of memory. */
static inline struct arguments arguments_copy(struct arguments all) {
    char *bytes = calloc(all.size + 1, 1);
    if (bytes != NULL && all.size != 0) {
        memcpy(bytes, all.bytes, all.size);
    }
    return (struct arguments){bytes, bytes != NULL ? all.size : 0};
}

/* The first one, "" where there is none. */
static inline const char *arguments_first(struct arguments all) {
    const char *text = arguments_next(&all);
    return text != NULL ? text : "";
}

#endif
