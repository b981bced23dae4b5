/* SPDX-License-Identifier: MIT */
/* roles.c: see roles.h. */
#include "analyze/model/roles.h"

#include "analyze/model/names.h"

#include <stdbool.h>
#include <string.h>

static bool is_startup(const char *function) {
    static const char *const names[] = {
        "_start",
        "__libc_start_main",
        "__libc_start_main_impl",
        "__libc_start_call_main",
        "clone",
        "clone3",
        "__clone3",
        "__clone",
        "__clone3_internal",
        "start_thread",
        "__GI___clone3",
        "thread_start",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(function, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool starts_with(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}

static bool is_library_name(const char *name) {
    return starts_with(name, "std::") || starts_with(name, "__gnu_cxx::") ||
           starts_with(name, "operator new");
}

static bool is_library(const char *function, const char *file) {
    char brief[256];
    if (is_library_name(function) || (file != NULL && starts_with(file, "/rustc/"))) {
        return true;
    }
    /* "void std::vector<...>::_M_realloc_insert<...>(...)" */
    return strchr(function, ' ') != NULL && strstr(function, "std::") != NULL &&
           is_library_name(shortname(function, brief, sizeof brief));
}

unsigned char roles_of(const char *function, const char *file) {
    if (function == NULL) {
        return 0;
    }
    return (unsigned char)((strcmp(function, "main") == 0 ? ROLES_MAIN : 0) |
                           (is_startup(function) ? ROLES_STARTUP : 0) |
                           (is_library(function, file) ? ROLES_LIBRARY : 0));
}
