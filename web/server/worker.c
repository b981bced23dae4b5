/* SPDX-License-Identifier: MIT */
/* worker.c: see worker.h. */
#include "web/server/worker.h"

#include <signal.h>

int worker_start(pthread_t *thread, const char *name, void *(*run)(void *argument),
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
    result = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0) {
        pthread_setname_np(*thread, name);
    }
    return result == 0 ? 0 : -1;
}
