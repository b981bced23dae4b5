/* SPDX-License-Identifier: MIT */
/*
 * emulator.h: qemu's emulation of user space, and the machines whose programs it may be asked to
 * run: those that the library can be built for. For the runtime (what an exec starts) and for the
 * command (what the user starts). No library is needed.
 */
#ifndef MEMTRACE_EMULATOR_H
#define MEMTRACE_EMULATOR_H

#include <elf.h>
#include <stddef.h>

struct memtrace_machine {
    const char *name; /* as qemu has it: the command is qemu-NAME */
    unsigned elf;     /* e_machine */
};

static const struct memtrace_machine memtrace_machines[] = {
    {"x86_64", EM_X86_64}, {"aarch64", EM_AARCH64}, {"mips64el", EM_MIPS}, {"riscv64", EM_RISCV}};
enum { MEMTRACE_MACHINES = sizeof memtrace_machines / sizeof memtrace_machines[0] };

/* Behind the prefix; NULL: the text begins otherwise. */
static inline const char *memtrace_behind(const char *text, const char *prefix) {
    while (*prefix != '\0' && *text == *prefix) {
        text++;
        prefix++;
    }
    return *prefix == '\0' ? text : NULL;
}

/* The machine that this command emulates: "qemu-aarch64", "qemu-aarch64-static"; NULL: none. */
static inline const struct memtrace_machine *memtrace_emulated_by(const char *path) {
    const char *name = path;
    for (const char *at = path; *at != '\0'; at++) {
        name = *at == '/' ? at + 1 : name;
    }
    name = memtrace_behind(name, "qemu-");
    for (size_t i = 0; name != NULL && i < MEMTRACE_MACHINES; i++) {
        const char *rest = memtrace_behind(name, memtrace_machines[i].name);
        const char *end = rest != NULL ? memtrace_behind(rest, "-static") : NULL;
        if (rest != NULL && (*rest == '\0' || (end != NULL && *end == '\0'))) {
            return &memtrace_machines[i];
        }
    }
    return NULL;
}

/* Whether an option of qemu's has no value; of all others that is the next word. */
static inline int memtrace_is_alone(const char *option) {
    static const char *const alone[] = {"-h",      "-help",   "-singlestep", "-one-insn-per-tb",
                                        "-strace", "-version"};
    option += option[0] == '-' && option[1] == '-';
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
        const char *rest = memtrace_behind(option, alone[i]);
        if (rest != NULL && *rest == '\0') {
            return 1;
        }
    }
    return 0;
}

/* Of an emulator's words, from its own name on: its program's; NULL: none is among them. */
static inline const char *memtrace_emulated_program(char *const argv[]) {
    if (argv[0] == NULL) {
        return NULL;
    }
    for (argv++; *argv != NULL && (*argv)[0] == '-'; argv++) {
        if (!memtrace_is_alone(*argv) && *++argv == NULL) {
            break;
        }
    }
    return *argv;
}

#endif
