/* SPDX-License-Identifier: MIT */
/* together.c: three programs hold a block of 1,000,000 bytes each until the standard input ends,
 * which the first one had before them. None of them has a second thread. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments) {
    char *volatile block = NULL;
    char byte;
    if (count > 1) {
        block = malloc(1000000);
        while (read(STDIN_FILENO, &byte, 1) > 0) {
        }
        free(block);
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            execl(arguments[0], arguments[0], "holds", (char *)NULL);
            _exit(1);
        }
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}
