/* SPDX-License-Identifier: MIT */
/* lsanoptions.c: see lsanoptions.h. */
#include "analyze/symbol/lsanoptions.h"

#include "analyze/symbol/debugfile.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether a table of symbols defines the function. */
static bool find_in(Elf_Scn *section, const GElf_Shdr *header, Elf *elf) {
    Elf_Data *data = elf_getdata(section, NULL);
    size_t count = header->sh_entsize != 0 ? header->sh_size / header->sh_entsize : 0;
    for (size_t i = 0; data != NULL && i < count; i++) {
        GElf_Sym symbol;
        const char *name;
        if (gelf_getsym(data, (int)i, &symbol) == NULL || symbol.st_shndx == SHN_UNDEF) {
            continue;
        }
        name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (name != NULL && strcmp(name, "__lsan_default_suppressions") == 0) {
            return true;
        }
    }
    return false;
}

static bool find_function(Elf *elf) {
    Elf_Scn *section = NULL;
    bool found = false;
    while (!found && (section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) != NULL &&
            (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)) {
            found = find_in(section, &header, elf);
        }
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

char *lsanoptions_suppressions(const struct symbol_module *module, const char *debug_folders) {
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
        has_function = find_function(object.elf);
        if (!has_function && paths.debug != NULL &&
            debugfile_open(paths.debug, &debug, NULL) == 0) {
            has_function = find_function(debug.elf);
            debugfile_close(&debug);
        }
        text = has_function ? read_lists(object.elf) : NULL;
        debugfile_close(&object);
    }
    debugfile_free(&paths);
    return text;
}
