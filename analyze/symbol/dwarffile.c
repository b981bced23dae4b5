/* SPDX-License-Identifier: MIT */
/* dwarffile.c: see dwarffile.h. */
#include "analyze/symbol/dwarffile.h"

#include "analyze/base/job.h"
#include "analyze/base/search.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Address ranges that may nest ---- */

void rangetable_add(struct rangetable *table, uint64_t low, uint64_t high, uint64_t value,
                    uint64_t rank) {
    if (low >= high) {
        return;
    }
    job_grow(&table->ranges, &table->room, table->count, sizeof *table->ranges);
    table->ranges[table->count++] =
        (struct range){.low = low, .high = high, .value = value, .rank = rank};
}

static int rangetable_compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int rangetable_compare(const void *left, const void *right) {
    const struct range *a = left, *b = right;
    if (a->low != b->low) {
        return rangetable_compare_numbers(a->low, b->low);
    }
    if (a->high != b->high) {
        return rangetable_compare_numbers(b->high, a->high);
    }
    if (a->rank != b->rank) {
        return rangetable_compare_numbers(b->rank, a->rank);
    }
    return rangetable_compare_numbers(b->value, a->value);
}

void rangetable_seal(struct rangetable *table) {
    if (table->count) {
        qsort(table->ranges, table->count, sizeof *table->ranges, rangetable_compare);
    }
    uint64_t reach = 0;
    for (size_t i = 0; i < table->count; i++) {
        if (table->ranges[i].high > reach) {
            reach = table->ranges[i].high;
        }
        table->ranges[i].reach = reach;
    }
}

const struct range *rangetable_find(const struct rangetable *table, uint64_t address,
                                    const struct range *last) {
    /* Ranges [0, below) start at or before the address. */
    size_t below = last ? (size_t)(last - table->ranges)
                        : search_to(table->ranges, table->count, sizeof *table->ranges,
                                    offsetof(struct range, low), address);
    while (below > 0 && table->ranges[below - 1].reach > address) {
        below--;
        if (table->ranges[below].high > address) {
            return &table->ranges[below];
        }
    }
    return NULL;
}

/* ---- A unit ---- */

/* How deep DIEs may nest before we stop following a damaged (cyclic) tree. */
enum { NESTING_LIMIT = 512 };

static void add_function(struct dwarfunit *unit, Dwarf_Die *die) {
    bool any = false;
    Dwarf_Addr base, low, high;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &low, &high)) > 0;) {
        /* Code the linker dropped is left behind at address 0 (or 1). */
        if (low <= 1) {
            continue;
        }
        rangetable_add(&unit->functions, low, high, unit->die_count, 0);
        any = true;
    }
    if (any) {
        job_grow(&unit->dies, &unit->die_room, unit->die_count, sizeof *unit->dies);
        unit->dies[unit->die_count++] = *die;
    }
}

static bool may_hold_functions(int tag, bool all) {
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
        return true;
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
    case DW_TAG_inlined_subroutine:
        return all;
    default:
        return false;
    }
}

static void add_functions(struct dwarfunit *unit, Dwarf_Die *parent, int depth) {
    Dwarf_Die die;
    int status = depth < NESTING_LIMIT ? dwarf_child(parent, &die) : 1;
    for (; status == 0; status = dwarf_siblingof(&die, &die)) {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_subprogram) {
            add_function(unit, &die);
        }
        if (may_hold_functions(tag, unit->all)) {
            add_functions(unit, &die, depth + 1);
        }
    }
}

/* Of a section of the program's file: what lies from the place on that the skeleton tells. */
static const void *skeleton_part(const struct dwarffile *file, const char *wanted, uint64_t from,
                                 size_t *size) {
    const Elf_Data *data = debugfile_section(file->image ? file->image : file->file.elf, wanted);
    *size = data && from <= data->d_size ? data->d_size - from : 0;
    return *size != 0 ? (const char *)data->d_buf + from : NULL;
}

static uint64_t die_number(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 ? value : 0;
}

