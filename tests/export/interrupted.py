#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An export that is interrupted leaves nothing, and the file that was there before as it was."""

import os
import signal
import subprocess
import time

from exported import HERE, MEMTRACE, build, clean_environment, equal, finish, record, recordings, scratch


def interrupt(recording, out, number):
    """Ends an export by a signal as soon as its file is begun."""
    folder = os.path.dirname(out)
    before = os.listdir(folder)
    process = subprocess.Popen([MEMTRACE, "export", "--output", out, recording], env=clean_environment(),
                               stderr=subprocess.DEVNULL,  # a shell's background job ignores SIGINT
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    while os.listdir(folder) == before and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(number)
    equal(process.wait(), -number, "status after signal", number)
    equal(sorted(os.listdir(folder)), sorted(before), "files after signal", number)


def main():
    folder, results = scratch(), scratch()
    # so many call paths take a while
    result = record([build(os.path.join(HERE, "paths.c"), optimize="-O1"), "17"], folder)
    equal(result.returncode, 0, result.stderr)
    out = os.path.join(results, "out.folded")
    interrupt(recordings(folder)[0], out, signal.SIGINT)
    with open(out, "w", encoding="utf-8") as file:
        file.write("old")
    interrupt(recordings(folder)[0], out, signal.SIGTERM)
    with open(out, encoding="utf-8") as file:
        equal(file.read(), "old", "the file that was there")
    finish()


main()
