/* SPDX-License-Identifier: MIT */
/* emulated.c: see emulated.h. */
#define _GNU_SOURCE
#include "cli/emulated.h"

#include "analyze/base/thismachine.h"
#include "cli/ownfolder.h"
#include "memtrace/emulator.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Those that runtime/machine knows. */
static const struct emulated machines[] = {
    {"AArch64", "aarch64-linux-gnu", "aarch64", EM_AARCH64, false},
    {"ARM", "arm-linux-gnueabihf", "arm", EM_ARM, false},
    {"MIPS64", "mips64el-linux-gnuabi64", "mips64el", EM_MIPS, false},
    {"RISC-V", "riscv64-linux-gnu", "riscv64", EM_RISCV, false},
    {"x86-64", "x86_64-linux-gnu", "x86_64", EM_X86_64, false}};

/* Whether a machine's programs are of this class: ARM's alone have 32 bits here. (The fields up to
 * the machine are alike in both.) */
static bool is_class_of(unsigned char class, unsigned machine) {
    return class == (machine == EM_ARM ? ELFCLASS32 : ELFCLASS64);
}

/* Of an ELF file; EM_NONE: it is none of a machine's own class, least significant byte first. */
static unsigned machine_of(const char *path) {
    Elf64_Ehdr header = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is_elf = fd >= 0 && pread(fd, &header, sizeof header, 0) == sizeof header &&
                  memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                  is_class_of(header.e_ident[EI_CLASS], header.e_machine) &&
                  header.e_ident[EI_DATA] == ELFDATA2LSB;
    if (fd >= 0) {
        close(fd);
    }
    return is_elf ? header.e_machine : EM_NONE;
}

struct emulated emulated_find(const char *path) {
    struct emulated none = {0};
    unsigned machine = machine_of(path);
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        struct emulated found = machines[i];
        if (found.elf_machine == thismachine()) {
            continue;
        }
        found.is_by_name = memtrace_emulated_by(path) != NULL &&
                           memtrace_emulated_by(path)->elf == found.elf_machine;
        if (found.is_by_name || machine == found.elf_machine) {
            return found;
        }
    }
    return none;
}

struct emulated emulated_not(void) {
    return (struct emulated){.machine = "this machine", .elf_machine = thismachine()};
}

bool emulated_folder(const char *triplet, char folder[PATH_MAX]) {
    static const char *const places[] = {MEMTRACE_LIBDIR, MEMTRACE_LIBDIR "/..", "../lib"};
    char base[PATH_MAX];
    char candidate[PATH_MAX + 256];
    ownfolder_find(base);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(candidate, sizeof candidate, "%s/%s/%s/libmemtrace.so", base, places[i], triplet);
        if (access(candidate, R_OK) == 0) {
            *strrchr(candidate, '/') = '\0';
            if (realpath(candidate, folder) != NULL) {
                return true;
            }
        }
    }
    snprintf(candidate, sizeof candidate, "%s/%s", base, MEMTRACE_LIBDIR);
    if (realpath(candidate, base) == NULL) {
        snprintf(base, sizeof base, "%.*s", PATH_MAX - 1, candidate);
    }
    snprintf(folder, PATH_MAX, "%.*s/%s", PATH_MAX - 64, base, triplet);
    return false;
}

/* False: `folder` is where it should be. */
static bool find_library(const struct emulated *emulated, bool is_musl, char folder[PATH_MAX],
                         char path[PATH_MAX]) {
    bool is_there = emulated_folder(emulated->triplet, folder);
    snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX - 32, folder,
             is_musl ? EMULATED_MUSL_LIBRARY : EMULATED_LIBRARY);
    return is_there && access(path, R_OK) == 0;
}

bool emulated_find_library(unsigned machine, bool is_musl, char path[PATH_MAX]) {
    char folder[PATH_MAX];
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        if (machines[i].elf_machine == machine) {
            return find_library(&machines[i], is_musl, folder, path);
        }
    }
    return false;
}

int emulated_library(const struct emulated *emulated, bool is_musl, const char *own,
                     char path[PATH_MAX], char problem[EMULATED_PROBLEM]) {
    char folder[PATH_MAX];
    problem[0] = '\0';
    if (own == NULL || own[0] == '\0') {
        if (!find_library(emulated, is_musl, folder, path)) {
            snprintf(problem, EMULATED_PROBLEM, "%s for %s is not in %s",
                     is_musl ? EMULATED_MUSL_LIBRARY : EMULATED_LIBRARY, emulated->machine, folder);
            return -1;
        }
    } else if (realpath(own, path) == NULL) {
        snprintf(problem, EMULATED_PROBLEM, "%s: %s", own, strerror(errno));
        return -1;
    }
    if (machine_of(path) != emulated->elf_machine) {
        snprintf(problem, EMULATED_PROBLEM, "%s is not a library for %s", path, emulated->machine);
        return -1;
    }
    return 0;
}

char *emulated_preload(const char *preload, const char *old) {
    char *value;
    bool has_old = old != NULL && old[0] != '\0';
    if (strchr(preload, ',') != NULL || asprintf(&value, "%s%sLD_PRELOAD=%s", has_old ? old : "",
                                                 has_old ? "," : "", preload) < 0) {
        return NULL;
    }
    return value;
}
