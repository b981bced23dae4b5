# SPDX-License-Identifier: MIT
"""limitmark.py: where a program comes near a limit of its memory, its recording has a mark that says
so, at that time, beside those that the program makes itself; also when it is written anew. So has one
that ended before its program, since its duration was over."""

import json
import os
import subprocess

from recorded import only_recording, record, start
from harness import MEMTRACE, build, equal, execute, fail, finish, scratch

GROWS = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    usleep(300000);
    for (int i = 0; i < 96; i++) {
        memset(malloc(1 << 20), 1, 1 << 20);
    }
    char byte; /* until its input ends, as it has for whoever gives it none */
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    return 0;
}
"""


def marks(path):
    under = execute([MEMTRACE, "query", "--format", "json", path, "SELECT time, kind, name FROM markers"])
    equal(under.returncode, 0, "query", under.stderr)
    return json.loads(under.stdout)


def duration(program):
    folder = scratch()
    under = record([program], folder, "--duration", "100ms")
    equal(under.returncode, 0, "exit status", under.stderr)
    equal([(mark["name"], mark["time"]) for mark in marks(only_recording(folder, "duration"))],
          [("recording: its duration is over", 100000000)], "marks of a duration")


def near_its_limit(program, folder):
    """It ends when the limit was seen."""
    recorder = start([program], folder, "--limit", "64M", stdin=subprocess.PIPE)
    said = b""
    while b"limit: the process has" not in said:
        line = recorder.stderr.readline()
        if not line:
            fail("no line about the limit:", said)
            break
        said += line
    said += recorder.communicate()[1]
    equal(recorder.returncode, 0, "exit status", said)


def main():
    folder = scratch()
    source = os.path.join(folder, "grows.c")
    with open(source, "w") as file:
        file.write(GROWS)
    program = build(source, "gcc", "-O1")
    duration(program)
    near_its_limit(program, folder)
    path = only_recording(folder, "limit")
    found = marks(path)
    if len(found) != 1 or not found[0]["name"].startswith("limit: the process has"):
        fail("marks:", found)
    elif not 250e6 < found[0]["time"] < 60e9:
        fail("the limit was reached after 0.3 s, the mark is at", found[0]["time"], "ns")
    told = execute([MEMTRACE, "report", "--json", path])
    data = json.loads(told.stdout)
    equal((data["recording"]["closed"], data["warnings"]), (True, []), "closed, warnings")
    for verb in ("repack", "strip", "anonymize"):
        again = os.path.join(folder, verb + ".mtr")
        more = ["--below", "1ms"] if verb == "strip" else []
        under = execute([MEMTRACE, verb, *more, "-o", again, path])
        equal(under.returncode, 0, verb, under.stderr)
        equal(len(marks(again)), 1, verb, "marks")


main()
finish()
