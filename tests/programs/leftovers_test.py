#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A test that fails takes along what it started, and what that started; one that forks does so once."""

import os
import subprocess
import sys

from harness import equal, fail, finish, is_gone, wait_until

TEST = """
import os, subprocess, sys
import harness
folder = harness.scratch()
started = subprocess.Popen(["sh", "-c", "echo $$; sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
print(started.stdout.readline(), started.stdout.readline(), folder, flush=True)
if "fork" in sys.argv:
    child = os.fork()
    if child == 0:
        sys.exit(0)  # goes the way of all exits
    os.waitpid(child, 0)
    os.kill(started.pid, 0)
    assert started.poll() is None and os.path.isdir(folder)
if "raise" in sys.argv:
    raise ValueError
harness.fail("it does")
harness.finish()
"""


def main():
    for how in ("fail", "raise", "fork"):
        done = subprocess.run([sys.executable, "-c", TEST, how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              cwd=os.path.dirname(os.path.abspath(__file__)), timeout=60)
        equal(done.returncode, 1, how, done.stdout, done.stderr)
        words = done.stdout.split()
        if len(words) < 3:
            fail(how, done.stdout, done.stderr)
            continue
        for pid in map(int, words[:2]):
            wait_until(lambda: is_gone(pid), "%s: process %d ends" % (how, pid))
        equal(os.path.exists(words[2]), False, how, "the folder")
    finish()


if __name__ == "__main__":
    main()
