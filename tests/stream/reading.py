#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What was gathered, or is being, is read like what was recorded here: a folder of machines, whose programs run where
nobody here can see them."""

import json
import os
import re
import struct
import subprocess
import urllib.request

from streamed import (MEMTRACE, Gather, clean_environment, equal, execute, make_recording, finish, received, scratch,
                      send, wait_until)

NOBODY = 0x7ffffff0  # no kernel gives this number to a process


def gathered(folder, paths):
    """Two machines' recordings; the second one's program goes on, and is cut off in the middle of a block."""
    there = os.path.join(folder, "there")
    gather = Gather(there)
    for path in paths:
        equal(send(path, gather.port).wait(), 0, "sent")
    gather.end()
    first, second = received(there)
    far = os.path.join(there, "far", os.path.basename(second))
    os.mkdir(os.path.dirname(far))
    os.rename(second, far)
    with open(far, "r+b") as file:
        file.seek(20)
        file.write(struct.pack("<I", NOBODY))
        file.truncate(os.path.getsize(far) * 2 // 3)
    return there, first, far


def told(*command):
    done = execute([MEMTRACE, *command], clean_environment(MEMTRACE_REGION_DIR=scratch(where="/dev/shm")), timeout=120)
    equal(done.returncode, 0, *command, done.stderr)
    return done.stdout.decode("utf-8", "replace")


def state(path):
    return re.search(r"^  process +\d+, (running|killed|exited|ended)", told("report", path), re.M).group(1)


def one_file(far):
    """Somebody writes it: it goes on. Nobody does: its sender or the program is gone."""
    equal(state(far), "killed", "nobody writes it")
    with open(far, "r+b"):
        equal(state(far), "running", "it is being received")
        equal("[recording]" in told("top", "--once", far), True, "top follows it")
    equal("[file]" in told("top", "--once", far), True, "top does not")


def ends(there):
    return sorted(re.findall(r" (ended|killed|running) ", told("report", "--show-processes", there)))


def folder_of_machines(there, first, far):
    equal("python" in told("report", "--all-processes", there), True, "report")
    equal(ends(there), ["ended", "killed"], "ends")
    with open(far, "r+b"):
        equal(ends(there), ["ended", "running"], "ends while it is received")
    shown = told("info", there)
    for path in (first, far):
        equal(os.path.relpath(path, there) in shown, True, "info names", path, shown)


def page(there, first, far):
    """The page finds what lies in the machines' folders."""
    server = subprocess.Popen([MEMTRACE, "serve", there], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              env=clean_environment(MEMTRACE_REGION_DIR=scratch(where="/dev/shm")))
    address, token = re.match(r"(http://\S+/)#token=(\w+)", server.stdout.readline()).groups()
    request = urllib.request.Request(address + "api/v1/sources", headers={"Authorization": "Bearer " + token})
    with urllib.request.urlopen(request, timeout=120) as answer:
        found = [item["path"] for item in json.load(answer)["found"]]
    equal(sorted(found), sorted([first, far]), "found by the page")
    server.terminate()
    server.wait()


def received_while_read(folder, path):
    """What is read while it comes does not keep the receiver from writing it."""
    there = os.path.join(folder, "read")
    gather = Gather(there)
    sender = send(path, gather.port)
    wait_until(lambda: received(there), "it begins to come")
    while sender.process.poll() is None:
        execute([MEMTRACE, "info", received(there)[0]], clean_environment(), timeout=120)
    equal(sender.wait(), 0, "sent while it was read", sender.lines)
    gather.end()


def main():
    folder = scratch()
    paths = [make_recording(folder, 100), make_recording(folder, 200)]
    there, first, far = gathered(folder, paths)
    one_file(far)
    folder_of_machines(there, first, far)
    page(there, first, far)
    received_while_read(folder, paths[1])
    finish()


if __name__ == "__main__":
    main()
