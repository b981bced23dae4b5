/* SPDX-License-Identifier: MIT */
/* beside_own.c: a program with an allocator of its own, on sbrk(), which as old ones do counts on
 * nobody else moving the break. It starts threads. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *end;

void *malloc(size_t size) {
    char *block;
    size = (size + 31) & ~(size_t)15;
    pthread_mutex_lock(&lock);
    block = end != NULL ? end : sbrk(0);
    if (sbrk(size) != block) {
        write(1, "the break was moved by another\n", 31);
        _exit(9);
    }
    end = block + size;
    *(size_t *)block = size;
    pthread_mutex_unlock(&lock);
    return block + 16;
}

void free(void *block) {
}

void *calloc(size_t number, size_t size) {
    return memset(malloc(number * size), 0, number * size);
}

void *realloc(void *old, size_t size) {
    void *block = malloc(size);
    size_t old_size = old != NULL ? *(size_t *)((char *)old - 16) - 16 : 0;
    return memcpy(block, old, old_size < size ? old_size : size);
}

static void *run(void *unused) {
    return malloc(10);
}

int main(void) {
    pthread_t threads[20];
    malloc(100); /* the break is ours from here on */
    for (int i = 0; i < 20; i++) {
        pthread_create(threads + i, NULL, run, NULL);
        malloc(1000);
    }
    for (int i = 0; i < 20; i++) {
        pthread_join(threads[i], NULL);
    }
    write(1, "ok\n", 3);
    return 0;
}
