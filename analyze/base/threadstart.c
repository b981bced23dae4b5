/* SPDX-License-Identifier: MIT */
/* threadstart.c: see threadstart.h. */
#include "analyze/base/threadstart.h"

#include <signal.h>
#include <stddef.h>

int threadstart(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *argument),
                void *argument) {
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    sigset_t sent;
    sigset_t before;
    int result;
    sigfillset(&sent);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        sigdelset(&sent, own[i]);
    }
    pthread_sigmask(SIG_SETMASK, &sent, &before);
    result = pthread_create(thread, attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}
