# SPDX-License-Identifier: MIT
"""emulated.py: a program on a terminal of its own, which pyte emulates."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

VERSION = "0.8.2"
WIDTH, HEIGHT = 80, 24
PATIENCE = 120


class Unavailable(Exception):
    """There is no pyte here; the message says why."""


def emulator(folder):
    """pyte; from its registry, into this folder, where it is not installed."""
    try:
        import pyte
    except ImportError:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                   "--target", folder + "/pyte", "pyte==" + VERSION]
        try:
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=90)
            reason = result.stdout.decode().strip()[-300:] if result.returncode else None
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = str(error)
        if reason is not None:
            raise Unavailable("pyte could not be installed: " + reason)
        sys.path.insert(0, folder + "/pyte")
        import pyte
    return pyte


def repeating(pyte):
    """pyte with what it lacks of xterm: "CSI n b", the last character n times more."""
    class Screen(pyte.Screen):
        last = ""

        def draw(self, data):
            self.last = data[-1:] or self.last
            super().draw(data)

        def repeat_last(self, count=None):
            self.draw(self.last * (count or 1))

    class Stream(pyte.ByteStream):
        csi = {**pyte.ByteStream.csi, "b": "repeat_last"}
        events = pyte.ByteStream.events | {"repeat_last"}

    return Screen, Stream


class Emulated:
    """A command on such a terminal. folder: where it runs."""

    def __init__(self, command, environment, folder, width=WIDTH, height=HEIGHT):
        screen, stream = repeating(emulator(folder))
        self.screen = screen(width, height)
        self.stream = stream(self.screen)
        self.raw = b""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.master, self.slave = master, slave
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=folder,
                                        preexec_fn=self.lead)

    def lead(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])

    def read(self, seconds):
        """What it draws within so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                data = os.read(self.master, 1 << 16)
                self.raw += data
                self.stream.feed(data)

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def wait(self, condition, *what, step=0.05):
        """Until the lines are so."""
        end = time.monotonic() + PATIENCE
        while not condition(self.lines()):
            if time.monotonic() > end:
                raise AssertionError("waited in vain for %s\n%s" % (" ".join(map(str, what)), "\n".join(self.lines())))
            self.read(step)

    def press(self, *keys):
        for key in keys:
            os.write(self.master, key if isinstance(key, bytes) else key.encode())
            self.read(0.05)

    def resize(self, width, height):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.screen.resize(height, width)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
