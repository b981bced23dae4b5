/* SPDX-License-Identifier: MIT */
/*
 * resident.c: touches 100 MiB for a moment that no sampling sees, and says what the kernel counted.
 * "small": it holds so many small blocks that MemTrace needs memory of its own, and says what is
 * resident then. "killed": it is, when the collector has had time to look. Run by resident.py.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SIZE = 100 << 20 };

/* KiB that are resident then. */
static long hold_small(void) {
    FILE *statm;
    long pages = 0;
    for (int i = 0; i < 1 << 20; i++) {
        *(volatile char *)malloc(40) = 1;
    }
    statm = fopen("/proc/self/statm", "r");
    if (statm == NULL || fscanf(statm, "%*d %ld", &pages) != 1) {
        perror("statm");
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static long touch_for_a_moment(void) {
    char *block = malloc(SIZE);
    struct rusage usage;
    memset(block, 1, SIZE);
    free(block);
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

int main(int argc, char **argv) {
    int is_small = argc > 1 && strcmp(argv[1], "small") == 0;
    printf("%ld\n", is_small ? hold_small() : touch_for_a_moment());
    fflush(stdout);
    if (argc > 1 && strcmp(argv[argc - 1], "killed") == 0) {
        sleep(2);
        kill(getpid(), SIGKILL);
    }
    return 0;
}
