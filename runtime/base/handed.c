/* SPDX-License-Identifier: MIT */
/* handed.c: see handed.h. */
#include "runtime/base/handed.h"

#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/machine/machine.h"

enum { LEAST_PAGE = 4096 }; /* a larger one is asked for more often */

static int is_readable(struct handed *handed, uintptr_t *known, const void *address) {
    uintptr_t page = (uintptr_t)address / LEAST_PAGE + 1; /* 0: none is known */
    if (page != *known && handed->can_ask) {
        handed->is_bad = !sys_readable(address);
        *known = page;
    }
    return !handed->is_bad;
}

static int is_text(struct handed *handed, const char *text) {
    while (is_readable(handed, &handed->text_page, text) && *text != '\0') {
        text++;
    }
    return !handed->is_bad;
}

/* (It writes a line for each question of the kind that sys_readable() asks.) */
static int is_under_valgrind(void) {
    const uint64_t running_on_valgrind[6] = {0x1001};
    return MACHINE_ASKS_VALGRIND && machine_ask_valgrind(running_on_valgrind) != 0;
}

struct handed handed_of(char *const array[]) {
    return (struct handed){.next = array, .can_ask = !is_under_valgrind() && sys_readable(&array)};
}

char *handed_next(struct handed *handed) {
    char *word = handed->next != NULL && is_readable(handed, &handed->page, handed->next)
                     ? __atomic_load_n(handed->next, __ATOMIC_RELAXED)
                     : NULL;
    if (word == NULL || !is_text(handed, word)) {
        return NULL;
    }
    handed->next++;
    return word;
}

int handed_is_readable(const char *text) {
    struct handed handed = handed_of(NULL);
    return is_text(&handed, text);
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
