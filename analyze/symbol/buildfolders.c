/* SPDX-License-Identifier: MIT */
/* buildfolders.c: see buildfolders.h. */
#include "analyze/symbol/buildfolders.h"

#include "analyze/symbol/debugfile.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

static bool visit_units(Dwarf *dwarf, bool (*take)(void *context, const char *folder),
                        void *context) {
    const char *before = "";
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
        Dwarf_Attribute attribute;
        const char *folder = dwarf_formstring(dwarf_attr(&die, DW_AT_comp_dir, &attribute));
        if (folder != NULL && strcmp(folder, before) != 0) {
            if (take(context, folder)) {
                return true;
            }
            before = folder;
        }
    }
    return false;
}

bool buildfolders_visit(const struct symbol_module *module, const char *folders,
                        bool (*take)(void *context, const char *folder), void *context) {
    struct debugfile_paths paths;
    struct debugfile_elf file;
    bool result = false;
    if (debugfile_find(module, folders != NULL ? folders : "/usr/lib/debug", &paths) != 0) {
        return false;
    }
    if (paths.debug != NULL && debugfile_open(paths.debug, &file, NULL) == 0) {
        Dwarf *dwarf = dwarf_begin_elf(file.elf, DWARF_C_READ, NULL);
        result = dwarf != NULL && visit_units(dwarf, take, context);
        dwarf_end(dwarf);
        debugfile_close(&file);
    }
    debugfile_free(&paths);
    return result;
}
