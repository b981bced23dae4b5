/* SPDX-License-Identifier: MIT */
/* codefile.c: see codefile.h. */
#include "analyze/symbol/codefile.h"

#include "analyze/base/array.h"
#include "analyze/base/search.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Segments ---- */

static void codefile_read_segments(struct codefile *code, Elf *elf) {
    size_t size;
    size_t count = 0;
    const uint8_t *file = (const uint8_t *)elf_rawfile(elf, &size);
    if (file == NULL || elf_getphdrnum(elf, &count) != 0) {
        return;
    }
    for (size_t i = 0; i < count && code->segment_count < CODEFILE_SEGMENTS; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header) != NULL && header.p_type == PT_LOAD &&
            header.p_offset <= size && header.p_filesz <= size - header.p_offset &&
            header.p_vaddr <= UINT64_MAX - header.p_filesz) {
            code->segments[code->segment_count++] =
                (struct codefile_segment){.address = header.p_vaddr,
                                          .size = header.p_filesz,
                                          .offset = header.p_offset,
                                          .bytes = file + header.p_offset,
                                          .is_code = (header.p_flags & PF_X) != 0};
        }
    }
}

static const struct codefile_segment *segment_of(const struct codefile *code, uint64_t address) {
    for (size_t i = 0; i < code->segment_count; i++) {
        const struct codefile_segment *segment = &code->segments[i];
        if (address >= segment->address && address - segment->address < segment->size) {
            return segment;
        }
    }
    return NULL;
}

const uint8_t *codefile_bytes(const struct codefile *code, uint64_t address, size_t *left) {
    const struct codefile_segment *segment = segment_of(code, address);
    *left = segment != NULL ? segment->size - (address - segment->address) : 0;
    return segment != NULL ? segment->bytes + (address - segment->address) : NULL;
}

const uint8_t *codefile_text(const struct codefile *code, uint64_t address, size_t *left) {
    const struct codefile_segment *segment = segment_of(code, address);
    *left = 0;
    return segment != NULL && segment->is_code ? codefile_bytes(code, address, left) : NULL;
}

bool codefile_is_plt(const struct codefile *code, uint64_t address) {
    for (size_t i = 0; i < code->plt_count; i++) {
        if (address >= code->plt[i].low && address < code->plt[i].high) {
            return true;
        }
    }
    return false;
}

/* Of one section of relocations; x86-64's alone: the callers read that machine's code. */
static void codefile_add_words(struct codefile *code, const GElf_Shdr *header, Elf_Data *data) {
    Elf_Data *symbols = elf_getdata(elf_getscn(code->files[0].elf, header->sh_link), NULL);
    GElf_Rela it;
    for (int i = 0; gelf_getrela(data, i, &it) != NULL; i++) {
        uint64_t type = GELF_R_TYPE(it.r_info);
        GElf_Sym symbol;
        if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) || symbols == NULL ||
            gelf_getsym(symbols, (int)GELF_R_SYM(it.r_info), &symbol) == NULL ||
            symbol.st_value == 0) {
            continue;
        }
        if (array_grow(&code->words, &code->word_room, code->word_count, sizeof *code->words) !=
            0) {
            return; /* what leads there is not known */
        }
        code->words[code->word_count++] = (struct codefile_word){it.r_offset, symbol.st_value};
    }
}

/* Few of the files that are opened are asked. */
static void read_words(struct codefile *code) {
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    const char *name;
    code->has_words = true;
    while ((section = debugfile_next_section(code->files[0].elf, section, &header, &name)) !=
           NULL) {
        Elf_Data *data = header.sh_type == SHT_RELA ? elf_getdata(section, NULL) : NULL;
        if (data != NULL) {
            codefile_add_words(code, &header, data);
        }
    }
    array_sort_by(code->words, code->word_count, sizeof *code->words,
                  offsetof(struct codefile_word, address));
}

uint64_t codefile_bound_to(struct codefile *code, uint64_t word) {
    size_t place;
    if (!code->has_words) {
        read_words(code);
    }
    place = search_below(code->words, code->word_count, sizeof *code->words,
                         offsetof(struct codefile_word, address), word);
    return place < code->word_count && code->words[place].address == word
               ? code->words[place].target
               : 0;
}

/* ---- Symbols ---- */

static int codefile_add_symbol(void *context, const GElf_Sym *symbol, const char *name) {
    struct codefile *code = context;
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    size_t left;
    bool is_typed = type == STT_FUNC || type == STT_GNU_IFUNC;
    /* Functions written in assembler often have no type. */
    if ((!is_typed && (type != STT_NOTYPE || GELF_ST_BIND(symbol->st_info) == STB_LOCAL)) ||
        symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS || name[0] == '\0' ||
        codefile_text(code, symbol->st_value, &left) == NULL) {
        return 0;
    }
    if (array_grow(&code->symbols, &code->symbol_room, code->symbol_count, sizeof *code->symbols) !=
        0) {
        return -1;
    }
    code->symbols[code->symbol_count++] =
        (struct codefile_symbol){.address = symbol->st_value,
                                 .size = symbol->st_size < left ? symbol->st_size : left,
                                 .name = name,
                                 .is_chosen_at_start = type == STT_GNU_IFUNC,
                                 .is_typed = is_typed};
    return 0;
}

