# SPDX-License-Identifier: MIT
"""Linked x86-64 programs as a checker needs them: sections, symbols, pointers, instructions, unwind
rows. Reads ELF itself, leaves instructions to objdump and unwind rows to readelf."""
import bisect
import collections
import re
import struct
import subprocess

Instruction = collections.namedtuple("Instruction", "address mnemonic operands size")
Function = collections.namedtuple("Function", "name start end")
# Where the frame begins from `address` on: register + offset; register None: an expression.
Row = collections.namedtuple("Row", "address register offset")


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True).stdout


class Elf:
    """The parts of an ELF file that are not code."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        if self.data[:5] != b"\x7fELF\x02":
            raise ValueError(path + ": no 64-bit ELF file")
        self.path = path
        self.sections = self.read_sections()
        self.functions = self.read_functions()
        self.pointers, self.imports = self.read_relocations()

    def read_sections(self):
        offset, = struct.unpack_from("<Q", self.data, 0x28)
        size, count, names = struct.unpack_from("<HHH", self.data, 0x3a)
        Section = collections.namedtuple("Section", "name type address offset size link")
        raw = [struct.unpack_from("<IIQQQQII", self.data, offset + i * size) for i in range(count)]
        table = raw[names][4]
        return [Section(self.text(table + r[0]), r[1], r[3], r[4], r[5], r[6]) for r in raw]

    def text(self, offset):
        return self.data[offset:self.data.index(b"\0", offset)].decode()

    def symbols_of(self, section):
        names = self.sections[section.link].offset
        for at in range(section.offset, section.offset + section.size, 24):
            name, info, _, place, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
            yield self.text(names + name), info & 15, place, value, size

    def read_functions(self):
        """Those defined here, in the order of addresses, one name for each address."""
        found = {}
        for section in self.sections:
            if section.type == 2:
                for name, kind, place, value, size in self.symbols_of(section):
                    if kind in (2, 10) and place != 0 and size != 0:
                        found.setdefault(value, Function(name, value, value + size))
        return [found[value] for value in sorted(found)]

    def read_relocations(self):
        """Addresses that hold a pointer into the file, and those that hold an import's."""
        pointers, imports = {}, {}
        for section in self.sections:
            if section.type != 4 or not section.name.startswith(".rela."):
                continue
            names = [s[0] for s in self.symbols_of(self.sections[section.link])] \
                if self.sections[section.link].type in (2, 11) else []
            for at in range(section.offset, section.offset + section.size, 24):
                place, info, addend = struct.unpack_from("<QQq", self.data, at)
                if info & 0xffffffff == 8:
                    pointers[place] = addend
                elif info & 0xffffffff in (6, 7):
                    imports[place] = names[info >> 32]
        return pointers, imports

    def read(self, address, layout):
        """The number at `address`; None outside the file."""
        if layout == "<Q" and address in self.pointers:
            return self.pointers[address]
        for section in self.sections:
            if section.type != 8 and section.address <= address and section.address != 0 and \
                    address + struct.calcsize(layout) <= section.address + section.size:
                return struct.unpack_from(layout, self.data,
                                          address - section.address + section.offset)[0]
        return None


LINE = re.compile(r"^ *([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t(.*)$")
PREFIXES = {"notrack", "bnd", "rep", "repz", "repnz", "lock", "cs", "ds", "fs", "gs",
            "data16", "addr32", "rex", "rex.W"}


def disassemble(path):
    """All instructions, by address."""
    found = {}
    for line in output("objdump", "-dw", path).split("\n"):
        match = LINE.match(line)
        if match:
            words = match.group(3).split(None, 1)
            while words and words[0] in PREFIXES and len(words) > 1:
                words = words[1].split(None, 1)
            address = int(match.group(1), 16)
            found[address] = Instruction(address, words[0] if words else "(bad)",
                                         words[1].strip() if len(words) > 1 else "",
                                         len(match.group(2)) // 3)
    return found


def unwind_rows(path):
    """All rows of the unwind table, in the order of addresses, and where each FDE starts and ends."""
    rows, ranges = [], []
    for line in output("readelf", "-wF", path).split("\n"):
        fde = re.search(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        if fde:
            ranges.append((int(fde.group(1), 16), int(fde.group(2), 16)))
            continue
        row = re.match(r"([0-9a-f]{16}) (\S+)", line)
        if row and ranges:
            place = re.fullmatch(r"(r[sb]p)\+(\d+)", row.group(2))
            rows.append(Row(int(row.group(1), 16), place and place.group(1),
                            int(place.group(2)) if place else 0))
    # An FDE without changes has no row of its own in the listing: its CIE's, at a function's start.
    listed = {row.address for row in rows}
    rows += [Row(start, "rsp", 8) for start, _ in ranges if start not in listed]
    return sorted(rows), sorted(ranges)


class Rows:
    """Looks up the unwind row of an address."""

    def __init__(self, path):
        self.rows, self.ranges = unwind_rows(path)
        self.addresses = [row.address for row in self.rows]
        self.starts = [start for start, _ in self.ranges]

    def fde(self, address):
        index = bisect.bisect_right(self.starts, address) - 1
        return self.ranges[index] if index >= 0 and address < self.ranges[index][1] else None

    def at(self, address):
        return self.rows[bisect.bisect_right(self.addresses, address) - 1] \
            if self.fde(address) else None
