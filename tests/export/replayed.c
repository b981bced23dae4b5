/* SPDX-License-Identifier: MIT */
/* replayed.c: a program whose allocations all have sizes of their own, and one that counts them
 * when they are made again: -DCOUNTS makes it a library with the functions of an allocator. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEAST = 70000, MOST = 79999 };

#ifdef COUNTS

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

/* malloc, calloc, realloc, posix_memalign: how often, with how many bytes. In a file, since the
 * process ends at once. */
static unsigned long (*counts)[2];

static void count(int which, size_t size) {
    if (counts == NULL) {
        int fd = open(getenv("COUNTS"), O_RDWR);
        counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
    if (size >= LEAST && size <= MOST) {
        __atomic_fetch_add(&counts[which][0], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&counts[which][1], size, __ATOMIC_RELAXED);
    }
}

void *malloc(size_t size) {
    count(0, size);
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count(1, number * size);
    return __libc_calloc(number, size);
}

void *realloc(void *block, size_t size) {
    count(2, size);
    return __libc_realloc(block, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    count(3, size);
    *block = __libc_memalign(alignment, size);
    return *block != NULL && (size_t)*block % alignment == 0 ? 0 : ENOMEM;
}

void free(void *block) {
    __libc_free(block);
}

#else

static void *handed_over;

static void *other(void *unused) {
    (void)unused;
    for (int i = 0; i < 500; i++) {
        free(malloc(LEAST + 5000 + (size_t)i));
    }
    free(handed_over);
    return NULL;
}

int main(void) {
    static void *blocks[100];
    pthread_t thread;
    for (size_t i = 0; i < 100; i++) {
        void *aligned;
        blocks[i] = malloc(LEAST + i);
        blocks[i] = realloc(blocks[i], LEAST + 1000 + i);
        free(calloc(2, (LEAST + 2000) / 2 + i));
        if (posix_memalign(&aligned, 4096, LEAST + 4000 + i) == 0) {
            free(aligned);
        }
        if (i % 2 == 0) {
            free(blocks[i]);
        }
    }
    handed_over = malloc(LEAST + 9000);
    pthread_create(&thread, NULL, other, NULL);
    pthread_join(thread, NULL);
    return 0; /* 50 blocks of about 71 KB are left */
}

#endif
