/* SPDX-License-Identifier: MIT */
/* locked.c FLAGS: mlockall(FLAGS) under a limit of 8 MiB, 2,000 blocks and a mapping; says how that
 * went, and how many KiB are locked and resident. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void *volatile kept;

int main(int argc, char **argv) {
    struct rlimit limit = {8 << 20, 8 << 20};
    char line[200];
    int got = 0;
    int failed;
    int early;
    FILE *file;
    setrlimit(RLIMIT_MEMLOCK, &limit);
    failed = mlockall(argc > 1 ? atoi(argv[1]) : MCL_CURRENT | MCL_FUTURE);
    for (int i = 0; i < 2000; i++) {
        got += (kept = malloc((size_t)i * 17 % 900 + 1)) != NULL;
    }
    got += mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED;
    file = fopen("/proc/self/status", "r");
    printf("%d %d", failed, got);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmLck", 5) == 0 || strncmp(line, "VmRSS", 5) == 0) {
            printf(" %ld", atol(line + 6));
        }
    }
    early = mlockall(64) != -1 || munlockall() != 0;
    printf(" %d\n", early);
    return 3;
}
