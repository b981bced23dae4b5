#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""files.py MACHINE CASE: what a program of MACHINE leaves, read by this machine's memtrace. CASE is

    names     profile and recording of stacks.cpp, whose files are gone from their places: found again below --root, by
              path and by name, each frame is what addr2line of MACHINE's binutils says
    formats   export, query, diff and serve of that recording; what they add up to is what the profile has
    pages     mappings of a program with larger pages, by arithmetic, in profile and recording
    run       memtrace run and record under qemu: what is profiled is said, and is what was asked for"""

import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "web", "python"))

from webserver import Server  # pylint: disable=wrong-import-position
from foreign import BUILD, PATIENCE, Machine, fail, run, skip  # pylint: disable=wrong-import-position

MEMTRACE = os.path.join(BUILD, "bin", "memtrace")
HINT = "the program ran on another machine: --root FOLDER"


class Foreign:
    def __init__(self, machine, case):
        self.machine = machine
        self.folder = os.path.join(machine.folder, "files." + case)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder, mode=0o700)
        self.libraries = "/usr/" + machine.triplet

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def emulated(self, kind, program, *arguments, page=4096, settings=None, **more):
        """memtrace run or record, with the library for the machine; its lines, and the file that it left."""
        file = self.path(kind)
        text = run([MEMTRACE, kind, "--no-summary", "--library", self.machine.library, "--output", file, "--",
                    *self.machine.emulator, *self.machine.pages(page), "-L", self.libraries, program, *arguments],
                   env={**os.environ, "MEMTRACE_REGION_DIR": self.folder, **(settings or {})}, **more)
        return text, file


def report(file, *options):
    """The report, and what was said besides."""
    done = subprocess.run([MEMTRACE, "report", "--json", "--depth", "0", *options, file], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=True)
    return json.loads(done.stdout), done.stderr


def places(data, module):
    """Of each address in the module: its frames, innermost first, as (function, file, line)."""
    found = {}
    for context in data["contexts"]:
        frames = context["frames"]
        for i, frame in enumerate(frames):
            if os.path.basename(frame["module"] or "") == module and (i == 0 or not frames[i - 1]["inlined"]):
                group = [frame]
                while group[-1]["inlined"]:
                    group.append(frames[i + len(group)])
                found[frame["offset"]] = [(one["function"], os.path.basename(one["file"] or "?"), one["line"])
                                          for one in group]
    return found


def plain(name):
    """Without arguments, and of an anonymous namespace the name alone."""
    name = re.sub(r"\(anonymous namespace\)::", "", name or "?")
    return re.sub(r"\(.*", "", name).split(" ")[-1].split("::")[-1].replace("??", "?")


def ask_addr2line(machine, file, offsets):
    """The same by binutils."""
    text = run([machine.triplet + "-addr2line", "-a", "-f", "-i", "-C", "-e", file, *map(hex, offsets)])
    found = {}
    for part in re.split(r"^(?=0x)", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        pairs = zip(lines[1::2], lines[2::2])
        found[int(lines[0], 16)] = [(plain(function), os.path.basename(place.split(":")[0]).replace("??", "?"),
                                     int("0" + re.sub(r"\D.*", "", place.split(":")[-1]))) for function, place in pairs]
    return found


def check_places(machine, data, file):
    ours = places(data, os.path.basename(file))
    theirs = ask_addr2line(machine, file, sorted(ours))
    for offset, frames in ours.items():
        named = [(plain(function), place, line) for function, place, line in frames]
        # Of the innermost of several that were inlined binutils may tell the name of the function around them.
        same = len(named) == len(theirs[offset]) and all(
            one[1:] == other[1:] and (one[0] == other[0] or (i == 0 and other[0] == theirs[offset][-1][0]))
            for i, (one, other) in enumerate(zip(named, theirs[offset])))
        if not same:
            fail(hex(offset), "is", named, "but addr2line says", theirs[offset])
    if len(ours) < 20 or not any(len(frames) > 1 for frames in ours.values()):
        fail("only", len(ours), "addresses, or nothing inlined")
    return len(ours), sum(len(frames) for frames in ours.values())


def sums(data):
    """By call path, of what the test itself allocates."""
    return {context["hash"]: (context["allocations"], context["total_bytes"], context["live_bytes"])
            for context in data["contexts"] if context["allocations"] or context["frees"]}


def make_stacks(foreign):
    """Profile and recording of the same run twice, with the program in a place of its own."""
    os.makedirs(foreign.path("device"))
    program = foreign.path("device", "stacks")
    foreign.machine.compile("stacks.cpp", ["-O2"], program)
    for kind in ("run", "record"):
        foreign.emulated(kind, program, "1", "60", settings={"LD_LIBRARY_PATH": os.path.dirname(foreign.machine.library)})
    return program


def names_in_libc(data):
    """Of functions of the C library, as its file has them."""
    return {frame["function"] for context in data["contexts"] for frame in context["frames"]
            if os.path.basename(frame["module"] or "").startswith("libc.so") and frame["function"]}


def names(foreign):
    program = make_stacks(foreign)
    copies = foreign.path("copies")
    os.makedirs(copies + os.path.dirname(program))
    os.rename(program, copies + program)
    os.makedirs(foreign.path("flat"))
    shutil.copy(copies + program, foreign.path("flat", "stacks"))
    os.makedirs(foreign.path("other"))
    foreign.machine.compile("stacks.cpp", ["-O1"], foreign.path("other", "stacks"))
    profile, recording = foreign.path("run"), foreign.path("record")
    data, said = report(profile)
    if HINT not in said or any(frame[0] for frames in places(data, "stacks").values() for frame in frames):
        fail("without its file there are names, or no hint:", said)
    data, said = report(profile, "--root", foreign.path("other"))
    if "other/stacks is another build than the program's: no names from it" not in said or HINT in said:
        fail("another build is taken, or not told of:", said)
    for root in (copies, foreign.path("flat"), foreign.path("other") + ":" + copies):
        data, said = report(profile, "--root", root + ":" + foreign.libraries)
        if "no names" in said:
            fail("with", root, "it says", said)
        count, frames = check_places(foreign.machine, data, copies + program)
        if not names_in_libc(data):
            fail("no names from the C library below", foreign.libraries)
    recorded, said = report(recording, "--root", copies + ":" + foreign.libraries)
    check_places(foreign.machine, recorded, copies + program)
    lost = [each["lost"] - (each["lost_by_kind"]["frames"] if foreign.machine.lacks_tables else 0)
            for each in (recorded, data)]
    if sums(recorded) != sums(data) or lost != [0, 0]:
        fail("the recording adds up to something else than the profile, or something was lost")
    print(foreign.machine.name, "names:", count, "addresses,", frames, "frames are addr2line's,", len(sums(data)),
          "call paths are the same in profile and recording")


def formats(foreign):
    program = make_stacks(foreign)
    root = foreign.path("flat")
    os.makedirs(root)
    os.rename(program, os.path.join(root, "stacks"))
    roots = ["--root", root + ":" + foreign.libraries]
    recording, profile = foreign.path("record"), foreign.path("run")
    data, _ = report(recording, *roots)
    name = min(names_in_libc(data))
    allocated = sum(context["total_bytes"] for context in data["contexts"])
    for what in ("folded", "pprof", "html", "callgrind", "heaptrack", "sqlite", "replay"):
        cost = ["--cost", "allocated"] if what == "folded" else []
        run([MEMTRACE, "export", "--format", what, *cost, "--output", foreign.path("out." + what), *roots, recording])
        if os.path.getsize(foreign.path("out." + what)) < 100:
            fail(what, "is empty")
    with open(foreign.path("out.folded"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    if sum(int(line.rsplit(" ", 1)[1]) for line in lines) != allocated or not any(name in line for line in lines):
        fail("not", allocated, "bytes, or no names in", [line[:200] for line in lines[:20]])
    again = run([MEMTRACE, "replay", foreign.path("out.replay")])
    rows = json.loads(run([MEMTRACE, "query", "--format", "json", *roots, recording,
                           "SELECT sum(size) AS bytes FROM allocations"]))
    if rows[0]["bytes"] != allocated:
        fail("query adds up to", rows, "and the report to", allocated, again)
    difference = json.loads(run([MEMTRACE, "diff", "--json", *roots, profile, recording]))
    if difference["rows"] or not difference["same"]:
        fail("profile and recording differ:", difference["rows"][:3])
    server = Server(recording, options=roots)
    try:
        server.wait_open()
        if name not in json.dumps(server.get("/r/1/functions?metric=allocated&limit=1000")):
            fail("no names in the page's answer")
    finally:
        server.process.terminate()
        server.process.wait(PATIENCE)
    print(foreign.machine.name, "formats:", len(lines), "call paths,", allocated, "bytes in each")


def pages(foreign):
    program = foreign.path("pieces")
    run([foreign.machine.compiler.replace("g++", "gcc"), "-O1", "-g", os.path.join(HERE, "pieces.c"), "-o", program])
    emulated = set()
    for page in (4096, 16384, 65536):
        for kind in ("run", "record"):
            text, file = foreign.emulated(kind, program, page=page)
            if page > 4096 and "cannot be preloaded" in text:
                continue  # qemu 8.2 maps no library then
            said = re.search(r"page (\d+), left (\d+) and (\d+) bytes", text)
            emulated.add(int(said[1]))
            data, _ = report(file)
            left = {name: sum(context["live_bytes"] for context in data["mappings"]
                              if name in [frame["function"] for frame in context["frames"]])
                    for name in ("cut", "grow")}
            wanted = {"cut": int(said[2]), "grow": int(said[3])}
            if int(said[1]) not in (page, 4096) or left != wanted or data["lost"] != 0:
                fail(kind, "with pages of", page, "has", left, "and should have", wanted, "lost", data["lost"])
            os.unlink(file)
    if emulated == {4096}:
        skip("%s emulates pages of 4096 bytes alone, of which all are there" % foreign.machine.emulator[0])
    if len(emulated) != 3:
        fail("the pages were of", emulated)
    print(foreign.machine.name, "pages: of", wanted, "bytes in pages of 64 KiB all are there")


def is_static(program):
    return "INTERP" not in run(["readelf", "-lW", program])


def stand_in(foreign):
    """A static program of an emulator's name, which becomes that: Debian 12's emulator is not static, Debian 13's is."""
    source, made = foreign.path("stand_in.c"), foreign.path("stand-in", foreign.machine.emulator[0])
    os.makedirs(os.path.dirname(made))
    with open(source, "w", encoding="utf-8") as file:
        file.write('#include <unistd.h>\nint main(int count, char **words) { return execv("%s", words) + 0 * count; }\n' %
                   shutil.which(foreign.machine.emulator[0]))
    run(["gcc", "-static", "-O1", source, "-o", made])
    return made


