# SPDX-License-Identifier: MIT
"""memtrace-gdb.py: commands of gdb that tell who allocated a block, in a live program or a core file.

gdb finds it by itself where MemTrace was installed as a package, else `source` it (docs/gdb.md). It
only reads: the program's records of its live blocks (the shadow heap, in private memory) and the
profile region (a shared mapping of a file) through gdb, wherever that has them from. Names come from
`memtrace symbolize`, or, where that command is not at hand, from gdb itself. What is read here is
defined by include/memtrace/format.h.
"""

import collections
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time

import gdb

HEADER_SIZE = 16384
SAMPLED_HEAP_OFFSET = 1840
VERSIONS = (b"\1\0\0\0", b"\2\0\0\0", b"\3\0\0\0")
COMPRESSED = 1  # in the second byte of the version
SEGMENT_MAGIC = 0x474D4553
TREE, THREADS, MODULES, POOLS, NODES, AREAS = 1, 4, 5, 6, 14, 15
FRAME_MAPPING, FRAME_POOL, FRAME_CLASSES = 1, 16, 4096
SPAN_SHIFT, COARSE_SHIFT, TICK_SHIFT = 25, 10, 22
COARSE_RECORDS = 1 << (SPAN_SHIFT - COARSE_SHIFT)
FAR_SPANS = 4096  # a block larger than 128 GiB is not found inside

Block = collections.namedtuple("Block", "start size context thread age_ticks pool")
Module = collections.namedtuple("Module", "bias build_id path")


def bits(value, shift, count):
    return value >> shift & ((1 << count) - 1)


def read_memory(address, size):
    try:
        return gdb.selected_inferior().read_memory(address, size).tobytes()
    except gdb.error as error:  # gdb 18: what a core file speaks of, but has not, is a plain error
        raise gdb.MemoryError(str(error)) from None


def read_words(address, count):
    return struct.unpack("<%dQ" % count, read_memory(address, 8 * count))


def text(field):
    return field.split(b"\0")[0].decode(errors="replace")


