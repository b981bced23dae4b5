#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""kills.py [--count N]: sender and receiver are killed N times each, at random moments, while a program is recorded
and after it: the received file becomes that of the sender, and nothing that was acknowledged is ever lost."""

import argparse
import os
import signal

from streamed import (Gather, PATIENCE, equal, fail, finish, make_token, pause, received, same, scratch, send,
                      start_recording)


def size_of(folder):
    return sum(os.path.getsize(path) for path in received(folder))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20)
    count = parser.parse_args().count
    folder = scratch()
    there = os.path.join(folder, "there")
    token = ("--token", make_token(folder))
    process, path = start_recording(folder, 0.5 * count)
    gather = Gather(there, *token)
    port = gather.port
    killed = least = 0
    for i in range(2 * count):
        sender = send(path, port, *token)
        pause(0.4)
        victim = gather if i % 2 else sender
        killed += victim.process.poll() is None
        victim.end(signal.SIGKILL)
        if victim is gather:
            if size_of(there) < least:
                fail("the received file became smaller: %d, %d before" % (size_of(there), least))
            least = size_of(there)
            gather = Gather(there, *token, port=port)
            equal(gather.process.poll(), None, "a new receiver", gather.lines)
            sender.end(signal.SIGKILL)
    process.wait()
    if killed < 2 * count * 3 // 4:
        fail("only %d of %d kills met a living process" % (killed, 2 * count))
    sender = send(path, port, *token)
    equal(sender.wait(PATIENCE), 0, "the last one", sender.lines[-6:])
    gather.end()
    same(there, path)
    finish()


if __name__ == "__main__":
    main()
