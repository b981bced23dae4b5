#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Proves on machine code what a compiler pass promises (runtime/stack/frame_word.h):

    check_contract.py [--no-alloc f,g] [--least N] PROGRAM...

For each function of the linked programs that stores the fresh mark into its frame word: every call
that may reach an allocator or unknown code comes after such a store on every path; all stores go to
one place of the frame that no other instruction names; there is unwind information. What a call may
reach is found out from the machine code alone, with the plugins' table of library functions. So
this knows nothing of the compiler, its passes or its plugin.
"""
import argparse
import collections
import os
import re
import sys

import machine_code

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FRESH = 0x5a17c0de
STORE = re.compile(r"\$0x5a17c0de,(-?0x[0-9a-f]+)?\(%(r[sb]p)\)$")
PLACE = re.compile(r"(-?0x[0-9a-f]+)?\(%(r[sb]p)\)")
# Those of the table that do not return.
NEVER_RETURN = {"abort", "_exit", "_Exit", "longjmp", "_longjmp", "siglongjmp", "__longjmp_chk",
                "setcontext", "__stack_chk_fail", "__chk_fail", "__fdelt_chk"}
OPERAND_SIZES = {"b": 1, "w": 2, "l": 4, "q": 8}


def listed():
    """The table of no_alloc.h, read as text."""
    with open(os.path.join(ROOT, "instrument", "no_alloc.h"), encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    plain, mathematical = (set(re.findall(r'"(\w+)"', part)) for part in
                           re.findall(r"\[\] = \{(.*?)\};", text, flags=re.DOTALL)[:2])
    for name in mathematical:
        end = len(name) - 2 if name.endswith("_r") else len(name)
        plain |= {name[:end] + suffix + name[end:] for suffix in ("", "f", "l", "f128")}
    return plain | {"__tls_get_addr"}


class Code:
    """One function: its parts (the cold one may lie elsewhere) and the ways through them."""

    def __init__(self, name, parts):
        self.name, self.parts = name, parts
        self.start = parts[0].start

    def __contains__(self, address):
        return any(part.start <= address < part.end for part in self.parts)

    def instructions(self, program):
        for part in self.parts:
            address = part.start
            while address < part.end and address in program.code:
                yield program.code[address]
                address += program.code[address].size


class Program:
    def __init__(self, path, no_alloc):
        self.elf = machine_code.Elf(path)
        self.code = machine_code.disassemble(path)
        self.rows = machine_code.Rows(path)
        self.no_alloc = no_alloc
        self.functions = self.collect()
        self.by_start = {f.start: f for f in self.functions}
        self.targets = {}
        self.may_allocate, self.returning = self.fixpoint()

    def collect(self):
        """Functions, each with its .cold part."""
        cold = collections.defaultdict(list)
        for part in self.elf.functions:
            match = re.fullmatch(r"(.*)\.cold(\.\d+)?", part.name)
            if match:
                cold[match.group(1)].append(part)
        functions = []
        for part in self.elf.functions:
            if not re.search(r"\.cold(\.\d+)?$", part.name):
                functions.append(Code(part.name, [part] + self.colds_of(part, cold[part.name])))
        return functions

    def colds_of(self, part, candidates):
        """Of the cold parts with this name (static functions may share it) those it jumps to."""
        jumps = set()
        address = part.start
        while address < part.end and address in self.code:
            match = re.match(r"([0-9a-f]+) <", self.code[address].operands)
            if match:
                jumps.add(int(match.group(1), 16))
            address += self.code[address].size
        return candidates if len(candidates) < 2 else \
            [c for c in candidates if any(c.start <= jump < c.end for jump in jumps)]

    def imported(self, address):
        """The library function whose linkage stub lies at `address`."""
        for _ in range(3):
            if address not in self.code:
                return None
            insn = self.code[address]
            if insn.mnemonic == "jmp":
                return self.slot_of(insn)
            address += insn.size
        return None

    def slot_of(self, insn):
        """The import that `call *slot(%rip)` goes to."""
        match = re.search(r"# ([0-9a-f]+)", insn.operands)
        return self.elf.imports.get(int(match.group(1), 16)) if match else None

    def callee(self, insn):
        """What a call or jump goes to: a function of the program, a library's name, or None."""
        match = re.match(r"([0-9a-f]+)\b", insn.operands)
        if not match:
            return self.slot_of(insn) if insn.operands.startswith("*") else None
        address = int(match.group(1), 16)
        return self.by_start.get(address) or self.imported(address)

    def is_allocating(self, callee):
        if isinstance(callee, Code):
            return callee.name not in self.no_alloc and callee in self.may_allocate
        return callee is None or callee not in self.no_alloc

    def is_returning(self, callee):
        return callee in self.returning if isinstance(callee, Code) else callee not in NEVER_RETURN

    def tables(self, code):
        """Addresses that `lea` or `mov` makes in the function: place, register, address."""
        found = []
        for insn in code.instructions(self):
            made = re.match(r"(?:\$0x([0-9a-f]+)|0x[0-9a-f]+\(%rip\)),%(\w+)(?: +# ([0-9a-f]+))?",
                            insn.operands)
            if made and insn.mnemonic.startswith(("lea", "mov")):
                found.append((insn.address, made.group(2), int(made.group(1) or made.group(3), 16)))
        return found

    def entries(self, code, table, others):
        """Code addresses in a table of distances from itself, or of pointers."""
        found = []
        for layout, step, base in (("<i", 4, table), ("<Q", 8, 0)):
            address = table
            while address == table or address not in others:
                value = self.elf.read(address, layout)
                if value is None or base + value not in code or base + value not in self.code:
                    break
                found.append(base + value)
                address += step
        return found

    def jump_targets(self, code):
        """Where each indirect jump of the function may go to within it. A jump without a table is a
        tail call."""
        if code in self.targets:
            return self.targets[code]
        made = self.tables(code)
        bases = {table for _, _, table in made}
        history, result = collections.deque(maxlen=40), {}
        for insn in code.instructions(self):
            history.append(insn)
            if insn.mnemonic != "jmp" or not insn.operands.startswith("*"):
                continue
            absolute = re.match(r"\*(0x[0-9a-f]+)\(,%\w+,8\)", insn.operands)
            if absolute:
                result[insn.address] = self.entries(code, int(absolute.group(1), 16), bases)
                continue
            register = self.table_register(insn, history)
            if register is None:
                result[insn.address] = []
                continue
            near = [t for at, r, t in made if r == register and at <= insn.address]
            own = self.entries(code, near[-1], bases) if near else []
            result[insn.address] = own or [e for t in bases for e in self.entries(code, t, bases)]
        self.targets[code] = result
        return result

    @staticmethod
    def table_register(jump, history):
        """The register that holds the base of the jump's table; None: it is no table's."""
        scaled = re.search(r"\(%(\w+),%\w+,[18]\)", jump.operands)
        if scaled:
            return scaled.group(1)
        if re.match(r"\*%\w+$", jump.operands):
            for insn in reversed(history):
                load = re.match(r"\(%(\w+),%\w+,[148]\)|0x0\(,%\w+,[48]\)", insn.operands)
                if load and insn.mnemonic.startswith(("movslq", "mov")):
                    return load.group(1)
                if insn.mnemonic in ("call", "ret"):
                    break
        return None

    def flow(self, code, blocked=lambda insn: False):
        """All instructions on paths from the function's start that pass no blocked one."""
        targets = self.jump_targets(code)
        pending, seen = [code.start], set()
        while pending:
            address = pending.pop()
            while address in code and address in self.code and address not in seen:
                seen.add(address)
                insn = self.code[address]
                yield insn
                if blocked(insn) or insn.mnemonic in ("ret", "ud2", "hlt", "(bad)"):
                    break
                if insn.mnemonic == "call" and not self.is_returning(self.callee(insn)):
                    break
                if insn.mnemonic.startswith("j") or insn.mnemonic.startswith("loop"):
                    pending += targets.get(address, [])
                    match = re.match(r"([0-9a-f]+)\b", insn.operands)
                    if match:
                        pending.append(int(match.group(1), 16))
                    if insn.mnemonic == "jmp":
                        break
                address += insn.size

    def leaves(self, code, insn):
        """A tail call."""
        if not insn.mnemonic.startswith("j"):
            return False
        match = re.match(r"([0-9a-f]+)\b", insn.operands)
        if match:
            return int(match.group(1), 16) not in code
        return not self.jump_targets(code).get(insn.address)

    def fixpoint(self):
        """The functions that may allocate and those that may return."""
        self.may_allocate, self.returning = set(), set()
        callers = collections.defaultdict(set)
        pending = list(self.functions)
        while pending:
            code = pending.pop()
            may, returns = False, False
            for insn in self.flow(code):
                tail = self.leaves(code, insn)
                if insn.mnemonic == "call" or tail:
                    callee = self.callee(insn)
                    may = may or self.is_allocating(callee)
                    returns = returns or (tail and self.is_returning(callee))
                    if isinstance(callee, Code):
                        callers[callee].add(code)
                returns = returns or insn.mnemonic == "ret"
            changed = (may and code not in self.may_allocate) or \
                (returns and code not in self.returning)
            if may:
                self.may_allocate.add(code)
            if returns:
                self.returning.add(code)
            if changed:
                pending += callers[code]
        return self.may_allocate, self.returning


