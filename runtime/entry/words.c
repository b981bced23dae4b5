/* SPDX-License-Identifier: MIT */
/* words.c: see words.h. */
#define _GNU_SOURCE
#include "runtime/entry/words.h"

#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/entry/objects.h"
#include "runtime/machine/machine.h"

#include <dlfcn.h>
#include <sys/auxv.h>

struct visit {
    void (*function)(void *argument, const struct word *word);
    void *argument;
    const struct link_map *own;
};

struct object {
    struct link_map *map;
    const ElfW(Sym) * symbols;
    const char *strings;
    uintptr_t protected_start, protected_end;
};

static int find_kind(uint32_t type, enum word_kind *kind) {
    switch (type) {
    case MACHINE_RELOC_CALL:
        *kind = WORD_CALL;
        return 1;
    case MACHINE_RELOC_GOT:
        *kind = WORD_GOT;
        return 1;
    case MACHINE_RELOC_DATA:
        *kind = WORD_DATA;
        return 1;
    default:
        return 0;
    }
}

static void visit_relocations(const struct visit *visit, const struct object *object,
                              const ElfW(Rela) * relocation, size_t size) {
    const ElfW(Rela) *end = relocation + size / sizeof *relocation;
    for (; relocation < end; relocation++) {
        uintptr_t at = object->map->l_addr + relocation->r_offset;
        struct word word = {.at = (uintptr_t *)at, .object = object->map};
        if (!find_kind(ELF64_R_TYPE(relocation->r_info), &word.kind) ||
            (word.kind == WORD_DATA && relocation->r_addend != 0)) {
            continue;
        }
        word.symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
        word.name = object->strings + word.symbol->st_name;
        word.is_protected =
            at - object->protected_start < object->protected_end - object->protected_start;
        visit->function(visit->argument, &word);
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
    const struct visit *visit = argument;
    struct dl_find_object found;
    struct object object = {.map = map};
    const char *relocations = objects_address(map, DT_RELA);
    size_t relative = objects_value(map, DT_RELACOUNT) * sizeof(ElfW(Rela));
    if (map == visit->own || _dl_find_object(map->l_ld, &found) != 0 ||
        found.dlfo_link_map != map) {
        return;
    }
    object.symbols = objects_address(map, DT_SYMTAB);
    object.strings = objects_address(map, DT_STRTAB);
    find_protected(&object, (uintptr_t)found.dlfo_map_start);
    if (objects_dynamic(map, DT_JMPREL) != NULL) {
        visit_relocations(visit, &object, objects_address(map, DT_JMPREL),
                          objects_value(map, DT_PLTRELSZ));
    }
    if (objects_dynamic(map, DT_RELA) != NULL) { /* those without a symbol come first */
        visit_relocations(visit, &object, (const ElfW(Rela) *)(relocations + relative),
                          objects_value(map, DT_RELASZ) - relative);
    }
}

void words_visit(void (*function)(void *argument, const struct word *word), void *argument) {
    struct visit visit = {function, argument, objects_at((void *)words_visit)};
    objects_visit(visit_object, &visit);
}

/* The page that holds a word of the GOT may be read-only. */
int words_store(const struct word *word, uintptr_t old, uintptr_t new) {
    size_t page = getauxval(AT_PAGESZ);
    void *start = (void *)((uintptr_t)word->at & ~(page - 1));
    int done;
    if (word->is_protected && sys_protect(start, page, 1) != 0) {
        return -1;
    }
    done = __atomic_compare_exchange_n(word->at, &old, new, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    if (word->is_protected) {
        sys_protect(start, page, 0);
    }
    return done ? 0 : -1;
}

int words_is_own_call(const struct word *word, uintptr_t target) {
    return objects_is_libc(word->object) && word->symbol->st_shndx != SHN_UNDEF &&
           target == word->object->l_addr + word->symbol->st_value;
}
