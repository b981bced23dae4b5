# SPDX-License-Identifier: MIT
"""Passes over many events tell how far they are, end soon after whoever asked is gone, are made once
for all who ask at the same time, and take no memory that grows with the blocks they hand out."""

import bisect
import json
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "asking"))

from serving import ENDS_WITHIN_S, IS_SANITIZED, Server, cpu_s, ends_after, equal, fail, finish, scratch, wait_for_work  # noqa: E402
from queried import ask, build  # noqa: E402
from recorded import only_recording, record  # noqa: E402

STEPS = 1000000 if IS_SANITIZED else 3000000
ANONYMOUS_KB = 96 * 1024
ENDPOINTS = ("/r/1/blocks", "/r/1/sizes", "/r/1/heap", "/r/1/heap/history", "/r/1/lifetimes",
             "/r/1/mappings", "/r/1/export/heaptrack", "/r/1/blocks/%d" % (STEPS // 2 - 1))


def check_cancel(server):
    for number, address in enumerate(ENDPOINTS):
        connection = server.connect()
        # Another window each time: nothing is known of it yet.
        window = {"size": "1..%d" % (500 + number)} if "export" in address else \
            {"from": "%d%%" % (number + 1)}
        server.request(connection, address, **window)
        if not wait_for_work(server):
            fail(address, "does nothing")
        connection.close()
        took = ends_after(server)
        print(f"{address}: {took * 1000:.0f} ms of processor time after it was given up")
        if took > ENDS_WITHIN_S:
            fail(address, "went on for", took, "s after whoever asked was gone")


def check_crowd(server):
    """More passes than there are workers are given up: the next question is answered at once."""
    crowd = [server.connect() for _ in range(8)]
    for number, connection in enumerate(crowd):
        server.request(connection, "/r/1/sizes", **{"from": "%d%%" % (number + 40)})
    wait_for_work(server)
    for connection in crowd:
        connection.close()
    before = cpu_s(server)
    equal(server.rows("/r/1/query", {"sql": "SELECT 1 AS one"}), [{"one": 1}], "after a crowd")
    took = cpu_s(server) - before
    print(f"after a crowd: answered after {took * 1000:.0f} ms of processor time")
    if took > 2 * ENDS_WITHIN_S:
        fail("after a crowd: answered only after", took, "s of processor time")


def listen(server, job, told, listens):
    connection = server.connect()
    server.request(connection, "/r/1/events", job=job)
    response = connection.getresponse()
    listens.set()
    event = None
    while not told or told[-1] != "end":
        line = response.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        elif line.startswith("data: ") and event == "progress":
            told.append(json.loads(line.removeprefix("data: ")))
            if told[-1]["done"] == told[-1]["total"]:
                break
    connection.close()


def check_progress(server):
    told, listens = [], threading.Event()
    listener = threading.Thread(target=listen, args=(server, "mine", told, listens), daemon=True)
    listener.start()
    listens.wait()
    server.data("/r/1/sizes", job="mine", **{"from": "77ns"})
    listener.join(60)
    if not told:
        fail("no progress was told")
    elif told[0]["done"] > told[0]["total"] / 10:
        fail("the first word of progress comes late:", told[0])
    for before, after in zip(told, told[1:]):
        if after["done"] < before["done"] or after["done"] > after["total"]:
            fail("progress", before, "then", after)


def check_joined(server):
    """Equal questions in flight are one pass: one of them says so, the others found it."""
    via = []

    def question():
        via.append(server.ask("/r/1/sizes", **{"from": "99ns"})[1]["via"])

    askers = [threading.Thread(target=question) for _ in range(3)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    equal(sorted(via), ["cache", "cache", "pass"], "three equal questions at once")


def check_shared(server):
    """Findings are made of the sums that the summary of the same selection took: no other pass is made for them."""
    told, listens, seen, ends_of = [], threading.Event(), [], []
    server.data("/r/1", size="21..")

    def note():
        listen(server, "shared", told, listens)
        ends_of.append(seen[-1])

    seen.append("findings")
    listener = threading.Thread(target=note, daemon=True)
    listener.start()
    listens.wait()
    server.data("/r/1/findings", size="21..", limit=3, job="shared")
    seen.append("sizes")
    server.data("/r/1/sizes", job="shared", **{"from": "78ns"})
    listener.join(60)
    equal(ends_of, ["sizes"], "whose pass came to its end first")


def check_memory(server, path, temporary):
    """All blocks of the recording, in two orders: they lie in a file that has no name."""
    server.data("/r/1/sizes")
    before = server.memory_kb()
    total = server.data("/r/1/blocks", limit=10, all="")["total"]
    equal(total, ask(path, "SELECT count(*) AS n FROM allocations WHERE class = 'heap'")[0]["n"], "all blocks")
    first = server.rows("/r/1/blocks", limit=100, all="", sort="birth_ns", order="asc", cursor=total // 2)
    slowest = 0
    for cursor in (0, total // 3, total - 50):
        start = time.monotonic()
        rows = server.rows("/r/1/blocks", limit=100, all="", sort="birth_ns", order="asc", cursor=cursor)
        slowest = max(slowest, time.monotonic() - start)
        equal(len(rows), min(100, total - cursor), "a window at", cursor)
    print(f"windows of {total} blocks: {slowest * 1000:.0f} ms at most")
    wanted = ask(path, "SELECT id FROM allocations WHERE class = 'heap' ORDER BY born, id LIMIT 100"
                       " OFFSET %d" % (total // 2))
    equal([row["id"] for row in first], [row["id"] for row in wanted], "the middle of the table")
    grown = server.memory_kb() - before
    if grown > ANONYMOUS_KB:
        fail("memory grew by", grown, "KiB for", total, "blocks")
    equal([name for name in os.listdir(temporary) if "blocks" in name], [], "temporary files")


def check_slices(server, path):
    """Lifetimes over time come from slices, of which there are many here: each row has what was freed
    in its time, by age."""
    status, answer = server.ask("/r/1/lifetimes", over="time")
    equal((status, answer["via"], answer["exact"]), (200, "slices", "exact"), "lifetimes over time")
    data = answer["data"]
    if len(data["time"]) < 10:
        fail("only", len(data["time"]), "rows of time")
    edges = [row["from_ns"] for row in data["time"]]
    ages = [bucket["from_ns"] for bucket in data["buckets"]]
    tick = 1 << 22
    wanted = [[0] * len(ages) for _ in edges]
    for row in ask(path, "SELECT freed / {0} AS freed, born / {0} AS born, count(*) AS n FROM allocations"
                         " WHERE class = 'heap' AND freed IS NOT NULL GROUP BY 1, 2".format(tick)):
        place = bisect.bisect_right(edges, row["freed"] * tick) - 1
        age = bisect.bisect_right(ages, (row["freed"] - row["born"]) * tick) - 1
        wanted[max(place, 0)][age] += row["n"]
    equal(data["counts"], wanted, "lifetimes over time")
    half = server.data("/r/1/lifetimes", over="time", function="make")["counts"]
    equal([sum(row) for row in half], [sum(row) for row in wanted], "lifetimes of make()")
    none = server.data("/r/1/lifetimes", over="time", function="nobody_at_all")["counts"]
    equal(sum(map(sum, none)), 0, "lifetimes of nobody")


def check_history(server, path):
    """One thread's events are in order: the coarse history has what SQL finds, to the byte."""
    data = server.data("/r/1/heap/history")
    moments = list(range(7, 256, 31))
    live = ask(path, "SELECT %s FROM allocations WHERE class = 'heap' AND address IS NOT NULL" % ", ".join(
        "sum(CASE WHEN born < {0} AND coalesce(freed, 1e18) >= {0} THEN usable END) AS m{0}".format(
            data["time_ns"][i]) for i in moments))[0]
    equal([data["live"][i] for i in moments], [value or 0 for value in live.values()], "history")
    page = 4096
    at = data["time_ns"][moments[4]]
    blocks = ask(path, "SELECT address, usable FROM allocations WHERE class = 'heap' AND address IS NOT NULL"
                       " AND born < %d AND coalesce(freed, 1e18) >= %d" % (at, at))
    pages = {number for block in blocks
             for number in range(block["address"] // page,
                                 (block["address"] + max(block["usable"], 1) - 1) // page + 1)}
    equal(data["spread"][moments[4]], len(pages) * page, "pages that some block touches")
    # A block of 1.2 GiB has more cells than are kept of all moments: they became larger.
    moment = server.data("/r/1/heap", moment="%dns" % at)
    equal((moment["at_ns"], moment["cell_bytes"]), (at, 2 * 65536), "the coarse map")
    held = sum(level / 255 * moment["cell_bytes"] for region in moment["regions"]
               for level in region["cells"])
    if abs(held - moment["live_bytes"]) > 0.02 * moment["live_bytes"]:
        fail("cells hold", held, "of", moment["live_bytes"])


def check_numbers(server, path, temporary):
    check_progress(server)
    check_memory(server, path, temporary)
    check_slices(server, path)
    check_history(server, path)


def main():
    folder, temporary = scratch(), scratch()
    program = build(os.path.join(HERE, "churn.c"))
    equal(record([program, str(STEPS)], folder).returncode, 0, "recording")
    path = only_recording(folder, "churn")
    server = Server(path, settings={"TMPDIR": temporary})
    check_cancel(server)
    check_crowd(server)
    check_joined(server)
    check_shared(server)
    if not IS_SANITIZED:  # which looks for what many do at once
        check_numbers(server, path, temporary)
    server.close()
    finish()


main()
