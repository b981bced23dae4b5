/* SPDX-License-Identifier: MIT */
/*
 * emulated.h: programs of other machines that `memtrace run` starts: by an emulator that was named
 * (qemu-aarch64 ./app), or by one that the kernel starts for them (binfmt_misc). What is profiled
 * is the program, by the library that was built for its machine; the emulator knows nothing of it.
 *
 * Called by cli/run, and by cli/flags for the library.
 */
#ifndef CLI_EMULATED_H
#define CLI_EMULATED_H

#include <limits.h>
#include <stdbool.h>

struct emulated {
    const char *machine; /* "AArch64"; NULL: nothing of the kind is known */
    const char *triplet; /* "aarch64-linux-gnu" */
    const char *qemu;    /* "aarch64": the command is qemu-aarch64 */
    unsigned elf_machine;
    bool is_by_name; /* the command is an emulator; else the program's file is of that machine */
};

/* What this command is. The machines are those that the library can be built for. */
struct emulated emulated_find(const char *path);
/* What runs without an emulator. */
struct emulated emulated_not(void);

/* The folder of the library for another machine in the installation of this command: `folder` is
 * where it is or, if false is returned, where it should be. */
bool emulated_folder(const char *triplet, char folder[PATH_MAX]);

/* How the files are named, on each machine. */
#define EMULATED_LIBRARY      "libmemtrace.so"
#define EMULATED_MUSL_LIBRARY "libmemtrace-musl.so"

/* The library for another machine in this installation. False: there is none. */
bool emulated_find_library(unsigned machine, bool is_musl, char path[PATH_MAX]);

/* The library for that machine and C library: `own` if it is given, else that of this installation.
 * 0, or -1 with one phrase in `problem`: "/x is not a library for AArch64". */
enum { EMULATED_PROBLEM = PATH_MAX + 128 };
int emulated_library(const struct emulated *emulated, bool is_musl, const char *own,
                     char path[PATH_MAX], char problem[EMULATED_PROBLEM]);

/* A value of QEMU_SET_ENV by which qemu sets LD_PRELOAD for its program, not for itself, besides
 * what `old` sets (NULL or empty: nothing). To be freed; NULL: out of memory, or a name has a
 * comma. */
char *emulated_preload(const char *preload, const char *old);

#endif
