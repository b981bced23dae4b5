/* SPDX-License-Identifier: MIT */
/* allocators.c: which allocators are linked into a program. See allocators.h. */
#define _GNU_SOURCE
#include "analyze/symbol/allocators.h"

#include "analyze/symbol/debugfile.h"

#include <gelf.h>
#include <string.h>

/* What shows that an allocator is there. */
struct mark {
    const char *name;
    const char *symbol; /* a function of it, or how its functions begin if a * stands at the end */
    const char *function; /* what stands for malloc where it does not take malloc's place */
    const char *text;     /* in constants of it, where there are no symbols */
};

static const struct mark marks[] = {
    {"AddressSanitizer", "__asan_init", NULL, "AddressSanitizer: "},
    {"HWAddressSanitizer", "__hwasan_init", NULL, NULL},
    {"MemorySanitizer", "__msan_init", NULL, NULL},
    {"ThreadSanitizer", "__tsan_init", NULL, NULL},
    {"LeakSanitizer", "__lsan_init", NULL, NULL},
    {"DataFlowSanitizer", "__dfsan_*", NULL, NULL},
    {"scudo", "__scudo_*", "scudo_malloc", "Scudo ERROR"},
    {"jemalloc", "je_arena_boot", "je_malloc", "<jemalloc>"},
    {"jemalloc", "_rjem_je_arena_boot", "_rjem_malloc", NULL},
    {"tcmalloc", "_ZN8tcmalloc*", NULL, "tcmalloc"},
    {"mimalloc", "mi_malloc", "mi_malloc", "mimalloc: "},
    {"rpmalloc", "rpmalloc", "rpmalloc", NULL},
    {"snmalloc", "_ZN8snmalloc*", "sn_malloc", NULL},
    {"PartitionAlloc", "_ZN14partition_alloc*", NULL, "PartitionAlloc"},
};
enum { MARKS = sizeof marks / sizeof marks[0] };

static bool fits(const char *name, const char *pattern) {
    size_t length = strcspn(pattern, "*");
    return pattern[length] == '*' ? strncmp(name, pattern, length) == 0
                                  : strcmp(name, pattern) == 0;
}

static bool is_allocation(const char *name) {
    static const char *const names[] = {"malloc",        "calloc", "realloc", "posix_memalign",
                                        "aligned_alloc", "_Znwm",  "_Znam",   "strdup"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void look_at_function(struct allocators *found, const char *name, bool defined) {
    found->defines_malloc |= defined && strcmp(name, "malloc") == 0;
    found->calls_malloc |= !defined && is_allocation(name);
    found->rules_sanitizer |= defined && strcmp(name, "__asan_default_options") == 0;
    for (size_t i = 0; i < MARKS; i++) {
        const struct mark *mark = &marks[i];
        if (mark->function != NULL && strcmp(name, mark->function) == 0) {
            found->name = mark->name;
            found->another_name = mark->function;
        } else if (defined && found->name == NULL && fits(name, mark->symbol)) {
            found->name = mark->name;
        }
    }
}

static void look_at_symbols(struct allocators *found, Elf *elf, Elf_Scn *section,
                            const GElf_Shdr *header) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = data != NULL && header->sh_entsize != 0 ? data->d_size / header->sh_entsize : 0;
    for (size_t i = 1; i < count; i++) {
        GElf_Sym symbol;
        const char *name;
        if (gelf_getsym(data, (int)i, &symbol) == NULL ||
            (name = elf_strptr(elf, header->sh_link, symbol.st_name)) == NULL) {
            return;
        }
        if (GELF_ST_TYPE(symbol.st_info) == STT_FUNC || symbol.st_shndx == SHN_UNDEF) {
            look_at_function(found, name, symbol.st_shndx != SHN_UNDEF);
        }
    }
}

static void look_at_texts(struct allocators *found, Elf_Scn *section) {
    Elf_Data *data = elf_rawdata(section, NULL);
    for (size_t i = 0; data != NULL && data->d_buf != NULL && i < MARKS; i++) {
        const char *text = marks[i].text;
        if (text != NULL && memmem(data->d_buf, data->d_size, text, strlen(text)) != NULL) {
            found->name = marks[i].name;
            return;
        }
    }
}

/* Without symbols an allocator that takes malloc's place is told by its texts. */
static void look_for_texts(struct allocators *found, Elf *elf) {
    size_t names;
    Elf_Scn *section = NULL;
    while (found->name == NULL && elf_getshdrstrndx(elf, &names) == 0 &&
           (section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) != NULL ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name != NULL && strcmp(name, ".rodata") == 0) {
            look_at_texts(found, section);
        }
    }
}

int allocators_find(const char *path, enum allocators_symbols symbols, struct allocators *found) {
    struct debugfile_elf file;
    Elf_Scn *section = NULL;
    *found = (struct allocators){0};
    if (debugfile_open(path, &file, NULL) != 0) {
        return -1;
    }
    while ((section = elf_nextscn(file.elf, section)) != NULL) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) != NULL &&
            (header.sh_type == SHT_DYNSYM ||
             (header.sh_type == SHT_SYMTAB && symbols == ALLOCATORS_ALL))) {
            look_at_symbols(found, file.elf, section, &header);
        }
    }
    if (symbols == ALLOCATORS_ALL && (found->defines_malloc || !found->calls_malloc)) {
        look_for_texts(found, file.elf);
    }
    debugfile_close(&file);
    return 0;
}
