#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memtrace import: what heaptrack recorded of a program adds up to what heaptrack_print says of it, by
function, too; raw files to what heaptrack's own interpreter counts. Files of older versions, damaged
and cut-off ones. A recording that is exported to heaptrack's format and imported again says the same."""

import collections
import gzip
import os
import re
import subprocess

from exported import (MEMTRACE, clean_environment, equal, execute, export, fail, finish, recorded, report,
                      scratch, subject)
from harness import have
from heaptrackprint import PARTS, by_function, known, printed

INTERPRETER = "/usr/lib/heaptrack/libexec/heaptrack_interpret"


def imported(path, status=0, told=None):
    """The report of what a file becomes; stderr must say `told`."""
    output = path + ".mtr"
    result = execute([MEMTRACE, "import", "--output", output, path], clean_environment())
    equal(result.returncode, status, "importing", path, result.stderr)
    if told is None:
        equal(result.stderr, b"", "importing", path, "stderr")
    elif told not in result.stderr.decode():
        fail("importing", path, "does not say", told, "but", result.stderr.decode())
    equal([name for name in os.listdir(os.path.dirname(path)) if name.endswith(".tmp")], [], "left behind")
    equal(os.path.exists(output), status == 0, "the recording of", path)
    return report(output) if status == 0 else None


def heaptrack(folder, name, *options):
    """heaptrack's file of the subject."""
    result = subprocess.run(["heaptrack", *options, "-o", os.path.join(folder, name), subject()],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, cwd=folder)
    found = [file for file in os.listdir(folder) if file.startswith(name)]
    if result.returncode != 0 or len(found) != 1:
        fail("heaptrack:", result.stdout.decode()[-500:])
        finish()
    return os.path.join(folder, found[0])


