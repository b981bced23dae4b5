/* SPDX-License-Identifier: MIT */
/*
 * dwarfname.c: names of functions from their DIEs. See dwarfname.h.
 */
#include "analyze/symbol/dwarfname.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdio.h>

enum { HOPS_LIMIT = 16, NESTING_LIMIT = 512 };

const char *dwarfname_linkage(Dwarf_Die *function) {
    Dwarf_Attribute attribute;
    const char *name =
        dwarf_formstring(dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));
    if (name)
        return name;
    return dwarf_formstring(dwarf_attr_integrate(function, DW_AT_MIPS_linkage_name, &attribute));
}

Dwarf_Die dwarfname_declaration(Dwarf_Die *function) {
    Dwarf_Die die = *function;
    for (int i = 0; i < HOPS_LIMIT; i++) {
        Dwarf_Attribute attribute;
        Dwarf_Die next;
        if (!dwarf_attr(&die, DW_AT_abstract_origin, &attribute) &&
            !dwarf_attr(&die, DW_AT_specification, &attribute))
            break;
        if (!dwarf_formref_die(&attribute, &next))
            break;
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
static bool find_child(Dwarf_Die *parent, Dwarf_Off offset, Dwarf_Die *child) {
    Dwarf_Die next;
    if (dwarf_child(parent, &next) != 0)
        return false;
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
    if (!own || !dwarf_diecu(declaration, &scope, NULL, NULL))
        return 0;
    for (int depth = 0; depth < NESTING_LIMIT && find_child(&scope, offset, &child); depth++) {
        const char *part = dwarf_dieoffset(&child) < offset ? scope_name(&child) : NULL;
        if (part)
            used += (size_t)snprintf(name + used, size - used, "%s::", part);
        if (used >= size || dwarf_dieoffset(&child) == offset)
            break;
        scope = child;
    }
    if (used < size)
        used += (size_t)snprintf(name + used, size - used, "%s", own);
    return used < size ? used : 0;
}
