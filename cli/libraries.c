/* SPDX-License-Identifier: MIT */
/* libraries.c: see libraries.h. */
#include "cli/libraries.h"

#include "cli/emulated.h"
#include "cli/target.h"
#include "memtrace/emulator.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* One without a path says no more than which machine it is. */
static void add(FILE *out, const char *machine, bool is_musl, const char *path) {
    fprintf(out, "%s%s%s=%s", ftell(out) != 0 ? ":" : "", machine, is_musl ? "-musl" : "", path);
}

static void add_found(FILE *out, const struct memtrace_machine *machine, bool is_musl,
                      const struct libraries_own *own) {
    const unsigned here = emulated_not().elf_machine;
    char library[PATH_MAX];
    char path[PATH_MAX];
    if (own->machine == machine->elf && own->is_musl == is_musl) {
        add(out, machine->name, is_musl, own->preload);
    } else if (target_library(machine->elf, is_musl, library) &&
               preload_path_of(library, path) == 0) {
        add(out, machine->name, is_musl, path);
    } else if (machine->elf == here && !is_musl) {
        add(out, machine->name, is_musl, "");
    }
}

char *libraries_text(const struct libraries_own *own) {
    const unsigned here = emulated_not().elf_machine;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int round = 0; out != NULL && round < 2; round++) {
        for (size_t i = 0; i < MEMTRACE_MACHINES; i++) {
            if ((memtrace_machines[i].elf == here) == (round == 0)) {
                add_found(out, &memtrace_machines[i], false, own);
                add_found(out, &memtrace_machines[i], true, own);
            }
        }
    }
    if (out != NULL && fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}
