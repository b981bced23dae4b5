/* SPDX-License-Identifier: MIT */
/* filemap.c: see filemap.h. */
#include "analyze/read/filemap.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

/* start 0: a free place. Written with the lock held, read by the handler. */
struct place {
    atomic_uintptr_t start;
    atomic_uintptr_t end;
    atomic_bool is_cut;
};

static struct place places[FILEMAP_MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- The handler ---- */

/* All from the page to the end of the mapping is gone: zeros take its place, and the load is done
 * again. What is no mapping of ours is fatal, as it was. */
static void replace_lost(int signal, siginfo_t *info, void *context) {
    const uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)4095;
    (void)context;
    for (size_t i = 0; i < FILEMAP_MOST; i++) {
        uintptr_t end = atomic_load(&places[i].end);
        if (page >= atomic_load(&places[i].start) && page < end &&
            mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0) != MAP_FAILED) {
            atomic_store(&places[i].is_cut, true);
            return;
        }
    }
    sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

/* A handler of somebody else (a sanitizer, a test) stays. */
static void handle(void) {
    struct sigaction action = {.sa_sigaction = replace_lost, .sa_flags = SA_SIGINFO};
    struct sigaction old;
    if (sigaction(SIGBUS, NULL, &old) == 0 && old.sa_handler == SIG_DFL) {
        sigaction(SIGBUS, &action, NULL);
    }
}

/* ---- The mappings ---- */

/* The mapping that starts there; 0: a free place. NULL: there is none. */
static struct place *find(uintptr_t start) {
    for (size_t i = 0; i < FILEMAP_MOST; i++) {
        if (atomic_load(&places[i].start) == start) {
            return &places[i];
        }
    }
    return NULL;
}

/* The end first when it goes, last when it comes, so that the handler never sees too much. */
static void set(struct place *place, void *bytes, uint64_t size) {
    if (place != NULL) {
        atomic_store(&place->end, 0);
        atomic_store(&place->start, (uintptr_t)bytes);
        atomic_store(&place->end, bytes != NULL ? ((uintptr_t)bytes + size + 4095) & ~4095UL : 0);
    }
}

void *filemap_open(int fd, uint64_t size) {
    void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    struct place *place;
    if (bytes == MAP_FAILED) {
        return NULL;
    }
    handle();
    pthread_mutex_lock(&lock);
    place = find(0);
    if (place != NULL) {
        atomic_store(&place->is_cut, false);
    }
    set(place, bytes, size);
    pthread_mutex_unlock(&lock);
    return bytes;
}

void *filemap_resize(void *bytes, uint64_t size, uint64_t new_size) {
    void *moved;
    struct place *place;
    pthread_mutex_lock(&lock);
    place = find((uintptr_t)bytes);
    set(place, NULL, 0);
    moved = mremap(bytes, size, new_size, MREMAP_MAYMOVE);
    set(place, moved != MAP_FAILED ? moved : bytes, moved != MAP_FAILED ? new_size : size);
    pthread_mutex_unlock(&lock);
    return moved != MAP_FAILED ? moved : NULL;
}

bool filemap_is_cut(const void *bytes) {
    const struct place *place = find((uintptr_t)bytes);
    return place != NULL && atomic_load(&place->is_cut);
}

void filemap_close(void *bytes, uint64_t size) {
    pthread_mutex_lock(&lock);
    set(find((uintptr_t)bytes), NULL, 0);
    pthread_mutex_unlock(&lock);
    munmap(bytes, size);
}
