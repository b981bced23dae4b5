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