def is_store(insn):
    return insn.mnemonic == "movl" and STORE.match(insn.operands) is not None


def below_cfa(program, insn, displacement, register):
    """How far below the CFA an operand lies; None: not at a fixed distance."""
    row = program.rows.at(insn.address)
    if row is None or row.register != register:
        return None
    return row.offset - int(displacement or "0", 16)


def vector_operand_size(insn):
    name = insn.mnemonic.lstrip("v")
    if re.match(r"(cvtt?ss2|movss|\w+ss$|movd$|insertps|pmov[sz]x(bd|wq))", name):
        return 4
    if re.match(r"(cvtt?s[di]|cvt(ps|dq|pi)2pd|\w+sd$|movq$|mov[lh]p|pmov[sz]x(bw|wd|dq))", name):
        return 8 if name[-1] != "l" else 4  # cvtsi2sdl reads a 32-bit integer
    return 2 if re.match(r"pmov[sz]xbq", name) else 32 if "%ymm" in insn.operands else 16


def operand_size(insn):
    """How many bytes of memory an instruction touches; at least what it does."""
    name = insn.mnemonic
    extended = re.match(r"(?:movz|movs)([bwl])[wlq]$", name)
    if extended:
        return OPERAND_SIZES[extended.group(1)]
    if "%xmm" in insn.operands or "%ymm" in insn.operands:
        return vector_operand_size(insn)
    register = re.search(r"%(\w+)", re.sub(r"\([^)]*\)", "", insn.operands))
    if name.startswith("set"):
        return 1
    if register is None:
        return OPERAND_SIZES.get(name[-1], 8)
    register = register.group(1)
    if re.match(r"r\d+[dwb]$", register):
        return {"d": 4, "w": 2, "b": 1}[register[-1]]
    return 8 if register[0] == "r" else 4 if register[0] == "e" else \
        1 if register[-1] in "lh" else 2


