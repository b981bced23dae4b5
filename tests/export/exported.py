# SPDX-License-Identifier: MIT
"""What the tests of exports share: a recording and a profile of one run, what the report says of
them, and the exports themselves."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recording"))

from recorded import record, recordings  # noqa: E402
from harness import (MEMTRACE, build, clean_environment, equal, execute, fail, finish, profiles,  # noqa: E402
                     report, scratch, skip)

COSTS = {"peak": ("peak_bytes", "peak_bytes"), "live": ("live_bytes", "live_bytes"),
         "total": ("total_bytes", "total_bytes"), "allocations": ("allocations", "allocations"),
         "temporary": ("temporary", "temporary")}


EVIL = "</script><b>a;b'c&amp;--><!--<script>"  # the name of a function


def subject():
    evil = build(os.path.join(HERE, "evil.c"), flags=["-g0"], shared=True)
    return build(os.path.join(HERE, "subject.cpp"), optimize="-O1", libraries=[evil])


def recorded(folder, program=None):
    """(the recording, the profile) of one run."""
    result = record([program or subject()], folder)
    if result.returncode != 0:
        fail("recording the subject:", result.stderr.decode())
        finish()
    return recordings(folder)[0], profiles(folder)[0]


def export(source, *options, status=0):
    """What `memtrace export` writes to stdout."""
    result = execute([MEMTRACE, "export", *options, source], clean_environment())
    if result.returncode != status:
        fail("memtrace export", *options, "status", result.returncode, result.stderr.decode())
        finish()
    return result.stdout


def export_json(source, *options):
    return json.loads(export(source, *options))


def spelled(frame):
    """What stands for a frame, with full names."""
    if frame["function"]:
        return frame["function"]
    if frame["module"]:
        return "%s+0x%x" % (os.path.basename(frame["module"]), frame["offset"])
    return "0x%x" % frame["offset"]


def install(command, what):
    """Installs a reader from its registry into a scratch folder, or skips the test."""
    folder = scratch()
    try:
        result = subprocess.run([part.replace("FOLDER", folder) for part in command],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=90)
    except (OSError, subprocess.TimeoutExpired) as error:
        skip("%s could not be installed: %s" % (what, error))
    if result.returncode != 0:
        skip("%s could not be installed: %s" % (what, result.stdout.decode().strip()[-300:]))
    return folder
