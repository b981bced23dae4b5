# SPDX-License-Identifier: MIT
"""two_readers.py: recordings of random events, of every kind, are read by the tools' reader and by
tests/recording/reader.py, which knows nothing but docs/format.md: event by event the same."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recording"))

from harness import BUILD, equal, fail, finish, scratch  # noqa: E402
from reader import Recording, lines  # noqa: E402


def main():
    folder = scratch()
    subprocess.run([os.path.join(BUILD, "tests", "fuzz", "make_corpus"), folder], check=True)
    names = sorted(name for name in os.listdir(folder) if name.endswith(".mtr"))
    equal(len(names), 24, "recordings")
    for name in names:
        path = os.path.join(folder, name)
        listed = subprocess.run([os.path.join(BUILD, "tests", "recording", "list_events"), path],
                                stdout=subprocess.PIPE, check=True)
        theirs = listed.stdout.decode("utf-8", "surrogateescape").splitlines()
        recording = Recording(path)
        ours = list(lines(recording))
        equal(recording.damaged, [], name, "damage")
        for number, (one, other) in enumerate(zip(theirs, ours)):
            if one != other:
                fail(name, "line", number, ": tools", repr(one), "reader.py", repr(other))
                break
        equal(len(ours), len(theirs), name, "lines")
        if not any(line.startswith("free") for line in ours):
            fail(name, "has no frees")


main()
finish()
