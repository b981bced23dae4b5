#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""assembly.py MACHINE: what the passes for MACHINE (aarch64, riscv64) make of inline assembly, by GCC's cross compiler
and, where it has one, by each Clang that there is a plugin for: what may leave for other code may allocate, system calls
and jumps to labels inside do not. By the report of the pass; nothing is run."""

import os
import re
import sys

from foreign import Machine, fail, run

# Statements that leave, and that do not; options; what they change.
STATEMENTS = {
    "aarch64": (["bl other", "BL other", "blr x9", "br x9", "ret", "retaa", "nop; ret", "nop\\n\\tb other", "b.eq other",
                 "cbz x0, other", "tbnz x0, #3, other", "1: bl other", "1:2:b other", "blraaz x9", ".inst 0xd65f03c0"],
                ["svc #0", "nop", "b 1f; 1:", "1: cbnz x9, 1b", "b.ne 2f\\n 2: nop", "tbz w9, #1, 1f\\n1:",
                 "bic x9, x9, x9", "bti c", "brk #1", "mov x9, #1 // ret", "ldr x9, =1"],
                ["-march=armv8.3-a"], ["x9", "x30", "cc", "memory"]),
    "riscv64": (["call other", "CALL other", "tail other", "jal other", "jal ra, other", "jalr t1", "jr t1", "ret", "j other",
                 "nop; ret", "beqz t1, other", "1: c.jr t1", ".insn i 0x67, 0, ra, t1, 0"],
                ["ecall", "nop", "j 1f; 1:", "1: bnez t1, 1b", "beq t1, t1, 2f\\n 2: nop", "li t1, 3 # ret"],
                [], ["t1", "ra", "memory"]),
}
SOURCE = "void leaving%d(void) {\n    __asm__ volatile(\"%s\" : : : %s);\n}\n"
REASON = "no call may allocate"


def reasons(compiler, option, folder, statements, changed):
    """The function's number, and why it was left out."""
    source, report = os.path.join(folder, "assembly.c"), os.path.join(folder, "report")
    changed = ", ".join('"%s"' % name for name in changed)
    with open(source, "w", encoding="utf-8") as file:
        file.write("".join(SOURCE % (number, text, changed) for number, text in enumerate(statements)))
    if os.path.exists(report):
        os.unlink(report)
    run([*compiler, option, "-O2", "-S", source, "-o", os.path.join(folder, "assembly.s")],
        env=dict(os.environ, MEMTRACE_PASS_REPORT=report))
    with open(report, encoding="utf-8") as file:
        return {int(number): why for why, number in re.findall(r"\t(.*)\tleaving(\d+)\t", file.read())}


def main():
    machine = Machine(sys.argv[1])
    leaving, staying, options, changed = STATEMENTS[machine.name]
    folder = os.path.join(machine.folder, "assembly")
    os.makedirs(folder, exist_ok=True)
    compilers = [([machine.compiler.replace("g++", "gcc")], "-fplugin=" + machine.plugin())]
    for compiler, plugin in machine.clangs() if "clang-pass" in machine.builds else []:
        compilers.append(([compiler[0].replace("++", ""), *compiler[1:]], "-fpass-plugin=" + plugin))
    for compiler, option in compilers:
        found = reasons([*compiler, *options], option, folder, leaving + staying, changed)
        wrong = [text for number, text in enumerate(leaving + staying)
                 if (found.get(number, "") != REASON) != (number < len(leaving))]
        if len(found) != len(leaving + staying) or wrong:
            fail(compiler[0], "takes these for what they are not:", wrong, found)
        print(machine.name, os.path.basename(compiler[0]) + ":", len(found), "statements are judged right")


if __name__ == "__main__":
    main()
