/* SPDX-License-Identifier: MIT */
/*
 * recordslicesnone.c: recordslices.h where no slices are made: in the build for devices
 * (MEMTRACE_TOOLS=agent). They take a second reading of the recording and memory by its live
 * blocks, which a device has not to spare; who reads the recording makes them.
 */
#include "collect/recordslices.h"

struct recordslices *recordslices_new(const struct recordparts *parts) {
    (void)parts;
    return NULL;
}

void recordslices_start(struct recordslices *slices) {
    (void)slices;
}

void recordslices_note_part(struct recordslices *slices) {
    (void)slices;
}

void recordslices_write(struct recordslices *slices, struct recordfile *file) {
    (void)slices;
    (void)file;
}

void recordslices_free(struct recordslices *slices) {
    (void)slices;
}
