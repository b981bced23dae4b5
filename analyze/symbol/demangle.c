/* SPDX-License-Identifier: MIT */
/* demangle.c: names of C++, Rust, D and Fortran as programmers write them, and paths of sources.
 * See symbol.h. */
#include "analyze/symbol/symbol.h"

#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* gfortran names procedure p of module m "__m_MOD_p", a part of it "__m_MOD_p.part.0", which
 * c++filt would call a clone. NULL: this is none. */
static char *demangle_fortran(const char *name) {
    static const char mark[] = "_MOD_";
    const char *module = name + 2;
    const char *at = strncmp(name, "__", 2) == 0 ? strstr(module, mark) : NULL;
    const char *procedure = at ? at + sizeof mark - 1 : NULL;
    char *text = NULL;
    if (!at || at == module || !*procedure) {
        return NULL;
    }
    int length = (int)strcspn(procedure, ".");
    const char *part = procedure + length;
    if (asprintf(&text, "%.*s::%.*s%s%s%s", (int)(at - module), module, length, procedure,
                 *part ? " [clone " : "", part, *part ? "]" : "") < 0) {
        return NULL;
    }
    return text;
}

/* gdc and ldc name the code that turns an interface's pointer into its object's "_DTi16_D...": the
 * offset, and the method. As C++'s are shown. NULL: this is none. */
static char *demangle_thunk(const char *name) {
    size_t at = strncmp(name, "_DT", 3) == 0 ? 3 : 0;
    at += at != 0 && name[at] == 'i';
    size_t digits = at != 0 ? strspn(name + at, "0123456789") : 0;
    char *method = digits != 0 && strncmp(name + at + digits, "_D", 2) == 0
                       ? dlang_demangle(name + at + digits, 0)
                       : NULL;
    char *text = NULL;
    if (method && asprintf(&text, "non-virtual thunk to %s", method) < 0) {
        text = NULL;
    }
    free(method);
    return text;
}

char *symbol_demangle(const char *name) {
    char *fortran = demangle_fortran(name);
    if (fortran) {
        return fortran;
    }
    /* Rust comes first: its legacy names are well-formed C++ names with a hash at the end. */
    if (strncmp(name, "_DT", 3) == 0) {
        return demangle_thunk(name);
    }
    if (strncmp(name, "_D", 2) == 0) {
        return dlang_demangle(name, 0);
    }
    if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R' && name[1] != '_')) {
        return NULL;
    }
    return cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
}

void symbol_shorten_path(char *path) {
    char *to = path;
    for (const char *from = path; *from;) {
        size_t length = 1 + strcspn(from + 1, "/"); /* one "/name" */
        bool up = length == 3 && memcmp(from, "/..", 3) == 0;
        char *slash = up ? memrchr(path, '/', (size_t)(to - path)) : NULL;
        if (slash && (to - slash != 3 || memcmp(slash, "/..", 3) != 0)) {
            to = slash;
        } else if (length != 2 || memcmp(from, "/.", 2) != 0) {
            memmove(to, from, length);
            to += length;
        }
        from += length;
    }
    *to = '\0';
}
