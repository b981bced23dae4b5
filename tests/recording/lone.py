# SPDX-License-Identifier: MIT
"""lone.py: an event that is followed by nothing is in the file, for who reads it meanwhile, within a
second; so are those of a thread that does a little all the time, without a block for each."""

import json
import os
import subprocess
import time

from recorded import HERE, MEMTRACE, clean_environment, execute, only_recording, settings_for
from recorded import recordings, report_so_far, wait_until
from harness import build, fail, finish, scratch

LONE_BYTES = 4321
LATEST_S = 4  # a second, and what a busy machine takes; without small blocks it is 5.6
TRICKLE_S = 3


def holds(path):
    data = report_so_far(path)
    return data is not None and data["total_bytes"] >= LONE_BYTES


def small_blocks(path):
    told = json.loads(execute([MEMTRACE, "info", "--json", path]).stdout)
    return next(kind["count"] for kind in told["blocks"] if kind["kind"] == "events")


def main():
    folder = scratch()
    recorder = subprocess.Popen(
        [MEMTRACE, "record", "--", build(os.path.join(HERE, "lone.c"), "gcc", "-O1")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=clean_environment(**settings_for(folder)))
    made = float(recorder.stdout.readline())
    wait_until(lambda: recordings(folder) and holds(recordings(folder)[0]), "the event in the file")
    after = time.monotonic() - made
    if after > LATEST_S:
        fail("the event was seen after %.1f s" % after)
    begun = time.monotonic()
    recorder.stdin.write(b"go on\n")
    recorder.stdin.flush()
    time.sleep(TRICKLE_S)
    recorder.communicate(b"end\n")
    blocks = small_blocks(only_recording(folder, "lone"))
    most = 3 + 2 * (time.monotonic() - begun)
    if blocks > most:
        fail(blocks, "blocks of events, expected at most", most)


main()
finish()
