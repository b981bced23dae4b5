/* SPDX-License-Identifier: MIT */
/* allocarguments.c: see allocarguments.h. */
#include "collect/allocators/allocarguments.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

/* ---- Parameters ---- */

enum type_class { IS_NUMBER, IS_POINTER, IS_FLOATING, IS_UNKNOWN };

/* What an argument of this type is; the first two are in one register that counts. */
static enum type_class parameter_class(Dwarf_Die *parameter) {
    Dwarf_Attribute attribute;
    Dwarf_Die type;
    Dwarf_Word encoding = 0;
    if (dwarf_formref_die(dwarf_attr_integrate(parameter, DW_AT_type, &attribute), &type) == NULL ||
        dwarf_peel_type(&type, &type) != 0) {
        return IS_UNKNOWN;
    }
    switch (dwarf_tag(&type)) {
    case DW_TAG_enumeration_type:
        return IS_NUMBER;
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
        return IS_POINTER;
    case DW_TAG_base_type:
        if (dwarf_formudata(dwarf_attr(&type, DW_AT_encoding, &attribute), &encoding) != 0 ||
            dwarf_bytesize(&type) > 8) {
            return IS_UNKNOWN;
        }
        return encoding == DW_ATE_float ? IS_FLOATING : IS_NUMBER;
    default:
        return IS_UNKNOWN;
    }
}

/* What a function returns in memory takes a register before its arguments. */
static bool may_return_in_memory(Dwarf_Die *function) {
    Dwarf_Attribute attribute;
    return dwarf_attr_integrate(function, DW_AT_type, &attribute) != NULL &&
           parameter_class(function) == IS_UNKNOWN;
}

/* The assembler knows functions, but nothing of them. */
static bool is_assembler(Dwarf_Die *function) {
    Dwarf_Die unit;
    return dwarf_diecu(function, &unit, NULL, NULL) == NULL ||
           dwarf_srclang(&unit) == DW_LANG_Mips_Assembler;
}

struct parameters {
    struct parameter {
        enum type_class type;
        char name[64];
    } list[MEMTRACE_ALLOCATOR_NUMBERS];
    unsigned count;
    bool is_whole; /* there are no others */
};

static void read_parameters(struct parameters *parameters, Dwarf_Die *function) {
    Dwarf_Die child;
    *parameters = (struct parameters){.is_whole = true};
    if (is_assembler(function) || may_return_in_memory(function)) {
        parameters->is_whole = false;
        return;
    }
    for (int more = dwarf_child(function, &child); more == 0;
         more = dwarf_siblingof(&child, &child)) {
        enum type_class type;
        const char *name;
        if (dwarf_tag(&child) == DW_TAG_unspecified_parameters) {
            parameters->is_whole = false;
        }
        if (dwarf_tag(&child) != DW_TAG_formal_parameter) {
            continue;
        }
        type = parameter_class(&child);
        if (type == IS_UNKNOWN || parameters->count == MEMTRACE_ALLOCATOR_NUMBERS) {
            parameters->is_whole = false;
            return;
        }
        if (type != IS_FLOATING) {
            name = dwarf_diename(&child);
            parameters->list[parameters->count].type = type;
            snprintf(parameters->list[parameters->count++].name, sizeof parameters->list[0].name,
                     "%s", name != NULL ? name : "");
        }
    }
}

/* ---- What is said of them ---- */

static int parameters_check(const struct parameters *parameters, const char *what, unsigned number,
                            bool is_pointer, char why[ALLOCARGUMENTS_WHY]) {
    const struct parameter *parameter = &parameters->list[number != 0 ? number - 1 : 0];
    if (number == 0 || (number > parameters->count && !parameters->is_whole)) {
        return 0;
    }
    if (number > parameters->count) {
        snprintf(why, ALLOCARGUMENTS_WHY, "%s=%u: it has %u argument%s", what, number,
                 parameters->count, parameters->count == 1 ? "" : "s");
        return -1;
    }
    /* A pointer may be declared as a number. */
    if (!is_pointer && parameter->type == IS_POINTER) {
        snprintf(why, ALLOCARGUMENTS_WHY, "%s=%u: its argument %u (%s) is a pointer, not a number",
                 what, number, number, parameter->name);
        return -1;
    }
    return 0;
}

/* ---- The function ---- */

static bool allocarguments_open(struct allocarguments *arguments, const char *path) {
    const struct debugimage none = {0};
    char problem[512];
    if (!arguments->is_looked_for) {
        arguments->is_looked_for = true;
        arguments->is_there =
            path != NULL && dwarffile_open(&arguments->file, path, &none, "/usr/lib/debug", problem,
                                           sizeof problem) == 0;
        if (arguments->is_there) {
            dwarffile_index(&arguments->file, &arguments->units);
        }
    }
    return arguments->is_there;
}

/* The function that begins at the address, as it was declared: parameters and all. */
static bool find_function(struct allocarguments *arguments, uint64_t address, Dwarf_Die *function) {
    Dwarf_Die functions[DWARFUNIT_DEPTH];
    Dwarf_Attribute attribute;
    const struct range *range = rangetable_find(&arguments->units, address, NULL);
    struct dwarfunit *unit = range != NULL ? dwarffile_unit(&arguments->file, range->value) : NULL;
    int count = unit != NULL ? dwarfunit_functions(unit, address, functions) : 0;
    Dwarf_Addr entry;
    if (count <= 0 || dwarf_entrypc(&functions[count - 1], &entry) != 0 || entry != address) {
        return false;
    }
    *function = functions[count - 1];
    if (dwarf_attr(function, DW_AT_abstract_origin, &attribute) != NULL &&
        dwarf_formref_die(&attribute, function) == NULL) {
        return false;
    }
    return true;
}

struct checking {
    struct allocarguments *arguments;
    const char *path;
    uint64_t function;
    const struct allocspec *spec;
    char *why;
    int result;
};

static void allocarguments_check_in_job(void *what) {
    struct checking *checking = what;
    const struct memtrace_allocator_signature *said = &checking->spec->signature;
    struct allocarguments *arguments = checking->arguments;
    char *why = checking->why;
    struct parameters parameters;
    Dwarf_Die die;
    if (!allocarguments_open(arguments, checking->path) ||
        !find_function(arguments, checking->function, &die)) {
        return;
    }
    read_parameters(&parameters, &die);
    if (parameters_check(&parameters, "size", said->size, false, why) != 0 ||
        parameters_check(&parameters, "size", said->times, false, why) != 0 ||
        parameters_check(&parameters, "align", said->align, false, why) != 0 ||
        parameters_check(&parameters, "old", said->old_block, true, why) != 0 ||
        parameters_check(&parameters, "ptr", said->pointer, true, why) != 0) {
        checking->result = -1;
    }
}

int allocarguments_check(struct allocarguments *arguments, const char *path, uint64_t function,
                         const struct allocspec *spec, char why[ALLOCARGUMENTS_WHY]) {
    struct checking checking = {arguments, path, function, spec, why, 0};
    if (!arguments->has_failed &&
        job_run(allocarguments_check_in_job, &checking, &arguments->memory, NULL) != 0) {
        arguments->has_failed = true; /* what it had begun is gone */
    }
    return checking.result;
}

void allocarguments_close(struct allocarguments *arguments) {
    if (arguments->is_looked_for) {
        job_free(&arguments->memory);
        dwarffile_close(&arguments->file);
    }
    *arguments = (struct allocarguments){0};
}
