/* SPDX-License-Identifier: MIT */
/* programfile.c: see programfile.h. */
#define _GNU_SOURCE
#include "analyze/symbol/programfile.h"

#include "analyze/base/scope.h"
#include "analyze/symbol/debugfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Allocators ---- */

/* What shows that an allocator is there. */
struct mark {
    const char *name;
    const char *symbol;   /* a function of it; or how its functions begin or end, with a * there */
    const char *function; /* what stands for malloc where it does not take malloc's place */
    const char *text;     /* in constants of it, where there are no symbols */
    bool is_certain;      /* nobody else has this text */
};

static const struct mark marks[] = {
    {"AddressSanitizer", "__asan_init", NULL, "AddressSanitizer: ", false},
    {"HWAddressSanitizer", "__hwasan_init", NULL, NULL, false},
    {"MemorySanitizer", "__msan_init", NULL, NULL, false},
    {"ThreadSanitizer", "__tsan_init", NULL, NULL, false},
    {"LeakSanitizer", "__lsan_init", NULL, NULL, false},
    {"DataFlowSanitizer", "__dfsan_*", NULL, NULL, false},
    {"scudo", "__scudo_*", "scudo_malloc", "Scudo ERROR", true},
    {"jemalloc", "*je_arena_boot", "je_malloc", "<jemalloc>", true},
    {"jemalloc", "_rjem_malloc", "_rjem_malloc", NULL, false},
    {"tcmalloc", "_ZN8tcmalloc*", NULL, "tcmalloc", false},
    {"mimalloc", "mi_malloc", "mi_malloc", "mimalloc: ", true},
    {"rpmalloc", "rpmalloc", "rpmalloc", NULL, false},
    {"snmalloc", "_ZN8snmalloc*", "sn_malloc", NULL, false},
    {"PartitionAlloc", "_ZN14partition_alloc*", NULL, "PartitionAlloc", false},
};
enum { MARKS = sizeof marks / sizeof marks[0] };

static bool mark_fits(const char *name, const char *pattern) {
    size_t length = strcspn(pattern, "*");
    size_t name_length;
    if (pattern[0] == '*') {
        length = strlen(pattern + 1);
        name_length = strlen(name);
        return name_length >= length && strcmp(name + name_length - length, pattern + 1) == 0;
    }
    return pattern[length] == '*' ? strncmp(name, pattern, length) == 0
                                  : strcmp(name, pattern) == 0;
}

static bool name_is_one_of(const char *name, const char *const *names) {
    while (*names != NULL && strcmp(name, *names) != 0) {
        names++;
    }
    return *names != NULL;
}

static const char *const allocations[] = {"malloc",         "calloc",        "realloc",
                                          "posix_memalign", "aligned_alloc", "_Znwm",
                                          "_Znam",          "strdup",        NULL};
static const char *const operators[] = {"_Znwm", "_Znam", NULL};
static const char *const finders[] = {"dlsym", "dlvsym", NULL};

struct look {
    struct allocators *found;
    bool is_dynamic; /* the symbols that other files are bound to */
    bool finds_next; /* it can find what comes behind it */
};

/* Of a defined function: whether other files see it. */
static bool is_exported(const struct look *look, const GElf_Sym *symbol) {
    unsigned visibility = GELF_ST_VISIBILITY(symbol->st_other);
    return look->is_dynamic && GELF_ST_BIND(symbol->st_info) != STB_LOCAL &&
           (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

static void look_at_defined(struct look *look, const GElf_Sym *symbol, const char *name) {
    struct allocators *found = look->found;
    if (strcmp(name, "malloc") == 0) {
        found->defines_malloc = true;
        if (is_exported(look, symbol)) {
            found->exports_malloc = true;
            found->binds_itself |= GELF_ST_VISIBILITY(symbol->st_other) == STV_PROTECTED;
        }
    } else if (name_is_one_of(name, operators)) {
        found->defines_new = true;
        found->exports_new |= is_exported(look, symbol);
    }
    found->rules_sanitizer |= strcmp(name, "__asan_default_options") == 0;
    found->is_libc |= look->is_dynamic && strcmp(name, "__libc_start_main") == 0;
}

static int look_at_symbol(void *context, const GElf_Sym *symbol, const char *name) {
    struct look *look = context;
    struct allocators *found = look->found;
    bool defined = symbol->st_shndx != SHN_UNDEF;
    if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC && defined) {
        return 0;
    }
    if (defined) {
        look_at_defined(look, symbol, name);
    } else {
        found->calls_malloc |= name_is_one_of(name, allocations);
        look->finds_next |= name_is_one_of(name, finders);
    }
    for (size_t i = 0; i < MARKS; i++) {
        const struct mark *mark = &marks[i];
        if (mark->function != NULL && strcmp(name, mark->function) == 0) {
            found->name = mark->name;
            found->another_name = mark->function;
            found->defines_another |= defined;
        } else if (defined && found->name == NULL && mark_fits(name, mark->symbol)) {
            found->name = mark->name;
        }
    }
    return 0;
}

static void look_at_texts(struct allocators *found, const Elf_Data *data, bool only_certain) {
    for (size_t i = 0; i < MARKS; i++) {
        const char *text = marks[i].text;
        if (text != NULL && (marks[i].is_certain || !only_certain) &&
            memmem(data->d_buf, data->d_size, text, strlen(text)) != NULL) {
            found->name = marks[i].name;
            found->is_by_text = true;
            return;
        }
    }
}

/* Whether the word stands in these constants, as it does where dlsym() is asked for it. */
static bool has_word(const Elf_Data *data, const char *word) {
    size_t size = strlen(word) + 1;
    const char *from = data->d_buf;
    const char *end = from + data->d_size;
    const char *at = from;
    while ((at = memmem(at, (size_t)(end - at), word, size)) != NULL) {
        if (at == from || at[-1] == '\0') {
            return true;
        }
        at += size;
    }
    return false;
}

static bool is_symbolic(Elf_Scn *section, const GElf_Shdr *header) {
    Elf_Data *data = header->sh_entsize != 0 ? elf_getdata(section, NULL) : NULL;
    GElf_Dyn entry;
    for (int i = 0; data != NULL && gelf_getdyn(data, i, &entry) != NULL && entry.d_tag != DT_NULL;
         i++) {
        if (entry.d_tag == DT_SYMBOLIC ||
            (entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_SYMBOLIC) != 0)) {
            return true;
        }
    }
    return false;
}

