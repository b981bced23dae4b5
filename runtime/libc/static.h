/* SPDX-License-Identifier: MIT */
/* static.h: for static.c, static_glibc.c and static_musl.c. */
#ifndef RUNTIME_LIBC_STATIC_H
#define RUNTIME_LIBC_STATIC_H

/* The functions behind ours, as the linker tells them; the last has no name. Made by CMake. */
struct static_function {
    const char *name;
    void *function; /* NULL: the program has none */
};
extern const struct static_function static_functions[];

void *static_find(const char *name);

#endif