class Profile:
    """The profile region, or a file with the same bytes. read(offset, size) gives its bytes."""

    def __init__(self, read):
        self.read = read
        header = read(0, 304)
        if header[:8] == bytes(8):  # what a core file's head speaks of, but has not, reads as zeros
            raise gdb.MemoryError("empty")
        if header[:8] != b"MEMTRACE" or header[8:12] not in VERSIONS or struct.unpack_from("<2I", header, 12) != (HEADER_SIZE, 0x01020304):
            raise gdb.GdbError("memtrace: this is not a MemTrace profile of this version")
        self.pid, = struct.unpack_from("<I", header, 44)
        self.end, = struct.unpack_from("<Q", header, 24)
        self.start_ns, = struct.unpack_from("<Q", header, 104)
        self.shadow_heap, self.pool_heap = struct.unpack_from("<2Q", header, 240)
        self.sampled_heap, = struct.unpack("<Q", read(SAMPLED_HEAP_OFFSET, 8))
        self.clock_ns, = struct.unpack_from("<Q", header, 288)
        self.birth_zero_ns = struct.unpack("<Q", read(1808, 8))[0] or self.start_ns
        self.leaves = {}  # (kind, index) -> (offset, item size, items)
        self.find_leaves()

    def find_leaves(self):
        """The region grows while the program runs, but a command sees it standing still."""
        at = HEADER_SIZE
        while at < self.end:
            try:
                head = struct.unpack("<IHHIIQII", self.read(at, 32))
            except gdb.MemoryError:
                head = (0,)  # a hole, or cut off
            if head[0] == SEGMENT_MAGIC and head[5] > 0:
                self.leaves.setdefault((head[1], head[4]), (at, head[6], head[7]))
                at += head[5]
            else:
                at += 4096

    def item(self, kind, number, per_leaf):
        """The item's bytes; None: it is not there."""
        index, place = divmod(number, per_leaf)
        offset, size, count = self.leaves.get((kind, index), (0, 0, 0))
        return self.read(offset + place * size, size) if 0 < place < count else None

    def items_per_leaf(self, kind):
        return self.leaves.get((kind, 0), (0, 0, 1))[2]

    def path(self, context):
        """The frames of a context, innermost first. Parents are older, so this ends."""
        frames = []
        while context:
            frame, parent = self.node(context)
            if not frame:
                break
            frames.append(frame)
            context = parent if parent < context else 0
        return frames

    def node(self, context):
        """Frame and parent, of either form (include/memtrace/format.h); 0, 0: there is none."""
        whole = self.item(TREE, context, 1024)
        if whole is not None:
            return struct.unpack_from("<QI", whole)
        packed = self.item(NODES, context, 1024)
        if packed is None:
            return 0, 0
        packed, = struct.unpack("<Q", packed)
        area = self.item(AREAS, packed >> 48, 512)
        area, = struct.unpack("<Q", area) if area is not None else (0,)
        if area == 0 and packed >> 48:
            area = 0x7fff << 48
        return area | packed & 0xffffff, packed >> 24 & 0xffffff

    def module(self, number):
        record = self.item(MODULES, number, self.items_per_leaf(MODULES)) if number else None
        if record is None:
            return None
        build_id_size, = struct.unpack_from("<I", record, 4)
        bias, = struct.unpack_from("<Q", record, 24)
        return Module(bias, record[48:48 + min(build_id_size, 32)].hex(), text(record[80:]))

    def pool(self, number):
        record = self.item(POOLS, number, self.items_per_leaf(POOLS))
        return text(record) if record else ""

    def thread(self, number):
        """" by thread 123 (name)"."""
        record = self.item(THREADS, number, self.items_per_leaf(THREADS))
        if record is None:
            return " by a thread that is not kept apart"
        _, tid, state = struct.unpack_from("<3I", record)
        name = text(record[96:]) or ("main" if tid == self.pid else "")
        return " by thread %d%s%s" % (tid, " (%s)" % name if name else "",
                                      "" if state == 1 else ", which has ended")


class Heap:
    """One of the program's two shadow heaps: which block holds an address?"""

    def __init__(self, root, shift, pool, now_tick):
        self.root, self.shift, self.pool, self.now_tick = root, shift, pool, now_tick
        self.fine_records = 1 << (SPAN_SHIFT - shift)

    def leaf(self, span):
        return read_words(self.root + 8 * span, 1)[0]

    def age(self, birth, width):
        """Ticks since birth, of which only the low bits are kept; the clock may be a bit behind."""
        ticks = bits(self.now_tick - birth, 0, width)
        return 0 if ticks >> (width - 4) == 15 else ticks

    def find_fine(self, address):
        """Blocks under 1 KiB: the records of the granules in which one may start, last first."""
        last = address >> self.shift
        first = max(0, address - 1023) >> self.shift
        for granule in range(last, first - 1, -1):
            span, place = divmod(granule, self.fine_records)
            leaf = self.leaf(span)
            record = read_words(leaf + 8 * place, 1)[0] if leaf else 0
            start, size = (granule << self.shift) + 8 * bits(record, 46, 2), bits(record, 24, 10)
            if record and start <= address < start + max(size, 1):
                high, = struct.unpack("<H", read_memory(leaf + 8 * self.fine_records + 2 * place, 2))
                return Block(start, size, bits(record, 0, 24), bits(record, 34, 12),
                             self.age(record >> 48 | high << 16, 32), self.pool)
        return None

    def find_coarse(self, address):
        """Larger blocks may start far below. A block that does not hold the address does not end the
        search: malloc's blocks lie inside mappings that were noted, too."""
        last = address >> SPAN_SHIFT
        lowest = max(0, last + 1 - FAR_SPANS)
        leaves = read_words(self.root + 8 * lowest, last + 1 - lowest)
        for span in range(last, lowest - 1, -1):
            if leaves[span - lowest]:
                places = bits(address, COARSE_SHIFT, SPAN_SHIFT - COARSE_SHIFT) + 1
                block = self.find_coarse_in(leaves[span - lowest], span, address,
                                            places if span == last else COARSE_RECORDS)
                if block:
                    return block
        return None

    def find_coarse_in(self, leaf, span, address, end):
        records = read_words(leaf + 10 * self.fine_records, 2 * end)
        for place in range(end - 1, -1, -1):
            owner, size_offset = records[2 * place:2 * place + 2]
            if not owner:
                continue
            start = (span << SPAN_SHIFT) + (place << COARSE_SHIFT) + (size_offset >> 48)
            size = bits(size_offset, 0, 48)
            if start <= address < start + max(size, 1):
                return Block(start, size, bits(owner, 0, 24), bits(owner, 24, 12),
                             self.age(owner >> 36, 28), self.pool)
        return None

    def find(self, address):
        """The innermost block."""
        found = [block for block in (self.find_fine(address), self.find_coarse(address)) if block]
        return max(found, key=lambda block: block.start, default=None)