/* 0, or -1: there is no package, or not this unit in it. */
static int find_in_package(const struct dwarffile *file, Dwarf_Die *die, uint64_t id,
                           struct dwarfunit *unit) {
    enum { GNU_MOST = 1 << 20, HEADER = 8, REST = 4 }; /* of addresses, in DWARF 5 */
    struct dwarfpackage_skeleton skeleton = {.id = id};
    Dwarf_Addr base = 0;
    size_t most = GNU_MOST;
    if (!file->package.file.elf) {
        return -1;
    }
    if (dwarf_lowpc(die, &base) == 0) {
        skeleton.base = base;
    }
    if (dwarf_hasattr(die, DW_AT_addr_base)) {
        uint64_t from = die_number(die, DW_AT_addr_base);
        skeleton.addresses = skeleton_part(file, ".debug_addr", from, &skeleton.addresses_size);
        if (skeleton.addresses && from >= HEADER) {
            uint32_t length;
            memcpy(&length, (const char *)skeleton.addresses - HEADER, sizeof length);
            most = length > REST ? length - REST : 0;
        }
    } else {
        skeleton.addresses = skeleton_part(
            file, ".debug_addr", die_number(die, DW_AT_GNU_addr_base), &skeleton.addresses_size);
        skeleton.ranges = skeleton_part(
            file, ".debug_ranges", die_number(die, DW_AT_GNU_ranges_base), &skeleton.ranges_size);
        if (skeleton.ranges_size > GNU_MOST) {
            skeleton.ranges_size = GNU_MOST;
        }
    }
    if (skeleton.addresses_size > most) {
        skeleton.addresses_size = most;
    }
    return dwarfpackage_unit(&file->package, &skeleton, &unit->piece, &unit->die);
}

static void dwarfunit_undo(void *piece) {
    dwarfpiece_free(piece);
}

/* `die` is the unit's DIE. */
static struct dwarfunit *load_unit(struct dwarffile *file, Dwarf_Die *die) {
    struct dwarfunit *unit = job_alloc(sizeof *unit);
    Dwarf_Attribute folder;
    uint8_t type;
    uint64_t id;
    Dwarf_Die split = {0};
    unit->lines_die = unit->die = *die;
    unit->folder = dwarf_formstring(dwarf_attr(die, DW_AT_comp_dir, &folder));
    job_undo(dwarfunit_undo, &unit->piece);
    if (dwarf_cu_info(die->cu, NULL, &type, NULL, &split, &id, NULL, NULL) == 0 &&
        type == DW_UT_skeleton) {
        if (split.cu) {
            unit->die = split;
        } else if (find_in_package(file, die, id, unit) != 0 && !file->missing[0]) {
            Dwarf_Attribute name;
            const char *text = dwarf_formstring(dwarf_attr(die, DW_AT_dwo_name, &name));
            text = text ? text : dwarf_formstring(dwarf_attr(die, DW_AT_GNU_dwo_name, &name));
            snprintf(file->missing, sizeof file->missing, "%s", text ? text : "a .dwo file");
        }
    }
    add_functions(unit, &unit->die, 0);
    rangetable_seal(&unit->functions);
    return unit;
}

/* Whether to look into this DIE for inlined calls at the address. */
static bool encloses(Dwarf_Die *die, int tag, uint64_t address) {
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block &&
        tag != DW_TAG_try_block && tag != DW_TAG_catch_block && tag != DW_TAG_with_stmt) {
        return false;
    }
    int inside = dwarf_haspc(die, address);
    if (inside > 0) {
        return true;
    }
    /* A block without addresses of its own covers what its parent covers. */
    return tag != DW_TAG_inlined_subroutine && !dwarf_hasattr(die, DW_AT_low_pc) &&
           !dwarf_hasattr(die, DW_AT_ranges);
}

