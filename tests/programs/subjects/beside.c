/* SPDX-License-Identifier: MIT */
/* beside.c CASE: what a program, or a library that it brings, does where we are: see beside.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- clock: events at many interrupts of the timer, and asks for the time in between
 * -------------- */

static int run_clock(void) {
    struct timespec now;
    for (int i = 0; i < 60; i++) {
        clock_gettime(CLOCK_REALTIME, &now);
        free(malloc(10 + i));
        usleep(2000);
    }
    printf("another time: %d\n", now.tv_sec < 1000000000);
    return 0;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {{"clock", run_clock}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
            return cases[i].run();
        }
    }
    return 2;
}
