#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""go tool pprof reads our profiles: its samples add up to the report's totals for each type, its table
of functions (-top) and its call paths (-traces) say what the report says."""

import collections
import glob
import os
import re
import shutil
import subprocess

from exported import COSTS, equal, export, fail, finish, recorded, report, scratch, skip, spelled

TYPES = {"alloc_objects": "allocations", "alloc_space": "total_bytes", "inuse_objects": "live_blocks",
         "inuse_space": "live_bytes", "peak_space": "peak_bytes", "temporary_objects": "temporary"}
FIRST = {"peak": "peak_space", "live": "inuse_space", "total": "alloc_space", "allocations": "alloc_objects",
         "temporary": "temporary_objects"}


def reader():
    """The pprof of a Go that comes with it built; newer ones build it when it is first asked for."""
    roots = ["/usr/lib/go-*", "/usr/local/go"]
    if shutil.which("go"):
        roots.append(subprocess.run(["go", "env", "GOROOT"], stdout=subprocess.PIPE).stdout.decode().strip())
    for root in roots:
        for path in sorted(glob.glob(os.path.join(root, "pkg", "tool", "*", "pprof"))):
            return path
    skip("no Go with a pprof of its own (Debian: golang-go)")


def pprof(reader_path, path, *options):
    result = subprocess.run([reader_path, "-symbolize=none", *options, path], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=60,
                            env={**os.environ, "PPROF_TMPDIR": os.path.dirname(path)})
    if result.returncode != 0:
        fail("pprof", *options, result.stderr.decode())
        finish()
    return result.stdout.decode()


def check_samples(text, data, what):
    """-raw: every sample with its numbers, the build-ids of what was mapped."""
    lines = text.split("Samples:\n")[1].splitlines()
    names = [word.split("/")[0].removesuffix("[dflt]") for word in lines[0].split()]
    equal(names, list(TYPES), what, "sample types")
    sums = [0] * len(names)
    for line in lines[1:lines.index("Locations")]:
        sums = [total + int(value) for total, value in zip(sums, line.split(":")[0].split())]
    for name, total in zip(names, sums):
        equal(total, sum(context[TYPES[name]] for context in data["contexts"]), what, name)
    used = {frame["module"] for context in data["contexts"] for frame in context["frames"]}
    for module in data["modules"]:
        if module["path"] in used and module["path"].startswith("/"):
            equal(module["build_id"] in text, True, what, "the build-id of", module["path"])


def check_addresses(text, data, what):
    """The same places of code: one less than a return address, an interrupted instruction as it is."""
    biases = {module["path"]: module["bias"] for module in data["modules"]}
    expected = {biases[frame["module"]] + frame["offset"] for context in data["contexts"]
                for frame in context["frames"] if frame["module"] in biases}
    found = {int(address, 16) for address in re.findall(r"^ +\d+: (0x[0-9a-f]+) M=", text, re.MULTILINE)}
    equal(found, expected, what, "addresses")
    handlers = [context["frames"] for context in data["contexts"] if any(
        frame["function"] == "__restore_rt" for frame in context["frames"])]
    equal(len(handlers) != 0, True, what, "no allocation in a signal handler")


def number(text):
    return int(re.fullmatch(r"(\d+)B?", text).group(1))


def check_top(reader_path, path, kind, data, what):
    """Each function's own share."""
    expected = collections.Counter()
    for context in data["contexts"]:
        expected[spelled(context["frames"][0])] += context[TYPES[kind]]
    text = pprof(reader_path, path, "-top", "-nodecount=0", "-nodefraction=0", "-unit=B", "-sample_index=" + kind)
    found = collections.Counter()
    for line in text.splitlines():
        words = re.match(r"\s*(\d+B?)\s+\S+%\s+\S+%\s+\d+B?\s+\S+%\s+(.*)", line)
        if words:
            found[words.group(2).replace(" (inline)", "").replace(" (partial-inline)", "")] += number(words.group(1))
    equal(+found, +expected, what, kind, "-top")


def check_traces(reader_path, path, data, what):
    """Whole call paths, inlined functions among them."""
    text = pprof(reader_path, path, "-traces", "-unit=B", "-sample_index=inuse_space")
    found = collections.Counter()
    for trace in re.split(r"^-{11}\+-+$", text, flags=re.MULTILINE)[1:]:
        lines = [line for line in trace.splitlines() if line.strip()]
        if lines:
            value, first = re.match(r"\s*(\d+)B? +(.*)", lines[0]).groups()
            names = [first] + [line.strip() for line in lines[1:]]
            found[";".join(name.replace(" (inline)", "") for name in names)] += int(value)
    expected = collections.Counter()
    for context in data["contexts"]:
        expected[";".join(spelled(frame) for frame in context["frames"])] += context["live_bytes"]
    equal(+found, +expected, what, "-traces")


def main():
    reader_path = reader()
    folder = scratch()
    recording, profile = recorded(folder)
    path = os.path.join(folder, "out.pb.gz")
    for source, what in ((recording, "recording"), (profile, "profile")):
        data = report(source)
        export(source, "--full-names", "--output", path)
        raw = pprof(reader_path, path, "-raw")
        check_samples(raw, data, what)
        check_addresses(raw, data, what)
        check_traces(reader_path, path, data, what)
        for kind in TYPES:
            check_top(reader_path, path, kind, data, what)
    for cost in COSTS:
        export(recording, "--cost", cost, "--output", path)
        equal("Type: %s\n" % FIRST[cost] in pprof(reader_path, path, "-top"), True, cost, "is shown first")
    finish()


main()
