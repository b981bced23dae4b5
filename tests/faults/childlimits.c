/* SPDX-License-Identifier: MIT */
/*
 * childlimits.c NAME: a forked child sets a limit (fsize, data, as, nofile) to nothing before it
 * allocates for the first time; what it may still do then it does. Ends with 3.
 */
#include "../programs/subjects/subject.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const char *name;
    int resource;
} limits[] = {
    {"fsize", RLIMIT_FSIZE}, {"data", RLIMIT_DATA}, {"as", RLIMIT_AS}, {"nofile", RLIMIT_NOFILE}};

int main(int argc, char **argv) {
    const struct rlimit none = {0, 0};
    int status = 0;
    pid_t child;
    keep(malloc(1000));
    child = fork();
    if (child == 0) {
        for (size_t i = 0; argc > 1 && i < sizeof limits / sizeof limits[0]; i++) {
            if (strcmp(argv[1], limits[i].name) == 0) {
                check(setrlimit(limits[i].resource, &none) == 0, "a limit");
            }
        }
        for (int i = 0; i < 10; i++) {
            keep(malloc(100));
        }
        _exit(5);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 5 ? 3 : 4;
}
