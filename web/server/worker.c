/* SPDX-License-Identifier: MIT */
/* worker.c: see worker.h. */
#include "web/server/worker.h"

#include "analyze/base/threadstart.h"

int worker_start(pthread_t *thread, const char *name, void *(*run)(void *argument),
                 void *argument) {
    int result = threadstart(thread, NULL, run, argument);
    if (result == 0) {
        pthread_setname_np(*thread, name);
    }
    return result == 0 ? 0 : -1;
}