/* Appends to the path the inlined calls at the address below parent, outermost first. */
static bool find_inlined(Dwarf_Die *parent, uint64_t address, int depth,
                         Dwarf_Die path[DWARFUNIT_DEPTH], int *count) {
    Dwarf_Die die;
    int status = depth < NESTING_LIMIT ? dwarf_child(parent, &die) : 1;
    for (; status == 0; status = dwarf_siblingof(&die, &die)) {
        int tag = dwarf_tag(&die);
        if (!encloses(&die, tag, address)) {
            continue;
        }
        bool inlined = tag == DW_TAG_inlined_subroutine;
        if (inlined && *count < DWARFUNIT_DEPTH) {
            path[(*count)++] = die;
        }
        if (find_inlined(&die, address, depth + 1, path, count) || inlined) {
            return true;
        }
    }
    return false;
}

int dwarfunit_functions(struct dwarfunit *unit, uint64_t address,
                        Dwarf_Die functions[DWARFUNIT_DEPTH]) {
    const struct range *range = rangetable_find(&unit->functions, address, NULL);
    if (!range && !unit->all) {
        /* Nested functions (GNU C, Ada, local classes) are rare and finding them costs a walk over
         * every DIE, so it is done only once an address in the unit has no function. */
        unit->functions.count = unit->die_count = 0;
        unit->all = true;
        add_functions(unit, &unit->die, 0);
        rangetable_seal(&unit->functions);
        range = rangetable_find(&unit->functions, address, NULL);
    }
    if (!range) {
        return 0;
    }
    int count = 0;
    functions[count++] = unit->dies[range->value];
    find_inlined(&unit->dies[range->value], address, 0, functions, &count);
    for (int i = 0; i < count / 2; i++) {
        Dwarf_Die outer = functions[i];
        functions[i] = functions[count - 1 - i];
        functions[count - 1 - i] = outer;
    }
    return count;
}

/* The row of .debug_line that covers the address: the last that starts at or before it, whether it
 * begins a statement (is_stmt) or not. Optimised code has several rows for one address (of an
 * inlined function its first line, then the line that made the instruction). Rows that begin a
 * statement say where a debugger should stop, only the last one belongs to the instruction: a row
 * before it may even be of another function than the one that .debug_info has there. NULL: none. */
static Dwarf_Line *unit_find_line(Dwarf_Lines *lines, size_t count, uint64_t address) {
    size_t below = 0, end = count;
    Dwarf_Addr start;
    while (below < end) {
        size_t middle = below + (end - below) / 2;
        if (dwarf_lineaddr(dwarf_onesrcline(lines, middle), &start) == 0 && start <= address) {
            below = middle + 1;
        } else {
            end = middle;
        }
    }
    bool sequence_end = true;
    Dwarf_Line *last = below ? dwarf_onesrcline(lines, below - 1) : NULL;
    if (!last || dwarf_lineendsequence(last, &sequence_end) != 0 || sequence_end) {
        return NULL;
    }
    return last;
}

struct dwarfunit_place dwarfunit_line(struct dwarfunit *unit, uint64_t address) {
    struct dwarfunit_place place = {0};
    Dwarf_Lines *lines;
    size_t count;
    if (dwarf_getsrclines(&unit->lines_die, &lines, &count) != 0) {
        return place;
    }
    Dwarf_Line *line = unit_find_line(lines, count, address);
    int number = 0, column = 0;
    if (!line || dwarf_lineno(line, &number) != 0) {
        return place;
    }
    dwarf_linecol(line, &column);
    place.file = dwarf_linesrc(line, NULL, NULL);
    place.line = (unsigned)number;
    place.column = (unsigned)column;
    return place;
}

struct dwarfunit_place dwarfunit_call(struct dwarfunit *unit, Dwarf_Die *inlined) {
    struct dwarfunit_place place = {
        .line = (unsigned)die_number(inlined, DW_AT_call_line),
        .column = (unsigned)die_number(inlined, DW_AT_call_column),
    };
    Dwarf_Files *files;
    size_t count;
    uint64_t file = die_number(inlined, DW_AT_call_file);
    /* DWARF 5 counts files from 0, earlier versions from 1 with 0 for "none". */
    bool known = dwarf_hasattr(inlined, DW_AT_call_file) &&
                 (dwarf_getsrcfiles(&unit->die, &files, &count) == 0 ||
                  dwarf_getsrcfiles(&unit->lines_die, &files, &count) == 0) &&
                 file < count;
    if (known) {
        place.file = dwarf_filesrc(files, file, NULL, NULL);
    }
    return place;
}

