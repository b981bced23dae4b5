/* SPDX-License-Identifier: MIT */
/*
 * lone.c: allocates once after a pause, and tells when; then a little every 50 ms until told by a
 * line on standard input to end. Run by lone.py.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *volatile kept;

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void tell_time(void) {
    struct timespec now;
    char line[32];
    clock_gettime(CLOCK_MONOTONIC, &now);
    write(STDOUT_FILENO, line,
          (size_t)snprintf(line, sizeof line, "%ld.%09ld\n", (long)now.tv_sec, now.tv_nsec));
}

int main(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char line[8];
    pause_ms(1500);
    kept = malloc(4321);
    tell_time();
    read(STDIN_FILENO, line, sizeof line);
    while (poll(&input, 1, 50) == 0) {
        kept = malloc(1);
    }
    return 0;
}
