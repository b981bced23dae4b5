/* SPDX-License-Identifier: MIT */
/*
 * inject.c: leading calls of other allocators to us. See inject.h.
 *
 * A library opened with RTLD_DEEPBIND is bound to libc's malloc, one in another namespace to that
 * of a second libc. In such words (of the PLT, the GOT, in data) the function is replaced by one
 * that stands in for exactly it (inject_heap.c), by one compare-and-swap: who calls through the
 * word at the same time gets the one or the other, and the same memory. Left alone is
 *  - what is led to us already: everything that preloading does reach;
 *  - an allocator that comes before us in the loader's order (in the program itself, in a library
 *    preloaded before ours): it may call ours, and its object may call it without any word;
 *  - what an allocator's object says of itself, a C library's apart, whose strdup() is such a
 * caller;
 *  - words that are not bound yet: the loader would overwrite them.
 */
#define _GNU_SOURCE
#include "runtime/entry/inject.h"

#include "runtime/base/compiler.h"
#include "runtime/base/machine.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/entry/objects.h"

#include <dlfcn.h>
#include <sys/auxv.h>

/* --- objects ---------------------------------------------------------------------------------- */

/* Whether `a` comes before `b`, in one namespace. */
static int comes_before(const struct link_map *a, const struct link_map *b) {
    while (a != NULL && a != b) {
        a = a->l_next;
    }
    return a != NULL;
}

/* --- words ------------------------------------------------------------------------------------ */

struct object {
    struct link_map *map;
    const ElfW(Sym) * symbols;
    const char *strings;
    uintptr_t protected_start, protected_end; /* RELRO: read-only since it was relocated */
};

struct pass {
    const struct link_map *own;
    int in_data;    /* only words in data, which the program may have changed */
    uint32_t left;  /* calls that could not be led to us */
    const char *of; /* in such an object */
};

/* The page that holds a word of the GOT may be read-only. 0, or -1. */
static int store(const struct object *object, uintptr_t *word, uintptr_t old, uintptr_t new) {
    size_t page = getauxval(AT_PAGESZ);
    void *start = (void *)((uintptr_t)word & ~(page - 1));
    int is_protected =
        (uintptr_t)word - object->protected_start < object->protected_end - object->protected_start;
    int done;
    if (is_protected && sys_protect(start, page, 1) != 0) {
        return -1;
    }
    done = __atomic_compare_exchange_n(word, &old, new, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    if (is_protected) {
        sys_protect(start, page, 0);
    }
    return done ? 0 : -1;
}

/* Whether an object's word that leads to itself is a C library's that is bound: not one that is
 * still to be bound, nor what an allocator says of itself. */
static int is_own_call(const struct link_map *map, const ElfW(Sym) * symbol, uintptr_t target) {
    return objects_is_libc(map) && symbol->st_shndx != SHN_UNDEF &&
           target == map->l_addr + symbol->st_value;
}

/* One word that holds function number `function`. 1: it was left as it is, though it should not. */
static int lead(const struct pass *pass, const struct object *object, uintptr_t *word, int function,
                const ElfW(Sym) * symbol) {
    uintptr_t target = LOAD_RELAXED(word);
    struct link_map *home = objects_at((void *)target);
    void *stand_in;
    if (home == NULL || home == pass->own ||
        (home == object->map && !is_own_call(object->map, symbol, target))) {
        return 0;
    }
    if (comes_before(home, pass->own)) {
        return 1;
    }
    stand_in = inject_heap_stand_in(function, (void *)target, home, pass->in_data,
                                    !comes_before(pass->own, home));
    return stand_in == NULL || store(object, word, target, (uintptr_t)stand_in) != 0;
}

static void visit_relocations(struct pass *pass, const struct object *object,
                              const ElfW(Rela) * relocation, size_t size) {
    const ElfW(Rela) *end = relocation + size / sizeof *relocation;
    for (; relocation < end; relocation++) {
        const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
        uint32_t type = ELF64_R_TYPE(relocation->r_info);
        int is_call = type == MACHINE_RELOC_CALL;
        int function;
        if (pass->in_data ? type != MACHINE_RELOC_DATA || relocation->r_addend != 0
                          : !is_call && type != MACHINE_RELOC_GOT) {
            continue;
        }
        function = inject_heap_function(object->strings + symbol->st_name);
        if (function >= 0 &&
            lead(pass, object, (uintptr_t *)(object->map->l_addr + relocation->r_offset), function,
                 symbol) &&
            is_call) {
            pass->left++;
            pass->of = object->map->l_name;
        }
    }
}

/* The program headers lie in the first page, where linkers put them. */
static void find_protected(struct object *object, uintptr_t start) {
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)start;
    const ElfW(Phdr) *program = (const ElfW(Phdr) *)(start + header->e_phoff);
    uintptr_t page = getauxval(AT_PAGESZ);
    for (size_t i = 0; i < header->e_phnum; i++) {
        if (program[i].p_type == PT_GNU_RELRO) {
            uintptr_t from = object->map->l_addr + program[i].p_vaddr;
            object->protected_start = from & ~(page - 1);
            object->protected_end = (from + program[i].p_memsz) & ~(page - 1);
        }
    }
}