NOT_IN_CORE = ("the profile region %s is not in this core file: name the profile that the program left "
               "(memtrace profile FILE), and before the next dump set bit 3 of /proc/PID/coredump_filter "
               "(echo 0x3b)")

named_profile = None  # the file of `memtrace profile`


def region_mappings():
    """(address, path) of what may be a profile region: the start of a mapped .mtp file."""
    try:
        listing = gdb.execute("info proc mappings", to_string=True)
    except gdb.error:
        listing = ""
    found = []
    for line in listing.splitlines():
        match = re.match(r"\s*0x([0-9a-f]+)\s+0x[0-9a-f]+\s+0x[0-9a-f]+\s+0x0\s+(?:[-rwxsp]+\s+)?(/.*?)\s*$",
                         line)
        if match and re.search(r"\.mtp( \(deleted\))?$", match.group(2)):
            found.append((int(match.group(1), 16), match.group(2)))
    return found


def read_whole(path):
    """The bytes of a profile, which the command uncompresses."""
    with open(path, "rb") as file:
        whole = file.read()
    if whole[:8] != b"MEMTRACE" or len(whole) < 12 or not whole[9] & COMPRESSED:
        return whole
    command = memtrace_command()
    if command is None:
        raise gdb.GdbError("memtrace: %s is compressed, and the command memtrace, which uncompresses "
                           "it, is not in PATH" % path)
    with tempfile.TemporaryDirectory() as folder:
        raw = os.path.join(folder, "raw.mtp")
        done = subprocess.run([command, "repack", "--raw", "--output", raw, path],
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise gdb.GdbError(done.stderr.strip())
        with open(raw, "rb") as file:
            return file.read()


def open_file(path):
    whole = read_whole(path)

    def read(offset, size):
        if offset + size > len(whole):
            raise gdb.MemoryError("%s is cut off" % path)
        return whole[offset:offset + size]
    return Profile(read)


def open_profile():
    pid = gdb.selected_inferior().pid
    if pid == 0:
        raise gdb.GdbError("memtrace: there is no program: run it, attach to it or open its core file")
    if named_profile:
        try:
            profile = open_file(named_profile)
        except (gdb.MemoryError, OSError) as error:
            raise gdb.GdbError("memtrace: %s" % error) from None
        if profile.pid != pid:
            raise gdb.GdbError("memtrace: %s is the profile of process %d, this is process %d"
                               % (named_profile, profile.pid, pid))
        return profile
    missing = ""
    for base, path in region_mappings():
        try:
            return Profile(lambda offset, size: read_memory(base + offset, size))
        except gdb.MemoryError:
            missing = path
        except gdb.GdbError:
            pass  # a profile of another version, or another file
    if missing:
        raise gdb.GdbError("memtrace: " + NOT_IN_CORE % missing)
    raise gdb.GdbError("memtrace: this program is not profiled: no profile region is mapped")


def is_local_process():
    connection = getattr(gdb.selected_inferior(), "connection", None)
    return connection is not None and connection.type == "native"


def find_sampled(root, address, now_tick):
    """The block among those that sampling has picked (struct memtrace_sampled_heap); or None."""
    for level in struct.unpack("<12Q", read_memory(root, 96)) if root else ():
        groups, keys, blocks = struct.unpack("<3Q", read_memory(level, 24)) if level else (0, 0, 0)
        for i, (start,) in enumerate(struct.iter_unpack("<Q", read_memory(keys, groups * 64)) if groups else ()):
            if start > 1 and start <= address:
                size, _, _, context, thread, birth = struct.unpack("<3Q3I", read_memory(blocks + 40 * i, 36))
                if address - start < max(size, 1):
                    return Block(start, size, context, thread, (now_tick - birth) & 0xffffffff, False)
    return None


def find_block(profile, address):
    """The block; None: there is none."""
    if not profile.shadow_heap:
        raise gdb.GdbError("memtrace: the program keeps no record of its blocks")
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) if is_local_process() else \
        profile.start_ns + profile.clock_ns
    for root, shift, pool in ((profile.pool_heap, 3, True), (profile.shadow_heap, 5, False)):
        if root and address >> 47 == 0:
            block = Heap(root, shift, pool, (now - profile.birth_zero_ns) >> TICK_SHIFT).find(address)
            if block:
                return block
    return find_sampled(profile.sampled_heap, address, (now - profile.birth_zero_ns) >> TICK_SHIFT)


