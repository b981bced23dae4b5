/* SPDX-License-Identifier: MIT */
/* machine_x86_64.cpp: x86-64, for machine.h. */
#include "instrument/gcc/headers.h"

#include "instrument/gcc/machine.h"

const char *machine_unfit() {
    return !TARGET_64BIT || TARGET_X32 ? "only for x86-64, not for -m32 or -mx32" : NULL;
}

std::string machine_store_text() {
    char text[100];
    snprintf(text, sizeof text, "{movl\t$%#x, %%0|mov\t%%0, %#x}", FRAME_WORD_FRESH,
             FRAME_WORD_FRESH);
    return text;
}

bool machine_asm_leaves(const std::string &text) {
    for (const char *word : {"call", "jmp", "ret", ".byte"}) {
        if (text.find(word) != text.npos) {
            return true;
        }
    }
    return false;
}
