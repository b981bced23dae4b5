/* SPDX-License-Identifier: MIT */
/* frame_word.c: where a function keeps its frame word. See frame_word.h. */
#include "runtime/stack/frame_word.h"

#include "runtime/machine/machine.h"
#include "runtime/stack/cfi.h"

#include <stddef.h>

#define FRAME_WORD_SIGN (MACHINE_STORES_CONSTANTS ? FRAME_WORD_FRESH : FRAME_WORD_MARK)

/* How far the CFA is above the register that the store goes by; negative: not known. */
static int64_t cfa_above(const struct cfi_row *row, const struct machine_store *store) {
    int64_t distance = 0;
    if (row->cfa_register != store->base_register) {
        distance = MACHINE_TELLS_FP_ABOVE_SP && row->cfa_register == MACHINE_DWARF_FP &&
                           store->base_register == MACHINE_DWARF_SP
                       ? machine_fp_above_sp(row->start, store->start)
                       : -1;
    }
    return distance < 0 ? -1 : row->cfa_offset + distance;
}

/* The place that one store tells; 0: not relative to the CFA. */
static uint32_t place_of(const uint8_t *eh_frame_header, const struct machine_store *store) {
    struct cfi_row row;
    int64_t above, below;
    if (cfi_find(eh_frame_header, store->start, &row) != 0 || row.cfa_expression != NULL ||
        (above = cfa_above(&row, store)) < 0) {
        return 0;
    }
    below = above - store->displacement;
    /* Where calls push it the return address lies above. */
    return below > (MACHINE_CALL_PUSHES ? (int64_t)sizeof(uintptr_t) : 0) && below <= INT32_MAX &&
                   below % 4 == 0
               ? (uint32_t)below
               : 0;
}

uint32_t frame_word_below_cfa(const uint8_t *eh_frame_header, const struct cfi_row *row) {
    struct machine_store store;
    uint32_t place = 0;
    uintptr_t from = row->start;
    while (MACHINE_HAS_WORDS && machine_find_store(from, row->end, FRAME_WORD_SIGN, &store)) {
        uint32_t next = place_of(eh_frame_header, &store);
        if (next == 0 || (place != 0 && place != next)) {
            return 0; /* two words: a function with one of its own was inlined here later */
        }
        place = next;
        from = store.end;
    }
    return place;
}
