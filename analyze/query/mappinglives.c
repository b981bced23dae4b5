/* SPDX-License-Identifier: MIT */
/* mappinglives.c: see mappinglives.h. The rules are those of analyze/window/wholemodel. */
#include "analyze/query/mappinglives.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static uint64_t page_up(uint64_t size) {
    return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

/* The first piece that ends behind the address. */
static size_t first_behind(const struct mapping_lives *lives, uint64_t address) {
    size_t low = 0;
    size_t high = lives->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lives->pieces[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int insert(struct mapping_lives *lives, size_t place, const struct mapping_life *piece) {
    if (lives->count == lives->capacity) {
        size_t capacity = lives->capacity != 0 ? lives->capacity * 2 : 64;
        struct mapping_life *grown = reallocarray(lives->pieces, capacity, sizeof *grown);
        if (grown == NULL) {
            return -1;
        }
        lives->pieces = grown;
        lives->capacity = capacity;
    }
    memmove(&lives->pieces[place + 1], &lives->pieces[place],
            (lives->count - place) * sizeof *piece);
    lives->pieces[place] = *piece;
    lives->count++;
    return 0;
}

/* Cuts [start, end) out of the piece at `place`; what is left of it stays. */
static int cut(struct mapping_lives *lives, size_t place, uint64_t start, uint64_t end) {
    struct mapping_life piece = lives->pieces[place];
    struct mapping_life right = piece;
    right.start = end;
    if (piece.start < start) {
        lives->pieces[place].end = start;
        return piece.end > end ? insert(lives, place + 1, &right) : 0;
    }
    if (piece.end > end) {
        lives->pieces[place].start = end;
        return 0;
    }
    lives->count--;
    memmove(&lives->pieces[place], &lives->pieces[place + 1],
            (lives->count - place) * sizeof piece);
    return 0;
}

static int remove_range(struct mapping_lives *lives, const struct timeorder_event *event,
                        uint64_t start, uint64_t size) {
    uint64_t end;
    int result = 0;
    size_t place;
    if (size == 0 || __builtin_add_overflow(start, page_up(size), &end)) {
        return 0;
    }
    while (result == 0 && (place = first_behind(lives, start)) < lives->count &&
           lives->pieces[place].start < end) {
        struct mapping_life gone = lives->pieces[place];
        gone.start = gone.start > start ? gone.start : start;
        gone.end = gone.end < end ? gone.end : end;
        gone.freed_ns = event->event.time_ns > gone.born_ns ? event->event.time_ns : gone.born_ns;
        gone.freed_by = event->thread;
        result = cut(lives, place, gone.start, gone.end);
        if (result == 0) {
            result = lives->ended(lives->context, &gone);
        }
    }
    return result;
}

/* Only mmap says it: what mremap moves keeps what it had (its own flags are others), the break is
 * memory to read and write. */
static void set_protection(const struct mapping_lives *lives, const struct event *event,
                           struct mapping_life *life) {
    if (event->operation == MEMTRACE_MAP_MAP) {
        life->protection = event->protection;
        life->flags = event->flags;
    } else if (event->operation == MEMTRACE_MAP_BREAK) {
        life->protection = PROT_READ | PROT_WRITE;
    } else {
        size_t place = first_behind(lives, event->old_address);
        if (place < lives->count && lives->pieces[place].start <= event->old_address) {
            life->protection = lives->pieces[place].protection;
            life->flags = lives->pieces[place].flags;
        }
    }
}

/* What the event makes: still without an id and an end. */
static struct mapping_life made_by(const struct mapping_lives *lives,
                                   const struct timeorder_event *entry) {
    struct mapping_life life = {.start = entry->event.address,
                                .born_ns = entry->event.time_ns,
                                .freed_ns = UINT64_MAX,
                                .context = entry->event.context,
                                .thread = entry->thread,
                                .operation = entry->event.operation};
    set_protection(lives, &entry->event, &life);
    return life;
}

static int add_range(struct mapping_lives *lives, struct mapping_life life, uint64_t size_bytes) {
    uint64_t size = page_up(size_bytes);
    life.id = ++lives->made;
    if (size == 0 || __builtin_add_overflow(life.start, size, &life.end)) {
        return 0;
    }
    return insert(lives, first_behind(lives, life.start), &life);
}

int mapping_lives_take(struct mapping_lives *lives, const struct timeorder_event *entry) {
    const struct event *event = &entry->event;
    struct mapping_life made = made_by(lives, entry);
    int result = 0;
    switch ((enum memtrace_map_operation)event->operation) {
    case MEMTRACE_MAP_UNMAP:
        return remove_range(lives, entry, event->address, event->size);
    case MEMTRACE_MAP_MAP:
        if (event->flags & MAP_FIXED) {
            result = remove_range(lives, entry, event->address, event->size);
        }
        return result == 0 ? add_range(lives, made, event->size) : result;
    case MEMTRACE_MAP_REMAP:
    case MEMTRACE_MAP_BREAK:
        result = remove_range(lives, entry, event->old_address, event->old_size);
        if (result == 0) {
            result = remove_range(lives, entry, event->address, event->size);
        }
        return result == 0 ? add_range(lives, made, event->size) : result;
    default:
        return 0;
    }
}

int mapping_lives_finish(struct mapping_lives *lives) {
    int result = 0;
    for (size_t i = 0; result == 0 && i < lives->count; i++) {
        result = lives->ended(lives->context, &lives->pieces[i]);
    }
    return result;
}

void mapping_lives_free(struct mapping_lives *lives) {
    free(lives->pieces);
}
