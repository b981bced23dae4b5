/* SPDX-License-Identifier: MIT */
/* machine_aarch64.cpp: AArch64, for machine.h. */
#include "instrument/gcc/headers.h"

#include "instrument/assembly.h"
#include "instrument/gcc/machine.h"

const char *machine_unfit() {
    return TARGET_ILP32 || TARGET_BIG_END ? "only for AArch64 with 64-bit addresses, little-endian"
                                          : NULL;
}

/* A store of zero needs no register, and a move to the zero register does nothing: it marks the
 * store. */
std::string machine_store_text() {
    char text[100];
    snprintf(text, sizeof text, "str\twzr, %%0\n\tmovz\twzr, %#x", FRAME_WORD_MARK);
    return text;
}

bool machine_asm_leaves(const std::string &text) {
    return assembly::any_statement(text, assembly::aarch64_leaves);
}
