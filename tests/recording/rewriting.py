# SPDX-License-Identifier: MIT
"""rewriting.py: recordings written anew. Repacked they say what they said; stripped they say the same of
each call path and thread, with fewer events; joined they are one file; what is damaged stays
out. An independent reader finds the same events."""

import json
import os
import shutil

from recorded import HERE, costs, own_counts, record, recordings
from harness import MEMTRACE, SUBJECTS, build, equal, execute, fail, finish, report, scratch

import reader

THREADS = 2
PAIRS = 60000
LASTING = ("total_bytes", "allocations", "frees", "live_bytes", "live_blocks",
           "temporary", "lost")


def run(*words):
    done = execute([MEMTRACE, *words])
    if done.returncode != 0:
        fail("memtrace", *words, done.stderr)
    return done


def same_sums(before, after, what, peak=True):
    """All sums; the timeline and what tells of the file itself may differ."""
    for name in LASTING + (("peak_bytes", "peak_error_bytes") if peak else ()):
        equal(after[name], before[name], what, name)
    ours, theirs = costs(after, peak), costs(before, peak)
    for name in sorted(set(ours) | set(theirs)):
        equal(ours.get(name), theirs.get(name), what, "call path", name)
    equal([(t["id"], t["allocations"], t["frees"], t["freed_bytes"]) for t in after["threads"]],
          [(t["id"], t["allocations"], t["frees"], t["freed_bytes"]) for t in before["threads"]],
          what, "threads")


def streams(paths):
    """Each stream's events, as the independent reader finds them in these files."""
    found = {}
    for path in paths:
        for line in reader.lines(reader.Recording(path)):
            if line.startswith("block "):
                stream = found.setdefault(line, [])
            else:
                stream.append(line)
    return found


def repacked(path, parts, folder):
    new = os.path.join(folder, "repacked.mtr")
    before = report(path)
    run("repack", path, "--output", new)
    after = report(new)
    same_sums(before, after, "repacked")
    if streams([new]) != streams(parts):
        fail("repacked: the independent reader finds other events")
    equal(after["recording"]["parts"], 1, "repacked: parts")
    most = len(streams([new])) + after["recording"]["events"] // (1 << 16)
    if after["recording"]["blocks"] > most:
        fail("repacked: blocks are not merged:", after["recording"]["blocks"], "of", most)
    if os.path.getsize(new) >= sum(os.path.getsize(part) for part in parts):
        fail("repacked: no smaller")
    again = os.path.join(folder, "again.mtr")
    run("repack", new, "--output", again)
    with open(new, "rb") as one, open(again, "rb") as two:
        if one.read() != two.read():
            fail("repacked twice is not repacked once")
    run("repack", again, "--output", again)  # onto itself
    equal(report(again)["recording"]["events"], before["recording"]["events"], "onto itself")
    run("repack", new, "--no-symbols", "--no-addresses", "--output", again)
    if os.path.getsize(again) >= os.path.getsize(new):
        fail("without addresses and symbols: no smaller")
    same_sums(before, report(again), "without addresses")
    return new


def stripped(path, folder):
    new = os.path.join(folder, "stripped.mtr")
    before = report(path)
    told = run("strip", path, "--output", new)
    after = report(new)
    same_sums(before, after, "stripped", peak=False)
    gone = before["temporary"]
    equal(b"memtrace: %s short-lived blocks" % format(gone, ",").encode() in told.stderr, True,
          "stripped: what it says", told.stderr)
    if after["recording"]["events"] > before["recording"]["events"] - gone:
        fail("stripped: events", before["recording"]["events"], after["recording"]["events"], gone)
    run("strip", path, "--below", "1h", "--output", new)
    after = report(new)
    same_sums(before, after, "stripped of all that its thread freed", peak=False)
    own = sum(t["frees"] - sum(f["blocks"] for f in t["freed_of"]) for t in before["threads"])
    allocs = info(new)["allocations"]
    equal(allocs, before["allocations"] - own, "allocations left")


def info(path):
    return json.loads(run("info", "--json", path).stdout)


