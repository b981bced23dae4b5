/* SPDX-License-Identifier: MIT */
/*
 * mixed.c [WAY WORDS...]: allocates a known number of times, then starts WORDS in one of the ways
 * that there are, and ends as that ended; without WORDS with status 7. "env": prints its
 * environment before. For mixed.py.
 */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile block;

__attribute__((noinline, noclone)) void take(void) {
    for (int i = 0; i < 100; i++) {
        block = malloc(123);
        free(block);
    }
}

static void print_environment(void) {
    for (char **at = environ; *at != NULL; at++) {
        puts(*at);
    }
}

static int wait_for(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

static int start(const char *way, char **words) {
    char command[4096] = "";
    pid_t child = 0;
    FILE *pipe;
    for (char **word = words; *word != NULL; word++) {
        strcat(strcat(command, *word), " ");
    }
    if (strcmp(way, "exec") == 0) {
        execvp(words[0], words);
    } else if (strcmp(way, "fork") == 0) {
        child = fork();
        if (child == 0) {
            execv(words[0], words);
            _exit(9);
        }
        return wait_for(child);
    } else if (strcmp(way, "bare") == 0) { /* an environment of its own */
        char *none[] = {NULL};
        return posix_spawn(&child, words[0], NULL, NULL, words, none) == 0 ? wait_for(child) : -1;
    } else if (strcmp(way, "spawn") == 0) {
        return posix_spawnp(&child, words[0], NULL, NULL, words, environ) == 0 ? wait_for(child)
                                                                               : -1;
    } else if (strcmp(way, "system") == 0) {
        return system(command);
    } else if (strcmp(way, "popen") == 0) {
        pipe = popen(command, "r");
        return pipe != NULL ? pclose(pipe) : -1;
    }
    return -1;
}

int main(int count, char **arguments) {
    int status;
    take();
    if (count > 1 && strcmp(arguments[1], "env") == 0) {
        print_environment();
        return 7;
    }
    if (count < 3) {
        return 7;
    }
    status = start(arguments[1], arguments + 2);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 8;
}