/* An object that the loader finds by address is relocated, and protected. */
static void visit_object(void *argument, struct link_map *map) {
    struct pass *pass = argument;
    struct dl_find_object found;
    struct object object = {.map = map};
    const char *relocations = objects_address(map, DT_RELA);
    size_t relative = objects_value(map, DT_RELACOUNT) * sizeof(ElfW(Rela));
    if (map == pass->own || _dl_find_object(map->l_ld, &found) != 0 || found.dlfo_link_map != map) {
        return;
    }
    object.symbols = objects_address(map, DT_SYMTAB);
    object.strings = objects_address(map, DT_STRTAB);
    find_protected(&object, (uintptr_t)found.dlfo_map_start);
    if (objects_dynamic(map, DT_JMPREL) != NULL) {
        visit_relocations(pass, &object, objects_address(map, DT_JMPREL),
                          objects_value(map, DT_PLTRELSZ));
    }
    if (objects_dynamic(map, DT_RELA) != NULL) { /* those without a symbol come first */
        visit_relocations(pass, &object, (const ElfW(Rela) *)(relocations + relative),
                          objects_value(map, DT_RELASZ) - relative);
    }
}

/* --- all of it -------------------------------------------------------------------------------- */

static void say_what_was_left(const struct pass *pass) {
    static int said;
    char line[400];
    struct text text;
    if (pass->left == 0 || __atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) {
        return;
    }
    text_init(&text, line, sizeof line);
    text_add_number(&text, pass->left);
    text_add(&text, " calls of an allocator cannot be followed, in ");
    text_add(&text, pass->of[0] != '\0' ? pass->of : "the program");
    log_line("inject: ", line, NULL);
}

void inject_run(void) {
    struct pass pass = {.own = objects_at((void *)inject_run)};
    objects_visit(visit_object, &pass);
    pass.in_data = 1;
    objects_visit(visit_object, &pass);
    say_what_was_left(&pass);
}

static void note_run_path(void *argument, struct link_map *map) {
    *(int *)argument |= objects_dynamic(map, DT_RPATH) != NULL;
}

int inject_may_open(const char *file, const void *caller) {
    const struct link_map *object = objects_at(caller);
    int has_run_path = 0;
    if (file == NULL) {
        return 1;
    }
    if (__builtin_strchr(file, '$') != NULL) {
        return 0;
    }
    if (__builtin_strchr(file, '/') != NULL) {
        return 1;
    }
    objects_visit(note_run_path, &has_run_path); /* which an object shares with those it needs */
    return !has_run_path && object != NULL && objects_dynamic(object, DT_RUNPATH) == NULL;
}
