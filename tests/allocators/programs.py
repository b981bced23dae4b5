#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""programs.py [--large] [FILE...]: `memtrace allocators --all` of other people's programs. The command never
crashes, and of each function that it would follow objdump says the same: the bytes to be replaced are whole
instructions, at least five bytes and no more than needed, and no jump or call of the whole program leads into them;
no instruction of the function itself leads to its start but calls."""
import bisect
import collections
import glob
import json
import os
import re
import subprocess
import sys

MEMTRACE = os.path.join(os.environ["TEST_BUILD"], "bin", "memtrace")
JUMP = re.compile(r"^(?:notrack |bnd |ds |cs )*(j\w+|call\w*|loop\w*|xbegin)(?:,p[nt])?\s+(?:0x)?([0-9a-f]+)(?: <.*)?$")
LINE = re.compile(r"^ *([0-9a-f]+):\t(?:(?:[0-9a-f]{2} )+) *\t?(.*)$")
LONGEST = 15
HOW_MANY = 30


def exports_functions(path):
    done = subprocess.run(["nm", "-D", "--defined-only", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)
    return len(re.findall(" [TW] ", done.stdout)) > 5


def subjects():
    """Programs that export functions, then libraries, none of them large; each file once."""
    chosen = {}
    names = sorted(glob.glob("/usr/bin/*")) + sorted(glob.glob("/usr/lib/x86_64-linux-gnu/lib[a-m]*.so.*"))
    for name in names:
        path = os.path.realpath(name)
        if len(chosen) < HOW_MANY and os.path.isfile(path) and 20_000 < os.path.getsize(path) < 700_000:
            with open(path, "rb") as file:
                head = file.read(20)
            if head[:4] == b"\x7fELF" and head[18:20] == b"\x3e\0" and exports_functions(path):
                chosen[path] = True
    return list(chosen)


def large_subjects():
    wanted = glob.glob("/usr/lib/gcc/x86_64-linux-gnu/*/cc1") + ["/usr/bin/perl", "/usr/bin/bash", "/usr/bin/python3.11"]
    wanted += glob.glob("/usr/lib/x86_64-linux-gnu/lib[a-z]*.so.*")
    return [path for path in {os.path.realpath(one): True for one in wanted if os.path.exists(one)}
            if os.path.getsize(path) > 700_000][:40]


def disassemble(path):
    """Where instructions begin (sorted), and who leads where: {target: [(address, mnemonic)]}"""
    starts, leads = [], collections.defaultdict(list)
    text = subprocess.Popen(["objdump", "-d", path], stdout=subprocess.PIPE, text=True, errors="replace")
    for line in text.stdout:
        found = LINE.match(line)
        if not found or not found.group(2):
            continue  # the rest of an instruction's bytes has a line of its own
        starts.append(int(found.group(1), 16))
        jump = JUMP.match(found.group(2).split("#")[0].strip())
        if jump:
            leads[int(jump.group(2), 16)].append((starts[-1], jump.group(1)))
    text.wait()
    starts.sort()
    return starts, leads


def sizes_of(path):
    """{address: size} by the symbols."""
    sizes = {}
    for option in ("-D", "-a"):
        done = subprocess.run(["nm", option, "-S", "--defined-only", path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
        for address, size in re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwWiu] ", done.stdout, re.MULTILINE):
            sizes[int(address, 16)] = max(int(size, 16), sizes.get(int(address, 16), 0))
    return sizes


def starts_within(path, start, end):
    """Instructions from a function's first byte on. Without symbols objdump goes through all code in one, and may come
    to a function in the middle of what it takes for an instruction of the bytes between."""
    done = subprocess.run(["objdump", "-d", "--start-address=%#x" % start, "--stop-address=%#x" % (end + LONGEST), path],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [int(row.group(1), 16) for row in map(LINE.match, done.stdout.splitlines()) if row and row.group(2)]


def is_endbr64(path_bytes, offset):
    return path_bytes[offset:offset + 4] == b"\xf3\x0f\x1e\xfa"


def offset_of(headers, address):
    for start, size, offset in headers:
        if start <= address < start + size:
            return offset + address - start
    return None


def headers_of(path):
    done = subprocess.run(["readelf", "-lW", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [(int(address, 16), int(size, 16), int(offset, 16)) for offset, address, size in
            re.findall(r"^ *LOAD +(0x[0-9a-f]+) (0x[0-9a-f]+) 0x[0-9a-f]+ (0x[0-9a-f]+)", done.stdout, re.MULTILINE)]


def wrong_with(row, starts, leads, sizes, start):
    """What is not right about a function that would be followed. `start`: behind its endbr64."""
    end = start + row["bytes"]
    place = bisect.bisect_left(starts, start)
    inside = []
    while place < len(starts) and starts[place] < end:
        inside.append(starts[place])
        place += 1
    if not inside or inside[0] != start:
        return "does not begin with an instruction"
    if place == len(starts) or starts[place] != end:
        return "ends within an instruction"
    if not 5 <= row["bytes"] <= 4 + LONGEST or inside[-1] - start >= 5:
        return "%d bytes in %d instructions" % (row["bytes"], len(inside))
    for address in range(start + 1, end):
        if leads.get(address):
            return "%#x leads into it" % leads[address][0][0]
    function = row["address"]
    for target in {function, start}:
        for source, mnemonic in leads.get(target, ()):
            if function <= source < function + sizes.get(function, 0) and not mnemonic.startswith("call"):
                return "it loops"
    return None


def check(path):
    done = subprocess.run([MEMTRACE, "allocators", "--all", "--json", path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit("%s: status %d: %s" % (path, done.returncode, done.stderr))
    rows = json.loads(done.stdout)["functions"]
    starts, leads = disassemble(path)
    sizes = sizes_of(path)
    headers = headers_of(path)
    with open(path, "rb") as file:
        content = file.read()
    wrong = []
    reasons = collections.Counter()
    for row in rows:
        row["address"] = int(row["address"], 16)
        if row["bytes"] is None:
            reasons[re.sub(r"\(.*|^\S+ (?=jumps|begins|among)", "", row["obstacle"]).strip()] += 1
            continue
        offset = offset_of(headers, row["address"])
        start = row["address"] + (4 if is_endbr64(content, offset) else 0)
        why = wrong_with(row, starts, leads, sizes, start)
        if why and row["function"].startswith("0x"):
            why = wrong_with(row, starts_within(path, start, start + row["bytes"]), leads, sizes, start)
        if why:
            wrong.append("%s: %s at %#x: %s" % (path, row["function"], row["address"], why))
    return len(rows), len(rows) - sum(reasons.values()), reasons, wrong


def main():
    arguments = [one for one in sys.argv[1:] if one != "--large"]
    paths = arguments or (large_subjects() if "--large" in sys.argv else subjects())
    total, taken, wrong, reasons = 0, 0, [], collections.Counter()
    for path in paths:
        count, fit, why, found = check(path)
        total, taken, wrong = total + count, taken + fit, wrong + found
        reasons += why
    print("%d functions of %d files, %d could be followed" % (total, len(paths), taken))
    for reason, count in reasons.most_common():
        print("  %6d  %s" % (count, reason))
    print("\n".join(wrong[:50]))
    if wrong or taken * 3 < total or len(paths) < 10 and not arguments:
        sys.exit("%d of them wrongly" % len(wrong))


main()
