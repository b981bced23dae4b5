/* SPDX-License-Identifier: MIT */
/* handed.c: see handed.h. */
#include "runtime/base/handed.h"

#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#include <unistd.h>

enum { LEAST_PAGE = 4096 }; /* a larger one is asked for more often */

static int handed_can_read(struct handed *handed, uintptr_t *known, const void *address) {
    uintptr_t page = (uintptr_t)address / LEAST_PAGE + 1; /* 0: none is known */
    if (page != *known && handed->can_ask) {
        handed->is_bad = !sys_readable(address);
        *known = page;
    }
    return !handed->is_bad;
}

static int handed_is_text(struct handed *handed, const char *text) {
    while (handed_can_read(handed, &handed->text_page, text) && *text != '\0') {
        text++;
    }
    return !handed->is_bad;
}

/* (Valgrind writes a line for each question of the kind that sys_readable() asks.) */
struct handed handed_of(char *const array[]) {
    return (struct handed){.next = array, .can_ask = !sys_in_valgrind() && sys_readable(&array)};
}

char *handed_next(struct handed *handed) {
    char *word = handed->next != NULL && handed_can_read(handed, &handed->page, handed->next)
                     ? __atomic_load_n(handed->next, __ATOMIC_RELAXED)
                     : NULL;
    if (word == NULL || !handed_is_text(handed, word)) {
        return NULL;
    }
    handed->next++;
    return word;
}

int handed_is_readable(const char *text) {
    struct handed handed = handed_of(NULL);
    return handed_is_text(&handed, text);
}

size_t handed_count(char *const array[]) {
    struct handed handed = handed_of(array);
    size_t count = 0;
    while (handed_next(&handed) != NULL) {
        count++;
    }
    return handed.is_bad ? SIZE_MAX : count;
}

int handed_copy(char *const from[], char **to, size_t capacity) {
    struct handed handed = handed_of(from);
    size_t count = 0;
    while (count < capacity && (to[count] = handed_next(&handed)) != NULL) {
        count++;
    }
    to[count] = NULL;
    return handed.is_bad ? -1 : 0;
}

const char *handed_variable(char *const environment[], const char *name) {
    struct handed handed = handed_of(environment);
    const char *entry;
    while ((entry = handed_next(&handed)) != NULL) {
        if (text_starts(entry, name)) {
            return entry + text_length(name);
        }
    }
    return NULL;
}

int handed_program(char *const environment[], enum handed_empty empty, const char *name, char *path,
                   size_t capacity) {
    const char *folders = handed_variable(environment, "PATH=");
    while (folders != NULL) {
        size_t length = 0;
        while (folders[length] != '\0' && folders[length] != ':') {
            length++;
        }
        if (text_print(path, capacity, "%.*s%s%s", (int)length, folders, length != 0 ? "/" : "",
                       name) == 0 &&
            (length != 0 || empty == HANDED_TAKE_EMPTY) && sys_access(path, X_OK) == 0) {
            return 1;
        }
        folders = folders[length] == ':' ? folders + length + 1 : NULL;
    }
    return 0;
}
