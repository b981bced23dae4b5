/* SPDX-License-Identifier: MIT */
/* outliving.c MILLISECONDS: a child goes on for so long when the program has ended. */
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments) {
    unsigned milliseconds = count > 1 ? (unsigned)strtoul(arguments[1], NULL, 10) : 0;
    char *volatile block = malloc(10001);
    if (fork() == 0) {
        block = malloc(20001);
        usleep(milliseconds * 1000);
        block = malloc(20002);
        return 0;
    }
    block = malloc(10003);
    return block == NULL;
}
