# SPDX-License-Identifier: MIT
"""findings.py: `report --show-findings` and /findings see the faults of the tutorial's program, of one that
grows between marks, reallocates too often and frees in another thread, and none in those that are mended;
each one's command gives its numbers."""

import json
import os
import re
import shlex
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "asking"))

from serving import Server, equal, execute, fail, finish, scratch  # noqa: E402
from recorded import only_recording, record  # noqa: E402
from harness import MEMTRACE, SOURCE, build, clean_environment  # noqa: E402

NEWSDESK = os.path.join(SOURCE, "examples", "newsdesk", "newsdesk.cpp")
FAULTS = os.path.join(HERE, "faults.c")


def written(arguments):
    result = execute([MEMTRACE, *arguments], clean_environment(MEMTRACE_CACHE=""))
    if result.returncode != 0:
        fail(arguments, result.stderr)
        finish()
    return result.stdout.decode()


def rows(path, *options):
    """The findings as the command line tells them."""
    data = json.loads(written(["report", path, "--show-findings", "--json", *options]))
    return next(part["rows"] for part in data["reports"] if part["name"] == "findings")


def recording(folder, name, program, *arguments):
    own = os.path.join(folder, name)
    os.mkdir(own)
    equal(record([program, *arguments], own).returncode, 0, name)
    return only_recording(own, name)


def find(found, kind, word):
    """The only one of this kind that names this function."""
    fitting = [row for row in found if row["kind"] == kind and word in row["title"]]
    if len(fitting) != 1:
        fail("findings of kind", kind, "with", word, ":", fitting, "of", [row["title"] for row in found])
        finish()
    return fitting[0]


def check_command(finding):
    """The first line of what its command shows has the finding's number."""
    words = shlex.split(finding["command"])
    equal(words[:2], ["memtrace", "report"], finding["command"])
    if "--show-leaked" in words or "--show-temporary" in words or "--show-peak" in words:
        reports = json.loads(written([*words[1:], "--json"]))["reports"]
        got = sum(row["cost"] for row in reports[0]["rows"] if row.get("depth", 0) == 0)
        if "--at" in words and got >= finding["bytes"]:
            return  # what grew until the end: with a function's own allocations this shows those of what it calls
        equal(got, finding["bytes"] if "--show-temporary" not in words else finding["count"], finding["command"])
    else:
        written(words[1:])


def same_in_page(path, found):
    """The page's are the command line's, whose addresses the page knows."""
    server = Server(path)
    told = server.data("/r/1/findings", passes="1")["findings"]
    equal([one["title"] for one in told], [row["title"] for row in found], "titles")
    equal([one["sentence"] for one in told], [row["sentence"] for row in found], "sentences")
    for one in told:
        if re.match(r"(flame|paths|blocks|heap|threads|mappings)(\?|$)", one["view"]) is None:
            fail("an address of no page:", one["view"])
    equal(len(server.data("/r/1/findings", limit=1)["findings"]), 1, "limit 1")
    full = server.data("/r/1/findings", **{"passes": "1", "full-names": "1"})["findings"]
    equal([finding["title"] for finding in full], [row["title"] for row in rows(path, "--full-names")],
          "names are as long as who asks wants them")
    server.close()


def newsdesk(folder):
    path = recording(folder, "faulty", build(NEWSDESK, optimize="-O2"))
    found = rows(path)
    leak = find(found, "growth", "compile_filter")
    equal(leak["count"], 2 * 547, "blocks that compile_filter leaks")
    moment = find(found, "temporary", "Topics::find")
    equal(moment["count"], 168000, "temporary allocations of Topics::find")
    pinned = find(found, "pinned", "Archive::add")
    if pinned["count"] < 5000:
        fail("pages that Archive::add keeps:", pinned["count"])
    find(found, "peak", "Desk::")
    for finding in found:
        check_command(finding)
    same_in_page(path, found)
    mended = recording(folder, "mended", build(NEWSDESK, optimize="-O2", flags=["-DMENDED"]))
    # Its archive grows until it ends, which may take so long that it is not told of: as the machine is busy.
    left = {row["kind"] for row in rows(mended) if not row["title"].startswith("Memory held by ")}
    equal(left & {"leak", "growth", "pinned", "realloc", "foreign"}, set(), "what is left when mended")


def faults(folder):
    program = build(FAULTS)
    growing = recording(folder, "growing", program, "marks")
    found = rows(growing)
    finding = find(found, "growth", "remember")
    equal((finding["count"], finding["bytes"]), (20 * 50, 20 * 50 * 100), "what grows between marks")
    if "mark 'round'" not in finding["sentence"]:
        fail("no word of marks:", finding["sentence"])
    equal([row["title"] for row in found if row["kind"] == "leak"], [], "leaks beside it")
    check_command(finding)
    start = rows(recording(folder, "start", program, "start"))
    finding = find(start, "leak", "remember")
    equal(finding["bytes"], 20 * 50 * 100, "what is never freed, but does not grow")
    wrapped = rows(recording(folder, "wrapped", program, "wrapped"))
    finding = find(wrapped, "leak", "remember_wrapped")
    equal(finding["bytes"], 20 * 50 * 100, "what a function leaks that allocates by a wrapper of malloc")
    equal([row["title"] for row in wrapped if "xmalloc" in row["title"]], [], "wrappers that are blamed")
    check_command(finding)
    small = find(rows(recording(folder, "small", program, "small")), "slack", "small")
    if " 20,000 of the blocks are from hold_small" not in small["sentence"]:
        fail("who holds most blocks:", small["sentence"])
    appending = rows(recording(folder, "appending", program, "append"))
    finding = find(appending, "realloc", "append")
    equal(finding["count"], 40 * 199, "reallocations of what append allocated")
    check_command(finding)
    foreign = rows(recording(folder, "foreign", program, "threads"))
    finding = find(foreign, "foreign", "Threads")
    equal(finding["count"], 20000, "foreign frees")
    quiet = rows(recording(folder, "quiet", program, "nothing"))
    equal([row["kind"] for row in quiet if row["kind"] != "peak"], [], "findings of a program without faults")


def forms(folder):
    path = os.path.join(folder, "faulty")
    path = only_recording(path, "faulty")
    text = written(["report", path, "--show-findings"])
    if "  1. " not in text or "memtrace report " not in text:
        fail("as text:", text)
    equal(len(rows(path, "--limit", "2")), 2, "--limit 2")
    window = rows(path, "--to", "peak")
    if any(row["kind"] == "leak" for row in window):
        fail("what is held at the peak is called a leak:", [row["title"] for row in window])


def at_the_end(folder):
    """What the allocator keeps is told where the program goes on, not where it frees all because it ends."""
    program = build(os.path.join(HERE, "destructors.c"))
    kept = [row["kind"] for row in rows(recording(folder, "destructors", program))]
    equal("fragmentation" in kept, False, "all is freed when the program ends:", kept)
    own = os.path.join(folder, "goes on")
    os.mkdir(own)
    equal(record([program, "on"], own).returncode, 0, "goes on")
    told = find(rows(only_recording(own, "destructors")), "fragmentation", "is resident but not in use")
    equal(told["bytes"] > 32 << 20, True, told)


def main():
    folder = scratch()
    at_the_end(folder)
    newsdesk(folder)
    faults(folder)
    forms(folder)


main()
finish()
