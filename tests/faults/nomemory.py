# SPDX-License-Identifier: MIT
"""nomemory.py commands|server: each allocation of the command's own code fails, alone or with all after it, at the
beginning and at places in between. A command ends by itself: with what it says otherwise, or with what it says of the
memory that it lacked, or with one line and a status; nothing half written lies under its name. The server answers that
request with an error or as ever, and all later ones as ever.

More places by hand: MEMTRACE_PLACES=500 nomemory.py commands."""

import http.client
import mmap
import os
import random
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), *names) for names in (("programs",), ("web", "python"))]

from harness import MEMTRACE, build, clean_environment, equal, execute, fail, finish, scratch
import webserver

DATA = os.path.join(os.path.dirname(HERE), "web", "data")
DAY, SHOP, RUN = (os.path.join(DATA, name) for name in ("day.mtr", "shop.mtr", "index.mtp"))
PLACES = int(os.environ.get("MEMTRACE_PLACES", "12"))
COMMANDS = """report DAY|report --json DAY|report --show-blocks --show-sizes --show-fragmentation DAY
report --show-findings --show-threads --show-timeline DAY|report --show-leaked --from 1ms --flat DAY|report --csv RUN
report RUN|diff DAY SHOP|diff --json RUN RUN|info DAY|info --json RUN|check --max-peak 1K --max-leaked 0 DAY
query DAY 'select count(*), sum(size) from allocations'|export --format folded DAY|export --format massif DAY
export --format heaptrack -o OUT DAY|export --format html -o OUT DAY|export --format pprof -o OUT DAY
repack -o OUT DAY|anonymize -o OUT DAY|merge -o OUT DAY SHOP|extract --list DAY|trace --help""".replace("\n", "|").split("|")
ENDPOINTS = """/r/1 /r/1/tree?metric=maximum /r/1/functions /r/1/timeline /r/1/threads /r/1/findings /r/1/paths /r/1/files
/r/1/blocks?limit=5 /r/1/lifetimes /r/1/sizes /r/1/mappings /r/1/marks /r/1/suppressed /r/1/heap /r/1/tree?metric=leaked&base=2
/r/1/callers?focus=main /r/1/search?regex=a /r/1/schema""".split()


class Plan:
    """What is to fail, and how much was asked for."""

    def __init__(self):
        self.path = os.path.join(scratch(), "plan")
        with open(self.path, "wb") as file:
            file.write(bytes(24))
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 24)
        library = build(os.path.join(HERE, "nomemory.c"), "gcc", "-O1", shared=True)
        self.environment = {"LD_PRELOAD": library, "NOMEMORY": self.path}

    def asked(self):
        return struct.unpack("Q", self.memory[:8])[0]

    def set(self, only=0, first=0, asked=0):
        self.memory[:24] = struct.pack("QQQ", asked, only, first)


def places(count):
    """The first ones, and some at random: the same each time."""
    chosen = random.Random(count)
    return sorted({*range(1, min(count, PLACES // 2) + 1), *(chosen.randint(1, count) for _ in range(PLACES // 2 if count else 0))})


def check_command(plan, line):
    out = os.path.join(scratch(), "out")
    words = line.replace("DAY", DAY).replace("SHOP", SHOP).replace("RUN", RUN).replace("OUT", out)
    command = [MEMTRACE, *(word for i, part in enumerate(words.split("'")) for word in ([part] if i % 2 else part.split()))]

    def run(**what):
        if os.path.exists(out):
            os.unlink(out)
        plan.set(**what)
        return execute(command, clean_environment(**plan.environment), timeout=60)

    usual = run()
    written = open(out, "rb").read() if os.path.exists(out) else None
    for place in places(plan.asked()):
        for what in ({"only": place}, {"first": place}):
            ended = run(**what)
            where = "%s %r" % (line, what)
            if ended.returncode < 0:
                fail(where, "was killed", ended.returncode, ended.stderr[-300:])
            if ended.returncode != usual.returncode and not ended.stderr.strip():
                fail(where, "fails without a word", ended.returncode)
            if ended.returncode not in (0, 1, 2):
                fail(where, "status", ended.returncode)
            if ended.returncode == usual.returncode == 0 and b"out of memory" not in ended.stdout + ended.stderr:
                equal(ended.stdout, usual.stdout, where, "says nothing and tells something else")
            if ended.returncode != 0 and written is not None and usual.returncode == 0 and os.path.exists(out):
                fail(where, "left a half-written file")


def commands():
    plan = Plan()
    for line in COMMANDS:
        check_command(plan, line)


def server():
    plan = Plan()
    with webserver.Server(DAY, SHOP, env=clean_environment(**plan.environment)) as served:
        served.wait_open(1)
        served.wait_open(2)
        refused = 0
        for number, path in enumerate(ENDPOINTS):
            def fresh(place, path=path, number=number):  # a window that no view was made for yet
                return "%s%sfrom=%dns" % (path, "&" if "?" in path else "?", 1000 * (number + 1) + place)

            usual = served.get(path)["data"]
            before = plan.asked()
            served.get(fresh(0))
            for place in places(plan.asked() - before):
                plan.set(only=place)
                try:
                    status, _, body = served.ask("/api/v1" + fresh(place))
                except http.client.RemoteDisconnected:  # there was no memory to say anything
                    status, body = 503, b""
                plan.set()
                refused += status != 200
                if served.process.poll() is not None:
                    fail(path, place, "ended the server", served.process.returncode, served.stderr()[-300:])
                if status not in (200, 400, 500, 503) or (status != 200 and body and b'"detail":' not in body):
                    fail(path, place, status, body[:300])
                equal(served.get(path)["data"] == usual, True, path, "answers as before, after place", place)
        equal(refused > len(ENDPOINTS), True, "requests that were refused", refused)


if __name__ == "__main__":
    {"commands": commands, "server": server}[sys.argv[1]]()
    finish()
