# SPDX-License-Identifier: MIT
"""Folders and run.json that no writer wrote: the report says what is wrong, or shows what it can."""

import json
import os
import random
import shutil

from runfolder import (command, describe, equal, finish, folder, make, process, record, told)

run = make("run")
record(run + "/a.1.mtp", "a", 1000)
record(run + "/b.2.mtp", "b", 500)
SECRET = record(folder + "/secret.mtp", "secret", 123456)
good = describe(run, [process(1, 0, "a", 0, 10, 1000, file="a.1.mtp"),
                      process(2, 1, "b", 1, 9, 500, file="b.2.mtp")],
                timeline=[[0, 0, 0, 1], [5000000, 1200, 4096, 2]])
TEXT = json.dumps(good)


def write(text):
    with open(run + "/run.json", "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def check_unusable():
    """What is no run.json of ours is not used, which is said; the files tell instead."""
    reasons = {"": "not whole", TEXT[:len(TEXT) // 2]: "not whole", TEXT + "}": "not whole",
               "{}": "does not describe a run", "[]": "does not describe a run",
               "null": "does not describe a run", "7": "does not describe a run",
               TEXT.replace('"version": 1', '"version": 2'): "its version is not 1",
               TEXT.replace("memtrace run", "other"): "does not describe a run",
               "[" * 1000000: "damaged", '{"a":' * 100000: "damaged",
               TEXT.replace("make", "\0"): "damaged", '"' + "\\" * 9: "not whole"}
    for text, reason in reasons.items():
        write(text)
        out = command("report", run)[0]
        equal("run.json cannot be used" in out and reason in out, True, text[:40], out[:400])
        equal(told(run)["run"]["processes"][0]["peak_bytes"], 1000, text[:40])
    write(b'{"format": "memtrace run\xff"}')
    equal("cannot be used" in command("report", run)[0], True)
    os.remove(run + "/run.json")
    os.mkdir(run + "/run.json")
    equal("cannot be used" in command("report", run)[0], True)
    os.rmdir(run + "/run.json")


def check_types():
    """Members of another type are as if they were not there."""
    wrong = [None, True, "x", -1, 1.5, 1e300, 10**30, [], {}, [[]], [{}], {"a": []}]
    for name in good:
        for value in (-1, [[]], {"a": []}):
            write(json.dumps({**good, name: value}))
            equal(told(run)["run"]["processes"][0]["peak_bytes"], 1000, name, value)
    for name in list(good["processes"][0]) + ["light"]:
        odd = [{**good["processes"][0], name: value} for value in wrong]
        write(json.dumps({**good, "processes": good["processes"] + odd + wrong}))
        equal(len(told(run)["run"]["processes"]), 2 + 12 + 2, name)
    write(json.dumps({**good, "timeline": wrong + [[1, 2], [3, "x", None, {}], [2, 1, 1, 1]]}))
    equal([p["time_ns"] for p in told(run)["run"]["timeline"]], [3], "times grow")
    write(json.dumps({**good, "peak": {"seen_bytes": 10, "at_ns": 1, "bound_bytes": 5}}))
    data = told(run)["run"]
    equal((data["peak_bytes"], data["peak_bound_bytes"]), (1200, 1200), "a peak that cannot be")


def check_paths():
    """Only files of the folder are opened."""
    for name in ("../secret.mtp", SECRET, "./a.1.mtp", "sub/a.mtp", "..", ".", "", "a.1.mtp\n", "run.json",
                 "/dev/zero", "%s", "a.1.mtp/../../secret.mtp"):
        write(json.dumps({**good, "processes": [{**good["processes"][0], "file": name},
                                                good["processes"][1]]}))
        data = told(run)
        equal((data["total_bytes"], data["run"]["processes"][0]["file"]), (500, None), name)
        err = command("report", run, "--process", "a", status=1)[1]
        equal(err, "memtrace: process 1 was seen, but nothing of it was kept\n")
    out = command("report", run)[0]
    equal("files that are not in the folder any more: 1" in out, True, out[:400])
    write(json.dumps({**good, "processes": []}))
    equal("it tells of no process" in command("report", run)[0], True)


def check_noise():
    chance = random.Random(2)
    for _ in range(15):
        text = bytearray(TEXT.encode())
        for _ in range(chance.randrange(1, 6)):
            text[chance.randrange(len(text))] = chance.choice(b'{}[]",:0-9e\\ \x00\xff')
        write(bytes(text))
        command("report", run, "--format", "json", status=0)
    deep = [process(i + 1, i, "p", i, 10**6, 1) for i in range(3000)]
    write(json.dumps({**good, "processes": deep + [{**good["processes"][0], "pid": 5000}]}))
    command("report", run, "--processes", "0")


def check_folders():
    empty = make("empty")
    err = command("report", empty, status=1)[1]
    equal(err, "memtrace: %s is a folder without a profile (*.mtp) or a recording (*.mtr)\n" % empty)
    with open(empty + "/x.mtp", "w") as file:
        file.write("no profile")
    os.mkfifo(empty + "/y.mtp")
    os.mkdir(empty + "/z.mtp")
    os.symlink(empty + "/nowhere", empty + "/w.mtr")
    equal("without a profile" in command("report", empty, status=1)[1], True)
    shutil.copy(run + "/a.1.mtp", empty + "/a.mtp")
    equal(told(empty)["total_bytes"], 1000, "what is no profile is left out")
    closed = make("closed")
    os.chmod(closed, 0)
    if not os.access(closed, os.R_OK):  # not as root
        err = command("report", closed, status=1)[1]
        equal(err, "memtrace: cannot read %s: Permission denied\n" % closed)
    os.chmod(closed, 0o700)
    equal("cannot open" in command("report", folder + "/nosuch", status=1)[1], True)


check_unusable()
check_types()
check_paths()
write(TEXT)
check_noise()
check_folders()
finish()
