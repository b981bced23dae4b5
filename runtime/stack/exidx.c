/* SPDX-License-Identifier: MIT */
/* exidx.c: reading ARM's tables of exceptions. See exidx.h. */
#include "runtime/stack/exidx.h"

/* Of two words. `start`: the function's, up to the next entry's. `content`: EXIDX_CANTUNWIND, with
 * EXIDX_INLINE the instructions themselves, else where they are. Addresses are distances from their
 * own place, of 31 bits. */
struct exidx_entry {
    uint32_t start;
    uint32_t content;
};

enum { EXIDX_CANTUNWIND = 1 };
#define EXIDX_INLINE (UINT32_C(1) << 31)

/* Registers' numbers, which are DWARF's, too. */
enum { REGISTERS = 16, R7 = 7, R11 = 11, SP = 13, LR = 14, PC = 15, WORD = 4, DOUBLE = 8 };

static uintptr_t address_at(const uint32_t *place) {
    int32_t distance = (int32_t)(*place << 1) >> 1;
    return (uintptr_t)place + (uintptr_t)(intptr_t)distance;
}

/* The last entry that starts at or below the address; NULL: none. */
static const struct exidx_entry *exidx_search(const struct exidx_entry *entry, size_t count,
                                              uintptr_t address) {
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (address_at(&entry[middle].start) <= address) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low != 0 ? &entry[low - 1] : NULL;
}

/* --- instructions ----------------------------------------------------------------------------- */

/* Bytes, from the highest of each word on. */
struct code {
    const uint32_t *next; /* the word after this one */
    uint32_t word;
    uint32_t bytes; /* left in it */
    uint32_t words; /* left after it */
    int failed;
};

enum { FINISH = 0xb0 }; /* stands for all that is not there */

static uint8_t exidx_take(struct code *code) {
    uint8_t byte;
    if (code->bytes == 0 && code->words != 0) {
        code->word = *code->next++;
        code->words--;
        code->bytes = 4;
    }
    if (code->bytes == 0) {
        return FINISH;
    }
    byte = (uint8_t)(code->word >> 24);
    code->word <<= 8;
    code->bytes--;
    return byte;
}

/* Where the virtual stack pointer is: so far above the register `base` as it was at the call. */
struct unwinding {
    uint32_t base;
    int64_t offset;
    uint32_t popped;          /* a bit for each register */
    int64_t place[REGISTERS]; /* from `base` */
};

static void exidx_pop(struct unwinding *state, uint32_t registers) {
    for (uint32_t i = 0; i < REGISTERS; i++) {
        if ((registers >> i & 1) != 0) {
            state->place[i] = state->offset;
            state->offset += WORD;
        }
    }
    state->popped |= registers;
}

/* The stack pointer is another register's value, as it was at the call. */
static int move_to(struct unwinding *state, uint32_t number) {
    if (state->popped != 0 || number == SP || number == PC) {
        return -1;
    }
    state->base = number;
    state->offset = 0;
    return 0;
}

static int64_t take_uleb(struct code *code) {
    uint64_t value = 0;
    uint8_t byte = 0x80;
    for (unsigned shift = 0; shift < 32 && (byte & 0x80) != 0; shift += 7) {
        byte = exidx_take(code);
        value |= (uint64_t)(byte & 0x7f) << shift;
    }
    return (int64_t)value;
}

/* 0xb1 to 0xbf. 0, or -1. */
static int run_spare(struct unwinding *state, struct code *code, uint8_t opcode) {
    uint8_t second;
    switch (opcode) {
    case 0xb1: /* of r0 to r3 */
        second = exidx_take(code);
        exidx_pop(state, second);
        return second == 0 || second >> 4 != 0 ? -1 : 0;
    case 0xb2:
        state->offset += 0x204 + (take_uleb(code) << 2);
        return 0;
    case 0xb3: /* VFP, as fstmx saves them */
        state->offset += ((exidx_take(code) & 15) + 1) * DOUBLE + WORD;
        return 0;
    case 0xb4: /* the code that authenticates the return address */
        state->offset += WORD;
        return 0;
    default:
        state->offset += ((opcode & 7) + 1) * DOUBLE + WORD;
        return opcode < 0xb8 ? -1 : 0;
    }
}

/* 0xc0 to 0xff. */
static int run_coprocessor(struct unwinding *state, struct code *code, uint8_t opcode) {
    uint8_t second;
    if ((opcode & 0xf8) == 0xd0) { /* VFP, as vpush saves them */
        state->offset += ((opcode & 7) + 1) * DOUBLE;
        return 0;
    }
    second = exidx_take(code);
    switch (opcode) {
    case 0xc6: /* WMMX data */
    case 0xc8: /* VFP from d16 on */
    case 0xc9:
        state->offset += ((second & 15) + 1) * DOUBLE;
        return 0;
    case 0xc7: /* WMMX control */
        for (uint32_t i = 0; i < 4; i++) {
            state->offset += (second >> i & 1) * WORD;
        }
        return second == 0 || second >> 4 != 0 ? -1 : 0;
    default:
        return -1;
    }
}

