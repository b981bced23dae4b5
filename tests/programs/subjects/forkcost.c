/* SPDX-License-Identifier: MIT */
/*
 * forkcost.c: `forkcost PAIRS` forks a child that makes so many pairs of malloc and free and prints
 * how many pages were mapped for it: its page faults. They are counted alike on any machine, busy
 * or not.
 */
#include "subject.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

int main(int count, char **arguments) {
    long pairs = count > 1 ? atol(arguments[1]) : 1;
    int status;
    keep(malloc(10));
    if (fork() == 0) {
        struct rusage usage;
        char text[32];
        for (long i = 0; i < pairs; i++) {
            void *block = malloc(20);
            keep(block);
            free(block);
        }
        getrusage(RUSAGE_SELF, &usage);
        snprintf(text, sizeof text, "%ld\n", usage.ru_minflt);
        say(text);
        exit(0);
    }
    wait(&status);
    return 3;
}
