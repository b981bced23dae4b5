/* SPDX-License-Identifier: MIT */
/* othermalloc.c: whose malloc the program calls. See othermalloc.h, which says who calls it. */
#define _GNU_SOURCE
#include "runtime/entry/othermalloc.h"

#include "runtime/base/compiler.h"
#include "runtime/base/text.h"
#include "runtime/libc/libc.h"
#include "runtime/libc/objects.h"
#include "runtime/stack/module.h"

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

/* By names: undefined symbols stand before those that have hashes. */
static int othermalloc_wants(const struct link_map *map, const char *name) {
    const uint32_t *table = objects_address(map, DT_GNU_HASH);
    const ElfW(Sym) *symbols = objects_address(map, DT_SYMTAB);
    const char *strings = objects_address(map, DT_STRTAB);
    uint32_t end = objects_dynamic(map, DT_GNU_HASH) != NULL ? table[1] : 0;
    for (uint32_t i = 1; i < end; i++) {
        if (symbols[i].st_shndx == SHN_UNDEF && text_equal(strings + symbols[i].st_name, name)) {
            return 1;
        }
    }
    return 0;
}

/* Those have their own memory, though they look for other functions by name. */
static int is_known_allocator(const struct link_map *map) {
    return objects_symbol(map, "mallctl") != NULL || objects_symbol(map, "tc_malloc") != NULL ||
           objects_symbol(map, "mi_malloc") != NULL;
}

/* Whether the file's constants have "malloc" as a whole text. */
static int othermalloc_has_word(const struct module_file *file, uint64_t offset, uint64_t size) {
    static const char word[] = "\0malloc"; /* and the zero behind it */
    char piece[2048];
    uint64_t done = 0;
    while (done + sizeof word <= size) {
        size_t count = size - done < sizeof piece ? (size_t)(size - done) : sizeof piece;
        if (module_file_read(file, piece, count, offset + done) != 0) {
            return 0;
        }
        if (done == 0 && __builtin_memcmp(piece, word + 1, sizeof word - 1) == 0) {
            return 1;
        }
        for (size_t i = 0; i + sizeof word <= count; i++) {
            if (piece[i] == '\0' && __builtin_memcmp(piece + i, word, sizeof word) == 0) {
                return 1;
            }
        }
        done += count - (sizeof word - 1);
    }
    return 0;
}

int othermalloc_calls_next(const char *executable) {
    const void *address = dlsym(RTLD_DEFAULT, "malloc");
    const struct link_map *map = objects_at(address);
    struct libc_object object;
    struct memtrace_module module = {0};
    struct module_file file;
    ElfW(Shdr) section;
    int result = 0;
    if (map == NULL || map->l_name[0] != '\0' || has_sanitizer() ||
        !(othermalloc_wants(map, "dlsym") || othermalloc_wants(map, "dlvsym")) ||
        is_known_allocator(map) || libc_find_object((uintptr_t)address, &object) != 0) {
        return 0;
    }
    module.start = object.start;
    text_copy(module.path, sizeof module.path, executable);
    if (module_file_open(&module, &file) == 0) {
        result = module_file_section(&file, ".rodata", SHF_ALLOC, &section) == 0 &&
                 othermalloc_has_word(&file, section.sh_offset, section.sh_size);
        module_file_close(&file);
    }
    return result;
}

void othermalloc_warn(const struct memtrace_malloc *found, const char *executable) {
    if (found->place == MEMTRACE_MALLOC_LIBRARY) {
        log_line("malloc is that of %s, which was loaded before libmemtrace: what it gives out is "
                 "not counted; start the program with `memtrace run`",
                 found->name);
    } else if (found->place == MEMTRACE_MALLOC_PROGRAM) {
        log_line(has_sanitizer()
                     ? "%s has a sanitizer's malloc linked into it: what it gives out is not "
                       "counted; profile a build without the sanitizer"
                     : "%s has a malloc of its own: what it gives out is not counted; try "
                       "`memtrace run --alloc auto`, or link the allocator as a shared library",
                 text_base_name(executable));
    }
}
