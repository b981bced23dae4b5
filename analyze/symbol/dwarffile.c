/* SPDX-License-Identifier: MIT */
/*
 * dwarffile.c: one libdw handle. See dwarffile.h.
 */
#include "analyze/symbol/dwarffile.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Finds the dwz file itself: libdw would look only beside the file and in /usr/lib/debug. */
static void open_alternate(struct dwarffile *file, const char *path, const char *folders,
                           char *problem, size_t problem_size) {
    const char *name;
    const void *build_id;
    ssize_t size = dwelf_dwarf_gnu_debugaltlink(file->dwarf, &name, &build_id);
    if (size <= 0)
        return;
    char *found =
        debugfile_find_alternate(name, build_id, (size_t)size, file->file.folder, folders);
    if (found && debugfile_open(found, &file->alternate_file, NULL) == 0)
        file->alternate = dwarf_begin_elf(file->alternate_file.elf, DWARF_C_READ, NULL);
    if (file->alternate)
        dwarf_setalt(file->dwarf, file->alternate);
    else
        snprintf(problem, problem_size,
                 "%.240s needs %.200s, which is missing: some names are lost", path, name);
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
        if (debugfile_has_dwarf(file->file.elf))
            snprintf(problem, problem_size, "%.300s: debug information is damaged: %.100s", path,
                     dwarf_errmsg(-1));
        if (file->image)
            elf_end(file->image);
        debugfile_close(&file->file);
        file->image = NULL;
        return -1;
    }
    open_alternate(file, path, folders, problem, problem_size);
    return 0;
}

void dwarffile_close(struct dwarffile *file) {
    for (size_t i = 0; i < file->units.places; i++) {
        struct dwarfunit *unit = file->units.entries[i].value;
        if (unit)
            dwarfunit_free(unit);
        free(unit);
    }
    numbermap_free(&file->units);
    if (file->dwarf)
        dwarf_end(file->dwarf);
    if (file->alternate)
        dwarf_end(file->alternate);
    if (file->image)
        elf_end(file->image);
    debugfile_close(&file->alternate_file);
    debugfile_close(&file->file);
    file->dwarf = file->alternate = NULL;
    file->image = NULL;
}

static int add_unit(Dwarf_Die *die, struct rangetable *units) {
    Dwarf_Addr base, low, high;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &low, &high)) > 0;)
        if (low > 1 && rangetable_add(units, low, high, dwarf_dieoffset(die), 0) != 0)
            return -1;
    return 0;
}

int dwarffile_index(struct dwarffile *file, struct rangetable *units, bool *split) {
    int status = 0;
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    uint8_t type;
    while (status == 0 && dwarf_get_units(file->dwarf, unit, &unit, NULL, &type, &die, NULL) == 0) {
        *split |= type == DW_UT_skeleton;
        if (type == DW_UT_compile || type == DW_UT_skeleton)
            status = add_unit(&die, units);
    }
    rangetable_seal(units);
    return status;
}

struct dwarfunit *dwarffile_unit(struct dwarffile *file, uint64_t offset) {
    struct dwarfunit *unit = numbermap_get(&file->units, offset);
    Dwarf_Die die;
    if (unit || !dwarf_offdie(file->dwarf, offset, &die))
        return unit;
    unit = malloc(sizeof *unit);
    if (!unit)
        return NULL;
    if (dwarfunit_load(unit, &die) == 0 && numbermap_put(&file->units, offset, unit) == 0)
        return unit;
    dwarfunit_free(unit);
    free(unit);
    return NULL;
}
