#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Many askers at once who leave at random moments, pages that come and go, and malformed requests:
storm.py [SECONDS]. Afterwards the server answers as before, has freed what they asked for, and ends
at once. Builds with sanitizers run it, too (tests/sanitize)."""
import os
import random
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "python"))
from webserver import Scratch, Server, check, next_event

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 8
ASKERS = 8
PATHS = ("", "/tree", "/tree?direction=up&metric=leaked", "/functions", "/paths?limit=5", "/threads", "/timeline?points=50",
         "/foreign", "/marks", "/scopes", "/modules", "/files", "/search?regex=in", "/callers?focus=inner", "/suppressed",
         "/budget", "/tree?metric=shutdown", "/nothing", "/events", "/tree?base=2", "/functions?base=1&base-to=50%25",
         "/blocks?limit=20", "/lifetimes", "/sizes", "/heap", "/mappings", "/schema", "/findings", "/export/folded")


def some_path(rng):
    path = rng.choice(PATHS)
    filters = []
    if rng.random() < 0.5:
        filters += ["from=%d%%25" % rng.randrange(50), "to=%d%%25" % rng.randrange(51, 100)]
        filters += ["snap=1"] if rng.random() < 0.5 else []
    if rng.random() < 0.2:
        filters.append("size=%d.." % rng.choice((1, 100, 500)))
    if rng.random() < 0.2:
        filters.append("function=" + rng.choice(("inner", "keep", "churn", "nobody")))
    if rng.random() < 0.1:
        filters.append("job=a")
    return "/api/v1/r/%d%s%s%s" % (rng.choice((1, 1, 1, 2, 3)), path, "&" if "?" in path else "?", "&".join(filters))


def request_of(server, path):
    return b"GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n\r\n" % (
        path.encode(), server.port, server.token.encode())


def mutate(rng, data):
    data = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data))
        how = rng.randrange(4)
        if how == 0:
            data[at] = rng.randrange(256)
        elif how == 1:
            del data[at:at + rng.randrange(20)]
        elif how == 2:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(30)))
        else:
            data[at:at] = rng.choice((b"%", b"%00", b"\r\n", b"..", b"&", b"=", b"/", b"{", b"Content-Length: 9999\r\n",
                                      b"Transfer-Encoding: chunked\r\n", b"%ff", b" ", b"#", b"?")) * rng.randrange(1, 4)
        if not data:
            data = bytearray(b" ")
    return bytes(data)


class Askers:
    def __init__(self, server):
        self.server = server
        self.end = time.monotonic() + SECONDS
        self.lock = threading.Lock()
        self.asked = self.left = self.answered = 0
        self.wrong = []

    def ask(self, rng):
        """One request: read whole, left after a while, or malformed."""
        data = request_of(self.server, some_path(rng))
        how = rng.random()
        if how < 0.25:
            data = mutate(rng, data)
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=30) as connection:
            connection.settimeout(rng.choice((0.001, 0.01, 0.05, 0.2)) if how < 0.7 else 60)
            try:
                connection.sendall(data)
                said = connection.recv(65536)
            except socket.timeout:
                said = None
            except OSError:
                said = b""
        with self.lock:
            self.asked += 1
            self.left += said is None
            self.answered += bool(said)
            if said and not said.startswith(b"HTTP/1.1 ") or said and said[9:12] in (b"500", b"501") and how >= 0.25:
                self.wrong.append((data, said[:600]))

    def run(self, seed):
        rng = random.Random(seed)
        while time.monotonic() < self.end:
            self.ask(rng)


def check_cancel(server):
    """A pass whose asker has left after a quarter of it does not go on to its end."""
    def cpu():
        with open("/proc/%d/stat" % server.process.pid, encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    begin, before = time.monotonic(), cpu()
    server.get("/r/1?size=17..")
    whole_s, whole_cpu_s = time.monotonic() - begin, cpu() - before
    for size in range(18, 28):  # on a busy machine a pass may be over before the server's turn to notice
        before = cpu()
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(request_of(server, "/api/v1/r/1?size=%d.." % size))
            time.sleep(whole_s / 4)
        now, last = cpu(), -1
        while now != last:
            time.sleep(0.3)
            now, last = cpu(), now
        if now - before < 0.75 * whole_cpu_s:
            break
    check("it goes on", now - before < 0.75 * whole_cpu_s, now - before, whole_cpu_s)
    check("and can be asked again", server.get("/r/1?size=%d.." % size)["via"] == "pass")


def main():
    scratch = Scratch()
    # With a sanitizer passes take long, and storms are for what many do at once.
    first = scratch.record("first.mtr", 100000 if "TEST_MEMTRACE" in os.environ else 1500000)
    second = scratch.record("second.mtr", 50000)
    profile = scratch.record("third.mtp", 50000, how="run")
    with Server(first, second, profile, options=("--cache-memory", "4M")) as server:
        for source in (1, 2, 3):
            check("open", server.wait_open(source)["state"] == "open")
        before = [server.get("/r/%d" % source)["data"]["totals"] for source in (1, 2, 3)]
        askers = Askers(server)
        threads = [threading.Thread(target=askers.run, args=(seed,)) for seed in range(ASKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check("wrong", not askers.wrong, askers.wrong[:2])
        check("enough", askers.asked > 2 * ASKERS and askers.left > 0 and askers.answered > 0, vars(askers))
        check("as before", [server.get("/r/%d" % source)["data"]["totals"] for source in (1, 2, 3)] == before)
        if "TEST_MEMTRACE" not in os.environ:
            check_cancel(server)
        stream = server.events(1)
        next_event(stream[1])
        print("%d asked, %d left, %d answered" % (askers.asked, askers.left, askers.answered))
    # The server has ended while a page followed it.
    stream[0].close()


main()
