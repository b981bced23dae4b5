/* SPDX-License-Identifier: MIT */
/* mips64.c: reading MIPS64's code (MIPS64 Architecture volume II-A). See machine.h. */
#include "runtime/machine/machine.h"

#include <string.h>

/* Those of before release 6, which have a delay slot: what is called comes back behind it. */
int machine_follows_call(uintptr_t pc) {
    uint32_t code;
    memcpy(&code, (const void *)(pc - 2 * sizeof code), sizeof code);
    return code >> 26 == 3 ||                   /* jal */
           (code & 0xfc1f003f) == 0x00000009 || /* jalr */
           (code & 0xfc1e0000) == 0x04100000;   /* bltzal, bgezal, bal */
}

int machine_read_way_back(uintptr_t pc, uintptr_t end, struct machine_way_back *way) {
    (void)pc;
    (void)end;
    (void)way;
    return 0;
}

int machine_read_way_out(uintptr_t pc, uintptr_t end, struct machine_way_out *way) {
    (void)pc;
    (void)end;
    (void)way;
    return 0;
}

uintptr_t machine_go_frame(uintptr_t pc, uintptr_t end) {
    (void)pc;
    (void)end;
    return 0;
}

uint64_t machine_ask_valgrind(const uint64_t request[6]) {
    (void)request;
    return 0;
}

/* There is no pass of a compiler that would write any. */
int machine_find_store(uintptr_t start, uintptr_t end, uint32_t constant,
                       struct machine_store *store) {
    (void)start;
    (void)end;
    (void)constant;
    (void)store;
    return 0;
}

int64_t machine_fp_above_sp(uintptr_t start, uintptr_t end) {
    (void)start;
    (void)end;
    return -1;
}
