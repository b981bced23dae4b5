/* SPDX-License-Identifier: MIT */
/*
 * nomemory.c: preloaded into the command: one allocation that its own code asks for fails, or all
 * from one on. Those of libraries do not: elfutils, for one, does not survive that.
 *
 * NOMEMORY names a file of three numbers, mapped by the test as well: how many were asked for, the
 * one that fails, the first of those that fail (0: none).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static struct plan {
    uint64_t asked;
    uint64_t only;
    uint64_t from;
} * plan;
static uintptr_t text_begin;
static uintptr_t text_end;

static int fails(const void *caller) {
    uint64_t number;
    if (plan == NULL || (uintptr_t)caller < text_begin || (uintptr_t)caller >= text_end) {
        return 0;
    }
    number = __atomic_add_fetch(&plan->asked, 1, __ATOMIC_RELAXED);
    if (number != plan->only && (plan->from == 0 || number < plan->from)) {
        return 0;
    }
    errno = ENOMEM;
    return 1;
}

#define FAILS() fails(__builtin_return_address(0))

void *malloc(size_t size) {
    return FAILS() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return FAILS() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    return FAILS() ? NULL : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t count, size_t size) {
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole) || FAILS()) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(old, whole);
}

char *strdup(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = FAILS() ? NULL : __libc_malloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

/* The first object is the program. */
static int note_text(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
            text_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            text_end = text_begin + info->dlpi_phdr[i].p_memsz;
        }
    }
    return 1;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("NOMEMORY");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *mapped =
        fd >= 0 ? mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    unsetenv("LD_PRELOAD"); /* its children have all the memory they want */
    if (fd >= 0) {
        close(fd);
    }
    dl_iterate_phdr(note_text, NULL);
    plan = mapped != MAP_FAILED ? mapped : NULL;
}
