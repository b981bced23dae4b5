/* SPDX-License-Identifier: MIT */
/* elfobject.h: an object told from its own program headers. For musl.c and static.c. */
#ifndef RUNTIME_LIBC_ELFOBJECT_H
#define RUNTIME_LIBC_ELFOBJECT_H

#include "runtime/libc/libc.h"

#include <link.h>

/* Whether the address lies in the object of these headers, which is loaded so far from the
 * addresses in them; then all of `object` but its name is filled in. */
int elfobject_holds(const ElfW(Phdr) * header, size_t count, uintptr_t bias, uintptr_t address,
                    struct libc_object *object);
/* The same of an object whose ELF header is mapped at `start`. */
int elfobject_at_holds(uintptr_t start, uintptr_t address, struct libc_object *object);
/* How far the program is loaded from the addresses in its headers (which the kernel tells of). */
uintptr_t elfobject_program_bias(const ElfW(Phdr) * header, size_t count);
/* The program, or the kernel's own code (the vDSO). 0, or -1. */
int elfobject_find(uintptr_t address, struct libc_object *object);

#endif
