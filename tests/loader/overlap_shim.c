/* SPDX-License-Identifier: MIT */
/*
 * overlap_shim.c: comes between MemTrace and the loader. Once it is armed, a dlopen that is under
 * way waits until a dlclose of another thread has unmapped its library, and the dlclose does not
 * return before the newly opened library was used.
 */
#include <dlfcn.h>
#include <semaphore.h>

#define PUBLIC __attribute__((visibility("default")))

static sem_t opening, closed, used;
static int armed;

PUBLIC void overlap_arm(void) {
    sem_init(&opening, 0, 0);
    sem_init(&closed, 0, 0);
    sem_init(&used, 0, 0);
    armed = 1;
}

/* For who closes: the other thread is about to open. */
PUBLIC void overlap_wait(void) {
    sem_wait(&opening);
}

/* For who opened. */
PUBLIC void overlap_used(void) {
    armed = 0;
    sem_post(&used);
}

PUBLIC void *dlopen(const char *file, int mode) {
    void *(*real)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    if (armed) {
        sem_post(&opening);
        sem_wait(&closed);
    }
    return real(file, mode);
}

PUBLIC int dlclose(void *handle) {
    int (*real)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
    int result = real(handle);
    if (armed) {
        sem_post(&closed);
        sem_wait(&used);
    }
    return result;
}
