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
#include <unistd.h>

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
        usleep(20000); /* it may grow when the clock has moved */
        keep(malloc(20));
        getrusage(RUSAGE_SELF, &usage);
        snprintf(text, sizeof text, "%ld\n", usage.ru_minflt);
        say(text);
        exit(0);
    }
    wait(&status);
    return 3;
}
