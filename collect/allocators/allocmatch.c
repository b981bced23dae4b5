/* SPDX-License-Identifier: MIT */
/* allocmatch.c: see allocmatch.h. */
#define _GNU_SOURCE
#include "collect/allocators/allocmatch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What compilers make of a function for some of its calls; its arguments may be others. */
static const char *allocmatch_copy(const char *name) {
    static const char *const ends[] = {".constprop.", ".isra.", ".specialized."};
    const char *end = NULL;
    for (size_t i = 0; end == NULL && i < sizeof ends / sizeof ends[0]; i++) {
        end = strstr(name, ends[i]);
    }
    return end;
}

/* A copy, or a part, which the function itself may call. */
static bool is_clone(const char *name) {
    return allocmatch_copy(name) != NULL || strstr(name, ".part.") != NULL ||
           strstr(name, ".cold") != NULL;
}

bool allocmatch_is_copy(const char *name, const char *of) {
    const char *end = allocmatch_copy(name);
    return end != NULL && strstr(end, ".part.") == NULL && strstr(end, ".cold") == NULL &&
           allocmatch_is(of, name, (size_t)(end - name));
}

size_t allocmatch_length(const char *name) {
    const char *at = strrchr(name, ')');
    int depth = 0;
    if (at == NULL) {
        return strlen(name);
    }
    do {
        depth += *at == ')' ? 1 : *at == '(' ? -1 : 0;
    } while (depth > 0 && at-- > name);
    return depth == 0 && at > name ? (size_t)(at - name) : strlen(name);
}

/* Names with * and ? in the pattern's place of many and of one. */
static bool pattern_fits(const char *pattern, const char *name, size_t length) {
    const char *end = name + length;
    const char *star = NULL;
    const char *again = NULL;
    while (name < end || *pattern == '*') {
        if (*pattern == '*') {
            star = pattern++;
            again = name;
        } else if (name < end && (*pattern == '?' || *pattern == *name) && *pattern != '\0') {
            pattern++;
            name++;
        } else if (star != NULL && again < end) {
            pattern = star + 1;
            name = ++again;
        } else {
            return false;
        }
    }
    return *pattern == '\0';
}

bool allocmatch_is(const char *wanted, const char *name, size_t length) {
    return strncmp(wanted, name, length) == 0 && wanted[length] == '\0';
}

/* The last word of a name as programmers write it: mangled names hold it as it is. */
static const char *last_word(const char *symbol, size_t *length) {
    const char *end = symbol + allocmatch_length(symbol);
    const char *start;
    while (end > symbol && !isalnum((unsigned char)end[-1]) && end[-1] != '_') {
        end--;
    }
    start = end;
    while (start > symbol && (isalnum((unsigned char)start[-1]) || start[-1] == '_')) {
        start--;
    }
    *length = (size_t)(end - start);
    return start;
}

static bool may_be(const struct allocspec *spec, const char *name) {
    size_t length;
    const char *word = last_word(spec->symbol, &length);
    return spec->is_pattern || strstr(spec->symbol, "operator") != NULL ||
           memmem(name, strlen(name), word, length) != NULL;
}

static bool matches_demangled(const struct allocspec *spec, const char *name,
                              char *(*demangle)(const char *symbol)) {
    bool (*compare)(const char *, const char *, size_t) =
        spec->is_pattern ? pattern_fits : allocmatch_is;
    size_t length = strlen(name);
    char *text = may_be(spec, name) ? demangle(name) : NULL;
    bool result = false;
    if (text != NULL) {
        length = strlen(text);
        result = (!spec->is_pattern && compare(spec->symbol, text, length)) ||
                 compare(spec->symbol, text, allocmatch_length(text));
    } else if (spec->is_pattern) {
        result = compare(spec->symbol, name, strcspn(name, "@"));
    }
    free(text);
    return result;
}

bool allocmatch_symbol(const struct allocspec *spec, const char *name,
                       char *(*demangle)(const char *symbol)) {
    bool may_be_it = spec->symbol[0] == name[0]; /* most are not */
    if (!spec->is_pattern && may_be_it && allocmatch_is(spec->symbol, name, strcspn(name, "@"))) {
        return true;
    }
    return !spec->is_exact && !is_clone(name) && matches_demangled(spec, name, demangle);
}
