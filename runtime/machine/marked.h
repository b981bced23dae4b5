/* SPDX-License-Identifier: MIT */
/*
 * marked.h: of machines on which a frame's record (its saved frame pointer and return address) lies
 * where its function likes: MACHINE_FRAME() is the record's address, and from bit 48 on how far it
 * is from the CFA. Both are multiples of 16. Included by their headers, behind linked.h.
 */
#ifndef RUNTIME_MACHINE_MARKED_H
#define RUNTIME_MACHINE_MARKED_H

#define MACHINE_MARKS_FRAMES 1

INLINE const uintptr_t *machine_frame_record(uintptr_t frame) {
    return (const uintptr_t *)(frame & (((uintptr_t)1 << MACHINE_ADDRESS_BITS) - 1));
}

/* Of a bare record's address: not known. */
INLINE struct machine_sp machine_frame_sp(uintptr_t frame) {
    uintptr_t distance = frame >> MACHINE_ADDRESS_BITS << 4;
    return machine_keep_sp(distance != 0 ? (uintptr_t)machine_frame_record(frame) + distance : 0);
}

/* The same distance, above the slot's address. */
INLINE uintptr_t machine_marked_slot(uintptr_t slot, struct machine_sp kept) {
    uintptr_t record = slot - sizeof(uintptr_t);
    return kept.value > record ? slot + ((kept.value - record) << (MACHINE_ADDRESS_BITS - 4))
                               : slot;
}

#endif