def age_text(ticks):
    seconds = (ticks << TICK_SHIFT) / 1e9
    then = "ago" if is_local_process() else "before the program last allocated or freed"
    if ticks == 0:
        return "just now" if then == "ago" else "just " + then
    for limit, unit, divisor, digits in ((1, "ms", 1e-3, 0), (120, "s", 1, 1), (7200, "min", 60, 1)):
        if seconds < limit:
            return "%.*f %s %s" % (digits, seconds / divisor, unit, then)
    return "%.1f h %s" % (seconds / 3600, then)


def describe(profile, block, address, frames):
    kind = ""
    if frames and frames[0] == FRAME_MAPPING:
        kind = " (a mapping)"
    elif frames and FRAME_POOL <= frames[0] < FRAME_CLASSES:
        kind = " (pool %s)" % profile.pool(frames[0] - FRAME_POOL)
    into = "%d bytes into " % (address - block.start) if address != block.start else ""
    return "0x%x is %sa block of %d byte%s at 0x%x%s, allocated %s%s" % (
        address, into, block.size, "" if block.size == 1 else "s", block.start, kind,
        age_text(block.age_ticks), profile.thread(block.thread))


def memtrace_command():
    """The command that belongs to the library in the program, else the one in PATH; None."""
    for objfile in gdb.objfiles():
        if os.path.basename(objfile.filename or "").startswith("libmemtrace.so"):
            folder = os.path.dirname(os.path.realpath(objfile.filename))
            for up in ("..", "../.."):
                command = os.path.join(folder, up, "bin", "memtrace")
                if os.access(command, os.X_OK):
                    return command
    return shutil.which("memtrace")


def spelled_by_gdb(address):
    """Function and line from gdb's symbols. What the innermost was inlined into has no line there."""
    place = gdb.find_pc_line(address)
    where = " at %s:%d" % (place.symtab.fullname(), place.line) if place.symtab else ""
    lines = []
    block = gdb.block_for_pc(address)
    while block and not block.is_static and not block.is_global:
        if block.function:
            lines.append(block.function.print_name + where)
            where = ""
        block = block.superblock
    return [line + " (inlined)" for line in lines[:-1]] + lines[-1:]


