# SPDX-License-Identifier: MIT
"""kinds.py: filters of recordings that are samples, that leave short lives out, that lie in several
files, and of a child that was born with its parent's blocks."""

import os
import sys

import lives
from recorded import record, recordings
from harness import build, equal, finish, report, scratch

HERE = os.path.dirname(os.path.abspath(__file__))
COSTS = ("live_bytes", "live_blocks", "peak_bytes", "total_bytes", "allocations", "frees", "temporary")
TOTALS = ("peak_bytes", "live_bytes", "live_blocks", "total_bytes", "allocations",
          "frees", "temporary")
EVERY_BLOCK = ("--size", "0..1000G")


def made(*options, steps=2000):
    folder = scratch()
    under = record([build(os.path.join(HERE, "busy.c")), "7", "3", str(steps)], folder, *options)
    equal(under.returncode, 0, options, under.stderr)
    return recordings(folder)


def told(path, *options):
    return report(path, {"MEMTRACE_CACHE": ""}, *options)


def same_contexts(got, want, what, names=COSTS):
    for part in ("contexts", "pools"):
        equal({context["id"]: [context[name] for name in names] for context in got[part]},
              {context["id"]: [context[name] for name in names] for context in want[part]}, what, part)


def sampled():
    path = made("--sample", "4K")[0]
    whole = told(path)
    equal(whole["recording"]["sampled"], True, "the recording is a sample")
    every = told(path, *EVERY_BLOCK)
    same_contexts(every, whole, "sampled", COSTS + ("total_bytes_error", "live_bytes_error"))
    by_path = told(path, "--function", "")
    same_contexts(by_path, whole, "sampled, by path", COSTS + ("total_bytes_error", "live_bytes_error"))
    for answer in (every, by_path):
        for name, error in whole["recording"]["standard_errors"].items():
            near = answer["recording"]["standard_errors"][name]
            equal(abs(near - error) <= 1 + error // 1000, True, "standard error of", name, near, error)
    halves = [told(path, "--size", text) for text in ("..999", "1000..")]
    for name in ("peak_bytes", "live_bytes", "total_bytes"):
        equal(sum(half[name] for half in halves), whole[name], "sampled halves", name)
    errors = [half["recording"]["standard_errors"]["total_bytes"] for half in halves]
    error = whole["recording"]["standard_errors"]["total_bytes"]
    equal(abs(sum(part ** 2 for part in errors) - error ** 2) <= error * 4, True,
          "errors of halves add up as squares", errors, error)


def culled():
    path = made("--cull-below", "2ms")[0]
    whole, every, by_path = told(path), told(path, *EVERY_BLOCK), told(path, "--function", "")
    want = lives.add_up(lives.Story(path).lives)
    equal({context["id"]: context["allocations"] for part in ("contexts", "pools")
           for context in every[part]},
          {number: cost["allocations"] for number, cost in want.items()}, "blocks that were not culled")
    equal(whole["allocations"] > every["allocations"], True, "some were culled")
    same_contexts(by_path, whole, "culled blocks belong to their paths")
    for name in ("peak_bytes", "live_bytes", "live_blocks"):
        equal(every[name], whole[name], "culled", name)


def rotated():
    for steps in (20000, 60000, 180000):  # a busy machine's collector comes late
        paths = made("--rotate", "100K", steps=steps)
        if len(paths) > 1:
            break
    equal(len(paths) > 1, True, "several files")
    first = min(paths, key=len)
    whole = told(first)
    equal(whole["recording"]["parts"], len(paths), "parts")
    same_contexts(told(first, *EVERY_BLOCK), whole, "rotated")
    halves = [told(first, "--lifetime", text) for text in ("..5ms", "5000001ns..")]
    for name in TOTALS:
        equal(sum(half[name] for half in halves), whole[name], "rotated halves", name)


def forked():
    folder = scratch()
    program = [sys.executable, "-c", "import os; x = [bytes(1000) for i in range(50)]\n"
                                     "if os.fork() == 0: y = [bytes(2000) for i in range(30)]\n"
                                     "else: os.wait()"]
    under = record(program, folder, "--follow-children")
    equal(under.returncode, 0, "fork", under.stderr)
    children = [path for path in recordings(folder) if told(path)["process"]["inherited_blocks"] != 0]
    equal(len(children), 1, "a child with blocks of its parent")
    whole, every = told(children[0]), told(children[0], *EVERY_BLOCK)
    same_contexts(every, whole, "forked")
    for thread in every["threads"] + whole["threads"]:
        thread.pop("live_bytes")  # of the whole: less than nothing, where inherited blocks were freed
    equal(every["threads"], whole["threads"], "forked: threads")


sampled()
culled()
rotated()
forked()
finish()
