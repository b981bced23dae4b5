/* SPDX-License-Identifier: MIT */
/* machine_riscv64.cpp: RISC-V with 64 bits, for machine.h. */
#include "instrument/gcc/headers.h"

#include "instrument/assembly.h"
#include "instrument/gcc/machine.h"

const char *machine_unfit() {
    return TARGET_64BIT && !TARGET_BIG_ENDIAN
               ? NULL
               : "only for RISC-V with 64-bit addresses, little-endian";
}

/* A store of zero needs no register, and a load of a constant into the zero register does nothing:
 * it marks the store. Both in their long forms. */
std::string machine_store_text() {
    char text[200];
    snprintf(text, sizeof text,
             ".option push\n\t.option norvc\n\tsw\tzero, %%0\n\tlui\tzero, %#x\n\t.option pop",
             FRAME_WORD_MARK);
    return text;
}

static bool leaves(std::string_view statement) {
    std::string_view name = assembly::name_of(statement);
    if (assembly::begins(name, "c.")) {
        name.remove_prefix(2);
    }
    if (name == "j" || name == "jal" || assembly::begins(name, "b")) {
        return !assembly::goes_inside(statement);
    }
    for (const char *leaving :
         {"jr", "jalr", "call", "tail", "ret", ".insn", ".word", ".half", ".4byte", ".2byte"}) {
        if (name == leaving) {
            return true;
        }
    }
    return false;
}

bool machine_asm_leaves(const std::string &text) {
    return assembly::any_statement(text, leaves);
}
