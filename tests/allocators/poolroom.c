/* SPDX-License-Identifier: MIT */
/*
 * poolroom.c CASE: pools that take their memory from malloc and mmap, give out a part of it, and
 * print what their live blocks lie in, for each pool a line
 *     POOL BLOCKS BYTES HEAP_BLOCKS HEAP_BYTES MAPPINGS MAPPING_BYTES POOL_BLOCKS POOL_BYTES
 *     OUTSIDE_BLOCKS OUTSIDE_BYTES
 * They are followed by name (take_a, give_a, ...), or, with a second word, tell MemTrace
 * themselves.
 */
#include <memtrace/memtrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALONE __attribute__((noipa, noinline))

enum { MIB = 1 << 20, ROUND = 16 };

static int tells;

struct chunk {
    char *start;
    size_t used;
};

static void *cut(struct chunk *chunk, size_t size) {
    void *block = chunk->start + chunk->used;
    chunk->used += (size + ROUND - 1) / ROUND * ROUND;
    memset(block, 1, size);
    return block;
}

ALONE void *take_a(struct chunk *chunk, size_t size) {
    void *block = cut(chunk, size);
    if (tells) {
        MEMTRACE_ALLOC("a", block, size);
    }
    return block;
}

ALONE void *take_b(struct chunk *chunk, size_t size) {
    void *block = cut(chunk, size);
    if (tells) {
        MEMTRACE_ALLOC("b", block, size);
    }
    return block;
}

ALONE void give_a(void *block) {
    if (tells) {
        MEMTRACE_FREE("a", block);
    }
    memset(block, 2, 1);
}

ALONE void give_b(void *block) {
    if (tells) {
        MEMTRACE_FREE("b", block);
    }
    memset(block, 2, 1);
}

static struct chunk by_malloc(size_t size) {
    return (struct chunk){malloc(size), 0};
}

static struct chunk by_mmap(size_t size) {
    return (struct chunk){
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 0};
}

struct line {
    const char *pool;
    size_t blocks, bytes, heap_blocks, heap_bytes, mappings, mapping_bytes, pool_blocks, pool_bytes,
        outside_blocks, outside_bytes;
};

static void print(struct line line) {
    char text[300];
    int size = snprintf(text, sizeof text, "%s %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu\n",
                        line.pool, line.blocks, line.bytes, line.heap_blocks, line.heap_bytes,
                        line.mappings, line.mapping_bytes, line.pool_blocks, line.pool_bytes,
                        line.outside_blocks, line.outside_bytes);
    if (write(1, text, (size_t)size) != size) {
        abort();
    }
}

/* Blocks of two pools, small and large ones, in chunks of malloc and of mmap, in turn; every third
 * one goes. */
static void chunks(void) {
    struct chunk heap[3], mapping[2];
    struct line a = {.pool = "a"}, b = {.pool = "b"};
    for (int i = 0; i < 3; i++) {
        heap[i] = by_malloc(MIB);
    }
    for (int i = 0; i < 2; i++) {
        mapping[i] = by_mmap(MIB);
    }
    for (size_t i = 0; i < 600; i++) {
        size_t size = i % 50 == 7 ? 5000 : 40 + i;
        void *first = take_a(&heap[i % 3], size);
        void *second = take_b(i % 2 ? &heap[0] : &mapping[i % 4 / 2], size + 8);
        if (i % 3 == 0) {
            give_a(first);
            give_b(second);
            continue;
        }
        a.blocks++;
        a.bytes += size;
        b.blocks++;
        b.bytes += size + 8;
    }
    /* What i % 3 == 0 left in heap[0] has gone. */
    a.heap_blocks = 2;
    a.heap_bytes = 2 * (size_t)MIB;
    b.heap_blocks = 1;
    b.heap_bytes = MIB;
    b.mappings = 2;
    b.mapping_bytes = 2 * (size_t)MIB;
    print(a);
    print(b);
}

/* Pool b takes its chunks from pool a; some of these lie in small blocks of malloc. */
static void nested(void) {
    struct chunk outer = by_malloc(MIB), small = by_malloc(900);
    struct chunk inner[] = {{take_a(&outer, 20000), 1100}, {take_a(&small, 800), 16}};
    take_a(&outer, 100);
    for (int i = 0; i < 10; i++) {
        take_b(&inner[0], 1500);
        take_b(&inner[1], 24);
    }
    take_b(&outer, 5); /* and one that lies beside these */
    print((struct line){"a", 3, 20900, 2, MIB + 900, 0, 0, 0, 0, 0, 0});
    print((struct line){"b", 21, 10 * 1524 + 5, 1, MIB, 0, 0, 2, 20800, 0, 0});
}

/* Each block in a block of malloc of its own, as a pool that only counts has them. */
static void wrapped(void) {
    static void *kept[500];
    struct line a = {.pool = "a"};
    for (size_t i = 0; i < 500; i++) {
        struct chunk own = by_malloc(32 + 5 * i);
        own.used = 16;
        kept[i] = take_a(&own, 8 + 5 * i);
        a.blocks++;
        a.bytes += 8 + 5 * i;
        a.heap_blocks++;
        a.heap_bytes += 32 + 5 * i;
    }
    print(a);
}

/* Static memory; a chunk that goes with its blocks, whose place others get; half a mapping. */
static void gone(void) {
    static char memory[10000];
    struct chunk fixed = {memory, 0}, freed = by_malloc(100 * MIB), mapping = by_mmap(MIB);
    struct chunk reused = by_malloc(100000);
    char *volatile other;
    char *last;
    take_a(&fixed, 3000);
    take_a(&fixed, 100);
    for (int i = 0; i < 5; i++) {
        take_a(&freed, 700);
    }
    free(freed.start);
    for (int i = 0; i < 3; i++) {
        take_a(&reused, 50);
    }
    free(reused.start);
    usleep(50000); /* births are known to about 4 ms */
    other = malloc(100000);
    memset(other, 1, 100000);
    last = take_b(&mapping, 100);
    mapping.used = MIB / 2 + 32;
    take_b(&mapping, 200);
    give_b(last);
    munmap(mapping.start, MIB / 2);
    print((struct line){"a", 10, 6750, 0, 0, 0, 0, 0, 0, 10, 6750});
    print((struct line){"b", 1, 200, 0, 0, 1, MIB / 2, 0, 0, 0, 0});
}

/* All of a pool was given back, and its chunk is still there. */
static void empty(void) {
    struct chunk heap = by_malloc(MIB);
    void *block = take_a(&heap, 1000);
    give_a(block);
    print((struct line){"a", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

/* A child that has grown, with blocks in what it was born with, and in a chunk of its own. */
static void forks(void) {
    struct chunk heap = by_malloc(MIB);
    take_a(&heap, 1000);
    if (fork() == 0) {
        struct chunk own = by_malloc(32 * MIB);
        for (int i = 0; i < 20000; i++) {
            give_b(take_b(&own, 16));
        }
        take_b(&own, 10);
        print((struct line){"b", 1, 10, 1, 32 * (size_t)MIB, 0, 0, 0, 0, 0, 0});
        exit(0);
    }
    wait(NULL);
    print((struct line){"a", 1, 1000, 1, MIB, 0, 0, 0, 0, 0, 0});
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*function)(void);
    } cases[] = {{"chunks", chunks}, {"nested", nested}, {"wrapped", wrapped},
                 {"gone", gone},     {"empty", empty},   {"forks", forks}};
    tells = argc > 2;
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].function();
        }
    }
    return 0;
}