/* Constants: what no symbol tells. Without symbols an allocator that takes malloc's place is told
 * by its texts. */
static void look_at_constants(Elf *elf, struct look *look, enum allocators_symbols symbols) {
    struct allocators *found = look->found;
    bool wants_name = found->name == NULL && symbols != ALLOCATORS_DYNAMIC &&
                      (found->defines_malloc || !found->calls_malloc);
    bool wants_certain =
        found->name == NULL && symbols == ALLOCATORS_TEXTS && !found->exports_malloc;
    bool wants_word = found->defines_malloc && look->finds_next;
    const Elf_Data *data =
        wants_name || wants_certain || wants_word ? debugfile_section(elf, ".rodata") : NULL;
    if (data != NULL && (wants_name || wants_certain)) {
        look_at_texts(found, data, !wants_name);
    }
    found->wraps_malloc = data != NULL && wants_word && has_word(data, "malloc");
}

void programfile_look(Elf *elf, enum allocators_symbols symbols, struct allocators *found) {
    struct look look = {.found = found};
    Elf_Scn *section = NULL;
    GElf_Ehdr program;
    GElf_Shdr header;
    const char *name;
    *found = (struct allocators){0};
    found->machine = gelf_getehdr(elf, &program) != NULL ? program.e_machine : EM_NONE;
    while ((section = debugfile_next_section(elf, section, &header, &name)) != NULL) {
        look.is_dynamic = header.sh_type == SHT_DYNSYM;
        if (look.is_dynamic || (header.sh_type == SHT_SYMTAB && symbols != ALLOCATORS_DYNAMIC)) {
            debugfile_visit_symbols(elf, section, &header, look_at_symbol, &look);
        }
        found->binds_itself |= header.sh_type == SHT_DYNAMIC && is_symbolic(section, &header);
        found->holds_runtime |= strcmp(name, "memtrace_text") == 0;
    }
    look_at_constants(elf, &look, symbols);
}

int programfile_allocators_of(const struct symbol_module *module, enum allocators_symbols symbols,
                              struct allocators *found) {
    SCOPE(debugfile_close) struct debugfile_elf file = {0};
    const void *build_id;
    *found = (struct allocators){0};
    if (debugfile_open(module->path, &file, NULL) != 0 ||
        (module->build_id_size != 0 &&
         (debugfile_build_id(file.elf, &build_id) != (ssize_t)module->build_id_size ||
          memcmp(build_id, module->build_id, module->build_id_size) != 0))) {
        return -1;
    }
    programfile_look(file.elf, symbols, found);
    return 0;
}

int programfile_allocators(const char *path, enum allocators_symbols symbols,
                           struct allocators *found) {
    return programfile_allocators_of(&(struct symbol_module){.path = path}, symbols, found);
}

bool programfile_has_own_malloc(const struct allocators *library) {
    bool has_malloc =
        library->defines_malloc && (!library->exports_malloc || library->binds_itself);
    if (library->is_libc || library->holds_runtime) {
        return false;
    }
    return has_malloc || (library->defines_new && !library->exports_new &&
                          !library->defines_malloc && !library->calls_malloc);
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
    SCOPE(debugfile_free) struct debugfile_paths paths = {0};
    SCOPE(debugfile_close) struct debugfile_elf object = {0};
    SCOPE(debugfile_close) struct debugfile_elf debug = {0};
    if (debugfile_find(module, debug_folders, &paths) != 0 || paths.object == NULL ||
        debugfile_open(paths.object, &object, NULL) != 0) {
        return NULL;
    }
    return defines_their_function(object.elf) ||
                   (paths.debug != NULL && debugfile_open(paths.debug, &debug, NULL) == 0 &&
                    defines_their_function(debug.elf))
               ? read_lists(object.elf)
               : NULL;
}
