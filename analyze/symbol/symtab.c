/* SPDX-License-Identifier: MIT */
/*
 * symtab.c: ELF symbol tables as one sorted table of functions. See symtab.h.
 */
#include "analyze/symbol/symtab.h"

#include <gelf.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

enum { EMBEDDED_LIMIT_BYTES = 256 << 20 }; /* a .gnu_debugdata that grows past this is damaged */

/* Of several names of one function the lowest rank is shown: a global one, with few leading
 * underscores (malloc, not __libc_malloc), the shorter one. */
static uint64_t rank_of(unsigned char info, const char *name) {
    unsigned binding = GELF_ST_BIND(info);
    uint64_t rank = binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 1 : 2;
    size_t underscores = strspn(name, "_");
    return rank << 48 | (uint64_t)underscores << 32 | (uint32_t)strlen(name);
}

/* The end of the executable section the symbol is in; 0: it is no code. */
static uint64_t code_end(Elf *elf, const GElf_Sym *symbol) {
    GElf_Shdr header;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE)
        return 0;
    Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);
    if (!section || !gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR))
        return 0;
    return header.sh_addr + header.sh_size;
}

struct table {
    struct symtab *symtab;
    Elf *elf;
};

static int add_symbol(void *context, const GElf_Sym *symbol, const char *name) {
    const struct table *table = context;
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
    /* Functions written in assembler often have neither type nor size. */
    bool label = type == STT_NOTYPE && GELF_ST_BIND(symbol->st_info) != STB_LOCAL;
    if ((!function && !label) || !name[0])
        return 0;
    uint64_t end = code_end(table->elf, symbol);
    if (!end || symbol->st_value >= end)
        return 0;
    bool sized = symbol->st_size > 0;
    /* A symbol without size reaches up to the next one: see close_gaps. */
    return rangetable_add(&table->symtab->functions, symbol->st_value,
                          sized ? symbol->st_value + symbol->st_size : end, (uintptr_t)name,
                          rank_of(symbol->st_info, name) | (sized ? 0 : UINT64_C(1) << 63));
}

/* Unpacks xz data. NULL: damaged, or no memory. */
static void *unpack(const Elf_Data *packed, size_t *size) {
    lzma_stream stream = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&stream, UINT64_MAX, 0) != LZMA_OK)
        return NULL;
    stream.next_in = packed->d_buf;
    stream.avail_in = packed->d_size;
    size_t room = packed->d_size * 4 + 4096;
    uint8_t *bytes = malloc(room);
    lzma_ret status = bytes ? LZMA_OK : LZMA_MEM_ERROR;
    while (status == LZMA_OK) {
        stream.next_out = bytes + stream.total_out;
        stream.avail_out = room - stream.total_out;
        status = lzma_code(&stream, LZMA_FINISH);
        if (status != LZMA_OK || stream.avail_out > 0)
            continue;
        uint8_t *more = room < EMBEDDED_LIMIT_BYTES ? realloc(bytes, room * 2) : NULL;
        status = more ? LZMA_OK : LZMA_MEM_ERROR;
        bytes = more ? more : bytes;
        room *= 2;
    }
    *size = stream.total_out;
    lzma_end(&stream);
    if (status == LZMA_STREAM_END)
        return bytes;
    free(bytes);
    return NULL;
}

static int add_tables(struct symtab *symtab, Elf *elf);

static int add_embedded(struct symtab *symtab, Elf_Scn *section) {
    Elf_Data *data = elf_rawdata(section, NULL);
    size_t size;
    if (!data || !data->d_buf || symtab->embedded)
        return 0;
    symtab->embedded_bytes = unpack(data, &size);
    if (symtab->embedded_bytes)
        symtab->embedded = elf_memory(symtab->embedded_bytes, size);
    return symtab->embedded ? add_tables(symtab, symtab->embedded) : 0;
}

static int add_tables(struct symtab *symtab, Elf *elf) {
    struct table table = {symtab, elf};
    GElf_Shdr header;
    const char *name;
    int status = 0;
    for (Elf_Scn *section = NULL;
         status == 0 && (section = debugfile_next_section(elf, section, &header, &name));) {
        if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)
            status = debugfile_visit_symbols(elf, section, &header, add_symbol, &table);
        else if (header.sh_type == SHT_PROGBITS && strcmp(name, ".gnu_debugdata") == 0)
            status = add_embedded(symtab, section);
    }
    return status;
}

/* Symbols without size end where the next symbol starts. */
static void close_gaps(struct rangetable *functions) {
    uint64_t next = UINT64_MAX;
    for (size_t i = functions->count; i-- > 0;) {
        struct range *range = &functions->ranges[i];
        if (i + 1 < functions->count && functions->ranges[i + 1].low > range->low)
            next = functions->ranges[i + 1].low;
        if (range->rank >> 63 && range->high > next)
            range->high = next;
    }
}

int symtab_load(struct symtab *symtab, const struct debugfile_paths *paths) {
    const char *separate = paths->debug;
    if (separate && paths->object && strcmp(separate, paths->object) == 0)
        separate = NULL;
    const char *names[2] = {paths->object, separate};
    for (int i = 0; i < 2; i++) {
        if (!names[i] || debugfile_open(names[i], &symtab->files[i], NULL) != 0)
            continue;
        if (add_tables(symtab, symtab->files[i].elf) != 0)
            return -1;
    }
    rangetable_seal(&symtab->functions);
    close_gaps(&symtab->functions);
    rangetable_seal(&symtab->functions);
    return 0;
}

const char *symtab_name(const struct symtab *symtab, uint64_t address) {
    const struct range *range = rangetable_find(&symtab->functions, address, NULL);
    return range ? (const char *)(uintptr_t)range->value : NULL;
}

void symtab_free(struct symtab *symtab) {
    rangetable_free(&symtab->functions);
    if (symtab->embedded)
        elf_end(symtab->embedded);
    free(symtab->embedded_bytes);
    debugfile_close(&symtab->files[0]);
    debugfile_close(&symtab->files[1]);
    symtab->embedded = NULL;
    symtab->embedded_bytes = NULL;
}
