/* SPDX-License-Identifier: MIT */
/*
 * musl.c: what stacks.cpp wants and musl has not. Debian has no C++ for musl, so that its unwinder,
 * made for glibc, is linked with it: that asks glibc's loader for objects (dlfcn.h has the struct).
 * And there are no fibers.
 */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

/* Which the unwinder would use if they are there, and takes to be. */
void *const wanted[] = {(void *)pthread_once, (void *)pthread_getspecific,
                        (void *)pthread_setspecific, (void *)pthread_key_create};

struct dl_find_object {
    unsigned long long flags;
    void *start, *end;
    struct link_map *map;
    void *eh_frame;
    unsigned long long reserved[7];
};

struct search {
    uintptr_t address;
    struct dl_find_object *found;
};

static int look(struct dl_phdr_info *info, size_t size, void *argument) {
    const struct search *search = argument;
    uintptr_t start = UINTPTR_MAX;
    uintptr_t end = 0;
    uintptr_t eh_frame = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            start = at < start ? at : start;
            end = at + info->dlpi_phdr[i].p_memsz;
        } else if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) {
            eh_frame = at;
        }
    }
    if (search->address < start || search->address >= end || eh_frame == 0) {
        return 0;
    }
    memset(search->found, 0, sizeof *search->found);
    search->found->start = (void *)start;
    search->found->end = (void *)end;
    search->found->eh_frame = (void *)eh_frame;
    return 1;
}

int _dl_find_object(void *address, struct dl_find_object *found);
int _dl_find_object(void *address, struct dl_find_object *found) {
    struct search search = {(uintptr_t)address, found};
    return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}

/* gcc's functions for atomics ask by this. */
unsigned long __getauxval(unsigned long type);
__attribute__((weak)) unsigned long __getauxval(unsigned long type) {
    return getauxval(type);
}

/* What glibc's headers, from 2.38 on, make of strtoul; libsupc++ was compiled with them. */
unsigned long __isoc23_strtoul(const char *text, char **end, int base);
unsigned long __isoc23_strtoul(const char *text, char **end, int base) {
    return strtoul(text, end, base);
}

/* Where its headers check lengths (Ubuntu). */
int __sprintf_chk(char *text, int flag, size_t size, const char *format, ...);
int __sprintf_chk(char *text, int flag, size_t size, const char *format, ...) {
    va_list arguments;
    int length;
    (void)flag, (void)size;
    va_start(arguments, format);
    length = vsprintf(text, format, arguments);
    va_end(arguments);
    return length;
}

int getcontext(void *context);
int getcontext(void *context) {
    (void)context;
    abort();
}

void makecontext(void *context, void (*function)(void), int count, ...);
void makecontext(void *context, void (*function)(void), int count, ...) {
    (void)context, (void)function, (void)count;
    abort();
}

int swapcontext(void *from, const void *to);
int swapcontext(void *from, const void *to) {
    (void)from, (void)to;
    abort();
}
