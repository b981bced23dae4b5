#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A disk that fails at the receiver: what it could not write is never taken for written, whoever comes next, and the
sender, which has freed what was acknowledged, sends all of the rest again. Recordings arrive as a whole, without being
sent anew, which would not be possible."""

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from streamed import (Command, Gather, equal, fail, finish, make_token, received, scratch, wait_until)

HERE = os.path.join(os.environ["TEST_BUILD"], "tests", "stream")
PROGRAM = """
import random, sys, time
end, kept = time.time() + %g, [None] * 5000
while time.time() < end:
    for i in range(1000):
        kept[random.getrandbits(12)] = bytearray(600 + random.getrandbits(14))
    time.sleep(0.01)
"""


class Disk:
    def __init__(self, folder):
        self.hold = os.path.join(folder, "hold")
        self.settings = {"LD_PRELOAD": os.path.join(HERE, "slowdisk.so"),
                         "SLOWDISK_HOLD": self.hold}

    def make(self, what=""):
        with open(self.hold + what, "wb"):
            pass

    def is_there(self, what):
        return os.path.exists(self.hold + what)


def recorder(folder, port, token, seconds):
    return Command("record", "--queue", "16M", "--embed", "none", "--to", "127.0.0.1:%d" % port, "--token", token, "--",
                   sys.executable, "-c", PROGRAM % seconds, settings={"MEMTRACE_RECORD_OUTPUT": folder + "/r.mtr",
                                                                    "MEMTRACE_OUTPUT": folder + "/r.mtp"})


def while_it_comes(disk, gather, _port):
    """Nobody is gone."""
    disk.make(".fail")
    wait_until(lambda: not disk.is_there(".fail"), "the disk fails")
    return gather


def while_another_comes(disk, gather, _port):
    """The sender is gone when the disk fails, and the next one is there already."""
    os.unlink(disk.hold + ".begun")
    disk.make()
    wait_until(lambda: disk.is_there(".begun"), "the disk stands still")
    before = len(gather.said("goes on behind"))
    for sender in senders(gather.recorder.process.pid):
        os.kill(sender, signal.SIGKILL)
    wait_until(lambda: len(gather.said("goes on behind")) > before, "the next one comes")
    disk.make(".fail")
    os.unlink(disk.hold)
    wait_until(lambda: not disk.is_there(".fail"), "the disk fails")
    return gather


def while_nobody_looks(disk, gather, port):
    """The receiver is killed, and what it has not synced is lost before the next one looks."""
    os.unlink(disk.hold + ".begun")
    disk.make()
    wait_until(lambda: disk.is_there(".begun"), "the disk stands still")
    gather.end(signal.SIGKILL)
    disk.make(".fail")
    os.unlink(disk.hold)
    again = Gather(gather.folder, *gather.options, port=port, settings=disk.settings)
    wait_until(lambda: not disk.is_there(".fail"), "the disk fails")
    return again


def senders(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as children:
        found = [int(child) for child in children.read().split()]
    own = os.readlink("/proc/%d/exe" % pid)
    return [child for child in found if os.readlink("/proc/%d/exe" % child) == own]


def fails(what):
    folder = scratch()
    there = os.path.join(folder, "slow")
    disk, token = Disk(folder), make_token(folder)
    gather = Gather(there, "--token", token, settings=disk.settings)
    gather.options = ("--token", token)
    record = gather.recorder = recorder(folder, gather.port, token, 4)
    wait_until(lambda: disk.is_there(".good") and received(there) and os.path.getsize(received(there)[0]) > 100_000,
               "it comes")
    time.sleep(0.3)  # something is freed
    last = what(disk, gather, gather.port)
    equal(record.wait(), 0, what.__name__, record.lines)
    wait_until(lambda: last.said("complete"), "all of it is there")
    last.end()
    lines = gather.lines + (last.lines if last is not gather else []) + record.lines
    equal((len([line for line in lines if "Input/output error" in line]) >= 1,
           [line for line in lines if "anew" in line or "other bytes" in line or "not here any more" in line]), (True, []),
          what.__name__, lines)
    with open(received(there)[0], "rb") as file:
        if bytes(1 << 14) in file.read():
            fail(what.__name__, "a part of what was received are zeros")


def bounded():
    """A disk that stands still does not keep the receiver from ending; a line says so."""
    folder = scratch()
    there = os.path.join(folder, "slow")
    disk, token = Disk(folder), make_token(folder)
    gather = Gather(there, "--token", token, settings=disk.settings)
    record = recorder(folder, gather.port, token, 30)
    wait_until(lambda: received(there) and os.path.getsize(received(there)[0]) > 100_000, "it comes")
    os.unlink(disk.hold + ".begun")
    disk.make()
    wait_until(lambda: disk.is_there(".begun"), "the disk stands still")
    before = time.monotonic()
    gather.end()
    took = time.monotonic() - before
    equal((took < 30, len(gather.said("the disk stands still: the last bytes of 1 recording"))), (True, 1), "the end", took,
          gather.lines)
    record.process.kill()
    record.wait()


def main():
    with ThreadPoolExecutor() as at_once:
        done = [at_once.submit(bounded)] + [at_once.submit(fails, what) for what in (
            while_it_comes, while_another_comes, while_nobody_looks)]
    for one in done:
        one.result()
    finish()


if __name__ == "__main__":
    main()
