/* SPDX-License-Identifier: MIT */
/*
 * thismachine.h: which machine's code this program is: what runs here without an emulator.
 *
 * Called by everything that compares it with a file's or another program's. Any thread.
 */
#ifndef ANALYZE_BASE_THISMACHINE_H
#define ANALYZE_BASE_THISMACHINE_H

#include <elf.h>
#include <stdint.h>

/* Our own ELF header, put there by the linker. */
extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden")));

/* Its e_machine. */
static inline uint16_t thismachine(void) {
    return __ehdr_start.e_machine;
}

#endif
