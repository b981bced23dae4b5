# SPDX-License-Identifier: MIT
"""spike.py: the timeline of a recording and of a profile has the maximum that the report says, however
short it was held, and the ends of the run, however short that was; so have windows and selections,
the drawing, the HTML page, and a query."""

import base64
import json
import os
import re
import zlib

from recorded import HERE, MEMTRACE, execute, only_recording, record
from harness import build, equal, fail, finish, profiles, report, scratch


def saved_answers(page):
    """What a saved page has inside."""
    with open(page, encoding="utf-8") as file:
        data = re.search(r'id="data">([^<]*)<', file.read()).group(1)
    return json.loads(zlib.decompress(base64.b64decode(data)))["answers"]


def timeline_of(path, *options):
    data = json.loads(execute([MEMTRACE, "report", "--json", *options, path]).stdout)
    return data["peak_bytes"], data["timeline"], data["process"]["duration_ns"]


def check_points(path, what, *options, least=3):
    """The maximum, and the live bytes at both ends."""
    maximum, points, duration = timeline_of(path, *options)
    equal(max(point["live_bytes"] for point in points), maximum, what, "highest point")
    if len(points) < least:
        fail(what, "has", len(points), "points")
    times = [point["time_ns"] for point in points]
    equal(times, sorted(set(times)), what, "order")
    if not options:
        equal((times[0], times[-1]), (0, duration), what, "ends")
    return maximum, [points[place]["live_bytes"] for place in (0, -1)]


def check_forms(path, maximum, what):
    drawn = execute([MEMTRACE, "report", "--show-timeline", path]).stdout.decode()
    label = re.search(r"live bytes\n *([0-9.]+) MiB", drawn)
    equal(label and label.group(1), "%.1f" % (maximum / 2**20), what, "drawn")
    asked = execute([MEMTRACE, "query", path, "SELECT max(live_bytes) FROM timeline"])
    equal(int(asked.stdout), maximum, what, "query")
    page = path + ".html"
    execute([MEMTRACE, "export", "--format", "html", "--output", page, path])
    drawn = saved_answers(page)["timeline"]["data"]
    equal((max(drawn["series"]["live"]), drawn["maximum"]["bytes"]), (maximum, maximum), what, "HTML page")


def check(*arguments):
    folder = scratch()
    what = " ".join(["spike", *arguments])
    record([build(os.path.join(HERE, "spike.c"), "gcc", "-O1"), *arguments], folder)
    recording = only_recording(folder, what)
    for path in (recording, profiles(folder)[0]):
        maximum, _ = check_points(path, what + os.path.splitext(path)[1])
        if maximum < 38 * 10**6:
            fail(what, "maximum", maximum)
        check_forms(path, maximum, what)
    if arguments:
        check_points(recording, "a window", "--from", "100ms", "--to", "500ms")
        check_points(recording, "blocks chosen", "--size", "1..200K")


def check_short_runs():
    """The runtime looks at the clock now and then: in a run as short as this, it may find nothing between the
    maximum and an end of the run."""
    program = build(os.path.join(HERE, "spike.c"), "gcc", "-O1")
    for _ in range(20):
        folder = scratch()
        execute([MEMTRACE, "run", "--output", os.path.join(folder, "%p.mtp"), "--", program])
        (path,) = profiles(folder)
        _, ends = check_points(path, "a short run")
        equal(ends, [0, 8 << 20], "a short run", "live bytes at its ends")


def main():
    check()
    check("300")
    check_short_runs()


main()
finish()
