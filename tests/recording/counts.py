# SPDX-License-Identifier: MIT
"""counts.py SUBJECT CASE: a small program is recorded, prebuilt and instrumented. What the recording
adds up to equals its profile, the subject's own arithmetic and valgrind; the independent reader of
tests/recording/reader.py finds the same."""

import sys

import reader
from recorded import both, only_recording, record, whole
from harness import bare, build, consistent, equal, finish, scratch, totals, valgrind, wanted


def same_as_independent_reader(data, path, what):
    """What a reader that knows docs/format.md alone makes of the same file."""
    told = reader.totals(path)
    names = ("total_bytes", "allocations", "frees", "live_bytes")
    equal((told["closed"], told["damaged"], told["unknown_frees"]), (True, [], 0), what,
          "reader: closed, damaged, unknown frees")
    equal({context["context"]: [context[name] for name in names]
           for context in told["contexts"] if context["heap"]},
          {context["id"]: [context[name] for name in names] for context in data["contexts"]}, what,
          "reader: contexts")
    equal(told["totals"]["peak_bytes"], data["peak_bytes"], what, "reader: maximum")


def main():
    subject, name = sys.argv[1:3]
    alone = bare([build(subject, "gcc", "-O2"), name])
    want = wanted(alone.stdout, subject.endswith(".cpp"))
    if want is None:
        want = valgrind([build(subject, "gcc", "-O2"), name])
    for mode in ("bare", "hooks"):
        what = "%s %s %s:" % (subject, name, mode)
        folder = scratch()
        under = record([build(subject, "gcc", "-O2", mode), name], folder)
        equal((under.returncode, under.stdout), (alone.returncode, alone.stdout), what, "behaviour",
              under.stderr)
        data = both(folder, what)
        whole(data, what)
        equal(totals(data), want, what)
        equal(data["lost"], 0, what, "lost")
        consistent(data, what)
        same_as_independent_reader(data, only_recording(folder, what), what)


main()
finish()
