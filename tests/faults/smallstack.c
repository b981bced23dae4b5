/* SPDX-License-Identifier: MIT */
/* smallstack.c: other programs started from small stacks: by a handler on an alternate stack of a
 * little more than a handler needs, and by a thread of 64 KiB with 20,000 variables. Ends with 3.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

enum { VARIABLES = 20000, HANDLER_BYTES = 4608, USUAL_BYTES = 8192, ROOM = 1 << 20 };

static char texts[VARIABLES][16];
static char *variables[VARIABLES + 1];
static volatile int handled;

static int starts(char **environment) {
    char *const words[] = {"true", NULL};
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        if (environment != NULL) {
            execve("/bin/true", words, environment);
        }
        execv("/bin/true", words);
        _exit(9);
    }
    waitpid(child, &status, 0);
    return status == 0;
}

static void handle(int number) {
    (void)number;
    handled = starts(NULL);
}

static void *run(void *argument) {
    *(int *)argument = starts(variables);
    return NULL;
}

int main(void) {
    unsigned long least = getauxval(AT_MINSIGSTKSZ) + HANDLER_BYTES;
    unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
    unsigned long size = least > USUAL_BYTES ? least : USUAL_BYTES;
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    char *room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *low = room + ROOM / 2;
    stack_t stack = {.ss_sp = low, .ss_size = size};
    pthread_attr_t attributes;
    pthread_t thread;
    int started = 0;
    mprotect(low, (size + page - 1) / page * page, PROT_READ | PROT_WRITE);
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    for (int i = 0; i < VARIABLES; i++) {
        snprintf(texts[i], sizeof texts[i], "V%d=1", i);
        variables[i] = texts[i];
    }
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    pthread_create(&thread, &attributes, run, &started);
    pthread_join(thread, NULL);
    printf("%d %d\n", handled, started);
    return 3;
}