def lines_of(path):
    return subprocess.run(["zstd", "-dc", path], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()


def first_twice(lines):
    """heaptrack's readers also count each end of number 0 behind another end as temporary."""
    events = [line for line in lines if line[:2] in ("+ ", "- ")]
    return sum(before[0] == "-" and line == "- 0" for before, line in zip(["-"] + events, events))


def check_interpreted(folder):
    path = heaptrack(folder, "interpreted")
    data = imported(path)
    for cost, part in PARTS.items():
        text, found = printed(path, folder, cost)
        total = sum(found.values())
        if cost == "temporary":
            total -= first_twice(lines_of(path))
        else:
            equal(by_function(data, part), known(found), "by function", cost)
        equal(sum(context[part] for context in data["contexts"]), total, "in all", cost)
    equal(data["allocations"], int(re.search(r"functions: (\d+)", text).group(1)), "calls")
    frames = [frame for context in data["contexts"] for frame in context["frames"]]
    equal({"main", "leak"} <= {(frame["function"] or "").split("(")[0] for frame in frames}, True, "names")
    equal(any(frame["file"] and frame["file"].endswith("subject.cpp") and frame["line"] for frame in frames),
          True, "files and lines")
    equal(any(frame["inlined"] for frame in frames), True, "inlined functions")
    equal(os.path.basename(data["program"]), os.path.basename(subject()), "the program")
    return path


def check_stripped(path):
    """Without its temporary allocations it adds up to the same, under heaptrack's rule of what is one."""
    result = execute([MEMTRACE, "strip", "--output", path + ".stripped.mtr", path + ".mtr"], clean_environment())
    equal(result.returncode, 0, "strip", result.stderr)
    before, after = numbers(report(path + ".mtr")), numbers(report(path + ".stripped.mtr"))
    equal(after[:3] + after[4:], before[:3] + before[4:], "stripped: all but the maximum")
    equal(after[3] <= before[3], True, "stripped: the maximum")


def check_raw(folder):
    path = heaptrack(folder, "raw", "--raw")
    data = imported(path)
    result = subprocess.run([INTERPRETER], input="\n".join(lines_of(path) + [""]).encode(),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    told = {name: int(number) for name, number in
            re.findall(r"\t(\w+ ?\w*):\s+(\d+)", result.stderr.decode())}
    leaked = sum(context["live_blocks"] for context in data["contexts"])
    equal((data["allocations"], leaked, data["temporary"]),
          (told["allocations"], told["leaked allocations"], told["temporary allocations"]), "raw")
    interpreted = os.path.join(folder, "again")
    with open(interpreted, "wb") as file:
        file.write(result.stdout)
    for cost, part in (("peak", "peak_bytes"), ("leaked", "live_bytes")):
        equal(sum(context[part] for context in data["contexts"]),
              sum(printed(interpreted, folder, cost)[1].values()), "raw", cost)
    equal("leak(unsigned long)" in {frame["function"] for context in data["contexts"]
                                    for frame in context["frames"]}, True, "names by modules")


def numbers(data):
    return [data[name] for name in ("allocations", "frees", "total_bytes", "peak_bytes",
                                    "live_bytes", "temporary")]


SMALL = """v 10400 3
X ./small one
I 1000 100
s 6 /bin/x
s 4 leaf
s 3 a.c
s 4 main
i 1000 1 2 3 a
i 2000 1 4 3 b
t 2 0
t 1 1
a 64 2
+ 0
c a
- 0
a 3e8 2
+ 1
R 10
+ 1
c 14
- 1
"""
NUMBERS = [3, 2, 2100, 2000, 1000, 2]  # the second "- 1" follows a "+ 1"

# The same, as older heaptracks wrote it: words instead of lengths, addresses instead of numbers.
OLDER = SMALL.replace("10400 3", "10000 2").replace("s 6 ", "s ").replace("s 4 ", "s ").replace("s 3 ", "s ")
OLDEST = re.sub(r"(?m)^a .*\n", "", OLDER.replace("v 10000 2", "v 9000"))
for old, new in (("+ 0", "+ 64 2 7000"), ("- 0", "- 7000"), ("+ 1", "+ 3e8 2 8000"), ("+ 1", "+ 3e8 2 9000"),
                 ("- 1", "- 9000")):
    OLDEST = OLDEST.replace(old, new, 1)


def check_text(folder, name, text, expected, told=None, status=0):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    data = imported(path, status, told)
    if data:
        equal(numbers(data), expected, name)
    return data


def check_texts(folder):
    data = check_text(folder, "small", SMALL, NUMBERS)
    equal([(frame["function"], frame["file"], frame["line"]) for frame in data["contexts"][0]["frames"]],
          [("leaf", "a.c", 10), ("main", "a.c", 11)], "frames")
    equal((data["process"]["command"], data["program"]), (["./small", "one"], "./small"), "command")
    blank = SMALL.replace("./small one", "/bin dir/x one").replace("s 6 /bin/x", "s a /bin dir/x")
    data = check_text(folder, "blank", blank, NUMBERS)
    equal((data["process"]["command"], data["program"]), (["/bin dir/x", "one"], "/bin dir/x"),
          "command with a blank")
    data = report(os.path.join(folder, "small.mtr"))
    equal({point["resident_bytes"] for point in data["timeline"]}, {16 * 4096}, "resident memory")
    check_text(folder, "gz", gzip.compress(SMALL.encode()), NUMBERS)
    check_text(folder, "older", OLDER, NUMBERS)
    check_text(folder, "oldest", OLDEST, NUMBERS)
    check_text(folder, "cut", SMALL[:-5], [3, 1, 2100, 2000, 2000, 1], "it is cut off after line 19")
    packed = gzip.compress(SMALL.encode(), mtime=0)
    check_text(folder, "cut.gz", packed[:-4], NUMBERS, "it is cut off")
    check_text(folder, "nonsense", SMALL + "+ 99\n- zz\nqqq\n\n+\na 5\nt 9\ni\n- 77\nm\nR zz\na g 2\n", NUMBERS,
               "makes no sense: 11 lines")
    check_text(folder, "nothing", "", None, "not a heaptrack data file", 1)
    check_text(folder, "other", "MEMTRREC\nv 10400 3\n", None, "not a heaptrack data file", 1)
    check_text(folder, "newer", "v 20000 4\n", None, "version 4", 1)
    check_text(folder, "empty", "v 10400 3\n", [0] * 6)


def check_damaged(folder, path):
    """Whatever is flipped or cut: no crash, and a recording or a line that says why not."""
    with open(path, "rb") as file:
        whole = file.read()
    plain = "\n".join(lines_of(path)[:400]).encode()
    cases = [whole[:len(whole) // 2], whole[:100]]
    for seed in range(12):
        bytes_ = bytearray(plain)
        for k in range(20):
            bytes_[(seed * 7919 + k * 104729) % len(bytes_)] ^= 1 << (seed + k) % 8
        cases.append(bytes(bytes_))
    for number, case in enumerate(cases):
        name = os.path.join(folder, "damaged%d" % number)
        with open(name, "wb") as file:
            file.write(case)
        result = execute([MEMTRACE, "import", "--output", name + ".mtr", name], clean_environment())
        if result.returncode not in (0, 1):
            fail("damaged", number, result.returncode, result.stderr.decode())
        if result.returncode == 0:
            report(name + ".mtr")


def check_bomb():
    """A small file of many call paths takes no more memory than it may, and leaves nothing."""
    path, output = (os.path.join(scratch(), name) for name in ("bomb.gz", "bomb.mtr"))
    with gzip.open(path, "wb", 1) as file:
        file.write(b"v 10500 3\nI 1000 1000\nX 3 abc\n")
        for _ in range(8):
            file.write(b"t 1 0\n" * 1000000)
    result = execute([MEMTRACE, "import", "--memory-limit", "64M", "--output", output, path], clean_environment())
    equal((result.returncode, os.path.exists(output)), (1, False), "bomb", result.stderr)
    equal(b"out of memory (the limit is 64.0 MiB" in result.stderr, True, "bomb", result.stderr)


def paths_of(data):
    """Costs by the names of call paths."""
    found = collections.defaultdict(lambda: [0] * 5)
    for context in data["contexts"]:
        path = tuple((frame["function"], frame["file"], frame["line"] if frame["function"] else 0)
                     for frame in context["frames"])
        costs = [context[name] for name in ("allocations", "frees", "total_bytes", "live_bytes", "peak_bytes")]
        found[path] = [one + other for one, other in zip(found[path], costs)]
    return dict(found)


def check_round_trip(folder):
    recording, _ = recorded(folder)
    path = os.path.join(folder, "round.zst")
    export(recording, "--format", "heaptrack", "--output", path)
    before, after = report(recording), imported(path)
    equal(numbers(after)[:5], numbers(before)[:5], "there and back: totals")
    # What was temporary where the maximum was reached may be so no more: at most one block a thread.
    if not 0 <= before["temporary"] - after["temporary"] <= len(before["threads"]):
        fail("there and back: temporary", after["temporary"], before["temporary"])
    equal(paths_of(after), paths_of(before), "there and back: call paths")
    equal(after["process"]["command"], before["process"]["command"], "there and back: command")


def main():
    have("heaptrack", "heaptrack_print", "zstd", INTERPRETER)
    folder = scratch()
    check_texts(scratch())
    path = check_interpreted(folder)
    check_stripped(path)
    check_damaged(scratch(), path)
    check_bomb()
    check_raw(scratch())
    check_round_trip(scratch())
    finish()


main()
