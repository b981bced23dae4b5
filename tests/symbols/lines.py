# SPDX-License-Identifier: MIT
"""Function, file and line of return addresses: memtrace against the tools that are known for it.

usage: lines.py [few|many]   ("many": every combination, every address; minutes)

C and C++ programs are built by GCC and Clang, -O0 to -O3, with and without -flto, DWARF 4 and 5.
Asked about are the places of calls as a profiler sees them: each return address minus one. Where
llvm-symbolizer agrees with elfutils' eu-addr2line or, as that cannot follow inlined calls from one
unit into another (-flto), with binutils' addr2line about a frame, `memtrace symbolize` must say the
same: function, whole path of the file, line; inlined frames included.
"""

import itertools
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
import harness

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = harness.SOURCE
SUBJECTS = {  # name: (is it C++?, files)
    "containers": (True, [os.path.join(HERE, "containers.cpp")]),
    "ways": (True, [os.path.join(SOURCE, "tests", "unwind", "workloads", "ways.cpp")]),
    "stacks_cxx": (True, [os.path.join(harness.SUBJECTS, "stacks_cxx.cpp")]),
    "stacks": (False, [os.path.join(harness.SUBJECTS, "stacks.c")]),
    "indexer": (False, [os.path.join(SOURCE, "examples", "indexer", name)
                        for name in ("corpus.c", "index.c", "main.c")]),
}
LEVELS = ("-O0", "-O1", "-O2", "-O3")
# What runs each time: every value of every kind at least once.
FEW = (("containers", "gcc", "-O2", 5, False), ("ways", "clang", "-O3", 4, False),
       ("stacks_cxx", "gcc", "-O1", 4, False), ("stacks_cxx", "gcc", "-O3", 5, True),
       ("stacks_cxx", "clang", "-O2", 5, True), ("stacks", "gcc", "-O0", 5, False),
       ("indexer", "clang", "-O1", 5, False), ("indexer", "gcc", "-O2", 4, True))
FEW_ADDRESSES = 80  # of one program: eu-addr2line takes 20 ms where much is inlined


def compile_subject(folder, subject, compiler, level, dwarf, lto):
    cplusplus, files = SUBJECTS[subject]
    program = os.path.join(folder, "%s-%s%s-dwarf%d%s" % (subject, compiler, level, dwarf,
                                                          "-lto" if lto else ""))
    command = [harness.COMPILERS[compiler][cplusplus], "-gdwarf-%d" % dwarf, level, "-w", "-pthread",
               *(["-gdwarf-aranges"] if compiler == "clang" else []),  # eu-addr2line needs them
               "-std=c++20" if cplusplus else "-std=gnu17", "-D_GNU_SOURCE",
               "-I" + os.path.join(SOURCE, "include"), "-I" + os.path.join(harness.BUILD, "include")]
    command += ["-flto"] + (["-fuse-ld=lld"] if compiler == "clang" else []) if lto else []
    command += [*files, "-o", program, "-L" + os.path.dirname(harness.LIBRARY), "-lmemtrace",
                "-ldl", "-lm"]
    result = harness.execute(command)
    if result.returncode != 0:
        print(" ".join(command), result.stderr.decode(errors="replace"), sep="\n")
        sys.exit(1)
    return program


def output_of(command, text):
    """eu-addr2line ends with 1 if it does not know one of many places: counting answers is enough."""
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True,
                          env=harness.clean_environment(), timeout=600).stdout


def places_of_calls(program):
    """The addresses that a profiler asks about: the last byte of each call."""
    listing = output_of(["objdump", "-d", "--no-show-raw-insn", program], "")
    places, after_call = [], False
    for line in listing.splitlines():
        match = re.match(r"\s*([0-9a-f]+):\t(\S+)(?: (\S+))?", line)
        if match and after_call:
            places.append(int(match.group(1), 16) - 1)
        # "notrack call" and "bnd call" are calls, too
        after_call = bool(match) and "call" in (match.group(2), match.group(3))
    return places


def plain_path(path):
    return os.path.normpath(path) if path.startswith("/") else path


def ask_addr2line(tool, program, places):
    """For each place a list of (linkage name, file, line), innermost first. elfutils' tool or
    binutils'."""
    answer = output_of([tool, "-a", "-i", "-f", "-e", program],
                       "".join("0x%x\n" % place for place in places))
    found = []
    for line in answer.splitlines():
        if re.fullmatch("0x[0-9a-f]+", line):
            found.append([])
            name = None
        elif name is None:
            name = line.split(" inlined at ")[0]
        else:
            match = re.match(r"(.*?):(\d+|\?)(:\d+)?( \(discriminator \d+\))?$", line)
            found[-1].append((name, plain_path(match.group(1)), int(match.group(2).replace("?", "0"))))
            name = None
    return found


