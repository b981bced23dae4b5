/* SPDX-License-Identifier: MIT */
/*
 * lowest.c: has no descriptor 0, the lowest, and looks all the time whether somebody else has it
 * for a moment: the program's next open() would not get it. Until SIGTERM; from time to time it
 * opens a file itself.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t is_over;

static void end(int number) {
    is_over = number;
}

int main(void) {
    long wrong = 0;
    signal(SIGTERM, end);
    puts("ready");
    fflush(stdout);
    close(0);
    while (!is_over) {
        for (int i = 0; i < 1000; i++) {
            wrong += fcntl(0, F_GETFD) != -1;
        }
        if (open("/dev/null", O_RDONLY) != 0) {
            wrong++;
        }
        close(0);
    }
    printf("%ld wrong\n", wrong);
    return 3;
}
