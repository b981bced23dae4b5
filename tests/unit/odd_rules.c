/* SPDX-License-Identifier: MIT */
/* odd_rules.c: a library for path_test, of functions whose unwind tables say where their callers'
 * frames would lie: further out, at the same place, further in. Nobody calls them. A rule counts
 * from the frame's own stack pointer, so what the tables call 8 is one word. */
#define FUNCTION(name, cfa_offset)                                                                 \
    __asm__(".text\n.globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n"       \
            ".cfi_def_cfa_offset " cfa_offset "\n.skip 16, 0x90\n.cfi_endproc\n.size " name        \
            ", 16\n")

FUNCTION("leads_out", "8");
FUNCTION("stands_still", "0");
FUNCTION("leads_inwards", "-8");