static int compare_symbols(const void *left, const void *right) {
    const struct codefile_symbol *a = left;
    const struct codefile_symbol *b = right;
    return a->address != b->address ? (a->address > b->address) - (a->address < b->address)
                                    : strcmp(a->name, b->name);
}

/* The same symbol stands in several tables. */
static void unite_symbols(struct codefile *code) {
    size_t kept = 0;
    if (code->symbol_count != 0) {
        qsort(code->symbols, code->symbol_count, sizeof *code->symbols, compare_symbols);
    }
    for (size_t i = 0; i < code->symbol_count; i++) {
        struct codefile_symbol *last = kept > 0 ? &code->symbols[kept - 1] : NULL;
        if (last != NULL && compare_symbols(last, &code->symbols[i]) == 0) {
            last->size = last->size != 0 ? last->size : code->symbols[i].size;
        } else {
            code->symbols[kept++] = code->symbols[i];
        }
    }
    code->symbol_count = kept;
}

size_t codefile_symbol_from(const struct codefile *code, uint64_t address) {
    return search_below(code->symbols, code->symbol_count, sizeof *code->symbols,
                        offsetof(struct codefile_symbol, address), address);
}

/* ---- Unwind tables ---- */

struct tables {
    struct codefile *code;
    Elf *elf;
    Elf_Data *data;
    uint64_t address; /* of .eh_frame */
};

/* How addresses are written in the entries of a CIE: DW_EH_PE_*, by the 'R' of its augmentation. */
static uint8_t encoding_of(const struct tables *tables, uint64_t cie) {
    const char *ident = elf_getident(tables->elf, NULL);
    Dwarf_CFI_Entry entry;
    Dwarf_Off next;
    const uint8_t *at;
    const uint8_t *end;
    if (dwarf_next_cfi((const unsigned char *)ident, tables->data, true, cie, &next, &entry) != 0 ||
        !dwarf_cfi_cie_p(&entry) || entry.cie.augmentation[0] != 'z') {
        return DW_EH_PE_absptr;
    }
    at = entry.cie.augmentation_data;
    end = at + entry.cie.augmentation_data_size;
    for (const char *letter = entry.cie.augmentation + 1; *letter != '\0' && at < end; letter++) {
        if (*letter == 'R') {
            return *at;
        }
        if (*letter == 'P') {
            at += 1 + ((*at & 0x07) == DW_EH_PE_udata4 ? 4 : 8);
        } else if (*letter == 'L') {
            at++;
        }
    }
    return DW_EH_PE_absptr;
}

static int codefile_add_frame(const struct tables *tables, const Dwarf_FDE *fde, uint8_t encoding) {
    struct codefile *code = tables->code;
    const uint8_t *at = fde->start;
    size_t size = (encoding & 0x07) == DW_EH_PE_udata4 ? 4 : 8;
    uint64_t low = 0;
    uint64_t length = 0;
    if ((size_t)(fde->end - at) < 2 * size || (encoding & DW_EH_PE_indirect) != 0) {
        return 0;
    }
    memcpy(&low, at, size);
    memcpy(&length, at + size, size);
    if (size == 4 && (encoding & DW_EH_PE_signed) != 0) {
        low = (uint64_t)(int64_t)(int32_t)low;
    }
    if ((encoding & 0x70) == DW_EH_PE_pcrel) {
        low += tables->address + (uint64_t)(at - (const uint8_t *)tables->data->d_buf);
    }
    if (length == 0 || low > UINT64_MAX - length) {
        return 0;
    }
    if (array_grow(&code->frames, &code->frame_room, code->frame_count, sizeof *code->frames) !=
        0) {
        return -1;
    }
    code->frames[code->frame_count++] = (struct codefile_range){low, low + length};
    return 0;
}

static int read_frames(const struct tables *tables) {
    const char *ident = elf_getident(tables->elf, NULL);
    Dwarf_CFI_Entry entry;
    Dwarf_Off next = 0;
    uint64_t known = UINT64_MAX; /* the newest CIE, and its encoding */
    uint8_t encoding = 0;
    int status = 0;
    for (Dwarf_Off at = 0; status == 0 && at != (Dwarf_Off)-1; at = next) {
        int found =
            dwarf_next_cfi((const unsigned char *)ident, tables->data, true, at, &next, &entry);
        if (found > 0 || next <= at) {
            break;
        }
        if (found < 0 || dwarf_cfi_cie_p(&entry)) {
            continue;
        }
        if (entry.fde.CIE_pointer != known) {
            known = entry.fde.CIE_pointer;
            encoding = encoding_of(tables, known);
        }
        status = codefile_add_frame(tables, &entry.fde, encoding);
    }
    array_sort_by(tables->code->frames, tables->code->frame_count, sizeof *tables->code->frames,
                  offsetof(struct codefile_range, low));
    return status;
}

