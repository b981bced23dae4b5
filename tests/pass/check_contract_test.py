#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_contract.py must find every kind of broken promise, and nothing in code that keeps them all."""
import os
import subprocess
import sys
import tempfile

CHECKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_contract.py")
STORE = "movl $0x5a17c0de, 12(%rsp)"
ENTER, LEAVE = "subq $24, %rsp\n.cfi_def_cfa_offset 32", "addq $24, %rsp\n.cfi_def_cfa_offset 8"
TABLE = """lea 9f(%%rip), %%rdx
movslq (%%rdx,%%rdi,4), %%rax
addq %%rdx, %%rax
%s
jmp *%%rax
.section .rodata
9: .long 1f-9b, 2f-9b
.text
1: call malloc@PLT
2:"""

# What a function does between entering and leaving, and what the checker says; "": nothing.
CASES = {
    "covered": (STORE + "\ncall malloc@PLT", ""),
    "listed": ("call strlen@PLT\n" + STORE + "\ncall malloc@PLT", ""),
    "tail": ("test %edi,%edi\njne 1f\n" + LEAVE + "\njmp malloc@PLT\n1: .cfi_def_cfa_offset 32\n" +
             STORE + "\ncall malloc@PLT", ""),
    "harmless_callee": ("call leaf\n" + STORE + "\ncall malloc@PLT", ""),
    "covered_table": (TABLE % STORE, ""),
    "after_abort": ("test %edi,%edi\njne 1f\ncall abort@PLT\n1: " + STORE + "\ncall malloc@PLT", ""),
    "neighbour": (STORE + "\nmovl %eax, 8(%rsp)\nmovq %rax, 16(%rsp)\ncall malloc@PLT", ""),
    "late": ("call malloc@PLT\n" + STORE, "a call without a store"),
    "one_path": ("test %edi,%edi\nje 1f\n" + STORE + "\n1: call malloc@PLT",
                 "a call without a store"),
    "pointer": ("call *%rax\n" + STORE, "a call without a store"),
    "allocating_callee": ("call covered\n" + STORE, "a call without a store"),
    "recursion": ("test %edi,%edi\nje 1f\ncall recursion\n1: " + STORE + "\ncall malloc@PLT", "a call without a store"),
    "table": (TABLE % "" + "\n" + STORE, "a call without a store"),
    "two_words": (STORE + "\nmovl $0x5a17c0de, 8(%rsp)\ncall malloc@PLT", "words at [20, 24]"),
    "overwritten": (STORE + "\nmovl %eax, 12(%rsp)\ncall malloc@PLT", "names the word"),
    "overlapped": (STORE + "\nmovq %rax, 8(%rsp)\ncall malloc@PLT", "names the word"),
    "vector": (STORE + "\nmovups %xmm0, (%rsp)\ncall malloc@PLT", "names the word"),
    "address": (STORE + "\nlea 12(%rsp), %rdi\ncall malloc@PLT", "names the word"),
    "other_form": ("movl $0x5a17c0de, %eax\nmovl %eax, 12(%rsp)\ncall malloc@PLT",
                   "another instruction"),
    "no_rows": (STORE + "\ncall malloc@PLT", "no unwind information"),
}


def assembly(name, body):
    lines = [".globl %s\n.type %s, @function\n%s:" % (name, name, name), ".cfi_startproc", ENTER, body,
             LEAVE, "ret", ".cfi_endproc", ".size %s, .-%s" % (name, name)]
    text = "\n".join(lines) + "\n"
    if name == "no_rows":
        text = "\n".join(line for line in text.split("\n") if ".cfi" not in line) + "\n"
    return text


def main():
    source = ".text\n.globl leaf\n.type leaf, @function\nleaf: ret\n.size leaf, .-leaf\n"
    source += "".join(assembly(name, body) for name, (body, _) in CASES.items())
    source += ".globl main\nmain: ret\n.section .note.GNU-stack\n"
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "cases")
        with open(program + ".s", "w", encoding="utf-8") as file:
            file.write(source)
        subprocess.run(["cc", "-o", program, program + ".s"], check=True)
        done = subprocess.run([sys.executable, CHECKER, program], stdout=subprocess.PIPE, text=True)
    wrong = []
    for name, (_, expected) in CASES.items():
        said = [line for line in done.stdout.split("\n") if ": %s: " % name in line]
        if (expected and not any(expected in line for line in said)) or (not expected and said):
            wrong.append("%s: expected %r, got %r" % (name, expected, said))
    print("\n".join(wrong) or "%d cases" % len(CASES))
    return 1 if wrong or done.returncode != 1 else 0


if __name__ == "__main__":
    sys.exit(main())
