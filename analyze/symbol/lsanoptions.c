/* SPDX-License-Identifier: MIT */
/* lsanoptions.c: see lsanoptions.h. */
#include "analyze/symbol/lsanoptions.h"

#include "analyze/symbol/debugfile.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_MOST = 64, TEXT_MOST = 1 << 20 };

/* ---- Machine code ---- */

/* Instructions before the one that matters. */
struct prologue {
    unsigned char bytes[4];
    unsigned char size;
    unsigned char more; /* bytes that follow and do not matter */
};

static const struct prologue x86_prologue[] = {
    {{0xf3, 0x0f, 0x1e, 0xfa}, 4, 0}, /* endbr64 */
    {{0x55}, 1, 0},                   /* push %rbp */
    {{0x48, 0x89, 0xe5}, 3, 0},       /* mov %rsp,%rbp */
    {{0x48, 0x83, 0xec}, 3, 1},       /* sub $n,%rsp */
};

static size_t skip_x86(const unsigned char *code, size_t size) {
    size_t at = 0;
    for (size_t i = 0; i < sizeof x86_prologue / sizeof x86_prologue[0]; i++) {
        const struct prologue *step = &x86_prologue[i];
        if (at + step->size + step->more <= size &&
            memcmp(code + at, step->bytes, step->size) == 0) {
            at += (size_t)step->size + step->more;
        }
    }
    return at;
}

static uint32_t word_at(const unsigned char *code) {
    return (uint32_t)code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 |
           (uint32_t)code[3] << 24;
}

static uint64_t returned_x86(const unsigned char *code, size_t size, uint64_t address) {
    static const unsigned char lea[] = {0x48, 0x8d, 0x05}; /* lea n(%rip),%rax */
    static const unsigned char mov[] = {0x48, 0xc7, 0xc0}; /* mov $n,%rax */
    static const unsigned char movabs[] = {0x48, 0xb8};    /* movabs $n,%rax */
    size_t at = skip_x86(code, size);
    if (at + 7 <= size && memcmp(code + at, lea, 3) == 0) {
        return address + at + 7 + (uint64_t)(int64_t)(int32_t)word_at(code + at + 3);
    }
    if (at + 7 <= size && memcmp(code + at, mov, 3) == 0) {
        return word_at(code + at + 3);
    }
    if (at + 10 <= size && memcmp(code + at, movabs, 2) == 0) {
        return word_at(code + at + 2) | (uint64_t)word_at(code + at + 6) << 32;
    }
    if (at + 5 <= size && code[at] == 0xb8) { /* mov $n,%eax */
        return word_at(code + at + 1);
    }
    return 0;
}

/* bti, paciasp, stp x29,x30,[sp,#n]!, mov x29,sp */
static bool is_arm_prologue(uint32_t word) {
    return (word & 0xffffff3f) == 0xd503241f || word == 0xd503233f ||
           (word & 0xffc07fff) == 0xa9807bfd || word == 0x910003fd;
}

static int64_t arm_page_offset(uint32_t word) {
    uint64_t bits = (uint64_t)(word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3);
    return (int64_t)(bits << 43) >> 43;
}

static uint64_t returned_arm(const unsigned char *code, size_t size, uint64_t address) {
    size_t at = 0;
    uint32_t first;
    uint32_t second;
    while (at + 8 <= size && is_arm_prologue(word_at(code + at))) {
        at += 4;
    }
    if (at + 8 > size) {
        return 0;
    }
    first = word_at(code + at);
    second = word_at(code + at + 4);
    if ((first & 0x9f00001f) == 0x10000000) { /* adr x0 */
        return address + at + (uint64_t)arm_page_offset(first);
    }
    if ((first & 0x9f00001f) == 0x90000000 && (second & 0xffc003ff) == 0x91000000) {
        return ((address + at) & ~UINT64_C(0xfff)) + (uint64_t)(arm_page_offset(first) * 4096) +
               (second >> 10 & 0xfff); /* adrp x0; add x0,x0,#n */
    }
    return 0;
}

uint64_t lsanoptions_returned(unsigned machine, const unsigned char *code, size_t size,
                              uint64_t address) {
    switch (machine) {
    case EM_X86_64:
        return returned_x86(code, size, address);
    case EM_AARCH64:
        return returned_arm(code, size, address);
    default:
        return 0;
    }
}

/* ---- The file ---- */

/* The address of the function in a table of symbols; 0: it is not there. */
static uint64_t find_in(Elf_Scn *section, const GElf_Shdr *header, Elf *elf) {
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
            return symbol.st_value;
        }
    }
    return 0;
}

static uint64_t find_function(Elf *elf) {
    Elf_Scn *section = NULL;
    uint64_t found = 0;
    while (found == 0 && (section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) != NULL &&
            (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)) {
            found = find_in(section, &header, elf);
        }
    }
    return found;
}

/* What lies at an address of the loaded program, up to the end of its segment; *size is 0 if
 * nothing does. */
static const unsigned char *bytes_at(Elf *elf, uint64_t address, size_t *size) {
    size_t file_size;
    const char *file = elf_rawfile(elf, &file_size);
    size_t count = 0;
    *size = 0;
    if (file == NULL || elf_getphdrnum(elf, &count) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        uint64_t offset;
        if (gelf_getphdr(elf, (int)i, &segment) == NULL || segment.p_type != PT_LOAD ||
            address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) {
            continue;
        }
        offset = segment.p_offset + (address - segment.p_vaddr);
        if (offset < file_size) {
            uint64_t left = segment.p_filesz - (address - segment.p_vaddr);
            *size = left < file_size - offset ? (size_t)left : (size_t)(file_size - offset);
            return (const unsigned char *)file + offset;
        }
    }
    return NULL;
}

static char *read_text(Elf *elf, uint64_t function) {
    GElf_Ehdr header;
    size_t size;
    const unsigned char *code = bytes_at(elf, function, &size);
    const unsigned char *text;
    uint64_t address;
    if (code == NULL || gelf_getehdr(elf, &header) == NULL) {
        return NULL;
    }
    address =
        lsanoptions_returned(header.e_machine, code, size < CODE_MOST ? size : CODE_MOST, function);
    text = address != 0 ? bytes_at(elf, address, &size) : NULL;
    if (text == NULL || memchr(text, '\0', size < TEXT_MOST ? size : TEXT_MOST) == NULL) {
        return NULL;
    }
    return strdup((const char *)text);
}

char *lsanoptions_suppressions(const struct symbol_module *module, const char *debug_folders) {
    struct debugfile_paths paths = {0};
    struct debugfile_elf object = {0};
    struct debugfile_elf debug = {0};
    uint64_t function = 0;
    char *text = NULL;
    if (debugfile_find(module, debug_folders != NULL ? debug_folders : "/usr/lib/debug", &paths) !=
        0) {
        return NULL;
    }
    if (paths.object != NULL && debugfile_open(paths.object, &object, NULL) == 0) {
        function = find_function(object.elf);
        if (function == 0 && paths.debug != NULL &&
            debugfile_open(paths.debug, &debug, NULL) == 0) {
            function = find_function(debug.elf);
            debugfile_close(&debug);
        }
        text = function != 0 ? read_text(object.elf, function) : NULL;
        debugfile_close(&object);
    }
    debugfile_free(&paths);
    return text;
}