def runs(foreign):
    """The words are those that tell a user what is looked at."""
    program = foreign.path("pieces")
    run([foreign.machine.compiler.replace("g++", "gcc"), "-O1", "-g", os.path.join(HERE, "pieces.c"), "-o", program])
    emulator = [*foreign.machine.emulator, "-L", foreign.libraries]
    environment = {**os.environ, "MEMTRACE_REGION_DIR": foreign.folder}
    environment.pop("MEMTRACE_LIBRARY", None)

    def start(*words, status=0):
        done = subprocess.run([MEMTRACE, "run", "--no-summary", *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False, cwd=foreign.folder,
                              env=environment)
        if done.returncode != status:
            fail(words, "ended with", done.returncode, "\n" + done.stdout)
        return done.stdout

    def expect(text, *wanted):
        if not all(words in text for words in wanted):
            fail("instead of", wanted, "it says\n" + text)

    machine, called, library = foreign.machine.name, foreign.machine.called, foreign.machine.library
    expect(start("--library", library, "--", *emulator, program),
           "emulates %s, a program for %s: that is profiled, with %s" % (program, called, os.path.realpath(library)),
           "left ")
    left = [name for name in os.listdir(foreign.folder) if name.startswith("memtrace.pieces.")]
    if len(left) != 1 or report(foreign.path(left[0]))[0]["program"] != program:
        fail("it left", os.listdir(foreign.folder))
    # No library for it in this installation, or that of this machine is asked for: the emulator, as without us.
    absent = "libmemtrace.so for %s is not in " % called
    native = os.path.join(BUILD, "lib", "libmemtrace.so")
    static = stand_in(foreign)
    for command in ([*emulator, program], [static, "-L", foreign.libraries, program]):
        name = os.path.basename(command[0])
        before = set(os.listdir(foreign.folder))
        without, asked = start("--", *command), start("--library", native, "--", *command)
        made = [file for file in set(os.listdir(foreign.folder)) - before if file.startswith("memtrace.%s." % name)]
        if is_static(shutil.which(command[0])):
            nothing = "memtrace: %s is statically linked: nothing will be recorded\n" % command[0]
            expect(without, "%s: its program cannot be profiled: %s" % (command[0], absent), nothing, "left ")
            expect(asked, "%s: its program cannot be profiled: " % command[0], nothing, "left ")
        else:
            expect(without, "the emulator itself is profiled, not its program: " + absent, "left ")
            expect(asked, "the emulator itself is profiled", "left ")
        if len(made) != (0 if is_static(shutil.which(command[0])) else 2):
            fail(name, "left", made)
    expect(start("--library", native + ".gone", "--", *emulator, program, status=1), native + ".gone: No such file")
    expect(start("--library", library, "--", "true", status=1), "is not a library for this machine")
    # By its name alone it is for the kernel to say, which may know no emulator.
    text = start("--", program, status=126) if not os.path.exists("/proc/sys/fs/binfmt_misc/qemu-" + machine) else None
    if text is not None:
        expect(text, "is a program for %s, and libmemtrace.so for %s is not in " % (called, called), "nothing will be recorded",
               "cannot run %s: Exec format error" % program)
        expect(start("--library", library, "--", program, status=126),
               "the kernel knows no emulator for %s (binfmt_misc): memtrace run -- qemu-%s %s" % (called, machine, program))
    print(machine, "run: each way says what is profiled")


def main():
    machine, case = Machine(sys.argv[1]), sys.argv[2]
    {"names": names, "formats": formats, "pages": pages, "run": runs}[case](Foreign(machine, case))


if __name__ == "__main__":
    main()
