# SPDX-License-Identifier: MIT
"""marks.py: a mark tells its time exactly and divides what its thread did, though times are coarse
otherwise and the program had not looked at the clock for long."""

import json
import os

from recorded import HERE, only_recording, record
from harness import MEMTRACE, SOURCE, build, equal, execute, fail, finish, scratch


def sizes(path, *options):
    """Of the program's own blocks that are held at the end of the view, and those made in it."""
    done = execute([MEMTRACE, "report", "--json", "--size", "5001..5007", *options, path])
    contexts = json.loads(done.stdout)["contexts"]
    return (sum(context["live_bytes"] for context in contexts),
            sum(context["total_bytes"] for context in contexts))


def main():
    folder = scratch()
    program = build(os.path.join(HERE, "marks.c"), "gcc", "-I" + os.path.join(SOURCE, "include"))
    record([program], folder)
    path = only_recording(folder, "marks")
    done = execute([MEMTRACE, "query", path, "--format", "json",
                    "SELECT name, time FROM markers ORDER BY time"])
    marks = json.loads(done.stdout)
    equal([mark["name"] for mark in marks], ["one", "two", "three", "two"], "marks")
    if not marks or not 200e6 <= marks[0]["time"] < marks[1]["time"] < marks[2]["time"] < marks[3]["time"]:
        fail("times of marks:", marks)
    equal(sizes(path, "--to", "mark:one"), (5001, 5001), "before the first")
    equal(sizes(path, "--between", "one,two"), (5001 + 5003, 5003), "between")
    equal(sizes(path, "--between", "two,three"), (5003, 0), "a free between")
    equal(sizes(path, "--between", "two,two"), (5007, 5007), "between two of one name")
    equal(sizes(path, "--from", "mark:three"), (5007, 5007), "after the last")
    finish()


if __name__ == "__main__":
    main()