def damaged(path, folder):
    """A block in the middle is hit: the rest is kept, and the gap is seen afterwards, too."""
    hit = os.path.join(folder, "hit.mtr")
    new = os.path.join(folder, "mended.mtr")
    with open(path, "rb") as file:
        data = bytearray(file.read())
    at = 64
    events = []
    for block, payload in reader.Recording(path).blocks:
        if block.kind == reader.EVENTS:
            events.append((at + 80, len(payload), block.stream))
        at += 80 + (len(payload) + 7) // 8 * 8
    if len(events) < 6:
        fail("too few blocks to damage one:", len(events))
        return
    # In the middle of its stream: of one that ends early nobody sees that it does. The largest, since one that was
    # written while the program was held up may be of a few bytes.
    streams_of = [stream for _, _, stream in events]
    inner = [(size, at) for i, (at, size, stream) in enumerate(events)
             if stream in streams_of[:i] and stream in streams_of[i + 1:]]
    size, at = max(inner)
    data[at + size // 2] ^= 0xff
    with open(hit, "wb") as file:
        file.write(data)
    told = run("repack", hit, "--output", new)
    equal(b"damaged" in told.stderr, True, "damage is told", told.stderr)
    before, after = report(hit), report(new)
    equal(after["recording"]["events"], before["recording"]["events"], "events behind the damage")
    equal(any("missing" in warning for warning in after["warnings"]), True,
          "the gap is told", after["warnings"])


def breaks(path, folder):
    """Copies of which something is missing at an end, where no gap shows it: by what is wrong, in words of the reader."""
    with open(path, "rb") as file:
        data = file.read()
    at, ends, events = 64, [], []
    for block, payload in reader.Recording(path).blocks:
        if block.kind == reader.EVENTS:
            events.append(at + 80 + len(payload) // 2)
        at += 80 + (len(payload) + 7) // 8 * 8
        ends.append((at, block.kind))
    hit = bytearray(data)
    hit[events[-1]] ^= 0xff  # the last of its stream
    whole = [end for end, kind in ends if kind == reader.EVENTS][0]
    copies = {"cut off at byte": data[:whole + 100], "not finished by its writer": data[:whole],
              "cannot be read completely": bytes(hit)}
    for number, (words, content) in enumerate(copies.items()):
        copy = os.path.join(folder, "broken%d.mtr" % number)
        with open(copy, "wb") as file:
            file.write(content)
        yield words, copy


def judged(path):
    """Status of memtrace check with a budget that is met, and what it says."""
    done = execute([MEMTRACE, "check", "--max-peak", "1G", path])
    return done.returncode, done.stderr.decode()


def remembered(path, folder):
    """Whatever is missing in a file, all that is made of it says so, and what is made of that; of a whole one nothing does."""
    other, new, again, data = (os.path.join(folder, name) for name in ("other.mtr", "made.mtr", "again.mtr", "heaptrack.made"))
    made_of = "made of files of which not all could be read"
    shutil.copy(path, other)
    with open(other, "r+b") as file:  # of another process
        file.seek(20)
        file.write(b"\1\0\0\0")
    ways = (("repack",), ("strip",), ("anonymize",), ("merge",), ("merge", other))

    def check(broken, status, says, damage):
        for way in ways:
            run(*way, broken, "--output", new)
            told = judged(new)
            equal((told[0], says in told[1]), (status, True), *way[:1], told)
        equal(info(new)["damage"], damage, "memtrace info")  # of a merged one
        run("repack", new, "--output", again)
        told = judged(again)
        equal((told[0], says in told[1]), (status, True), "repack of what was made of it", told)
        run("export", "--format", "heaptrack", "--output", data, again)
        os.unlink(again)
        run("import", data, "--output", again)
        told = judged(again)
        equal((told[0], says in told[1]), (status, True), "export and import", told)

    for words, broken in breaks(path, folder):
        status, told = judged(broken)
        equal((status, words in told), (2, True), words, "is told of the file itself", told)
        check(broken, 2, made_of, made_of)
    check(path, 0, "", None)


def refused(path, folder):
    """One line each, and no file."""
    profile = os.path.join(folder, "plain.mtp")
    execute([MEMTRACE, "run", "--output", profile, "--", "true"])
    new = os.path.join(folder, "never.mtr")
    for words in (("strip", profile, "--output", new),
                  ("repack", path), ("strip", path), ("repack", "--output", new),
                  ("repack", path, "--level", "77", "--output", new),
                  ("strip", path, "--below", "soon", "--output", new),
                  ("repack", path, "--output", os.path.join(folder, "no", "such", "folder.mtr")),
                  ("repack", "/etc/passwd", "--output", new), ("info",), ("info", "/etc/passwd"),
                  ("repack", path, "--output", "/dev/null")):
        done = execute([MEMTRACE, *words])
        if done.returncode == 0 or done.stderr.count(b"\n") != 1 or os.path.exists(new):
            fail("memtrace", *words, "status", done.returncode, done.stderr)
    told = info(profile)
    equal(told["program"].endswith("true"), True, "a profile's program", told["program"])


def in_one_file(program, folder, pairs):
    """One file, with several blocks of events."""
    inside = os.path.join(folder, "one%d" % pairs)
    os.mkdir(inside)
    record([program, os.path.join(inside, "counts"), str(THREADS), str(pairs)], inside)
    return recordings(inside)[0]


def main():
    folder = scratch()
    program = build(os.path.join(HERE, "counted.c"), "gcc", "-O2")
    counts = os.path.join(folder, "counts")
    under = record([program, counts, str(THREADS), str(PAIRS)], folder, "--rotate", "20K")
    equal(under.returncode, 0, "exit status", under.stderr)
    parts = recordings(folder)
    first = min(parts, key=lambda path: (len(path), path))
    told = info(first)
    own = [counts for counts in own_counts(counts).values()]
    equal(told["parts"], len(parts), "parts")
    equal(told["bytes"], sum(os.path.getsize(part) for part in parts), "bytes")
    equal(told["allocations"] >= sum(done for done, *_ in own), True, "allocations", told)
    new = repacked(first, parts, folder)
    stripped(first, folder)
    damaged(in_one_file(program, folder, PAIRS * 10), folder)
    remembered(in_one_file(program, folder, PAIRS), folder)
    refused(new, folder)

    # Chains of reallocations, and blocks that others free.
    other = scratch()
    record([build(os.path.join(SUBJECTS, "allocations.c"), "gcc", "-O1"), "realloc"], other)
    stripped(recordings(other)[0], other)
    repacked(recordings(other)[0], recordings(other), other)
    finish()


if __name__ == "__main__":
    main()
