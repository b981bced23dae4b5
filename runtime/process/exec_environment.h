/* SPDX-License-Identifier: MIT */
/*
 * exec_environment.h: the environment that a program gets from an exec or a spawn of ours.
 *
 * The program under us sees none of our variables: they are taken out before its main. Where
 * children are followed they are put back here, into a copy of what it hands to exec, with the
 * library for the new program's machine and C library (of MEMTRACE_LIBRARIES, which `memtrace run`
 * sets). Where there is none the program gets nothing of ours, and the region counts it.
 *
 * Who preloads the library by hand keeps the variables that do it; there only the number of the run
 * is handed on.
 */
#ifndef RUNTIME_PROCESS_EXEC_ENVIRONMENT_H
#define RUNTIME_PROCESS_EXEC_ENVIRONMENT_H

#include <stddef.h>

/* Keeps a variable, "NAME=value", that is about to be taken out: `length` bytes of it are ours.
 * At start only. */
void exec_keep(const char *entry, size_t length);
/* Whether there are any: from the program's main on it stays so. */
int exec_has_variables(void);

/* Whether LD_PRELOAD names our library. */
int exec_is_preloaded(char *const envp[]);

/* Whether what is mapped here would stay with the parent. */
int exec_is_vfork_child(void);

/* What a program is started with. */
struct exec_call {
    const char *program; /* NULL: not known */
    char *const *argv;   /* NULL: not known, or of no interest */
    char *const *envp;   /* what it is to get */
    int by_name;         /* looked for in $PATH, as execvp does */
    int replaces;        /* the process itself becomes it */
};

/* How many bytes the environment of such a call may need; 0: nothing is to be done. Signal-safe,
 * and safe in a child of vfork, as is the next: nothing is written to the program's memory. */
size_t exec_room(const struct exec_call *call);

/* Returns what to give to exec: call->envp itself where nothing is to be done, or where the kernel
 * is to refuse what cannot be read; else an array in `room`, of exec_room() bytes (NULL: none). */
char *const *exec_environment(const struct exec_call *call, char *room, size_t size);

/* --- exec_target.c: which library a program can run with -------------------------------------- */

enum exec_kind {
    EXEC_UNTOLD = 0,  /* that cannot be told */
    EXEC_LOADED,      /* a loader puts it together */
    EXEC_STATIC,      /* nothing is preloaded */
    EXEC_STATIC_OURS, /* nor need be: it holds the runtime */
    EXEC_UNFIT_LIBC,  /* a loader that no library of ours is made for */
    EXEC_UNFIT_WORDS, /* 32 bits, or the most significant byte first */
    EXEC_UNFIT_ORDER  /* a sanitizer's library must come first */
};

struct exec_target {
    enum exec_kind kind;
    unsigned machine; /* of its ELF header */
    int is_musl;
};

/* Of the program that this file is or, of a script, of the one that runs it; of an emulator's words
 * the program that it runs. Signal-safe, allocates nothing. */
struct exec_target exec_target_look(const char *path, char *const argv[]);

#endif