/* ---- A file ---- */

/* Finds the dwz file itself: libdw would look only beside the file and in /usr/lib/debug. */
static void open_alternate(struct dwarffile *file, const char *path, const char *folders,
                           char *problem, size_t problem_size) {
    const char *name;
    const void *build_id;
    ssize_t size = dwelf_dwarf_gnu_debugaltlink(file->dwarf, &name, &build_id);
    if (size <= 0) {
        return;
    }
    char *found =
        debugfile_find_alternate(name, build_id, (size_t)size, file->file.folder, folders);
    if (found && debugfile_open(found, &file->alternate_file, NULL) == 0) {
        file->alternate = dwarf_begin_elf(file->alternate_file.elf, DWARF_C_READ, NULL);
    }
    if (file->alternate) {
        dwarf_setalt(file->dwarf, file->alternate);
    } else {
        snprintf(problem, problem_size,
                 "%.240s needs %.200s, which is missing: some names are lost", path, name);
    }
    free(found);
}

int dwarffile_open(struct dwarffile *file, const char *path, const struct debugimage *image,
                   const char *folders, char *problem, size_t problem_size) {
    *file = (struct dwarffile){0};
    problem[0] = '\0';
    int descriptor;
    if (debugfile_open(path, &file->file, &descriptor) != 0) {
        snprintf(problem, problem_size, "%.400s: cannot be read", path);
        return -1;
    }
    /* libdw takes the folder for .dwo files from the descriptor. */
    file->image = image->bytes ? elf_memory(image->bytes, image->size) : NULL;
    file->dwarf = dwarf_begin_elf(file->image ? file->image : file->file.elf, DWARF_C_READ, NULL);
    elf_cntl(file->file.elf, ELF_C_FDREAD);
    close(descriptor);
    if (!file->dwarf) {
        /* A file by build-id may be there for its symbols alone. */
        if (debugfile_has_dwarf(file->file.elf)) {
            snprintf(problem, problem_size, "%.300s: debug information is damaged: %.100s", path,
                     dwarf_errmsg(-1));
        }
        if (file->image) {
            elf_end(file->image);
        }
        debugfile_close(&file->file);
        file->image = NULL;
        return -1;
    }
    open_alternate(file, path, folders, problem, problem_size);
    dwarfpackage_open(&file->package, path);
    return 0;
}

void dwarffile_close(struct dwarffile *file) {
    dwarfpackage_close(&file->package);
    if (file->dwarf) {
        dwarf_end(file->dwarf);
    }
    if (file->alternate) {
        dwarf_end(file->alternate);
    }
    if (file->image) {
        elf_end(file->image);
    }
    debugfile_close(&file->alternate_file);
    debugfile_close(&file->file);
    file->dwarf = file->alternate = NULL;
    file->image = NULL;
}

bool dwarffile_index(struct dwarffile *file, struct rangetable *units) {
    bool split = false;
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    uint8_t type;
    while (dwarf_get_units(file->dwarf, unit, &unit, NULL, &type, &die, NULL) == 0) {
        Dwarf_Addr base, low, high;
        ptrdiff_t next = 0;
        split |= type == DW_UT_skeleton;
        if (type != DW_UT_compile && type != DW_UT_skeleton) {
            continue;
        }
        while ((next = dwarf_ranges(&die, next, &base, &low, &high)) > 0) {
            if (low > 1) {
                rangetable_add(units, low, high, dwarf_dieoffset(&die), 0);
            }
        }
    }
    rangetable_seal(units);
    return split;
}

void dwarffile_try_split(struct dwarffile *file) {
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    uint8_t type = 0;
    Dwarf_Off offset = 0;
    while (type != DW_UT_skeleton &&
           dwarf_get_units(file->dwarf, unit, &unit, NULL, &type, &die, NULL) == 0) {
        offset = dwarf_dieoffset(&die);
    }
    if (type == DW_UT_skeleton) {
        dwarffile_unit(file, offset);
    }
}

