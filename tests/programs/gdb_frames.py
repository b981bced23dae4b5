# SPDX-License-Identifier: MIT
"""Runs inside gdb: prints the stack of every allocation of a marked size as one line of JSON.

Environment: FRAMES_LOW and FRAMES_HIGH bound the sizes, FRAMES_OUT is the file to write.
"""

import json
import os

import gdb

LOW = int(os.environ["FRAMES_LOW"])
HIGH = int(os.environ["FRAMES_HIGH"])
OUT = open(os.environ["FRAMES_OUT"], "w")

# name -> registers whose product is the size
ALLOCATORS = {
    "malloc": ("rdi",), "calloc": ("rdi", "rsi"), "realloc": ("rsi",), "memalign": ("rsi",),
    "aligned_alloc": ("rsi",), "posix_memalign": ("rdx",), "_Znwm": ("rdi",), "_Znam": ("rdi",),
    "_ZnwmSt11align_val_t": ("rdi",), "_ZnamSt11align_val_t": ("rdi",),
}
NAMES = set(ALLOCATORS) | {"_mid_memalign", "reallocarray"} | {
    prefix + name for prefix in ("__libc_", "__GI___libc_", "__") for name in ALLOCATORS}


def module_of(frame):
    return gdb.solib_name(frame.pc()) or ""


def is_allocator(frame):
    name = frame.name() or ""
    return (name in NAMES or name.startswith("operator new")
            or "libmemtrace" in module_of(frame))


rows = {}  # name of a source file -> {address: lines of its rows there}


def lines_at(symtab, address):
    if symtab is None or not symtab.is_valid():
        return set()
    table = rows.get(str(symtab))
    if table is None:
        table = rows[str(symtab)] = {}
        for row in symtab.linetable():
            table.setdefault(row.pc, set()).add(row.line)
    return table.get(address, set())


def lines_of(frame, place):
    """gdb's line and the others of the same address: of several rows gdb takes one that begins a
    statement, MemTrace, as addr2line, the last (tests/symbols compares that one)."""
    lines = {place.line}
    block = frame.block()
    while block is not None and place.symtab:
        if block.function is not None:
            lines |= lines_at(block.function.symtab, place.pc)
        block = block.superblock
    return sorted(lines | lines_at(place.symtab, place.pc))


def describe(frame):
    if frame.type() == gdb.SIGTRAMP_FRAME:
        return {"function": "<signal>", "linkage": "", "line": 0, "lines": [], "module": module_of(frame),
                "inlined": False, "dwarf": False}
    function = frame.function()
    place = frame.find_sal()
    return {
        "function": frame.name() or "",
        "linkage": (function.linkage_name or "") if function else "",
        "line": place.line if place.symtab else 0,
        "lines": lines_of(frame, place) if function and place.symtab else [],
        "module": module_of(frame),
        "inlined": frame.type() == gdb.INLINE_FRAME,
        "dwarf": function is not None,
    }


last = ("", "")  # allocator and stack written last


def write_stack(size, allocator):
    """Writes the present stack, but not twice where operator new jumps to malloc, or our malloc to
    the C library's."""
    global last
    frame = gdb.newest_frame()
    allocator += module_of(frame)
    while frame is not None and is_allocator(frame):
        frame = frame.older()
    frames = []
    while frame is not None:
        if frame.type() != gdb.TAILCALL_FRAME:
            frames.append(describe(frame))
        frame = frame.older()
    line = json.dumps({"size": size, "frames": frames}) + "\n"
    if line != last[1] or allocator == last[0]:
        last = (allocator, line)
        OUT.write(line)
        OUT.flush()


class Allocation(gdb.Breakpoint):
    def __init__(self, name):
        super().__init__(name, internal=True)
        self.silent = True
        self.name = name

    def stop(self):
        size = 1
        for register in ALLOCATORS[self.name]:
            size *= int(gdb.parse_and_eval("(unsigned long)$" + register))
        if LOW <= size <= HIGH:
            caller = gdb.newest_frame().older()
            while caller is not None and caller.type() == gdb.TAILCALL_FRAME:
                caller = caller.older()
            if caller is None or not is_allocator(caller):
                write_stack(size, self.name)
        return False


for command in ("set pagination off", "set confirm off", "set breakpoint pending on",
                "set backtrace past-main on", "set backtrace past-entry on",
                "set backtrace limit unlimited", "set debuginfod enabled off",
                "set print thread-events off", "set disable-randomization on",
                "handle all nostop noprint pass"):
    try:
        gdb.execute(command, to_string=True)
    except gdb.error:
        pass
for allocator in ALLOCATORS:
    Allocation(allocator)
gdb.execute("run")
gdb.execute("quit")