/* One instruction (IHI 0038, 10.3). 0; 1: it was the last; -1: not known here. */
static int run_one(struct unwinding *state, struct code *code) {
    uint8_t opcode = exidx_take(code);
    uint32_t mask;
    switch (opcode >> 4) {
    case 0x0: /* vsp = vsp + (xxxxxx << 2) + 4 */
    case 0x1:
    case 0x2:
    case 0x3:
        state->offset += ((opcode & 0x3f) << 2) + 4;
        return 0;
    case 0x4:
    case 0x5:
    case 0x6:
    case 0x7:
        state->offset -= ((opcode & 0x3f) << 2) + 4;
        return 0;
    case 0x8: /* of r4 to r15; none: there is no way outwards */
        mask = (uint32_t)(opcode & 15) << 8;
        mask |= exidx_take(code);
        exidx_pop(state, mask << 4);
        return mask != 0 ? 0 : -1;
    case 0x9:
        return move_to(state, opcode & 15);
    case 0xa: /* r4 to r4 + nnn, and perhaps lr */
        mask = ((UINT32_C(1) << ((opcode & 7) + 1)) - 1) << 4;
        exidx_pop(state, mask | ((opcode & 8) != 0 ? UINT32_C(1) << LR : 0));
        return 0;
    case 0xb:
        return opcode == FINISH ? 1 : run_spare(state, code, opcode);
    default:
        return run_coprocessor(state, code, opcode);
    }
}

/* --- rows ------------------------------------------------------------------------------------- */

static struct cfi_register saved_at(const struct unwinding *state, uint32_t number) {
    struct cfi_register reg = {.place = CFI_UNCHANGED};
    if ((state->popped >> number & 1) != 0) {
        reg = (struct cfi_register){CFI_OFFSET, state->place[number] - state->offset, NULL};
    }
    return reg;
}

/* What was popped into pc is where it goes on, else what is in lr. Whoever pops sp takes it for
 * itself (a signal frame): no row tells that. */
static int exidx_fill(const struct unwinding *state, struct cfi_row *row) {
    int pops_pc = (state->popped >> PC & 1) != 0;
    if ((state->popped >> SP & 1) != 0) {
        return -1;
    }
    row->cfa_register = state->base;
    row->cfa_offset = state->offset;
    row->frame_pointer = saved_at(state, R11);
    row->second_frame_pointer = saved_at(state, R7);
    row->return_address = saved_at(state, pops_pc ? PC : LR);
    return 0;
}

/* Where instructions stand: in the entry, or in .ARM.extab. Of the latter those for the ABI's own
 * personality routines 0 to 2, and behind the address of any other routine what all of them have
 * made their own: the number of further words in the highest byte. */
static struct code open_code(const struct exidx_entry *entry, int *may_catch) {
    const uint32_t *at = &entry->content;
    struct code code = {.bytes = 3};
    int is_compact = (*at & EXIDX_INLINE) != 0;
    if (!is_compact) {
        at = (const uint32_t *)address_at(at); /* NOLINT(performance-no-int-to-ptr) */
        is_compact = (*at & EXIDX_INLINE) != 0;
        *may_catch = !is_compact;
        at += !is_compact;
    } else if ((*at >> 24 & 0x7f) != 0) {
        code.failed = 1;
    }
    code.word = *at << 8;
    code.next = at + 1;
    if (!is_compact) {
        code.words = *at >> 24;
    } else if ((*at >> 24 & 15) != 0) {
        code.failed |= (*at >> 24 & 15) > 2;
        code.words = *at >> 16 & 0xff;
        code.word = *at << 16;
        code.bytes = 2;
    }
    return code;
}

int exidx_find(const uint8_t *table, size_t count, uintptr_t address, struct cfi_row *row) {
    const struct exidx_entry *first = (const struct exidx_entry *)(const void *)table;
    const struct exidx_entry *entry = exidx_search(first, count, address);
    struct unwinding state = {.base = SP};
    struct code code;
    int result = 0;
    if (entry == NULL || entry->content == EXIDX_CANTUNWIND) {
        return -1;
    }
    *row = (struct cfi_row){.start = address_at(&entry->start), .end = UINTPTR_MAX};
    if (entry + 1 != first + count) {
        row->end = address_at(&entry[1].start);
    }
    code = open_code(entry, &row->may_catch);
    while (result == 0 && !code.failed) {
        result = run_one(&state, &code);
    }
    return code.failed || result < 0 ? -1 : exidx_fill(&state, row);
}
