/* SPDX-License-Identifier: MIT */
/* relocs.c: see relocs.h. */
#define _GNU_SOURCE
#include "runtime/reach/relocs.h"

#include "runtime/base/compiler.h"
#include "runtime/base/sys.h"
#include "runtime/libc/objects.h"
#include "runtime/machine/machine.h"

#include <dlfcn.h>
#include <sys/auxv.h>

struct visit {
    void (*function)(void *argument, const struct reloc *word);
    void *argument;
    const struct link_map *own;
};

struct object {
    struct link_map *map;
    const ElfW(Sym) * symbols;
    const char *strings;
    uintptr_t protected_start, protected_end;
};

static int find_kind(uint32_t type, enum reloc_kind *kind) {
    switch (type) {
    case MACHINE_RELOC_CALL:
        *kind = RELOC_CALL;
        return 1;
    case MACHINE_RELOC_GOT:
        *kind = RELOC_GOT;
        return 1;
    case MACHINE_RELOC_DATA:
        *kind = RELOC_DATA;
        return 1;
    default:
        return 0;
    }
}

static void visit_word(const struct visit *visit, const struct object *object, uintptr_t at,
                       enum reloc_kind kind, uint32_t symbol) {
    struct reloc word = {.at = (uintptr_t *)at, .object = object->map, .kind = kind};
    word.symbol = &object->symbols[symbol];
    word.name = object->strings + word.symbol->st_name;
    word.is_protected =
        at - object->protected_start < object->protected_end - object->protected_start;
    visit->function(visit->argument, &word);
}

/* `each`: the size of one. What has no addend has it where it is applied, and the loader has added
 * to it: a word that leads to a function leads to its start. */
static void visit_relocations(const struct visit *visit, const struct object *object,
                              const char *relocations, size_t size, size_t each) {
    for (size_t i = 0; i < size / each; i++) {
        const ElfW(Rela) *relocation = (const void *)(relocations + i * each);
        uint64_t info = relocation->r_info;
        enum reloc_kind kind;
        if (find_kind(machine_relocation_type(info), &kind) &&
            (kind != RELOC_DATA || each < sizeof *relocation || relocation->r_addend == 0)) {
            visit_word(visit, object, object->map->l_addr + relocation->r_offset, kind,
                       machine_relocation_symbol(info));
        }
    }
}

/* Where the GOT is as long as the list of symbols. */
static void visit_got(const struct visit *visit, const struct object *object) {
    const uintptr_t *got = objects_address(object->map, DT_PLTGOT);
    uint32_t first = (uint32_t)objects_value(object->map, DT_MIPS_GOTSYM);
    uint32_t end = (uint32_t)objects_value(object->map, DT_MIPS_SYMTABNO);
    got += objects_value(object->map, DT_MIPS_LOCAL_GOTNO);
    for (uint32_t symbol = first; symbol < end; symbol++) {
        visit_word(visit, object, (uintptr_t)(got + (symbol - first)), RELOC_CALL, symbol);
    }
}

/* The program headers lie in the first page, where linkers put them. Of an object whose segments
 * have room between them the loader tells one by itself: that of the symbols is the first. 0, or
 * -1: it is not known what is protected. */
static int find_protected(struct object *object) {
    struct dl_find_object first;
    const ElfW(Ehdr) * header;
    const ElfW(Phdr) * program;
    uintptr_t page = getauxval(AT_PAGESZ);
    if (_dl_find_object((void *)object->symbols, &first) != 0 ||
        first.dlfo_link_map != object->map) {
        return -1;
    }
    header = first.dlfo_map_start;
    if (__builtin_memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
        return -1;
    }
    program = (const ElfW(Phdr) *)((uintptr_t)header + header->e_phoff);
    for (size_t i = 0; i < header->e_phnum; i++) {
        if (program[i].p_type == PT_GNU_RELRO) {
            uintptr_t from = object->map->l_addr + program[i].p_vaddr;
            object->protected_start = from & ~(page - 1);
            object->protected_end = (from + program[i].p_memsz) & ~(page - 1);
        }
    }
    return 0;
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
    if (find_protected(&object) != 0) {
        return;
    }
    if (objects_dynamic(map, DT_JMPREL) != NULL) {
        visit_relocations(
            visit, &object, objects_address(map, DT_JMPREL), objects_value(map, DT_PLTRELSZ),
            objects_value(map, DT_PLTREL) == DT_REL ? sizeof(ElfW(Rel)) : sizeof(ElfW(Rela)));
    }
    if (objects_dynamic(map, DT_RELA) != NULL) { /* those without a symbol come first */
        visit_relocations(visit, &object, relocations + relative,
                          objects_value(map, DT_RELASZ) - relative, sizeof(ElfW(Rela)));
    }
    if (objects_dynamic(map, DT_REL) != NULL) {
        visit_relocations(visit, &object, objects_address(map, DT_REL),
                          objects_value(map, DT_RELSZ), sizeof(ElfW(Rel)));
    }
    if (MACHINE_GOT_IS_BY_SYMBOLS && objects_dynamic(map, DT_MIPS_GOTSYM) != NULL) {
        visit_got(visit, &object);
    }
}

void relocs_visit(void (*function)(void *argument, const struct reloc *word), void *argument) {
    struct visit visit = {function, argument, objects_at((void *)relocs_visit)};
    objects_visit(visit_object, &visit);
}

/* The page that holds a word of the GOT may be read-only. */
int relocs_store(const struct reloc *word, uintptr_t old, uintptr_t new) {
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

int relocs_is_own_call(const struct reloc *word, uintptr_t target) {
    return objects_is_libc(word->object) && word->symbol->st_shndx != SHN_UNDEF &&
           target == word->object->l_addr + word->symbol->st_value;
}
