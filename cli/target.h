/* SPDX-License-Identifier: MIT */
/*
 * target.h: the program file that is to be profiled: where it is, for which machine, and whether a
 * preloaded library gets into it; and that library, found from where this command lies, by a path
 * that the loader takes.
 *
 * Called by cli/run, attach, allocators and flags.
 */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

#include <limits.h>
#include <stdbool.h>

/* The real path of a folder of this installation: of these (up to NULL), seen from where this
 * command lies, the first that holds the file. If none does, that ends the command. */
void target_need_folder(const char *const *folders, const char *file, char folder[PATH_MAX]);

/* Finds `name` as execvp does: along $PATH, or as it is if it has a slash. 0, or the exit status of
 * a shell in that case: 127 (no such command) or 126 (there, but not executable). */
int target_find(const char *name, char path[PATH_MAX]);

/*
 * A machine that the library can be built for, whose program `memtrace run` starts by an emulator
 * that was named (qemu-aarch64 ./app), or that the kernel starts for it (binfmt_misc). What is
 * profiled is the program, by the library of its machine; the emulator knows nothing of it.
 */
struct target_machine {
    const char *name;    /* "AArch64"; NULL: nothing of the kind is known */
    const char *triplet; /* "aarch64-linux-gnu" */
    const char *qemu;    /* "aarch64": the command is qemu-aarch64 */
    unsigned elf;        /* e_machine */
    bool is_by_name; /* the command is an emulator; else the program's file is of that machine */
};

/* That of another machine than this one. */
struct target_machine target_emulated(const char *path);
/* What runs without an emulator. */
struct target_machine target_this_machine(void);

/* NULL if a preloaded library gets in and what it writes can be read, or if that cannot be told;
 * else the reason as a phrase: "is statically linked". It stays until the next call. machine: whose
 * programs it is for. */
const char *target_obstacle(const char *path, unsigned machine);

/* Whether musl's loader loads this program, or the one that runs this script. */
bool target_is_of_musl(const char *path);

/* The folder of the library for another machine in this installation: `folder` is where it is or,
 * if false is returned, where it should be. */
bool target_library_folder(const char *triplet, char folder[PATH_MAX]);

/* The library for that machine and C library: `own` if it is given, else that of this installation
 * (of another machine than this one). 0, or -1 with one phrase in `problem`: "/x is not a library
 * for AArch64". */
enum { TARGET_PROBLEM = PATH_MAX + 128 };
int target_library(const struct target_machine *machine, bool is_musl, const char *own,
                   char path[PATH_MAX], char problem[TARGET_PROBLEM]);

/*
 * Finds the library beside this command, or the one that MEMTRACE_LIBRARY names: that for the C
 * library of this program (NULL: glibc). Sets `path` to what may stand in LD_PRELOAD: the library
 * itself or, where a folder's name has a character that the loader does not take there (a blank, a
 * colon, a dollar), the same file below a link to that folder. 0, or CLI_FAILURE with the line
 * printed.
 */
int target_preload(const char *program, char path[PATH_MAX]);
/* The same of this library. */
int target_preload_of(const char *library, char path[PATH_MAX]);

/*
 * All libraries of this installation, for each machine and C library one, as the runtime is told of
 * them: it preloads what fits into the programs that the first one starts
 * (runtime/process/exec_environment.c reads it). For this machine and C library it is the one that
 * the user named, or that was found for the program, as in LD_PRELOAD.
 * "x86_64=PATH:x86_64-musl=PATH:aarch64=PATH", this machine first; of the job.
 */
char *target_libraries(unsigned machine, bool is_musl, const char *preload);

#endif
