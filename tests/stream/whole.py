#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whole and growing recordings arrive byte for byte: in clear, with TLS, beside others, again, and after the
received file was cut, extended or changed."""

import os
import shutil
import sys
import time

from streamed import (Gather, equal, fail, finish, make_recording, make_token, received, same, scratch, send,
                      start_recording, wait_until)


def arrives(command, *what):
    equal(command.wait(), 0, *what, command.lines)


def growing(folder, *options):
    there = os.path.join(folder, "growing" + str(len(options)))
    gather = Gather(there, *options)
    process, path = start_recording(folder, 3)
    sender = send(path, gather.port, *options)
    wait_until(lambda: received(there) and os.path.getsize(received(there)[0]) > 4096, "bytes come while it grows")
    equal(process.poll(), None, "the program still runs then")
    process.wait()
    arrives(sender, "growing")
    gather.end()
    same(there, path)
    os.unlink(path)


def again(folder, path):
    """What is there already is not sent twice; what differs is."""
    there = os.path.join(folder, "again")
    gather = Gather(there)
    arrives(send(path, gather.port), "first")
    name = received(there)[0]
    arrives(send(path, gather.port), "second")
    equal(len(gather.said("goes on behind")), 1, "the second time", gather.lines)
    size = os.path.getsize(path)
    for what, change in (("cut", lambda f: f.truncate(size // 2)), ("empty", lambda f: f.truncate(0)),
                         ("longer", lambda f: (f.seek(size), f.write(b"more"))),
                         ("other", lambda f: (f.seek(size // 2), f.write(b"not what was sent")))):
        with open(name, "r+b") as file:
            change(file)
        sender = send(path, gather.port)
        arrives(sender, what)
        equal(bool(sender.said("sending it anew")), what in ("longer", "other"), what, sender.lines)
        same(there, path)
    gather.end()


def later(folder, path):
    """A recording that was sent while it was torn, and was gone on with after that."""
    there = os.path.join(folder, "later")
    torn = os.path.join(folder, "torn.mtr")
    gather = Gather(there)
    for part in (0.3, 0.6, 1):
        shutil.copy(path, torn)
        os.truncate(torn, int(os.path.getsize(path) * part))
        with open(torn, "ab") as file:
            file.write(b"torn" if part < 1 else b"")
        arrives(send(torn, gather.port), "later", part)
        same(there, torn)
    gather.end()
    os.unlink(torn)


def empty(folder, path):
    """A file that is made before anything is in it is waited for."""
    there = os.path.join(folder, "empty")
    late = os.path.join(folder, "late.mtr")
    gather = Gather(there)
    with open(late, "wb") as file, open(path, "rb") as whole:
        sender = send(late, gather.port)
        time.sleep(0.2)
        equal(sender.process.poll(), None, "nothing is in it yet", sender.lines)
        file.write(whole.read())
    arrives(sender, "empty at first")
    gather.end()
    same(there, late)
    os.unlink(late)


def many(folder, paths, *options):
    there = os.path.join(folder, "many")
    gather = Gather(there, *options)
    for sender in [send(path, gather.port, *options) for path in paths]:
        arrives(sender, "many")
    gather.end()
    same(there, *paths)


def twins(folder, path):
    """Another recording of the same name: neither takes the other's place."""
    there = os.path.join(folder, "twins")
    twin = os.path.join(folder, "twin.mtr")
    shutil.copy(path, twin)
    with open(twin, "r+b") as file:
        file.seek(56)  # a reserved field of the header
        file.write(b"twin")
    gather = Gather(there)
    arrives(send(path, gather.port), "the one")
    arrives(send(twin, gather.port), "the other")
    gather.end()
    same(there, path, twin)
    os.unlink(twin)


def main():
    folder = scratch()
    token = make_token(folder)
    if "growing" in sys.argv:
        growing(folder)
        growing(folder, "--token", token)
        finish()
    paths = [make_recording(folder, rounds) for rounds in (20, 200, 400)]
    if os.path.getsize(paths[-1]) < 100000:
        fail("too small a recording:", os.path.getsize(paths[-1]))
    again(folder, paths[1])
    twins(folder, paths[0])
    later(folder, paths[1])
    empty(folder, paths[0])
    many(folder, paths, "--token", token)
    finish()


if __name__ == "__main__":
    main()
