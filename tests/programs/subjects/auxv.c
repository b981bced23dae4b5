/* SPDX-License-Identifier: MIT */
/* auxv.c: looks for the auxiliary vector behind the environment's NULL, as the ABI allows, in the
 * constructor of a library (AUXV_LIBRARY), in one of the program and in main, and compares it with
 * getauxval() and with what the kernel gave; prints the environment that each of the three sees. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

extern char **environ;

static const ElfW(auxv_t) * behind(char **envp) {
    while (*envp != NULL) {
        envp++;
    }
    return (const ElfW(auxv_t) *)(const void *)(envp + 1);
}

/* All entries of the kernel's, in its order; what is to be ignored left out. */
static const char *compare(const ElfW(auxv_t) * at) {
    static char bytes[8192];
    const ElfW(auxv_t) *kernel = (const ElfW(auxv_t) *)(const void *)bytes;
    int fd = open("/proc/self/auxv", O_RDONLY);
    if (fd < 0 || read(fd, bytes, sizeof bytes) <= 0) {
        return "WRONG: no /proc/self/auxv";
    }
    close(fd);
    for (int steps = 0; steps < 100; steps++, at++) {
        if (at->a_type == AT_IGNORE) {
            continue;
        }
        if (at->a_type != kernel->a_type || at->a_un.a_val != kernel->a_un.a_val) {
            return "WRONG: another auxiliary vector";
        }
        if (at->a_type == AT_NULL) {
            return "as the kernel made it";
        }
        /* (of AT_HWCAP glibc tells what it made of it) */
        if (at->a_type != AT_HWCAP && getauxval(at->a_type) != at->a_un.a_val) {
            return "WRONG: getauxval";
        }
        kernel++;
    }
    return "WRONG: no end";
}

static void look(const char *where, int argc, char **argv, char **envp) {
    printf("%s: auxv %s, argv %d, environ %d\n", where, compare(behind(envp)),
           argv[argc] == NULL && strcmp(argv[1], "argument") == 0, environ == envp);
    for (char **at = envp; *at != NULL; at++) {
        printf("%s %s\n", where, *at);
    }
}

#if defined(AUXV_LIBRARY)
static int count;
static char **arguments;

__attribute__((constructor)) static void construct(int argc, char **argv) {
    count = argc;
    arguments = argv;
}

/* Later, as a runtime that is started by main: the environment by its place behind argv. */
void look_by_argv(void);
void look_by_argv(void) {
    look("by argv", count, arguments, arguments + count + 1);
}
#else
void look_by_argv(void);

__attribute__((constructor)) static void construct(int argc, char **argv, char **envp) {
    look("constructor", argc, argv, envp);
}

int main(int argc, char **argv, char **envp) {
    look("main", argc, argv, envp);
    look_by_argv();
    setenv("ANOTHER", "1", 1);
    unsetenv("KEPT");
    for (char **at = environ; *at != NULL; at++) {
        printf("changed %s\n", *at);
    }
    clearenv();
    return getenv("ANOTHER") == NULL ? 3 : 4;
}
#endif
