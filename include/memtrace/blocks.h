/* SPDX-License-Identifier: MIT */
/*
 * blocks.h: the shadow heap of a running program: which block lies where, and who allocated it.
 * Part of the contract between the runtime and those who read a program (format.h).
 */
#ifndef MEMTRACE_BLOCKS_H
#define MEMTRACE_BLOCKS_H

#include "memtrace/format.h"

/*
 * The shadow heap, in the program's private memory: not in the file, read by `memtrace trace` with
 * process_vm_readv from header.shadow_heap (0: not set up). The root is an array of
 * 2^(memtrace_address_bits() - SPAN_SHIFT) pointers to leaves, one for each 2^SPAN_SHIFT bytes; the
 * pool heap's root has the same shape with its own granule.
 *   fine leaf:   uint64_t record[span >> granule shift] | uint16_t birth_high[same]
 *   coarse leaf: struct memtrace_big_block[span >> 10], for blocks of 1 KiB and more
 *   numbers: uint32_t[span >> granule shift], of the block that starts in the granule: the low bits
 *   of its number in the recording (events.h); 0: it is not recorded
 * A leaf is fine, coarse, numbers, in one mapping (docs/format.md gives the offsets).
 * A fine record is 0 where no block starts in the granule, else (see the MEMTRACE_BLOCK_* shifts)
 *   context (24 bits) | size (10) | thread id (12) | start offset in the granule / 8 (2) | birth
 * (16), all xor (the granule's address << MEMTRACE_BLOCK_ADDRESS_SHIFT): what was stored is made
 * with the block's address, without looking at its bits. birth is the low part of the tick of birth
 * since header.birth_zero_ns; birth_high, the next 16 bits, is written only once the clock
 * nears 2^16 ticks and is right (0) before.
 */
enum {
    MEMTRACE_SPAN_SHIFT = 25,   /* 32 MiB of address space a leaf */
    MEMTRACE_FINE_SHIFT = 5,    /* heap granule: 32 bytes */
    MEMTRACE_POOL_SHIFT = 3,    /* custom pools' granule: 8 bytes */
    MEMTRACE_COARSE_SHIFT = 10, /* blocks of 1 KiB and more */
    MEMTRACE_BLOCK_CONTEXT_SHIFT = 0,
    MEMTRACE_BLOCK_SIZE_SHIFT = 24,
    MEMTRACE_BLOCK_THREAD_SHIFT = 34,
    MEMTRACE_BLOCK_OFFSET_SHIFT = 46,
    MEMTRACE_BLOCK_ADDRESS_SHIFT = 43, /* a multiple of 8 */
    MEMTRACE_BLOCK_BIRTH_SHIFT = 48
};

/* Of the addresses that the kernel gives to who does not ask for more, on the machine with this ELF
 * number. */
static inline unsigned memtrace_address_bits(uint32_t elf_machine) {
    enum { ARM = 40, X86_64 = 62 };
    return elf_machine == X86_64 ? 47 : elf_machine == ARM ? 32 : 48;
}

/* A coarse record: `owner` packs context, thread and (low 28 bits of) birth tick; 0: none. `size`
 * is written first, owner last. The block starts at granule start + offset. */
struct memtrace_big_block {
    uint64_t owner;       /* context (24 bits) | thread id (12) | birth tick (28) */
    uint64_t size_offset; /* size (48 bits) | start offset in the granule (16) */
};
MEMTRACE_STATIC_ASSERT(sizeof(struct memtrace_big_block) == 16, "big block size");
enum {
    MEMTRACE_BIG_THREAD_SHIFT = 24,
    MEMTRACE_BIG_BIRTH_SHIFT = 36,
    MEMTRACE_BIG_OFFSET_SHIFT = 48
};

#endif
