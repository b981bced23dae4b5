/* SPDX-License-Identifier: MIT */
/* programfile.c: see programfile.h. */
#define _GNU_SOURCE
#include "analyze/symbol/programfile.h"

#include "analyze/symbol/debugfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Allocators ---- */

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

static int look_at_symbol(void *context, const GElf_Sym *symbol, const char *name) {
    struct allocators *found = context;
    bool defined = symbol->st_shndx != SHN_UNDEF;
    if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC && defined) {
        return 0;
    }
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
    return 0;
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

int programfile_allocators(const char *path, enum allocators_symbols symbols,
                           struct allocators *found) {
    struct debugfile_elf file;
    Elf_Scn *section = NULL;
    GElf_Ehdr program;
    GElf_Shdr header;
    const char *name;
    *found = (struct allocators){0};
    if (debugfile_open(path, &file, NULL) != 0) {
        return -1;
    }
    found->machine = gelf_getehdr(file.elf, &program) != NULL ? program.e_machine : EM_NONE;
    while ((section = debugfile_next_section(file.elf, section, &header, &name)) != NULL) {
        if (header.sh_type == SHT_DYNSYM ||
            (header.sh_type == SHT_SYMTAB && symbols == ALLOCATORS_ALL)) {
            debugfile_visit_symbols(file.elf, section, &header, look_at_symbol, found);
        }
        found->holds_runtime |= strcmp(name, "memtrace_text") == 0;
    }
    /* Without symbols an allocator that takes malloc's place is told by its texts. */
    while (symbols == ALLOCATORS_ALL && (found->defines_malloc || !found->calls_malloc) &&
           found->name == NULL &&
           (section = debugfile_next_section(file.elf, section, &header, &name)) != NULL) {
        if (strcmp(name, ".rodata") == 0) {
            look_at_texts(found, section);
        }
    }
    debugfile_close(&file);
    return 0;
}

/* ---- Suppressions for LeakSanitizer ---- */

static int is_their_function(void *context, const GElf_Sym *symbol, const char *name) {
    (void)context;
    return symbol->st_shndx != SHN_UNDEF && strcmp(name, "__lsan_default_suppressions") == 0;
}

static bool defines_their_function(Elf *elf) {
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    const char *name;
    bool found = false;
    while (!found && (section = debugfile_next_section(elf, section, &header, &name)) != NULL) {
        found = (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
                debugfile_visit_symbols(elf, section, &header, is_their_function, NULL) != 0;
    }
    return found;
}

/* Whether a text is a list for LeakSanitizer: lines "leak:PATTERN", comments and empty ones. */
static bool is_list(const char *text) {
    bool has_leak = false;
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        size_t blanks = strspn(text, " \t\r");
        if (strncmp(text + blanks, "leak:", 5) == 0) {
            has_leak = true;
        } else if (blanks < length && text[blanks] != '#') {
            return false;
        }
        text += length + (text[length] == '\n');
    }
    return has_leak;
}

/* Adds the lists that lie between `from` and `end`: whole texts, a zero before and behind them. */
static void add_lists(const char *from, const char *end, FILE *out) {
    const char *found;
    for (const char *at = from; (found = memmem(at, (size_t)(end - at), "leak:", 5)) != NULL;) {
        const char *before = memrchr(at, '\0', (size_t)(found - at));
        const char *text = before != NULL ? before + 1 : at;
        const char *zero = memchr(found, '\0', (size_t)(end - found));
        if (zero == NULL) {
            return;
        }
        if (is_list(text)) {
            fprintf(out, "%s\n", text);
        }
        at = zero + 1;
        if (at >= end) {
            return;
        }
    }
}

/* All lists in the constants of a program: PT_LOAD segments that are not writable. */
static char *read_lists(Elf *elf) {
    size_t file_size;
    const char *file = elf_rawfile(elf, &file_size);
    size_t count = 0;
    char *text = NULL;
    size_t size = 0;
    FILE *out =
        file != NULL && elf_getphdrnum(elf, &count) == 0 ? open_memstream(&text, &size) : NULL;
    for (size_t i = 0; out != NULL && i < count; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, (int)i, &segment) != NULL && segment.p_type == PT_LOAD &&
            (segment.p_flags & PF_W) == 0 && segment.p_offset < file_size) {
            size_t left = file_size - segment.p_offset;
            size_t length = segment.p_filesz < left ? (size_t)segment.p_filesz : left;
            add_lists(file + segment.p_offset, file + segment.p_offset + length, out);
        }
    }
    if (out != NULL && fclose(out) == 0 && size != 0) {
        return text;
    }
    free(text);
    return NULL;
}

char *programfile_suppressions(const struct symbol_module *module, const char *debug_folders) {
    struct debugfile_paths paths = {0};
    struct debugfile_elf object = {0};
    struct debugfile_elf debug = {0};
    bool has_function = false;
    char *text = NULL;
    if (debugfile_find(module, debug_folders != NULL ? debug_folders : "/usr/lib/debug", &paths) !=
        0) {
        return NULL;
    }
    if (paths.object != NULL && debugfile_open(paths.object, &object, NULL) == 0) {
        has_function = defines_their_function(object.elf);
        if (!has_function && paths.debug != NULL &&
            debugfile_open(paths.debug, &debug, NULL) == 0) {
            has_function = defines_their_function(debug.elf);
            debugfile_close(&debug);
        }
        text = has_function ? read_lists(object.elf) : NULL;
        debugfile_close(&object);
    }
    debugfile_free(&paths);
    return text;
}