struct dwarfunit *dwarffile_unit(struct dwarffile *file, uint64_t offset) {
    struct dwarfunit *unit = numbermap_get(&file->units, offset);
    Dwarf_Die die;
    if (!unit && dwarf_offdie(file->dwarf, offset, &die)) {
        unit = load_unit(file, &die);
        numbermap_set(&file->units, offset, unit);
    }
    return unit;
}

/* ---- Names of functions ---- */

enum { HOPS_LIMIT = 16 };

const char *dwarfname_linkage(Dwarf_Die *function) {
    Dwarf_Attribute attribute;
    const char *name =
        dwarf_formstring(dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));
    if (name) {
        return name;
    }
    return dwarf_formstring(dwarf_attr_integrate(function, DW_AT_MIPS_linkage_name, &attribute));
}

Dwarf_Die dwarfname_declaration(Dwarf_Die *function) {
    Dwarf_Die die = *function;
    for (int i = 0; i < HOPS_LIMIT; i++) {
        Dwarf_Attribute attribute;
        Dwarf_Die next;
        if (!dwarf_attr(&die, DW_AT_abstract_origin, &attribute) &&
            !dwarf_attr(&die, DW_AT_specification, &attribute)) {
            break;
        }
        if (!dwarf_formref_die(&attribute, &next)) {
            break;
        }
        die = next;
    }
    return die;
}

/* What a scope adds to the names in it; NULL: nothing. */
static const char *scope_name(Dwarf_Die *scope) {
    const char *name = dwarf_diename(scope);
    switch (dwarf_tag(scope)) {
    case DW_TAG_namespace:
    case DW_TAG_module:
        return name ? name : "(anonymous namespace)";
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
        return name; /* lambdas have none: gdb shows operator() */
    default:
        return NULL;
    }
}

/* The child of parent that is at the offset or contains it. DIEs lie in the order of the tree, so
 * it is the last one that starts there or before. */
static bool die_find_child(Dwarf_Die *parent, Dwarf_Off offset, Dwarf_Die *child) {
    Dwarf_Die next;
    if (dwarf_child(parent, &next) != 0) {
        return false;
    }
    int status = 0;
    bool found = false;
    while (status == 0 && dwarf_dieoffset(&next) <= offset) {
        *child = next;
        found = true;
        status = dwarf_siblingof(child, &next);
    }
    return found;
}

size_t dwarfname_qualified(Dwarf_Die *declaration, char *name, size_t size) {
    const char *own = dwarf_diename(declaration);
    Dwarf_Off offset = dwarf_dieoffset(declaration);
    Dwarf_Die scope, child;
    size_t used = 0;
    if (!own || !dwarf_diecu(declaration, &scope, NULL, NULL)) {
        return 0;
    }
    for (int depth = 0; depth < NESTING_LIMIT && die_find_child(&scope, offset, &child); depth++) {
        const char *part = dwarf_dieoffset(&child) < offset ? scope_name(&child) : NULL;
        if (part) {
            used += (size_t)snprintf(name + used, size - used, "%s::", part);
        }
        if (used >= size || dwarf_dieoffset(&child) == offset) {
            break;
        }
        scope = child;
    }
    if (used < size) {
        used += (size_t)snprintf(name + used, size - used, "%s", own);
    }
    return used < size ? used : 0;
}

/* ---- Symbol tables, as one sorted table of functions ---- */

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
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE) {
        return 0;
    }
    Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);
    if (!section || !gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR)) {
        return 0;
    }
    return header.sh_addr + header.sh_size;
}

struct table {
    struct symtab *symtab;
    Elf *elf;
};

