# SPDX-License-Identifier: MIT
"""options.py: four threads that free each other's blocks, recorded with each option that changes what an
event holds. Whatever it is, counts are those of the profile, thread by thread, who freed whose blocks
included."""

import os

from recorded import HERE, both, events, only_recording, record, whole
from harness import build, equal, fail, finish, scratch

THREADS = 4
PAIRS = 20000


def main():
    program = build(os.path.join(HERE, "counted.c"), "gcc", "-O2")
    for option in ("--precise", "--no-addresses", "--free-stacks"):
        folder = scratch()
        under = record([program, os.path.join(folder, "counts"), str(THREADS), str(PAIRS)], folder, option)
        equal(under.returncode, 0, option, "exit status", under.stderr)
        data = both(folder, option)
        whole(data, option)
        equal(data["recording"]["precise"], option == "--precise", option, "precise")
        addresses = {line[4] for line in events(only_recording(folder, option)) if line[0] == "alloc"}
        if (addresses == {"0"}) != (option == "--no-addresses"):
            fail(option, "addresses:", len(addresses))


main()
finish()
