/* SPDX-License-Identifier: MIT */
/* filemap.c: see filemap.h. */
#include "analyze/read/filemap.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/* Beyond so many at a time a mapping is as any other. */
enum { FILEMAP_MOST = 1024 };

/* start 0: a free place. Written with the lock held, read by the handler. */
struct mapping {
    atomic_uintptr_t start;
    atomic_uintptr_t end;
    atomic_int protection;
    atomic_bool is_cut;
};

static struct mapping mappings[FILEMAP_MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t page_bytes;    /* of this machine's kernel; set before the first mapping */
static struct sigaction others; /* what was there before, which gets what is not ours */

/* All from the page to the end of the mapping is gone: zeros take its place, and the load is done
 * again. What is no mapping of ours is somebody else's, or fatal, as it was. */
static void replace_lost(int signal, siginfo_t *info, void *context) {
    const uintptr_t page = (uintptr_t)info->si_addr & ~(page_bytes - 1);
    for (size_t i = 0; i < FILEMAP_MOST; i++) {
        uintptr_t end = atomic_load(&mappings[i].end);
        if (page >= atomic_load(&mappings[i].start) && page < end &&
            mmap((void *)page, end - page, atomic_load(&mappings[i].protection),
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
            atomic_store(&mappings[i].is_cut, true);
            return;
        }
    }
    if ((others.sa_flags & SA_SIGINFO) != 0) {
        others.sa_sigaction(signal, info, context);
    } else if (others.sa_handler != SIG_DFL && others.sa_handler != SIG_IGN) {
        others.sa_handler(signal);
    } else {
        sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    }
}

/* With the lock held. */
static void catch_sigbus(void) {
    struct sigaction action = {.sa_sigaction = replace_lost, .sa_flags = SA_SIGINFO};
    struct sigaction now;
    if (sigaction(SIGBUS, NULL, &now) == 0 && now.sa_sigaction != replace_lost) {
        others = now;
        sigaction(SIGBUS, &action, NULL);
    }
}

/* The mapping that starts there; 0: a free place. NULL: there is none. */
static struct mapping *find_mapping(uintptr_t start) {
    for (size_t i = 0; i < FILEMAP_MOST; i++) {
        if (atomic_load(&mappings[i].start) == start) {
            return &mappings[i];
        }
    }
    return NULL;
}

/* The end first when it goes, last when it comes, so that the handler never sees too much. */
static void set_mapping(struct mapping *mapping, void *bytes, uint64_t size) {
    if (mapping != NULL) {
        atomic_store(&mapping->end, 0);
        atomic_store(&mapping->start, (uintptr_t)bytes);
        atomic_store(&mapping->end,
                     bytes != NULL ? ((uintptr_t)bytes + size + page_bytes - 1) & ~(page_bytes - 1)
                                   : 0);
    }
}

static void filemap_watch_mapping(void *bytes, uint64_t size, int protection) {
    struct mapping *mapping;
    pthread_mutex_lock(&lock);
    if (page_bytes == 0) {
        page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    }
    catch_sigbus();
    mapping = find_mapping(0);
    if (mapping != NULL) {
        atomic_store(&mapping->is_cut, false);
        atomic_store(&mapping->protection, protection);
    }
    set_mapping(mapping, bytes, size);
    pthread_mutex_unlock(&lock);
}

void filemap_forget(void *bytes) {
    pthread_mutex_lock(&lock);
    set_mapping(find_mapping((uintptr_t)bytes), NULL, 0);
    pthread_mutex_unlock(&lock);
}

void *filemap_open(int fd, uint64_t offset, uint64_t size, enum filemap_use use) {
    int protection = use == FILEMAP_WRITES ? PROT_READ | PROT_WRITE : PROT_READ;
    void *bytes = mmap(NULL, size, protection, use == FILEMAP_COPIES ? MAP_PRIVATE : MAP_SHARED, fd,
                       (off_t)offset);
    if (bytes == MAP_FAILED) {
        return NULL;
    }
    filemap_watch_mapping(bytes, size, protection);
    return bytes;
}

void *filemap_resize(void *bytes, uint64_t size, uint64_t new_size) {
    void *moved;
    struct mapping *mapping;
    pthread_mutex_lock(&lock);
    mapping = find_mapping((uintptr_t)bytes);
    set_mapping(mapping, NULL, 0);
    moved = mremap(bytes, size, new_size, MREMAP_MAYMOVE);
    set_mapping(mapping, moved != MAP_FAILED ? moved : bytes,
                moved != MAP_FAILED ? new_size : size);
    pthread_mutex_unlock(&lock);
    return moved != MAP_FAILED ? moved : NULL;
}

bool filemap_is_cut(const void *bytes) {
    const struct mapping *mapping = find_mapping((uintptr_t)bytes);
    return mapping != NULL && atomic_load(&mapping->is_cut);
}

void filemap_close(void *bytes, uint64_t size) {
    filemap_forget(bytes);
    munmap(bytes, size);
}

void filemap_watch(void *bytes, uint64_t size) {
    filemap_watch_mapping(bytes, size, PROT_READ | PROT_WRITE);
}
