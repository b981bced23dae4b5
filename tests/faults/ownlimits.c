/* SPDX-License-Identifier: MIT */
/* ownlimits.c WHO WHICH MIB: its memory is limited only when it runs, and it needs half of that.
 *   WHO    self: setrlimit; raw: the system call; other: says so and waits for who does it;
 *          fork: a child, light; grown: a child that has allocated much before
 *   WHICH  as, data
 * Says how many of the blocks it got, and how much address space and data it had before it began,
 * in MiB. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept;

static void *thread(void *argument) {
    kept = malloc(100);
    return argument;
}

static void limit(const char *who, int which, rlim_t bytes) {
    struct rlimit both = {bytes, bytes};
    if (strcmp(who, "raw") == 0) {
        syscall(SYS_prlimit64, 0, which, &both, NULL);
    } else if (strcmp(who, "other") == 0) {
        printf("ready %d\n", (int)getpid());
        fflush(stdout);
        getchar();
    } else {
        setrlimit(which, &both);
    }
}

static int work(const char *who, int which, int mebibytes) {
    enum { SMALL = 5000 };
    long size, resident, shared, text, library, data;
    FILE *file = fopen("/proc/self/statm", "r");
    int big = 0, small = 0, threads = 0;
    pthread_t id;
    if (fscanf(file, "%ld %ld %ld %ld %ld %ld", &size, &resident, &shared, &text, &library,
               &data) != 6) {
        return 9;
    }
    fclose(file);
    limit(who, which, (rlim_t)mebibytes << 20);
    for (int i = 0; i < mebibytes / 2; i++) {
        big += (kept = malloc(1 << 20)) != NULL;
    }
    for (int i = 0; i < SMALL; i++) {
        small += (kept = malloc((size_t)i % 900)) != NULL;
    }
    if (pthread_create(&id, NULL, thread, NULL) == 0) {
        pthread_join(id, NULL);
        threads = 1;
    }
    printf("%d of %d MiB, %d small, %d threads; before: %ld %ld\n", big, mebibytes / 2, small,
           threads, size >> 8, data >> 8);
    fflush(stdout);
    return 3;
}

int main(int argc, char **argv) {
    const char *who = argc > 3 ? argv[1] : "self";
    int which = argc > 3 && strcmp(argv[2], "as") == 0 ? RLIMIT_AS : RLIMIT_DATA;
    int mebibytes = argc > 3 ? atoi(argv[3]) : 256;
    int is_grown = strcmp(who, "grown") == 0;
    int status = 0;
    setvbuf(stdout, NULL, _IOLBF, 1000);
    if (!is_grown && strcmp(who, "fork") != 0) {
        return work(who, which, mebibytes);
    }
    if (fork() == 0) {
        for (int i = 0; is_grown && i < 60000; i++) {
            free(kept = malloc(100));
        }
        _exit(work("self", which, mebibytes));
    }
    wait(&status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 8;
}
