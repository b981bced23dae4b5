/* SPDX-License-Identifier: MIT */
/* othermalloc.c: whose malloc the program calls. See othermalloc.h. */
#define _GNU_SOURCE
#include "runtime/entry/othermalloc.h"

#include "runtime/base/compiler.h"
#include "runtime/base/text.h"
#include "runtime/entry/objects.h"

#include <dlfcn.h>

/* AddressSanitizer as a shared library refuses to start behind another one that is preloaded,
 * unless it is told not to look. It counts right there: we call its malloc. The program's own
 * function of this name comes before ours. */
PUBLIC const char *__asan_default_options(void);
PUBLIC const char *__asan_default_options(void) {
    return "verify_asan_link_order=0";
}

/* A program that is not position-independent and takes malloc's address has an entry of its own for
 * it, which only jumps to where the function is: the symbol's value without a section is the
 * address of that (psABI, "Function Addresses"). */
static int is_only_called(const void *address) {
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    return dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL &&
           symbol->st_shndx == SHN_UNDEF;
}

void othermalloc_look(struct memtrace_malloc *found) {
    const void *address = dlsym(RTLD_DEFAULT, "malloc");
    const struct link_map *by = objects_at(address);
    *found = (struct memtrace_malloc){0};
    if (by != NULL && by->l_name[0] == '\0' && is_only_called(address)) {
        return;
    }
    if (by == NULL || by == objects_at((const void *)othermalloc_look)) {
        return;
    }
    if (by->l_name[0] == '\0') {
        found->place = MEMTRACE_MALLOC_PROGRAM;
    } else {
        found->place = MEMTRACE_MALLOC_LIBRARY;
        text_copy(found->name, sizeof found->name, text_base_name(by->l_name));
    }
}

static int has_sanitizer(void) {
    return __asan_init != NULL || __hwasan_init != NULL || __lsan_init != NULL ||
           __msan_init != NULL || __tsan_init != NULL;
}

void othermalloc_warn(const struct memtrace_malloc *found, const char *executable) {
    if (found->place == MEMTRACE_MALLOC_LIBRARY) {
        log_line("malloc is that of ", found->name,
                 ", which was loaded before libmemtrace: what it gives out is not counted; start "
                 "the program with `memtrace run`");
    } else if (found->place == MEMTRACE_MALLOC_PROGRAM) {
        log_line(text_base_name(executable),
                 has_sanitizer() ? " has a sanitizer's malloc linked into it"
                                 : " has a malloc of its own",
                 has_sanitizer() ? ": what it gives out is not counted; profile a build without "
                                   "the sanitizer"
                                 : ": what it gives out is not counted; try `memtrace run "
                                   "--alloc auto`, or link the allocator as a shared library");
    }
}