size_t codefile_frame_from(const struct codefile *code, uint64_t address) {
    size_t place = search_to(code->frames, code->frame_count, sizeof *code->frames,
                             offsetof(struct codefile_range, low), address);
    return place > 0 && code->frames[place - 1].high > address ? place - 1 : place;
}

const struct codefile_range *codefile_frame(const struct codefile *code, uint64_t address) {
    size_t place = codefile_frame_from(code, address);
    return place < code->frame_count && code->frames[place].low <= address ? &code->frames[place]
                                                                           : NULL;
}

/* ---- Where jumps lead ---- */

static void codefile_mark(struct codefile *code, uint64_t target) {
    for (size_t i = 0; i < code->segment_count; i++) {
        uint64_t at = target - code->segments[i].address;
        if (code->is_target[i] != NULL && target >= code->segments[i].address &&
            at < code->segments[i].size) {
            code->is_target[i][at / 8] |= (uint8_t)(1u << at % 8);
        }
    }
}

/* Any byte may be the first of an instruction. */
static void mark_targets(struct codefile *code, const struct codefile_segment *segment) {
    for (uint64_t i = 0; i + 5 <= segment->size; i++) {
        const uint8_t *at = segment->bytes + i;
        uint64_t opcode = (at[0] & 0xfe) == 0xe8                                              ? 1
                          : at[0] == 0x0f && (at[1] & 0xf0) == 0x80 && i + 6 <= segment->size ? 2
                                                                                              : 0;
        int32_t distance;
        if (opcode != 0) {
            memcpy(&distance, at + opcode, sizeof distance);
            codefile_mark(code, segment->address + i + opcode + sizeof distance +
                                    (uint64_t)(int64_t)distance);
        }
    }
}

static void find_targets(struct codefile *code) {
    code->is_target = calloc(CODEFILE_SEGMENTS, sizeof *code->is_target);
    for (size_t i = 0; code->is_target != NULL && i < code->segment_count; i++) {
        if (code->segments[i].is_code) {
            code->is_target[i] = calloc(1, code->segments[i].size / 8 + 1);
        }
    }
    for (size_t i = 0; code->is_target != NULL && i < code->segment_count; i++) {
        if (code->segments[i].is_code) {
            mark_targets(code, &code->segments[i]);
        }
    }
}

bool codefile_is_target(struct codefile *code, uint64_t address) {
    const struct codefile_segment *segment = segment_of(code, address);
    uint64_t at = segment != NULL ? address - segment->address : 0;
    uint8_t *bits;
    if (code->is_target == NULL) {
        find_targets(code);
    }
    if (segment == NULL || code->is_target == NULL) {
        return true; /* nothing is guessed */
    }
    bits = code->is_target[segment - code->segments];
    return bits == NULL || (bits[at / 8] >> at % 8 & 1) != 0;
}

/* ---- The file ---- */

static int read_sections(struct codefile *code, Elf *elf, bool is_own) {
    struct tables tables = {.code = code, .elf = elf};
    GElf_Shdr header;
    const char *name;
    Elf_Scn *section = NULL;
    int status = 0;
    while (status == 0 && (section = debugfile_next_section(elf, section, &header, &name))) {
        bool has_bytes = header.sh_type != SHT_NOBITS;
        if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) {
            code->has_symtab |= header.sh_type == SHT_SYMTAB;
            status = debugfile_visit_symbols(elf, section, &header, codefile_add_symbol, code);
        } else if (is_own && has_bytes && strncmp(name, ".plt", 4) == 0 &&
                   code->plt_count < sizeof code->plt / sizeof code->plt[0]) {
            code->plt[code->plt_count++] =
                (struct codefile_range){header.sh_addr, header.sh_addr + header.sh_size};
        } else if (is_own && has_bytes && strcmp(name, ".eh_frame") == 0) {
            tables.data = elf_rawdata(section, NULL);
            tables.address = header.sh_addr;
            status = tables.data != NULL && tables.data->d_buf != NULL ? read_frames(&tables) : 0;
        }
    }
    return status;
}

/* Whether an ET_DYN is a program: it says so, or names its loader, as glibc's libraries do, too,
 * which have a name of their own. */
