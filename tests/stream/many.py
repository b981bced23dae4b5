#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Many sources at one receiver, beside connections that say nothing or garbage; and a disk that is slow for one of
them: what is not on it is not acknowledged, and nobody else waits. How many it can do: `benchmarks/run stream gather`."""

import json
import os
import socket
import subprocess

from streamed import (Gather, equal, fail, finish, frame, hello, make_recording, make_token, received, same, scratch,
                      send, wait_until)

HERE = os.path.join(os.environ["TEST_BUILD"], "tests", "stream")
SOURCES, BYTES, SECONDS, SILENT, GARBAGE = 40, 50_000, 2, 30, 5
RESIDENT_MOST = 256 << 10


def resident(gather):
    with open("/proc/%d/status" % gather.process.pid, encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))


def many(folder):
    there, kept = os.path.join(folder, "many"), os.path.join(folder, "sent")
    os.mkdir(kept)
    token = make_token(folder)
    gather = Gather(there, "--token", token)
    before = resident(gather)
    sources = subprocess.Popen([os.path.join(HERE, "sources"), *map(str, (gather.port, token, SOURCES, BYTES, SECONDS,
                                                                        SILENT, GARBAGE)), kept],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(sources.stdout.readline(), "ready\n", "all are connected", gather.lines[-3:])
    sources.stdin.write("\n")
    sources.stdin.flush()
    equal(sources.stdout.readline(), "sent\n", "all was sent", gather.lines[-3:])
    each = (resident(gather) - before) / SOURCES
    if not 0 < each < RESIDENT_MOST:
        fail("bytes a source:", each)
    output, _ = sources.communicate("\n", timeout=60)
    told = json.loads(output)
    equal((told["ended"], told["bytes"]), (SOURCES, SOURCES * BYTES * SECONDS), told)
    gather.end()
    same(there, *(os.path.join(kept, name) for name in os.listdir(kept)))
    equal(len(gather.said("complete")), SOURCES, "complete")
    if not gather.said("not our token"):
        fail("garbage was not refused:", gather.lines[-5:])


def exactly(peer, size):
    data = b""
    while len(data) < size:
        more = peer.recv(size - len(data))
        if not more:
            raise ConnectionError("closed")
        data += more
    return data


def offset_of(peer, wanted):
    """Of the next frame of this type."""
    while True:
        header = exactly(peer, 16)
        exactly(peer, int.from_bytes(header[4:8], "little"))
        if header[3] == wanted:
            return int.from_bytes(header[8:], "little")


def slow_disk(folder):
    there, hold = os.path.join(folder, "disk"), os.path.join(folder, "hold")
    path = make_recording(folder, 30)
    with open(hold, "wb"):
        pass
    slow = dict(settings={"LD_PRELOAD": os.path.join(HERE, "slowdisk.so"), "SLOWDISK_HOLD": hold})
    gather = Gather(there, **slow)
    with open(path, "rb") as file:
        data = file.read()
    greeting = hello(host=b"slow", ident=identity(path))
    with socket.create_connection(("127.0.0.1", gather.port), timeout=60) as peer:
        peer.sendall(greeting)
        equal(offset_of(peer, 2), 0, "welcome")
        peer.sendall(frame(3, data[:5000]))
        wait_until(lambda: [name for name in received(there) if os.path.getsize(name) == 5000], "it is written")
        wait_until(lambda: os.path.exists(hold + ".begun"), "the disk is slow")
        equal(send(path, gather.port).wait(), 0, "another one, meanwhile")
        peer.settimeout(0.2)
        try:
            fail("acknowledged, or gone, before it was on the disk:", peer.recv(100))
        except TimeoutError:
            pass
        peer.settimeout(60)
        peer.sendall(frame(3, data[5000:6000], 5000))
        # Another connection for it: what is there is not told before it is on the disk.
        with socket.create_connection(("127.0.0.1", gather.port), timeout=0.5) as other:
            other.sendall(greeting)
            wait_until(lambda: gather.said("another sender goes on"), "it takes over")
            try:
                fail("welcome before it was on the disk:", other.recv(100))
            except TimeoutError:
                pass
            other.settimeout(60)
            os.unlink(hold)
            there_now = offset_of(other, 2)
            equal(there_now in (5000, 6000), True, "welcome", there_now)
            other.sendall(frame(3, data[there_now:9000], there_now))
            equal(offset_of(other, 4), 9000, "acknowledged")
    gather.end()
    equal(sorted(map(os.path.getsize, received(there))), [9000, len(data)], received(there))


def identity(path):
    """The id of a recording, as its sender says it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = send(path, server.getsockname()[1])
        peer, _ = server.accept()
        with peer:
            data = b""
            while len(data) < 56:
                data += peer.recv(1 << 12)
        sender.end()
    return data[16 + 24:16 + 40]


folder = scratch()
many(folder)
slow_disk(folder)
finish()