def place_of(profile, frame):
    """The address in memory, and the module with the offset in its file's own terms. A return
    address points behind its call."""
    module = profile.module(bits(frame, 48, 15))
    address = bits(frame, 0, 48) - (0 if frame >> 63 else 1)
    if module is None or not module.path:
        return address, None, "0x%x" % bits(frame, 0, 48)
    return address, module, "%s+0x%x" % (module.path, address - module.bias)


def parameter(name):
    try:
        return gdb.parameter(name) or ""
    except RuntimeError:
        return ""


def symbolize(lines):
    command = [memtrace_command(), "symbolize", "--debug", parameter("debug-file-directory")]
    root = parameter("sysroot")
    if root and os.path.isdir(root):
        command += ["--root", root]
    told = subprocess.run(command, input="\n".join(lines) + "\n", stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    return told.stdout + told.stderr if told.returncode == 0 else "\n".join(lines + [told.stderr])


def spell(profile, frames):
    """The call path as text, a line a function."""
    files = {objfile.filename: objfile.build_id for objfile in gdb.objfiles() if objfile.owner is None}
    command = memtrace_command()
    lines = []
    for frame in frames:
        if frame < FRAME_CLASSES:
            continue
        address, module, name = place_of(profile, frame)
        there = files.get(module.path) if module else None
        if module and there and module.build_id and module.build_id != there:
            lines.append("  0x%x in %s (the file is not the one that ran)" % (address, module.path))
        elif command:
            lines.append("  " + name)
        else:
            lines += ["  " + line for line in spelled_by_gdb(address) or [name]]
    if not lines:
        return "  (no backtrace was kept for it)"
    return symbolize(lines).rstrip("\n") if command else "\n".join(lines)


def address_of(expression):
    try:
        value = gdb.parse_and_eval(expression)
    except gdb.error as error:
        raise gdb.GdbError(str(error)) from None
    kind = value.type.strip_typedefs()
    if kind.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        value = value.referenced_value()
        kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_ARRAY and value.address is not None:
        return int(value.address)
    if kind.code not in (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_INT):
        raise gdb.GdbError("memtrace: %s is neither a pointer nor a number: name the member that points "
                           "to the block, or take an address with &" % expression)
    return int(value) & (1 << 64) - 1


class Command(gdb.Command):
    """MemTrace: who allocated a block. `help memtrace p`."""

    def __init__(self):
        super().__init__("memtrace", gdb.COMMAND_DATA, prefix=True)


class PrintCommand(gdb.Command):
    """memtrace p EXPRESSION
Say who allocated the live block that holds the address: its size, its age, its thread and its
call path with functions, files and lines. The expression is a pointer, a number or an array.
The program, or the program that dumped the core file, must run under MemTrace."""

    def __init__(self):
        super().__init__("memtrace p", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        if not argument.strip():
            raise gdb.GdbError("memtrace p: a pointer is needed")
        address = address_of(argument) & ((1 << 56) - 1)  # without a tag, which AArch64's MTE puts there
        profile = open_profile()
        try:
            block = find_block(profile, address)
        except gdb.MemoryError:
            raise gdb.GdbError("memtrace: the program's records of its blocks cannot be read (are they in "
                               "the core file? bit 0 of /proc/PID/coredump_filter)") from None
        if block is None:
            raise gdb.GdbError("0x%x is not in a live block: it was freed, or is not of malloc" % address)
        frames = profile.path(block.context)
        print(describe(profile, block, address, frames))
        print(spell(profile, frames))


class ProfileCommand(gdb.Command):
    """memtrace profile [FILE]
Take call paths from this profile of the program, as its core file does not hold them.
Without FILE: from the program or its core file again."""

    def __init__(self):
        super().__init__("memtrace profile", gdb.COMMAND_FILES, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, from_tty):
        global named_profile
        path = os.path.expanduser(argument.strip())
        if path and not os.path.isfile(path):
            raise gdb.GdbError("memtrace profile: there is no file %s" % path)
        named_profile = path or None


Command()
PrintCommand()
ProfileCommand()
