/* SPDX-License-Identifier: MIT */
/*
 * demangle.c: readable names for C++, Rust and D symbols, by libiberty. See symbol.h.
 */
#include "analyze/symbol/symbol.h"

#include <libiberty/demangle.h>

#include <string.h>

char *symbol_demangle(const char *name) {
    /* Rust comes first: its legacy names are well-formed C++ names with a hash at the end. */
    if (strncmp(name, "_D", 2) == 0)
        return dlang_demangle(name, 0);
    if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R' && name[1] != '_'))
        return NULL;
    return cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
}
