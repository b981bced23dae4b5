/* SPDX-License-Identifier: MIT */
/*
 * resident.c: touches 100 MiB for a moment that no sampling sees, and says what the kernel counted.
 * With an argument it is killed when the collector has had time to look. Run by resident.py.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SIZE = 100 << 20 };

int main(int argc, char **argv) {
    char *block = malloc(SIZE);
    struct rusage usage;
    (void)argv;
    memset(block, 1, SIZE);
    free(block);
    getrusage(RUSAGE_SELF, &usage);
    printf("%ld\n", usage.ru_maxrss);
    fflush(stdout);
    if (argc > 1) {
        sleep(2);
        kill(getpid(), SIGKILL);
    }
    return 0;
}
