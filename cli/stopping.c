/* SPDX-License-Identifier: MIT */
/* stopping.c: see stopping.h. */
#include "cli/stopping.h"

volatile sig_atomic_t stopping_signal;

static void note(int signal) {
    stopping_signal = signal;
}

void stopping_catch(void) {
    const struct sigaction action = {.sa_handler = note};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
