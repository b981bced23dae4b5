# SPDX-License-Identifier: MIT
"""What the tests of streams share: recordings to send, receivers and senders, and a proxy between them that delays
and cuts connections. All of it on the loopback address, at ports that the kernel chooses."""

import filecmp
import os
import random
import re
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recording"))

from recorded import (MEMTRACE, clean_environment, equal, execute, fail, files, finish, record, recordings,  # noqa: E402
                      scratch, settings_for)
from harness import build  # noqa: E402, F401

PATIENCE = 60


def wait_until(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    fail("not within %d s: %s" % (seconds, what))
    return False


class Command:
    """A command of ours whose stderr is kept."""

    def __init__(self, *arguments, prefix=(), settings=None, **more):
        self.lines = []
        self.process = subprocess.Popen([*prefix, MEMTRACE, *arguments], stderr=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, env=clean_environment(**(settings or {})), **more)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stderr:
            self.lines.append(line.decode("utf-8", "replace").rstrip("\n"))

    def said(self, pattern):
        return [line for line in list(self.lines) if re.search(pattern, line)]

    def wait(self, seconds=PATIENCE):
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            fail("still running after %d s: %s; it said %s" % (seconds, self.process.args, self.lines[-6:]))
            self.process.kill()
            status = self.process.wait()
        self.thread.join(5)
        return status

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.wait()


class Gather(Command):
    def __init__(self, folder, *options, port=0, **more):
        super().__init__("gather", "--listen", "127.0.0.1:%d" % port, *options, folder, **more)
        self.folder = folder
        wait_until(lambda: self.said("listening at") or self.process.poll() is not None, "gather listens")
        found = re.search(r"listening at 127\.0\.0\.1:(\d+)", "\n".join(self.lines))
        self.port = int(found.group(1)) if found else 0


def send(path, port, *options):
    return Command("send", path, "--to", "127.0.0.1:%d" % port, *options)


def received(folder):
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names
                  if name != ".control")  # the socket of `memtrace control`


def same(folder, *paths):
    """Each of these files was received, byte for byte, and nothing else."""
    there = received(folder)
    if not equal(len(there), len(paths), "files received", there):
        return
    for path in paths:
        if not any(filecmp.cmp(path, other, shallow=False) for other in there):
            fail("%s (%d bytes) is not among what was received: %s" % (
                path, os.path.getsize(path), [(other, os.path.getsize(other)) for other in there]))


def make_token(folder, name="token", text="0123456789abcdef0123456789abcdef"):
    path = os.path.join(folder, name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(text + "\n")
    return path


def make_recording(folder, rounds=200):
    """A finished recording of some 100 KB a hundred rounds."""
    before = set(recordings(folder))
    done = record([sys.executable, "-c", "import json\nfor i in range(%d):\n  json.loads(json.dumps(list(range(300 + i))))"
                   % rounds], folder, timeout=120)
    equal(done.returncode, 0, "record", done.stderr)
    made = [path for path in recordings(folder) if path not in before]
    equal(len(made), 1, "recordings made")
    return made[0]


def start_recording(folder, seconds):
    """A recording that grows for so long: its process and its path."""
    program = ("import json, time\nend = time.time() + %g\nwhile time.time() < end:\n"
               "  json.loads(json.dumps(list(range(500))))\n  time.sleep(0.0005)" % seconds)
    before = set(recordings(folder))
    process = subprocess.Popen([MEMTRACE, "record", "--", sys.executable, "-c", program], stderr=subprocess.DEVNULL,
                               env=clean_environment(**settings_for(folder)))
    wait_until(lambda: set(recordings(folder)) - before, "a recording begins")
    return process, (set(recordings(folder)) - before).pop()


class Proxy:
    """Passes bytes on between its own port and another one. cut: a connection ends after so many bytes of the
    sender's (a list, one after the other; then no more); delay: seconds that each piece waits."""

    def __init__(self, port, cut=(), delay=0.0, piece=1 << 16):
        self.to, self.cuts, self.delay, self.piece = port, list(cut), delay, piece
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections = 0
        self.carried = 0  # bytes of the sender's
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            here, _ = self.listener.accept()
            self.connections += 1
            try:
                there = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                here.close()
                continue
            left = self.cuts.pop(0) if self.cuts else None
            threading.Thread(target=self.carry, args=(here, there, left), daemon=True).start()

    def carry(self, here, there, left):
        with selectors.DefaultSelector() as both, here, there:
            both.register(here, selectors.EVENT_READ, there)
            both.register(there, selectors.EVENT_READ, here)
            while left is None or left > 0:
                for key, _ in both.select():
                    try:
                        most = self.piece if left is None or key.fileobj is there else min(self.piece, left)
                        data = key.fileobj.recv(most)
                        if not data:
                            return
                        self.carried += len(data) if key.fileobj is here else 0
                        time.sleep(self.delay)
                        key.data.sendall(data)
                    except OSError:
                        return
                    if left is not None and key.fileobj is here:
                        left -= len(data)


def pause(longest):
    time.sleep(random.uniform(0, longest))


# ---- What a stranger says ----


def talk(port, data, expect=b""):
    """Says it, and waits until the other side has closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as peer:
        got = b""
        try:
            peer.sendall(data)
            while more := peer.recv(4096):
                got += more
        except ConnectionError:
            pass
        if expect not in got:
            fail("answer to", data[:40], "is", got)


def frame(kind, payload=b"", offset=0):
    return b"MTS" + struct.pack("<BIQ", kind, len(payload), offset) + payload


def hello(version=3, host=b"there", program=b"program", ident=bytes(16)):
    return frame(1, struct.pack("<IIIIQ", version, 17, 0, 0, 10**18) + ident + bytes(8) + host + b"\0" + program + b"\0")