static int symtab_add_symbol(void *context, const GElf_Sym *symbol, const char *name) {
    const struct table *table = context;
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
    /* Functions written in assembler often have neither type nor size. */
    bool label = type == STT_NOTYPE && GELF_ST_BIND(symbol->st_info) != STB_LOCAL;
    if ((!function && !label) || !name[0]) {
        return 0;
    }
    uint64_t end = code_end(table->elf, symbol);
    if (!end || symbol->st_value >= end) {
        return 0;
    }
    bool sized = symbol->st_size > 0;
    /* A symbol without size reaches up to the next one: see symtab_load. */
    rangetable_add(&table->symtab->functions, symbol->st_value,
                   sized ? symbol->st_value + symbol->st_size : end, (uintptr_t)name,
                   rank_of(symbol->st_info, name) | (sized ? 0 : UINT64_C(1) << 63));
    return 0;
}

/* Unpacks xz data. NULL: damaged. */
static void *unpack_xz(const Elf_Data *packed, size_t *size) {
    for (size_t room = packed->d_size * 4 + 4096; room <= EMBEDDED_LIMIT_BYTES; room *= 2) {
        uint8_t *bytes = job_array(room, 1);
        uint64_t memory = EMBEDDED_LIMIT_BYTES; /* a larger dictionary is damage, not want */
        size_t from = 0;
        *size = 0;
        lzma_ret status = lzma_stream_buffer_decode(&memory, 0, NULL, packed->d_buf, &from,
                                                    packed->d_size, bytes, size, room);
        if (status == LZMA_OK) {
            return bytes;
        }
        job_release(bytes);
        if (status == LZMA_MEM_ERROR) {
            job_fail_memory();
        }
        if (status != LZMA_BUF_ERROR) {
            break;
        }
    }
    return NULL;
}

static void symtab_add_tables(struct symtab *symtab, Elf *elf) {
    struct table table = {symtab, elf};
    GElf_Shdr header;
    const char *name;
    for (Elf_Scn *section = NULL;
         (section = debugfile_next_section(elf, section, &header, &name));) {
        if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) {
            debugfile_visit_symbols(elf, section, &header, symtab_add_symbol, &table);
        }
    }
}

static void symtab_add_embedded(struct symtab *symtab, Elf *elf) {
    Elf_Data *data = debugfile_section(elf, ".gnu_debugdata");
    size_t size;
    void *bytes = data && !symtab->embedded ? unpack_xz(data, &size) : NULL;
    symtab->embedded = bytes ? elf_memory(bytes, size) : symtab->embedded;
    if (bytes && symtab->embedded) {
        symtab_add_tables(symtab, symtab->embedded);
    }
}

void symtab_load(struct symtab *symtab, const struct debugfile_paths *paths) {
    struct rangetable *functions = &symtab->functions;
    uint64_t next = UINT64_MAX;
    const char *separate = paths->debug;
    if (separate && paths->object && strcmp(separate, paths->object) == 0) {
        separate = NULL;
    }
    const char *names[2] = {paths->object, separate};
    for (int i = 0; i < 2; i++) {
        if (names[i] && debugfile_open(names[i], &symtab->files[i], NULL) == 0) {
            symtab_add_tables(symtab, symtab->files[i].elf);
            symtab_add_embedded(symtab, symtab->files[i].elf);
        }
    }
    rangetable_seal(functions);
    /* Symbols without size end where the next symbol starts. */
    for (size_t i = functions->count; i-- > 0;) {
        struct range *range = &functions->ranges[i];
        if (i + 1 < functions->count && functions->ranges[i + 1].low > range->low) {
            next = functions->ranges[i + 1].low;
        }
        if (range->rank >> 63 && range->high > next) {
            range->high = next;
        }
    }
    rangetable_seal(functions);
}

const char *symtab_name(const struct symtab *symtab, uint64_t address) {
    const struct range *range = rangetable_find(&symtab->functions, address, NULL);
    return range ? (const char *)(uintptr_t)range->value : NULL;
}

void symtab_close(struct symtab *symtab) {
    if (symtab->embedded) {
        elf_end(symtab->embedded);
    }
    debugfile_close(&symtab->files[0]);
    debugfile_close(&symtab->files[1]);
    *symtab = (struct symtab){0};
}