def check_function(program, code, wrong):
    """Checks a function; 1 if it has a frame word that the runtime can use."""
    instructions = list(code.instructions(program))
    stores = [insn for insn in instructions if is_store(insn)]
    for insn in instructions:
        if "0x5a17c0de" in insn.operands and not is_store(insn):
            wrong(code, insn, "the mark in another instruction")
    if not stores:
        return 0
    for insn in program.flow(code, blocked=is_store):
        if insn.mnemonic == "call" and program.is_allocating(program.callee(insn)):
            wrong(code, insn, "a call without a store before it")
    places = set()
    for insn in stores:
        if program.rows.fde(insn.address) is None:
            wrong(code, insn, "no unwind information")
        places.add(below_cfa(program, insn, *STORE.match(insn.operands).groups()))
    places.discard(None)
    if len(places) > 1:
        wrong(code, stores[0], "words at %s below the CFA" % sorted(places))
    for insn in instructions:
        match = PLACE.search(insn.operands)
        if not match or is_store(insn) or not places or insn.mnemonic.startswith("nop"):
            continue
        below = below_cfa(program, insn, *match.groups())
        for place in places:
            if below is not None and place - 4 < below < place + operand_size(insn) and \
                    not (insn.mnemonic == "lea" and below != place):
                wrong(code, insn, "names the word at %d below the CFA" % place)
    return len(places)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-alloc", default="", help="more functions that never allocate")
    parser.add_argument("--least", type=int, default=1, help="usable words that there must be")
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    no_alloc = listed() | set(filter(None, options.no_alloc.split(",")))
    failures = []
    for path in options.programs:
        program = Program(path, no_alloc)

        def wrong(code, insn, what):
            failures.append("%s: %s: %x: %s %s: %s" % (path, code.name, insn.address, insn.mnemonic,
                                                      insn.operands, what))

        words = sum(check_function(program, code, wrong) for code in program.functions)
        print("%s: %d functions, %d may allocate, %d with a word" % (
            path, len(program.functions), len(program.may_allocate), words))
        if words < options.least:
            failures.append("%s: %d words, %d expected" % (path, words, options.least))
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
