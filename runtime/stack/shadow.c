/* SPDX-License-Identifier: MIT */
/* shadow.c: making and growing shadow stacks. See shadow.h. */
#include "runtime/stack/shadow.h"

#include "runtime/base/sys.h"

int shadow_init(struct shadow_stack *shadow, uintptr_t low, uintptr_t high) {
    *shadow = (struct shadow_stack){.capacity = SHADOW_FIRST_CAPACITY, .low = low, .high = high};
    shadow->slot = sys_map(shadow->capacity * sizeof *shadow->slot);
    shadow->entry = sys_map(shadow->capacity * sizeof *shadow->entry);
    if (shadow->slot == NULL || shadow->entry == NULL) {
        shadow_free(shadow);
        return -1;
    }
    shadow->slot[0] = UINTPTR_MAX;
    return 0;
}

void shadow_free(struct shadow_stack *shadow) {
    if (shadow->slot != NULL) {
        sys_unmap(shadow->slot, shadow->capacity * sizeof *shadow->slot);
    }
    if (shadow->entry != NULL) {
        sys_unmap(shadow->entry, shadow->capacity * sizeof *shadow->entry);
    }
    *shadow = (struct shadow_stack){.capacity = 0};
}

/* Twice the room. Signals are held back: a handler must not push into the array that moves. */
static int shadow_grow(struct shadow_stack *shadow) {
    struct sys_signals mask = sys_block_signals();
    size_t old = shadow->capacity;
    uintptr_t *slot = sys_grow_map(shadow->slot, old * sizeof *slot, 2 * old * sizeof *slot);
    struct shadow_entry *entry = NULL;
    if (slot != NULL) {
        shadow->slot = slot;
        entry = sys_grow_map(shadow->entry, old * sizeof *entry, 2 * old * sizeof *entry);
    }
    if (entry != NULL) {
        shadow->entry = entry;
        shadow->capacity = (uint32_t)(2 * old);
    }
    sys_restore_signals(mask);
    return entry != NULL ? 0 : -1;
}

COLD void shadow_push_slow(struct shadow_stack *shadow, uintptr_t slot) {
    if (slot - shadow->low >= shadow->high - shadow->low) {
        shadow->foreign++;
        return;
    }
    if (shadow_grow(shadow) == 0) {
        shadow_push(shadow, slot);
    }
}
