/* SPDX-License-Identifier: MIT */
/*
 * elfobject.c: what a loader would tell: objects (elfobject.h) and the main thread's stack
 * (libc.h). For musl, and static programs.
 */
#define _GNU_SOURCE
#include "runtime/libc/elfobject.h"

#include <sys/auxv.h>

#define PAGE_MASK (~(uintptr_t)4095)

static void elfobject_take_in(uintptr_t from, uintptr_t to, struct libc_object *object) {
    from &= PAGE_MASK;
    to = (to + ~PAGE_MASK) & PAGE_MASK;
    object->start = object->end == 0 || from < object->start ? from : object->start;
    object->end = to > object->end ? to : object->end;
}

int elfobject_holds(const ElfW(Phdr) * header, size_t count, uintptr_t bias, uintptr_t address,
                    struct libc_object *object) {
    *object = (struct libc_object){.bias = bias};
    for (size_t i = 0; i < count; i++) {
        uintptr_t at = bias + header[i].p_vaddr;
        if (header[i].p_type == PT_LOAD) {
            elfobject_take_in(at, at + header[i].p_memsz, object);
        } else if (header[i].p_type == PT_GNU_EH_FRAME) {
            object->eh_frame_header = (const uint8_t *)at;
        }
    }
    return address - object->start < object->end - object->start;
}

int elfobject_at_holds(uintptr_t start, uintptr_t address, struct libc_object *object) {
    const ElfW(Ehdr) *file = (const ElfW(Ehdr) *)start;
    const ElfW(Phdr) *header = (const ElfW(Phdr) *)(start + file->e_phoff);
    uintptr_t bias = start;
    for (size_t i = 0; i < file->e_phnum; i++) { /* where the header itself is meant to lie */
        if (header[i].p_type == PT_LOAD && header[i].p_offset == 0) {
            bias = start - header[i].p_vaddr;
        }
    }
    return elfobject_holds(header, file->e_phnum, bias, address, object);
}

uintptr_t elfobject_program_bias(const ElfW(Phdr) * header, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (header[i].p_type == PT_PHDR) {
            return (uintptr_t)header - header[i].p_vaddr;
        }
    }
    /* A static program has none; if it is position-independent its dynamic section tells. */
    for (size_t i = 0; i < count; i++) {
        if (header[i].p_type == PT_LOAD && header[i].p_offset == 0) {
            return ((uintptr_t)header & PAGE_MASK) - header[i].p_vaddr;
        }
    }
    return 0;
}

int elfobject_find(uintptr_t address, struct libc_object *object) {
    const ElfW(Phdr) *header = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    size_t count = getauxval(AT_PHNUM);
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    if (header != NULL &&
        elfobject_holds(header, count, elfobject_program_bias(header, count), address, object)) {
        object->name = "";
        return 0;
    }
    if (vdso != 0 && elfobject_at_holds(vdso, address, object)) {
        object->name = "linux-vdso";
        return 0;
    }
    return -1;
}

/* --- the main thread's stack, from what the kernel put there ---------------------------------- */

/* 16 random bytes that the kernel puts above the arrays. */
uintptr_t libc_stack_top(uintptr_t *entry) {
    *entry = 0;
    return getauxval(AT_RANDOM);
}

/* Who sets a variable that is not there gets another array, which does not lie on the stack. What a
 * constructor is called with tells nothing: with musl it is called with nothing. */
int libc_is_initial(char **environment, int argc, char **argv, char **envp) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t array = (uintptr_t)environment;
    (void)argc, (void)argv, (void)envp;
    return array > here && array < getauxval(AT_RANDOM);
}
