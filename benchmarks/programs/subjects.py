# SPDX-License-Identifier: MIT
"""The real programs and what each is made to do: a full run for times, a short one under
callgrind. Used by measure.py and figures.py."""

import os
import socket
import subprocess
import time

from harness import RunFailed

HERE = os.path.dirname(os.path.abspath(__file__))
START_LIMIT_S = 60
CLIENT_LIMIT_S = 300


class Subject:
    """A program that does its work and ends."""

    def __init__(self, title, binary, full, short, environment=None):
        self.title = title
        self.binary = binary  # in the folder of a variant, or an absolute path
        self.environment = environment or {}
        self.arguments = {"full": full, "short": short}

    def command(self, folder, length):
        return [os.path.join(folder, self.binary)] + [str(word) for word in self.arguments[length]]

    def drive(self, length, scratch, client):
        """Called while it runs."""


class Redis(Subject):
    """redis-server, on a socket in the working folder; the bare redis-benchmark drives it."""

    TESTS = "ping_mbulk,set,get,incr,lpush,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset"

    def __init__(self, title="redis-server under redis-benchmark", load=("-P", 16, "-c", 16)):
        server = ["--port", 0, "--unixsocket", "redis.sock", "--save", "", "--appendonly", "no"]
        super().__init__(title, "redis-server", server, server)
        self.load = [str(word) for word in load]

    def drive(self, length, scratch, client):
        path = os.path.join(scratch, "redis.sock")
        self.talk(path, b"PING\r\n", START_LIMIT_S)
        count = 20000 if length == "full" else 1600
        subprocess.run([client, "-s", path, "-n", str(count), *self.load, "-r", "10000",
                        "-t", self.TESTS, "-q"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                       timeout=CLIENT_LIMIT_S)
        self.talk(path, b"SHUTDOWN NOSAVE\r\n", 0)

    @staticmethod
    def talk(path, request, patience_s):
        """Sends one request, as soon as somebody listens, and waits for the answer (or the end)."""
        give_up = time.monotonic() + patience_s
        while True:
            with socket.socket(socket.AF_UNIX) as connection:
                try:
                    connection.connect(path)
                    connection.sendall(request)
                    return connection.recv(100)
                except OSError as problem:
                    if time.monotonic() > give_up:
                        raise RunFailed(f"redis-server: {problem}") from problem
            time.sleep(0.01)


def script(name):
    return os.path.join(HERE, name)


SPEEDTEST = Subject("SQLite, speedtest1", "speedtest1", ["--size", 20, ":memory:"],
                    ["--size", 3, ":memory:"])


def real_programs(sources):
    """What is measured without recording; {short name: Subject}."""
    cppcheck = ["-q", "--max-configs=1"]
    library = os.path.join(sources["CPPCHECK"], "lib")
    return {
        "lua": Subject("Lua 5.4, compute.lua", "lua", [script("compute.lua"), 50],
                       [script("compute.lua"), 2]),
        "sqlite": SPEEDTEST,
        "redis": Redis(),
        "cppcheck": Subject("cppcheck (C++, 85,000 lines)", "cppcheck",
                            cppcheck + [os.path.join(library, "errorlogger.cpp")],
                            cppcheck + [os.path.join(library, "path.cpp")]),
    }


RECURSION = Subject("tiny recursive functions, not inlined, that may allocate", "recursion",
                    ["--levels", 18, "--batches", 150], ["--levels", 16, "--batches", 10])

# What is measured with the profile on.
ALLOCATING = {
    "lua": Subject("Lua 5.4, allocate.lua", "lua", [script("allocate.lua"), 30],
                   [script("allocate.lua"), 3]),
    "sqlite": SPEEDTEST,
}


def pair(depth, batches, batch):
    return Subject(f"malloc+free pair, {depth} frames", "pair",
                   ["--depth", depth, "--batches", 25], ["--depth", depth, "--batches", batches,
                                                         "--batch", batch])
