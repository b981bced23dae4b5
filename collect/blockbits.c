/* SPDX-License-Identifier: MIT */
/* blockbits.c: see blockbits.h. */
#include "collect/blockbits.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    THREADS = 1 << MEMTRACE_THREAD_BITS,
    CHUNK_BYTES = 1 << 20, /* what is mapped at once; pages never touched take no room */
    CHUNK_NUMBERS = CHUNK_BYTES * 8,
    NUMBER_BITS = 48,
};

struct blockbits {
    int fd;
    off_t size;
    struct chunks {
        unsigned char **items; /* by number / CHUNK_NUMBERS; NULL: no bit is set there */
        size_t count;
    } threads[THREADS];
};

static int open_file(void) {
    const char *folder = getenv("TMPDIR");
    FILE *file;
    int fd = open(folder != NULL && *folder != '\0' ? folder : "/tmp",
                  O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) {
        return fd;
    }
    file = tmpfile(); /* a file system that does not know of files without names */
    fd = file != NULL ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 0) : -1;
    if (file != NULL) {
        fclose(file);
    }
    return fd;
}

struct blockbits *blockbits_new(void) {
    struct blockbits *bits = calloc(1, sizeof *bits);
    if (bits == NULL) {
        return NULL;
    }
    bits->fd = open_file();
    if (bits->fd < 0) {
        free(bits);
        return NULL;
    }
    return bits;
}

void blockbits_free(struct blockbits *bits) {
    if (bits == NULL) {
        return;
    }
    for (size_t thread = 0; thread < THREADS; thread++) {
        for (size_t i = 0; i < bits->threads[thread].count; i++) {
            if (bits->threads[thread].items[i] != NULL) {
                munmap(bits->threads[thread].items[i], CHUNK_BYTES);
            }
        }
        free(bits->threads[thread].items);
    }
    close(bits->fd);
    free(bits);
}

static int reach(struct chunks *chunks, size_t place) {
    unsigned char **grown;
    if (place < chunks->count) {
        return 0;
    }
    grown = reallocarray(chunks->items, place + 1, sizeof *grown);
    if (grown == NULL) {
        return -1;
    }
    for (size_t i = chunks->count; i <= place; i++) {
        grown[i] = NULL;
    }
    chunks->items = grown;
    chunks->count = place + 1;
    return 0;
}

static unsigned char *map_chunk(struct blockbits *bits) {
    void *chunk = MAP_FAILED;
    if (ftruncate(bits->fd, bits->size + CHUNK_BYTES) == 0) {
        chunk = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, bits->fd, bits->size);
    }
    if (chunk == MAP_FAILED) {
        return NULL;
    }
    bits->size += CHUNK_BYTES;
    return chunk;
}

int blockbits_set(struct blockbits *bits, struct event_block block) {
    size_t place = block.number / CHUNK_NUMBERS;
    size_t bit = block.number % CHUNK_NUMBERS;
    struct chunks *chunks;
    if (block.thread >= THREADS || block.number >> NUMBER_BITS != 0) {
        return 0;
    }
    chunks = &bits->threads[block.thread];
    if (reach(chunks, place) != 0) {
        return -1;
    }
    if (chunks->items[place] == NULL) {
        chunks->items[place] = map_chunk(bits);
        if (chunks->items[place] == NULL) {
            return -1;
        }
    }
    chunks->items[place][bit / 8] |= (unsigned char)(1u << bit % 8);
    return 0;
}

bool blockbits_has(const struct blockbits *bits, struct event_block block) {
    size_t place = block.number / CHUNK_NUMBERS;
    size_t bit = block.number % CHUNK_NUMBERS;
    const struct chunks *chunks;
    if (block.thread >= THREADS) {
        return false;
    }
    chunks = &bits->threads[block.thread];
    return place < chunks->count && chunks->items[place] != NULL &&
           (chunks->items[place][bit / 8] >> bit % 8 & 1) != 0;
}
