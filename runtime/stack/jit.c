/* SPDX-License-Identifier: MIT */
/* jit.c: registered unwind information by address. See jit.h. */
#include "runtime/stack/jit.h"

#include "runtime/base/compiler.h"
#include "runtime/base/own_maps.h"
#include "runtime/base/sys.h"

enum { LEAF_PLACES = 1024, LEAVES = 1024, MOST_ENTRIES = 1 << 20, PAGE = 4096 };

/* One FDE. key NULL: free; start 0: not filled yet. */
struct place {
    const void *key;
    uintptr_t start, end;
    const uint8_t *entry;
};

static struct place *leaf[LEAVES]; /* made in order, never taken back */
static size_t used;                /* places below it were taken at some time */

static struct place *place_at(size_t i) {
    return LOAD_ACQUIRE(&leaf[i / LEAF_PLACES]) + i % LEAF_PLACES;
}

/* --- adding ----------------------------------------------------------------------------------- */

static int jit_make_leaf(struct place **to) {
    struct place *made = sys_map(LEAF_PLACES * sizeof *made);
    struct place *none = NULL;
    own_maps_keep(made);
    if (made != NULL &&
        !__atomic_compare_exchange_n(to, &none, made, 0, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
        sys_unmap(made, LEAF_PLACES * sizeof *made); /* another thread was faster */
    }
    return LOAD_ACQUIRE(to) != NULL ? 0 : -1;
}

/* NULL: there is no room. */
static struct place *jit_take(const void *key) {
    for (size_t i = 0; i < (size_t)LEAVES * LEAF_PLACES; i++) {
        const void *nobody = NULL;
        if (LOAD_ACQUIRE(&leaf[i / LEAF_PLACES]) == NULL &&
            jit_make_leaf(&leaf[i / LEAF_PLACES]) != 0) {
            return NULL;
        }
        if (LOAD_RELAXED(&place_at(i)->key) == NULL &&
            __atomic_compare_exchange_n(&place_at(i)->key, &nobody, key, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            size_t was = LOAD_RELAXED(&used);
            while (was < i + 1 && !__atomic_compare_exchange_n(
                                      &used, &was, i + 1, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
            }
            return place_at(i);
        }
    }
    return NULL;
}

/* The releases: who sees the new end or entry sees, too, that the start was 0 meanwhile. */
static void add_entry(const void *key, const uint8_t *entry) {
    uintptr_t start;
    uintptr_t end;
    struct place *place;
    if (cfi_range(NULL, entry, &start, &end) != 0 || start == 0 ||
        (place = jit_take(key)) == NULL) {
        return; /* a CIE, or the walk ends there and counts it */
    }
    STORE_RELEASE(&place->end, end);
    STORE_RELEASE(&place->entry, entry);
    STORE_RELEASE(&place->start, start);
}

/* Whether an entry can be read: nobody promised that a table is well-formed. */
static int can_read(const uint8_t *entry) {
    const uint8_t *next;
    if (!sys_readable(entry) || (next = cfi_next(entry)) == NULL) {
        return 0;
    }
    for (const uint8_t *at = entry; at < next; at += PAGE) {
        if (!sys_readable(at)) {
            return 0;
        }
    }
    return sys_readable(next - 1);
}

/* An .eh_frame starts with a CIE and ends with a zero; what starts with an FDE is only that: so
 * registers who was written for LLVM's unwinder. */
void jit_add(const void *key, const void *frames) {
    const uint8_t *entry = frames;
    uintptr_t start;
    uintptr_t end;
    if (!can_read(entry)) {
        return;
    }
    if (cfi_range(NULL, entry, &start, &end) == 0) {
        add_entry(key, entry);
        return;
    }
    for (size_t i = 0; i < MOST_ENTRIES && can_read(entry); i++) {
        add_entry(key, entry);
        entry = cfi_next(entry);
    }
}

int jit_remove(const void *key, uintptr_t *start, uintptr_t *end) {
    size_t count = LOAD_ACQUIRE(&used);
    *start = UINTPTR_MAX;
    *end = 0;
    for (size_t i = 0; i < count; i++) {
        struct place *place = place_at(i);
        if (LOAD_ACQUIRE(&place->key) == key) {
            *start = place->start < *start ? place->start : *start;
            *end = place->end > *end ? place->end : *end;
            STORE_RELAXED(&place->start, 0);
            STORE_RELEASE(&place->key, NULL);
        }
    }
    return *end != 0;
}

/* --- looking ---------------------------------------------------------------------------------- */

/* The entry about `address`; NULL: none. */
static const uint8_t *jit_search(uintptr_t address) {
    size_t count = LOAD_ACQUIRE(&used);
    for (size_t i = 0; i < count; i++) {
        struct place *place = place_at(i);
        uintptr_t start = LOAD_ACQUIRE(&place->start);
        uintptr_t end = LOAD_ACQUIRE(&place->end);
        const uint8_t *entry = LOAD_ACQUIRE(&place->entry);
        if (start != 0 && address >= start && address < end &&
            LOAD_RELAXED(&place->start) == start) {
            return entry;
        }
    }
    return NULL;
}

int jit_find(uintptr_t address, struct cfi_row *row) {
    const uint8_t *entry = jit_search(address);
    return entry != NULL ? cfi_read(NULL, entry, address, row) : -1;
}

int jit_holds(uintptr_t address) {
    return jit_search(address) != NULL;
}
