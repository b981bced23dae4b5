# SPDX-License-Identifier: MIT
"""Exact windows of a large recording, whose slices a server has cut into pieces, are what they are without
pieces: of a server, of two at once, of reports; wherever the cache lies, and whatever happens to it.
The pieces are made in the background, and given up with the server. So are slices where those in the recording are
few, since it has many call paths."""

import json
import os
import random
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "asking"))

from serving import MEMTRACE, Server, clean_environment, equal, execute, fail, finish, scratch  # noqa: E402
from harness import build  # noqa: E402
from recorded import only_recording, record  # noqa: E402

BLOCKS = 450000  # of two threads, nearly all freed: more than a million events
PREPARED_S, ENDS_S = 120, 5
MANY_PATHS = 11  # 2^11: a slice of them takes more than a recording may spend
SLICES = 8  # at least, of those that are made then
ADDRESSES = ("/r/1", "/r/1/tree", "/r/1/functions", "/r/1/threads", "/r/1/timeline")


def windows(seconds):
    chance = random.Random(11)
    edges = [sorted(chance.uniform(0, seconds) for _ in range(2)) for _ in range(6)]
    return [{"from": "0s", "to": f"{seconds / 3:.6f}s"}, {"from": f"{seconds / 2:.6f}s"},
            *({"from": f"{start:.6f}s", "to": f"{end:.6f}s"} for start, end in edges)]


def answers(server, chosen):
    found = []
    for window in chosen:
        for address in ADDRESSES:
            status, answer = server.ask(address, **window)
            equal(status, 200, address, window, answer)
            equal(answer["exact"] == "snapped", False, address, window, "is exact")
            found.append(answer["data"])
    return found


def kept(cache):
    folder = os.path.join(cache, "fine")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def whole(cache):
    return [name for name in kept(cache) if ".new" not in name]


def wait_for_pieces(cache):
    end = time.monotonic() + PREPARED_S
    while not whole(cache) and time.monotonic() < end:
        time.sleep(0.05)
    equal(len(whole(cache)), 1, "files of pieces")


def report(path, window, cache):
    options = [text for name, value in window.items() for text in ("--" + name, value)]
    result = execute([MEMTRACE, "report", "--json", *options, path], clean_environment(MEMTRACE_CACHE=cache))
    equal(result.returncode, 0, "report", window, result.stderr)
    return json.loads(result.stdout)


def check_made(path, cache, chosen, expected):
    server = Server(path, settings={"MEMTRACE_CACHE": cache})
    wait_for_pieces(cache)
    equal(answers(server, chosen), expected, "with pieces")
    server.close()


def check_two(path, cache, chosen, expected):
    servers = [Server(path, settings={"MEMTRACE_CACHE": cache}) for _ in range(2)]
    equal(answers(servers[0], chosen[:2]), expected[:2 * len(ADDRESSES)], "while pieces are made")
    wait_for_pieces(cache)
    for server in servers:
        equal(answers(server, chosen), expected, "of two servers")
    for server in servers:
        server.close()
    equal(len(kept(cache)), 1, "files after two servers")


def check_given_up(path, cache):
    server = Server(path, settings={"MEMTRACE_CACHE": cache})
    end = time.monotonic() + PREPARED_S
    while not kept(cache) and time.monotonic() < end:
        time.sleep(0.01)
    equal(bool(kept(cache)), True, "a pass has begun")
    start = time.monotonic()
    server.close()
    if time.monotonic() - start > ENDS_S:
        fail("the server ended only after", time.monotonic() - start, "s")
    equal([name for name in kept(cache) if ".new" in name], [], "left behind")


def check_spoiled(path, cache, chosen, expected):
    """A byte of each page is another one; then all of the file is gone but its name."""
    name = os.path.join(cache, "fine", kept(cache)[0])
    for spoils in (True, False):
        with open(name, "r+b") as file:
            if spoils:
                for place in range(100, os.path.getsize(name), 4096):
                    file.seek(place)
                    file.write(b"?")
            else:
                file.truncate(0)
        window = dict(chosen[3])
        equal(report(path, window, cache), report(path, window, ""), "a report of damaged pieces")
        server = Server(path, settings={"MEMTRACE_CACHE": cache})
        equal(answers(server, chosen[:3]), expected[:3 * len(ADDRESSES)], "damaged pieces")
        server.close()


def sums(server, window):
    """What is told of a window, but for its maximum: how well that is known hangs on the slices."""
    totals = server.data("/r/1", **window)["totals"]
    return ({name: value for name, value in totals.items() if not name.startswith("peak")},
            server.data("/r/1/tree", metric="allocations", **window))


def check_refined(path, cache):
    """The same server, and the next one."""
    server = Server(path, settings={"MEMTRACE_CACHE": cache})
    window = {"from": "20%", "to": "60%"}
    before = sums(server, window)
    end = time.monotonic() + PREPARED_S
    while len(server.data("/r/1/timeline")["intervals"]["time_ns"]) <= SLICES and time.monotonic() < end:
        time.sleep(0.1)
    for again in (server, Server(path, settings={"MEMTRACE_CACHE": cache})):
        edges = again.data("/r/1/timeline")["intervals"]["time_ns"]
        equal(len(edges) > SLICES, True, "slices", edges)
        equal(sums(again, window), before, "with more slices")
        status, snapped = again.ask("/r/1/tree", snap=1, **window)
        equal((status, snapped["exact"]), (200, "snapped"), "snapped")
        wanted = edges[-1] * 0.2, edges[-1] * 0.6
        for edge, place in zip((snapped["window"]["from_ns"], snapped["window"]["to_ns"]), wanted):
            equal(abs(edge - place) < edges[-1] / SLICES, True, "an edge", edge, "for", place)
        again.close()


def recording(*arguments):
    folder = scratch()
    result = record([subject, *map(str, arguments)], folder)
    equal(result.returncode, 0, "recording", result.stderr)
    return only_recording(folder, "crowded")


folder = scratch()
subject = build(os.path.join(HERE, "crowded.c"), optimize="-O1")
path = recording(BLOCKS)
caches = [os.path.join(folder, f"cache{number}") for number in range(3)]
plain = Server(path)
chosen = windows(plain.data("/r/1/timeline")["time_ns"][-1] / 1e9)
expected = answers(plain, chosen)
plain.close()
check_made(path, caches[0], chosen, expected)
check_two(path, caches[1], chosen, expected)
check_given_up(path, caches[2])
for window in chosen:
    equal(report(path, window, caches[0]), report(path, window, ""), "a report", window)
check_spoiled(path, caches[0], chosen, expected)
check_refined(recording(BLOCKS, MANY_PATHS), os.path.join(folder, "refined"))
server = Server(path, settings={"MEMTRACE_CACHE": path})  # no folder can be made there
equal(answers(server, chosen[:2]), expected[:2 * len(ADDRESSES)], "without a place for pieces")
server.close()
finish()
