/* SPDX-License-Identifier: MIT */
/*
 * dwarfunit.c: functions, inlined calls and lines of one compilation unit. See dwarfunit.h.
 */
#include "analyze/symbol/dwarfunit.h"

#include <dwarf.h>
#include <stdlib.h>

/* How deep DIEs may nest before we stop following a damaged (cyclic) tree. */
enum { NESTING_LIMIT = 512 };

static int add_function(struct dwarfunit *unit, Dwarf_Die *die) {
    if (unit->die_count == unit->die_room) {
        size_t room = unit->die_room ? unit->die_room * 2 : 64;
        Dwarf_Die *dies = realloc(unit->dies, room * sizeof *dies);
        if (!dies)
            return -1;
        unit->dies = dies;
        unit->die_room = room;
    }
    bool any = false;
    Dwarf_Addr base, low, high;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &low, &high)) > 0;) {
        /* Code the linker dropped is left behind at address 0 (or 1). */
        if (low <= 1)
            continue;
        if (rangetable_add(&unit->functions, low, high, unit->die_count, 0) != 0)
            return -1;
        any = true;
    }
    if (any)
        unit->dies[unit->die_count++] = *die;
    return 0;
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

static int add_functions(struct dwarfunit *unit, Dwarf_Die *parent, int depth) {
    Dwarf_Die die;
    int status = depth < NESTING_LIMIT ? dwarf_child(parent, &die) : 1;
    while (status == 0) {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_subprogram && add_function(unit, &die) != 0)
            return -1;
        if (may_hold_functions(tag, unit->all) && add_functions(unit, &die, depth + 1) != 0)
            return -1;
        status = dwarf_siblingof(&die, &die);
    }
    return 0;
}

int dwarfunit_load(struct dwarfunit *unit, Dwarf_Die *die) {
    Dwarf_Attribute folder;
    *unit = (struct dwarfunit){
        .lines_die = *die,
        .die = *die,
        .folder = dwarf_formstring(dwarf_attr(die, DW_AT_comp_dir, &folder)),
    };
    uint8_t type;
    Dwarf_Die split = {0};
    if (dwarf_cu_info(die->cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 &&
        type == DW_UT_skeleton && split.cu)
        unit->die = split;
    int status = add_functions(unit, &unit->die, 0);
    rangetable_seal(&unit->functions);
    return status;
}

void dwarfunit_free(struct dwarfunit *unit) {
    rangetable_free(&unit->functions);
    free(unit->dies);
}

/* Nested functions (GNU C, Ada, local classes) are rare and finding them costs a walk over every
 * DIE, so it is done only once an address in the unit has no function. */
static int add_nested_functions(struct dwarfunit *unit) {
    rangetable_free(&unit->functions);
    unit->die_count = 0;
    unit->all = true;
    int status = add_functions(unit, &unit->die, 0);
    rangetable_seal(&unit->functions);
    return status;
}

/* Whether to look into this DIE for inlined calls at the address. */
static bool encloses(Dwarf_Die *die, int tag, uint64_t address) {
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block &&
        tag != DW_TAG_try_block && tag != DW_TAG_catch_block && tag != DW_TAG_with_stmt)
        return false;
    int inside = dwarf_haspc(die, address);
    if (inside > 0)
        return true;
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
        if (!encloses(&die, tag, address))
            continue;
        bool inlined = tag == DW_TAG_inlined_subroutine;
        if (inlined && *count < DWARFUNIT_DEPTH)
            path[(*count)++] = die;
        if (find_inlined(&die, address, depth + 1, path, count) || inlined)
            return true;
    }
    return false;
}

int dwarfunit_functions(struct dwarfunit *unit, uint64_t address,
                        Dwarf_Die functions[DWARFUNIT_DEPTH]) {
    const struct range *range = rangetable_find(&unit->functions, address, NULL);
    if (!range && !unit->all) {
        if (add_nested_functions(unit) != 0)
            return -1;
        range = rangetable_find(&unit->functions, address, NULL);
    }
    if (!range)
        return 0;
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
static Dwarf_Line *find_line(Dwarf_Lines *lines, size_t count, uint64_t address) {
    size_t below = 0, end = count;
    Dwarf_Addr start;
    while (below < end) {
        size_t middle = below + (end - below) / 2;
        if (dwarf_lineaddr(dwarf_onesrcline(lines, middle), &start) == 0 && start <= address)
            below = middle + 1;
        else
            end = middle;
    }
    bool sequence_end = true;
    Dwarf_Line *last = below ? dwarf_onesrcline(lines, below - 1) : NULL;
    if (!last || dwarf_lineendsequence(last, &sequence_end) != 0 || sequence_end)
        return NULL;
    return last;
}

struct dwarfunit_place dwarfunit_line(struct dwarfunit *unit, uint64_t address) {
    struct dwarfunit_place place = {0};
    Dwarf_Lines *lines;
    size_t count;
    if (dwarf_getsrclines(&unit->lines_die, &lines, &count) != 0)
        return place;
    Dwarf_Line *line = find_line(lines, count, address);
    int number = 0, column = 0;
    if (!line || dwarf_lineno(line, &number) != 0)
        return place;
    dwarf_linecol(line, &column);
    place.file = dwarf_linesrc(line, NULL, NULL);
    place.line = (unsigned)number;
    place.column = (unsigned)column;
    return place;
}

static uint64_t number_of(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 ? value : 0;
}

struct dwarfunit_place dwarfunit_call(struct dwarfunit *unit, Dwarf_Die *inlined) {
    struct dwarfunit_place place = {
        .line = (unsigned)number_of(inlined, DW_AT_call_line),
        .column = (unsigned)number_of(inlined, DW_AT_call_column),
    };
    Dwarf_Files *files;
    size_t count;
    uint64_t file = number_of(inlined, DW_AT_call_file);
    /* DWARF 5 counts files from 0, earlier versions from 1 with 0 for "none". */
    bool known = dwarf_hasattr(inlined, DW_AT_call_file) &&
                 dwarf_getsrcfiles(&unit->die, &files, &count) == 0 && file < count;
    if (known)
        place.file = dwarf_filesrc(files, file, NULL, NULL);
    return place;
}
