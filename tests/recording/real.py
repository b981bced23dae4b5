# SPDX-License-Identifier: MIT
"""real.py PROGRAM: python3, cc1 or redis-server under load is recorded. It does what it does without
us, and the recording says what the profile of the same run says, call path by call path."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from recorded import both, record, start, wait_until, whole
from harness import bare, equal, execute, finish, scratch, skip

PYTHON = """
import json, re
words = [str(i * 7919 % 10007) for i in range(20000)]
table = {}
for word in words:
    table.setdefault(word[:2], []).append(word)
text = json.dumps(table)
print(len(json.loads(text)), len(re.findall("[0-9]+", text)))
"""
SOURCE = "\n".join("int function_%d(int *p) { int sum = %d; for (int i = 0; i < %d; i++) sum += p[i] * %d;"
                   " return sum; }" % (i, i, i + 3, i * 7) for i in range(15))


def same_run(command, what):
    alone = bare(command)
    folder = scratch()
    under = record(command, folder)
    equal((under.returncode, under.stdout), (alone.returncode, alone.stdout), what, "behaviour",
          under.stderr)
    whole(both(folder, what), what)


def python3():
    same_run([sys.executable, "-S", "-c", PYTHON], "python3")


def cc1():
    compiler = shutil.which("gcc")
    path = compiler and execute([compiler, "-print-prog-name=cc1"]).stdout.decode().strip()
    if not path or not os.path.exists(path):
        skip("no cc1")
    source = os.path.join(scratch(), "source.c")
    with open(source, "w") as file:
        file.write(SOURCE)
    same_run([path, "-quiet", "-O2", source, "-o", "/dev/stdout"], "cc1")


def answer(connection, request):
    connection.sendall(request)
    return connection.recv(65536)


def load(port):
    """A few thousand keys of several kinds, half of them deleted again."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        for key in range(1500):
            for command in ("SET key:%d %s" % (key, "v" * (key % 500)),
                            "LPUSH list:%d a b c d" % (key % 50), "HSET hash:%d f%d %d" % (key % 40, key, key)):
                answer(connection, command.encode() + b"\r\n")
            if key % 2:
                answer(connection, b"DEL key:%d\r\n" % key)
        connection.sendall(b"SHUTDOWN NOSAVE\r\n")
        connection.recv(100)


def can_connect(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False


def redis():
    server = shutil.which("redis-server")
    if server is None:
        skip("no redis-server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder, regions = scratch(), scratch(where="/dev/shm")
    recorder = start([server, "--port", str(port), "--save", "", "--daemonize", "no", "--dir", folder],
                     folder, "--profile", settings={"MEMTRACE_REGION_DIR": regions})
    wait_until(lambda: can_connect(port) or recorder.poll() is not None, "redis-server listens")
    load(port)
    error = recorder.communicate(timeout=60)[1]
    equal(recorder.returncode, 0, "redis-server's exit status", error)
    whole(both(folder, "redis-server"), "redis-server")


{"python3": python3, "cc1": cc1, "redis": redis}[sys.argv[1]]()
finish()
