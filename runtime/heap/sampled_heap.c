/* SPDX-License-Identifier: MIT */
/* sampled_heap.c: places on levels, each twice as large as the one before. See sampled_heap.h. */
#include "runtime/heap/sampled_heap.h"

#include "runtime/base/sys.h"
#include "runtime/machine/machine.h"

enum { FIRST_GROUPS = 512, TAKEN = 1, FILTER_FULL = UINT8_MAX };

uint8_t sampled_heap_filter[SAMPLED_FILTER_ITEMS];
struct memtrace_sampled_heap sampled_heap;

/* A group of keys and the blocks beside them. */
struct group {
    uint64_t *keys;
    struct memtrace_sampled_block *blocks;
};

/* By 1 up or down; what is full stays, and what is none. */
static void sampled_filter_add(uintptr_t address, int more) {
    uint8_t *count = sampled_heap_filter_at(address);
    uint8_t old = LOAD_RELAXED(count);
    while (old != FILTER_FULL && (old != 0 || more > 0) &&
           !machine_replace_byte(count, &old, (uint8_t)(old + more))) {
    }
}

void sampled_heap_expect(const void *start, size_t size) {
    for (size_t i = 0; i < size; i += 1 << SAMPLED_FILTER_SHIFT) {
        STORE_RELAXED(sampled_heap_filter_at((uintptr_t)start + i), (uint8_t)FILTER_FULL);
    }
    STORE_RELAXED(sampled_heap_filter_at((uintptr_t)start + size - 1), (uint8_t)FILTER_FULL);
}

void sampled_heap_forget(void) {
    if (sampled_heap.level[0] != 0) { /* else it was hardly touched */
        __builtin_memset(sampled_heap_filter, 0, sizeof sampled_heap_filter);
    }
    sampled_heap = (struct memtrace_sampled_heap){0};
}

static const struct memtrace_sampled_level *level_at(unsigned number) {
    return (const void *)(uintptr_t)LOAD_ACQUIRE(&sampled_heap.level[number]);
}

static const struct memtrace_sampled_level *add_level(unsigned number) {
    uint64_t groups = (uint64_t)FIRST_GROUPS << number;
    uint64_t places = groups * MEMTRACE_SAMPLED_GROUP;
    uint64_t none = 0;
    size_t head = MEMTRACE_PAGE_SIZE;
    size_t size = head + places * (sizeof(uint64_t) + sizeof(struct memtrace_sampled_block));
    char *memory = sys_map(size);
    struct memtrace_sampled_level *level = (void *)memory;
    if (memory == NULL) {
        return NULL;
    }
    sys_no_huge_pages(memory, size);
    level->groups = groups;
    level->keys = (uintptr_t)memory + head;
    level->blocks = level->keys + places * sizeof(uint64_t);
    if (!__atomic_compare_exchange_n(&sampled_heap.level[number], &none, (uintptr_t)level, 0,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        sys_unmap(memory, size); /* another thread was first */
        return (const void *)(uintptr_t)none;
    }
    return level;
}

static struct group sampled_group(const struct memtrace_sampled_level *level, uintptr_t address) {
    uint64_t number = (address * MEMTRACE_SAMPLED_SPREAD >> 32) & (level->groups - 1);
    uint64_t place = number * MEMTRACE_SAMPLED_GROUP;
    return (struct group){(uint64_t *)(uintptr_t)level->keys + place,
                          (struct memtrace_sampled_block *)(uintptr_t)level->blocks + place};
}

static int insert_at(const struct memtrace_sampled_level *level, uintptr_t address,
                     const struct memtrace_sampled_block *block) {
    struct group group = sampled_group(level, address);
    for (unsigned i = 0; i < MEMTRACE_SAMPLED_GROUP; i++) {
        uint64_t none = 0;
        if (LOAD_RELAXED(&group.keys[i]) == 0 &&
            __atomic_compare_exchange_n(&group.keys[i], &none, (uint64_t)TAKEN, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            group.blocks[i] = *block;
            STORE_RELEASE(&group.keys[i], (uint64_t)address);
            return 0;
        }
    }
    return -1;
}

int sampled_heap_insert(uintptr_t address, const struct memtrace_sampled_block *block) {
    for (unsigned number = 0; number < MEMTRACE_SAMPLED_LEVELS; number++) {
        const struct memtrace_sampled_level *level = level_at(number);
        level = level != NULL ? level : add_level(number);
        if (level == NULL) {
            return -1;
        }
        if (insert_at(level, address, block) == 0) {
            sampled_filter_add(address, 1);
            return 0;
        }
    }
    return -1;
}

int sampled_heap_remove(uintptr_t address, struct memtrace_sampled_block *block) {
    const struct memtrace_sampled_level *level;
    for (unsigned number = 0;
         number < MEMTRACE_SAMPLED_LEVELS && (level = level_at(number)) != NULL; number++) {
        struct group group = sampled_group(level, address);
        for (unsigned i = 0; i < MEMTRACE_SAMPLED_GROUP; i++) {
            if (LOAD_ACQUIRE(&group.keys[i]) == address) {
                *block = group.blocks[i];
                STORE_RELEASE(&group.keys[i], UINT64_C(0));
                sampled_filter_add(address, -1);
                return 1;
            }
        }
    }
    return 0;
}

void sampled_heap_visit(void (*visit)(void *argument, uintptr_t start,
                                      const struct memtrace_sampled_block *block),
                        void *argument) {
    const struct memtrace_sampled_level *level;
    for (unsigned number = 0;
         number < MEMTRACE_SAMPLED_LEVELS && (level = level_at(number)) != NULL; number++) {
        const uint64_t *keys = (const uint64_t *)(uintptr_t)level->keys;
        const struct memtrace_sampled_block *blocks = (const void *)(uintptr_t)level->blocks;
        for (uint64_t i = 0; i < level->groups * MEMTRACE_SAMPLED_GROUP; i++) {
            uint64_t key = LOAD_ACQUIRE(&keys[i]);
            if (key > TAKEN) {
                visit(argument, (uintptr_t)key, &blocks[i]);
            }
        }
    }
}

struct search {
    uintptr_t address;
    uintptr_t *start;
    struct memtrace_sampled_block *block;
    int found;
};

static void sampled_look(void *argument, uintptr_t start,
                         const struct memtrace_sampled_block *block) {
    struct search *search = argument;
    uint64_t size = block->size != 0 ? block->size : 1;
    if (search->address >= start && search->address - start < size) {
        *search->start = start;
        *search->block = *block;
        search->found = 1;
    }
}

int sampled_heap_find(uintptr_t address, uintptr_t *start, struct memtrace_sampled_block *block) {
    struct search search = {.address = address, .start = start, .block = block};
    sampled_heap_visit(sampled_look, &search);
    return search.found;
}