static bool is_started(Elf *elf) {
    size_t count = 0;
    bool names_loader = false;
    bool has_name = false;
    bool says_so = false;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        Elf_Data *data;
        GElf_Dyn entry;
        if (gelf_getphdr(elf, (int)i, &header) == NULL) {
            continue;
        }
        names_loader |= header.p_type == PT_INTERP;
        data = header.p_type == PT_DYNAMIC
                   ? elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz, ELF_T_DYN)
                   : NULL;
        for (int j = 0; data != NULL && gelf_getdyn(data, j, &entry) != NULL; j++) {
            has_name |= entry.d_tag == DT_SONAME;
            says_so |= entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_PIE) != 0;
        }
    }
    return says_so || (names_loader && !has_name);
}

/* ---- Functions without a symbol ---- */

/* Called, and not a part of a function that is jumped to: there the return address is on top of
 * the stack, and nothing else is saved. */
static bool begins_function(const struct codefile *code, uint64_t address) {
    enum { RSP = 7, WORD = 8 };
    Dwarf_Frame *row = NULL;
    Dwarf_Op *operations;
    size_t count;
    size_t left;
    bool result;
    if (codefile_text(code, address, &left) == NULL || codefile_is_plt(code, address) ||
        code->cfi == NULL || dwarf_cfi_addrframe(code->cfi, address, &row) != 0) {
        return false;
    }
    result = dwarf_frame_cfa(row, &operations, &count) == 0 && count == 1 &&
             ((operations[0].atom == DW_OP_bregx && operations[0].number == RSP &&
               operations[0].number2 == WORD) ||
              (operations[0].atom == DW_OP_breg0 + RSP && operations[0].number == WORD));
    free(row);
    return result;
}

int codefile_name_unnamed(struct codefile *code) {
    size_t known = code->symbol_count; /* what is in order */
    size_t count = 0;
    if (code->unnamed != NULL || code->machine != EM_X86_64) {
        return 0;
    }
    code->unnamed = calloc(code->frame_count + 1, sizeof *code->unnamed);
    if (code->unnamed == NULL) {
        return -1;
    }
    for (size_t i = 0; i < code->frame_count; i++) {
        const struct codefile_range *frame = &code->frames[i];
        size_t place = search_below(code->symbols, known, sizeof *code->symbols,
                                    offsetof(struct codefile_symbol, address), frame->low);
        if ((place < known && code->symbols[place].address == frame->low) ||
            !begins_function(code, frame->low)) {
            continue;
        }
        if (array_grow(&code->symbols, &code->symbol_room, code->symbol_count,
                       sizeof *code->symbols) != 0) {
            return -1;
        }
        snprintf(code->unnamed[count], sizeof code->unnamed[count], "%#" PRIx64, frame->low);
        code->symbols[code->symbol_count++] =
            (struct codefile_symbol){.address = frame->low,
                                     .size = frame->high - frame->low,
                                     .name = code->unnamed[count++],
                                     .is_typed = true,
                                     .is_unnamed = true};
    }
    unite_symbols(code);
    return 0;
}

int codefile_open(struct codefile *code, const char *path, const char *debug_folders,
                  struct error *error) {
    const struct symbol_module module = {.path = path};
    GElf_Ehdr header;
    *code = (struct codefile){0};
    if (debugfile_find(&module, debug_folders, &code->paths) != 0) {
        return error_set(error, "out of memory");
    }
    if (debugfile_open(path, &code->files[0], NULL) != 0 ||
        gelf_getehdr(code->files[0].elf, &header) == NULL) {
        return error_set(error, "%s cannot be read as an ELF file", path);
    }
    code->machine = header.e_machine;
    code->entry = header.e_entry;
    code->is_program = header.e_type == ET_EXEC || is_started(code->files[0].elf);
    codefile_read_segments(code, code->files[0].elf);
    if (code->paths.debug != NULL && strcmp(code->paths.debug, path) != 0) {
        debugfile_open(code->paths.debug, &code->files[1], NULL);
    }
    for (int i = 0; i < 2; i++) {
        if (code->files[i].elf != NULL && read_sections(code, code->files[i].elf, i == 0) != 0) {
            return error_set(error, "out of memory");
        }
    }
    unite_symbols(code);
    code->cfi = dwarf_getcfi_elf(code->files[0].elf);
    return 0;
}

void codefile_close(struct codefile *code) {
    for (size_t i = 0; code->is_target != NULL && i < CODEFILE_SEGMENTS; i++) {
        free(code->is_target[i]);
    }
    if (code->cfi != NULL) {
        dwarf_cfi_end(code->cfi);
    }
    free(code->is_target);
    free(code->words);
    free(code->symbols);
    free(code->unnamed);
    free(code->frames);
    debugfile_close(&code->files[0]);
    debugfile_close(&code->files[1]);
    debugfile_free(&code->paths);
    *code = (struct codefile){0};
}
