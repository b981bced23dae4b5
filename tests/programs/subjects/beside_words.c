/* SPDX-License-Identifier: MIT */
/* Gives each way to start a program words that cannot be read, for which the kernel says EFAULT. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PAGE = 4096, PLACES = PAGE / sizeof(char *) };

static char no_words[] = "A=1";

static void tell(const char *call, const char *what, long result) {
    printf("%s, %s: %ld %s\n", call, what, result, errno != 0 ? strerror(errno) : "-");
    errno = 0;
}

static void try_all(const char *what, const char *path, char *const argv[], char *const envp[]) {
    char **kept = environ;
    FILE *stream;
    int status;
    pid_t pid;
    errno = 0;
    tell("execve", what, execve(path, argv, envp));
    tell("execveat", what, execveat(AT_FDCWD, path, argv, envp, 0));
    environ = (char **)envp;
    tell("execv", what, execv(path, argv));
    environ = kept;
    if (strncmp(what, "no argv", 7) != 0) { /* glibc's reads that array itself */
        tell("posix_spawn", what, posix_spawn(&pid, path, NULL, NULL, argv, envp));
    }
    environ = (char **)envp;
    status = system("exit 3");
    environ = kept;
    tell("system", what, status);
    environ = (char **)envp;
    stream = popen("exit 3", "r");
    environ = kept;
    tell("popen", what, stream == NULL ? -1 : pclose(stream));
}

int main(int argc, char **argv) {
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char **last = (char **)(void *)pages + PLACES - 2; /* of the first page: the second goes */
    char *end = pages + PAGE - 5;
    char *none[] = {NULL};
    char *plain[] = {argv[0], "again", NULL};
    char *bad[] = {no_words, (char *)8, NULL};
    char *unended[] = {end, NULL};
    if (argc > 1) {
        return 0;
    }
    setvbuf(stdout, NULL, _IONBF, 0);
    munmap(pages + PAGE, PAGE);
    last[0] = last[1] = no_words;
    try_all("no path", (char *)8, plain, environ);
    try_all("no argv", argv[0], (char **)8, environ);
    try_all("an argument", argv[0], bad, environ);
    try_all("no argv's end", argv[0], last, environ);
    try_all("no environment", argv[0], plain, (char **)8);
    try_all("a variable", argv[0], plain, bad);
    try_all("no end of the environment", argv[0], plain, last);
    memset(end, 'x', 5);
    try_all("no end of an argument", argv[0], unended, environ);
    try_all("no end of a variable", argv[0], plain, unended);
    try_all("no end of the path", end, plain, environ);
    tell("posix_spawn", "empty", posix_spawn(NULL, argv[0], NULL, NULL, plain, NULL));
    tell("wait", "empty", wait(NULL) > 0);
    environ = none;
    tell("system", "empty", system("exit 3"));
    environ = NULL;
    tell("system", "null", system("exit 3"));
    return 0;
}