def ask_llvm(program, places, names="linkage"):
    answer = output_of(["llvm-symbolizer", "--output-style=JSON", "--no-demangle", "--functions=" + names, "-e",
                        program], "".join("0x%x\n" % place for place in places))
    return [[(frame["FunctionName"], plain_path(frame["FileName"]), frame["Line"])
             for frame in json.loads(line)["Symbol"]] for line in answer.splitlines()]


def ask_memtrace(program, places):
    answer = output_of([harness.MEMTRACE, "symbolize"],
                       "".join("%s+0x%x\n" % (program, place) for place in places))
    found = [[]]
    for line in answer.splitlines():
        inlined = line.endswith(" (inlined)")
        line = line.strip()[:-len(" (inlined)")] if inlined else line.strip()
        match = re.match(r"(.*) at (.*):(\d+)$", line)
        found[-1].append((match.group(1), match.group(2), int(match.group(3))) if match
                         else (line, "", 0))
        if not inlined:
            found.append([])
    return found[:-1]


def readable_names(program, places, llvm):
    """By c++filt; of linkage names that it cannot read (constraints, which Clang 16 and newer put in) the names that
    the debug information has, without what they are qualified by."""
    names = sorted({name for frames in llvm for name, _, _ in frames})
    readable = dict(zip(names, output_of(["c++filt", "-i"], "\n".join(names) + "\n").splitlines()))
    unread = {name for name, answer in readable.items() if answer.startswith("_Z")}
    for frames, short in zip(llvm, ask_llvm(program, places, "short")) if unread else ():
        readable.update((name, other[0]) for (name, _, _), other in zip(frames, short) if name in unread)
    return readable


def same_function(ours, theirs):
    """A name that is not mangled is qualified by us, not by them. GCC's parts of functions
    (".isra.0", ".cold") are the function."""
    ours, theirs = (re.sub(r"( \[clone [^]]*\])+$|\.(isra|part|constprop|cold|lto_priv).*$", "", name)
                    for name in (ours, theirs))
    return ours == theirs or ours.endswith("::" + theirs)


def agreed(llvm, others):
    """The frames of llvm-symbolizer that another tool has at the same place of its answer; None
    where none has. An answer of another length counts for its innermost frame."""
    frames = []
    for number, (name, *place) in enumerate(llvm):
        same = [other[number] for other in others if (number == 0 or len(other) == len(llvm))
                and list(other[number][1:]) == place]
        named = [other for other in same if other[0] == name]
        frames.append((name if named else None, *place) if same else None)
    return frames


def compare(program, step):
    """Returns how many places were compared."""
    places = places_of_calls(program)[::step]
    base = os.path.basename(program)
    ours, llvm, *others = answers = [
        ask_memtrace(program, places), ask_llvm(program, places),
        ask_addr2line("eu-addr2line", program, places), ask_addr2line("addr2line", program, places)]
    for answer in answers:
        if not harness.equal(len(answer), len(places), base, "answers"):
            return 0
    readable = readable_names(program, places, llvm)
    compared = frame_count = 0
    for place, mine, *theirs in zip(places, *answers):
        frames = agreed(theirs[0], theirs[1:])
        if not any(frames):
            continue
        compared += 1
        harness.equal(len(mine), len(frames), "%s+0x%x" % (base, place), "number of frames")
        for number, (got, want) in enumerate(zip(mine, frames)):
            if want is None:
                continue
            frame_count += 1
            what = "%s+0x%x frame %d of %d" % (base, place, number + 1, len(frames))
            name, file, line = want
            harness.equal(got[1:], (file, line) if line else ("", 0), what, got[0])
            if name is not None and not same_function(got[0], readable[name]):
                harness.fail(what, "we say", got[0], "they say", readable[name])
    print("%-32s %6d places, %6d compared, %7d frames" % (base, len(places), compared, frame_count),
          flush=True)
    return compared


def main(how):
    harness.have("eu-addr2line", "addr2line", "llvm-symbolizer", "objdump", "c++filt", "gcc", "g++", "clang",
                 "clang++")
    folder = harness.scratch()
    combinations = FEW if how == "few" else itertools.product(
        SUBJECTS, harness.COMPILERS, LEVELS, (4, 5), (False, True))
    total = 0
    for combination in combinations:
        program = compile_subject(folder, *combination)
        step = len(places_of_calls(program)) // FEW_ADDRESSES + 1 if how == "few" else 1
        total += compare(program, step)
        os.remove(program)
    print(total, "places compared")
    if total < (300 if how == "few" else 10000):
        harness.fail("too few places to say much")
    harness.finish()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "few")
