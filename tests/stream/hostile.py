#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who means harm, or has bad luck: many that connect and say nothing, folders and files that go away or are others'
while recordings come, a disk that stays full. One clear line each; what was
acknowledged can be found."""

import os
import re
import shutil
import socket
import subprocess
import time

from streamed import (MEMTRACE, Command, Gather, clean_environment, equal, execute, fail, finish, frame, hello,
                      make_recording, make_token, received, recordings, same, scratch, send, settings_for, start_recording, talk,
                      wait_until)

LIMITED = ("sh", "-c", "ulimit -n 40; exec \"$@\"", "sh")


def strangers(folder, path):
    """Half-open connections, more than there are descriptors: others come and go, and lines have an end."""
    there = os.path.join(folder, "strangers")
    gather = Gather(there, prefix=LIMITED)
    silent = [socket.create_connection(("127.0.0.1", gather.port)) for _ in range(150)]
    equal(send(path, gather.port).wait(), 0, "beside strangers", gather.lines[-3:])
    wait_until(lambda: len(gather.said("makes room for others")) >= 90, "lines of strangers")
    for peer in silent:
        peer.close()
    gather.end()
    same(there, path)
    equal(gather.said("no further connection"), [], "descriptors")
    lines = len(gather.said("said nothing|without a word"))
    if lines > 101 or len(gather.said("more connections came to nothing")) != 1:
        fail("lines of 150 strangers:", lines, gather.lines[-3:])


def taken_beside(folder, path):
    """The same of who offers: it takes 256 connections."""
    offering = Command("send", "--listen", "127.0.0.1:0", path)
    wait_until(lambda: offering.said("listening at"), "it listens")
    at = re.search(r"127\.0\.0\.1:(\d+)", offering.lines[0])
    silent = [socket.create_connection(("127.0.0.1", int(at.group(1)))) for _ in range(300)]
    there = os.path.join(folder, "taken")
    gather = Command("gather", at.group(0), there)
    equal(gather.wait(), 0, "taken beside strangers", gather.lines)
    # Those that still say nothing do not keep it.
    equal(offering.wait(9), 0, "the offer ends", offering.lines[-3:])
    for peer in silent:
        peer.close()
    same(there, path)
    equal(len(offering.said("further ones wait")), 1, offering.lines[:3])


def removed(folder, path):
    """A file that is deleted while it comes is not said to be there; nor is anything in a folder that was."""
    there = os.path.join(folder, "removed")
    gather = Gather(there)
    recorder, growing = start_recording(scratch(), 1)
    sender = send(growing, gather.port)
    wait_until(lambda: received(there) and os.path.getsize(received(there)[0]) > 0, "it comes")
    os.unlink(received(there)[0])
    recorder.wait(60)
    equal(sender.wait(), 0, "sent all the same", sender.lines)
    same(there, growing)
    equal(len(gather.said("was removed here")), 1, gather.lines)
    shutil.rmtree(there)
    equal(gather.wait(), 1, "a folder that was removed")
    equal(len(gather.said("the folder .* was removed")), 1, gather.lines)


def others_files(folder, path):
    """What lies where a recording is to be, and is none, is left alone: notes, links, folders."""
    there = os.path.join(folder, "others")
    gather = Gather(there)
    equal(send(path, gather.port).wait(), 0, "the first")
    place = received(there)[0]
    precious = os.path.join(folder, "precious")
    for lay in (lambda: shutil.copy(precious, place), lambda: os.link(empty, place), lambda: os.symlink(precious, place),
                lambda: os.mkdir(place), lambda: os.mkfifo(place)):
        with open(precious, "w", encoding="ascii") as file:
            file.write("a note")
        empty = os.path.join(folder, "empty")
        with open(empty, "wb"):
            pass
        os.unlink(place)
        lay()
        equal(send(path, gather.port).wait(), 0, "beside another's file")
        second = place.replace(".mtr", "-2.mtr")
        equal(os.path.getsize(second), os.path.getsize(path), "under the next name")
        with open(precious, encoding="ascii") as file:
            equal((file.read(), os.path.getsize(empty)), ("a note", 0), "what was there")
        os.unlink(second)
        if os.path.isdir(place):
            os.rmdir(place)
            with open(place, "wb"):
                pass
    gather.end()


def full(folder, path):
    """A disk that stays full: one line on each side, however often it is tried again."""
    there = os.path.join(folder, "full")
    gather = Gather(there, prefix=("sh", "-c", "ulimit -f 200; trap '' XFSZ; exec \"$@\"", "sh"))
    sender = send(path, gather.port)
    wait_until(lambda: sender.said("cannot write there"), "it is full")
    talk(gather.port, hello(ident=b"0123456789abcdef") + frame(3, b"x" * 200_000), b"MTS")
    time.sleep(2)  # some attempts: 0.25 s, then twice as long
    sender.end()
    gather.end()
    equal((len(sender.said("refuses")), len(sender.said("again: goes on"))), (1, 0), sender.lines)
    equal(len(gather.said("cannot write there")), 1, gather.lines)
    equal(len(sender.said("memtrace send --to 127.0.0.1:%d " % gather.port)), 1, "the command that goes on", sender.lines)


def quota_again(folder, path):
    """What is deleted makes room at once."""
    there = os.path.join(folder, "quota")
    os.makedirs(os.path.join(there, "x"))
    other = os.path.join(there, "x", "other")
    with open(other, "wb") as file:
        file.write(bytes(1000))
    gather = Gather(there, "--total-quota", str(os.path.getsize(path) + 999))
    equal(send(path, gather.port).wait(), 1, "no room")
    os.unlink(other)
    equal(send(path, gather.port).wait(), 0, "room", gather.lines[-2:])
    gather.end()
    same(there, path)


def asked_wrongly(folder):
    """What is easily mistaken is said."""
    token = os.path.join(folder, "pipe")
    os.mkfifo(token, 0o600)
    for arguments, status, says in ((["gather", "192.0.2.7"], 2, "a folder is needed behind 192.0.2.7"),
                                    (["gather", "[::1]:99"], 2, "a folder is needed"),
                                    (["gather", "--token", token, folder], 1, "is not a file")):
        done = subprocess.run([MEMTRACE, *arguments], capture_output=True, text=True, timeout=30, check=False,
                              cwd=folder, env=clean_environment())
        equal((done.returncode, says in done.stderr, done.stderr.count("\n")), (status, True, 1), arguments,
              done.stderr)


def without_sender(folder):
    """The token went away: what was not sent is told."""
    runs = os.path.join(folder, "runs")
    os.mkdir(runs)
    token = make_token(folder, "soon-gone")
    done = execute([MEMTRACE, "record", "--to", "127.0.0.1:9", "--token", token, "--linger", "2s", "--", "sh", "-c",
                    "rm %s; exec true" % token], settings_for(runs), timeout=60)
    equal(done.returncode, 0, "the program's status", done.stderr)
    if recordings(runs) and b"only here" not in done.stderr:
        fail("nothing is said of what was not sent:", done.stderr)


def main():
    folder = scratch()
    path = make_recording(folder, 6)
    for test in (strangers, taken_beside, removed, others_files, full, quota_again):
        test(folder, path)
    asked_wrongly(folder)
    without_sender(folder)
    finish()


if __name__ == "__main__":
    main()
