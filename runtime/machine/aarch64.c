/* SPDX-License-Identifier: MIT */
/* aarch64.c: reading AArch64's code (Arm ARM, C4.1 "A64 instruction set encoding"). See machine.h.
 */
#include "runtime/machine/machine.h"

#include <string.h>

int machine_follows_call(uintptr_t pc) {
    uint32_t code;
    memcpy(&code, (const void *)(pc - sizeof code), sizeof code);
    return (code & 0xfc000000) == 0x94000000 || /* bl */
           (code & 0xfefff800) == 0xd63f0800 || /* blraa, blrab and their like */
           (code & 0xfffffc1f) == 0xd63f0000;   /* blr */
}

uint64_t machine_ask_valgrind(const uint64_t request[6]) {
    (void)request;
    return 0;
}

/* No pass is built for it yet. */
int machine_find_store(uintptr_t start, uintptr_t end, uint32_t constant,
                       struct machine_store *store) {
    (void)start;
    (void)end;
    (void)constant;
    (void)store;
    return 0;
}
