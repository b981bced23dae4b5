#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the server answers: the command's numbers, told as what they are; windows, snapped and exact;
tables sorted, cut and continued; columns as bytes; runs; --view, --source-map and --cache-memory."""
import json
import os
import random
import shlex
import struct
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "python"))
from webserver import BUILD, MEMTRACE, Scratch, Server, check

SUMS = {"peak_bytes": "peak_bytes", "live_bytes": "live_bytes", "live_blocks": "live_blocks",
        "total_bytes": "total_bytes", "allocations": "allocations", "frees": "frees",
        "temporary": "temporary"}


def report(*words):
    done = subprocess.run([MEMTRACE, "report", "--json", "--nodes", *words], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def check_totals(what, answer, told):
    for theirs, ours in SUMS.items():
        check("%s: %s" % (what, ours), answer["data"]["totals"][ours] == told[theirs],
              answer["data"]["totals"][ours], told[theirs])


def rows_of(table):
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row)) for row in table["rows"]]


def check_summary(server, name, source):
    answer = server.get("/r/%d" % source)
    told = report(name)
    check_totals("summary", answer, told)
    data = answer["data"]
    check("process", data["pid"] == told["process"]["pid"] and data["program"] == told["program"] and
          data["duration_ns"] == told["process"]["duration_ns"] and data["end"] == told["process"]["end"], data)
    check("envelope", answer["window"] == {"from_ns": 0, "to_ns": None} and answer["via"] == "model" and
          answer["exact"] in ("exact", "bound") and answer["ms"] >= 0 and
          answer["command"] == "memtrace report " + shlex.quote(name), answer)
    check("what it has", (data["has"]["events"], data["has"]["threads"]) ==
          (name.endswith(".mtr"), len(told["threads"]) != 0), data["has"])
    threads = rows_of(server.get("/r/%d/threads?sort=id&order=asc" % source)["data"])
    check("threads", [(one["id"], one["allocations"], one["frees"], one["total_bytes"]) for one in threads] ==
          [(one["id"], one["allocations"], one["frees"], one["total_bytes"]) for one in told["threads"]], threads)


def check_filters(server, name):
    """Random selections; the command that is told gives the same totals."""
    rng = random.Random(7)
    for _ in range(12):
        query = []
        if rng.random() < 0.7:
            query += ["from=%d%%25" % rng.randrange(40)] * (rng.random() < 0.8) + ["to=%d%%25" % rng.randrange(41, 100)]
        query += ["function=inner", "not-function=churn"][:rng.randrange(3)]
        query += ["size=%d..%d" % (rng.randrange(200), 200 + rng.randrange(800))] * (rng.random() < 0.4)
        answer = server.get("/r/1?" + "&".join(query))
        words = shlex.split(answer["command"])
        check("command", words[:2] == ["memtrace", "report"] and words[-1] == name, words)
        check_totals(answer["command"], answer, report(*words[2:]))


def check_windows(server):
    whole = server.get("/r/1")["data"]
    rng = random.Random(3)
    for _ in range(10):
        first, last = sorted(rng.sample(range(100), 2))
        snapped = server.get("/r/1?from=%d%%25&to=%d%%25&snap=1" % (first, last))
        window = snapped["window"]
        check("snapped", snapped["exact"] == "snapped" and snapped["via"] == "slices", snapped)
        check_totals(snapped["command"], snapped, report(*shlex.split(snapped["command"])[2:]))
        query = "from=%dns" % window["from_ns"]
        query += "&to=%dns" % window["to_ns"] if window["to_ns"] is not None else ""
        exact = server.get("/r/1?" + query)
        check("is exact at those edges", exact["exact"] in ("exact", "bound"), exact)
        for name in ("live_bytes", "total_bytes", "allocations", "frees", "temporary", "peak_bytes"):
            check("the same " + name, snapped["data"]["totals"][name] == exact["data"]["totals"][name],
                  window, snapped["data"]["totals"], exact["data"]["totals"])
    parts = [server.get("/r/1?from=%d%%25%s" % (at, "&to=%d%%25" % (at + 25) if at < 75 else ""))["data"]["totals"]
             for at in (0, 25, 50, 75)]
    for name in ("total_bytes", "allocations", "frees"):
        check("windows add up", sum(part[name] for part in parts) == whole["totals"][name], name)
    check("the last one", parts[-1]["live_bytes"] == whole["totals"]["live_bytes"], parts)
    again = server.get("/r/1?from=0%25&to=25%25")
    check("asked again", again["data"]["totals"] == parts[0] and again["ms"] < 50, again)


def check_tables(server):
    every = server.get("/r/1/modules")["data"]
    check("modules", every["total"] == len(every["rows"]) >= 3 and "next" not in every, every)
    seen = []
    cursor = ""
    while cursor is not None:
        page = server.get("/r/1/modules?limit=2" + cursor)["data"]
        check("page", len(page["rows"]) <= 2 and page["total"] == every["total"], page)
        seen += page["rows"]
        cursor = "&cursor=" + page["next"] if "next" in page else None
    check("pages", seen == every["rows"], seen)
    for name, order in (("path", "asc"), ("path", "desc"), ("id", "desc"), ("start", "asc")):
        rows = [one[name] for one in rows_of(server.get("/r/1/modules?sort=%s&order=%s" % (name, order))["data"])]
        keys = [int(value, 16) if name == "start" else value for value in rows]
        check("sorted by " + name, keys == sorted(keys, reverse=order == "desc"), rows)


def check_columns(server):
    plain = server.get("/r/1/timeline")["data"]
    status, headers, body = server.ask("/api/v1/r/1/timeline", headers={"Accept": "application/vnd.memtrace.columns"})
    check("columns", status == 200 and headers["Content-Type"] == "application/vnd.memtrace.columns" and
          body[:4] == b"MTC1", headers, body[:8])
    size = struct.unpack("<I", body[4:8])[0]
    head = json.loads(body[8:8 + size])["data"]
    start = (8 + size + 7) // 8 * 8

    def values(column):
        code = {"u32": "I", "u64": "Q", "f64": "d"}[column["type"]]
        check("aligned", column["offset"] % 8 == 0)
        return [None if value != value else value for value in
                struct.unpack_from("<%d%s" % (column["length"], code), body, start + column["offset"])]

    check("times", values(head["time_ns"]) == plain["time_ns"])
    for name, series in plain["series"].items():
        check(name, all((a is None and b is None) or abs(a - b) <= 1e-5 * abs(b)
                        for a, b in zip(values(head["series"][name]), series)), name)


def check_timeline(server):
    whole = server.get("/r/1/timeline?points=100000")["data"]
    check("times grow", all(a < b for a, b in zip(whole["time_ns"], whole["time_ns"][1:])))
    few = server.get("/r/1/timeline?points=10&series=live")["data"]
    check("few points", len(few["time_ns"]) <= 10 and list(few["series"]) == ["live"], few)
    check("the maximum stays", max(few["series"]["live"]) == max(whole["series"]["live"]) and
          few["maximum"]["bytes"] == server.get("/r/1")["data"]["totals"]["peak_bytes"], few)


def check_commands(server, scratch, name):
    line = server.get("/r/1/budget?metric=leaked&function=inner")["data"]
    done = subprocess.run([MEMTRACE, *shlex.split(line["command"])[1:]], stdout=subprocess.PIPE, text=True)
    check("a budget that holds", done.returncode == 0 and line["line"].startswith("leaked <= "), line, done.stdout)
    told = server.get("/command?view=flame%3Fr%3D1%26metric%3Dleaked%26function%3D%5Einner%24%26to%3D50%2525")
    check("command", told["command"] == "memtrace report --show-leaked --function '^inner$' --to 50% " + name, told)
    done = subprocess.run([MEMTRACE, *shlex.split(told["command"])[1:]], stdout=subprocess.DEVNULL)
    check("and it runs", done.returncode == 0, told)
    check("SQL", server.get("/command?view=threads")["sql"] == "SELECT * FROM threads")


def check_text(server, name):
    """Trees as text are the lines of the command."""
    for query, words in (("metric=maximum", ["--show-peak"]), ("metric=cumulative&direction=up", ["--show-allocated", "--bottom-up"]),
                         ("metric=leaked&to=50%25&function=inner", ["--show-leaked", "--function", "inner", "--to", "50%"]),
                         ("metric=allocations&depth=2&min-share=0.2", ["--show-allocations", "--depth", "2", "--min-percent", "20"]),
                         ("metric=leaked", ["--show-leaked"]), ("metric=shutdown", ["--show-shutdown"])):
        status, headers, told = server.ask("/api/v1/r/1/tree?" + query, headers={"Accept": "text/plain"})
        done = subprocess.run([MEMTRACE, "report", *words, name], stdout=subprocess.PIPE, env=dict(os.environ, LC_ALL="C.UTF-8"))
        check("text", status == 200 and headers["Content-Type"].startswith("text/plain"), headers)
        check("the tree's lines", told == done.stdout and len(told) > 100, told.decode(), done.stdout.decode())
    check("no text of a difference", server.ask("/api/v1/r/1/tree?base=2", headers={"Accept": "text/plain"})[0] == 400)


def check_differences(server, names):
    told = server.get("/r/1/tree?base=2&function=inner&base-function=inner")
    check("diff", told["command"].startswith("memtrace diff ") and told["command"].endswith(
        "--function inner %s %s" % (names[1], names[0])), told["command"])
    done = subprocess.run([MEMTRACE, *shlex.split(told["command"])[1:]], stdout=subprocess.DEVNULL)
    check("and it runs", done.returncode == 0, told["command"])
    for path in ("callers?focus=inner&", "files?", "functions?", "paths?"):
        command = server.get("/r/1/%sbase=2" % path)["command"]
        check("of two sides", command.startswith("memtrace diff ") and command.endswith("%s %s" % (names[1], names[0])), command)
        done = subprocess.run([MEMTRACE, *shlex.split(command)[1:]], stdout=subprocess.DEVNULL)
        check("and it runs", done.returncode == 0, command)
    check("of this side alone", server.get("/r/1/threads?base=2")["command"] == "memtrace report --show-threads " + names[0])
    told = server.get("/r/1/functions?base=1&base-to=50%25&metric=shutdown")
    check("none, and why", told["command"] == "" and any("memtrace diff compares" in note for note in told["notes"]), told)
    for query in ("base=1&base-to=50%25", "base=1&to=50%25", "base=2&base-function=inner", "base=1&from=50%25&base-to=50%25",
                  "base=1&from=10%25&to=40%25&base-from=50%25&base-to=90%25&function=inner",
                  "base=1&from=10%25&to=40%25&base-from=50%25&base-to=90%25&snap=1"):
        difference_is_told(server, query)
        page = server.get("/command?view=" + urllib.parse.quote("compare?r=1&" + query.replace("&snap=1", ""), safe=""))
        done = subprocess.run([MEMTRACE, *shlex.split(page["command"])[1:]], stdout=subprocess.DEVNULL)
        check("the page's command runs", done.returncode == 0 and page["command"].startswith("memtrace diff "), page)


def difference_is_told(server, query):
    """The tree's command, run, has the totals of the tree."""
    differing = 0
    for metric, name in (("maximum", "peak_bytes"), ("cumulative", "total_bytes"), ("allocations", "allocations")):
        answer = server.get("/r/1/tree?metric=%s&%s" % (metric, query))
        done = subprocess.run([MEMTRACE, *shlex.split(answer["command"])[1:], "--json"], stdout=subprocess.PIPE)
        check("the command runs", done.returncode == 0, answer["command"])
        told = json.loads(done.stdout)["totals"][name]
        check("page = command", (told["before"], told["after"]) == (answer["data"]["base_total"], answer["data"]["total"]),
              query, answer["command"], told, answer["data"]["base_total"], answer["data"]["total"])
        differing += told["before"] != told["after"]
    check("the sides differ", differing > 0, query)


def check_runs(scratch):
    run = scratch.file("run.mtr")
    subprocess.run([os.path.join(BUILD, "bin", "memtrace"), "record", "--no-summary", "--keep-small", "-o", run, "--", "sh", "-c",
                    "%s 20000; %s 40000; true" % ((scratch.file("subject"),) * 2)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with Server(run) as server:
        state = server.wait_open()
        check("run", state["kind"] == "run", state)
        processes = rows_of(server.get("/r/1/processes")["data"])
        check("processes", len(processes) >= 3, processes)
        for one in processes:
            if one["file"] is not None:
                answer = server.get("/r/1?process=%d:%d" % (one["pid"], one["image"]))
                check("process", answer["data"]["totals"]["allocations"] == one["allocations"] and
                      "--process" in answer["command"], answer, one)
        every = server.get("/r/1?all-processes=1")["data"]["totals"]["allocations"]
        check("all", every == report("--all-processes", run)["allocations"], every)


def check_options(scratch, recording):
    with Server(recording, options=("--view", "flame?r=1&metric=leaked", "--cache-memory", "1K")) as server:
        check("view", "/flame?r=1&metric=leaked#token=" in server.said, server.said)
        server.wait_open()
        check("view", server.get("/session")["view"] == "flame?r=1&metric=leaked")
        for at in range(1, 20):
            server.get("/r/1?from=%d%%25" % at)
        check("limits", server.get("/session")["limits"]["cache_bytes"] == 1024)
    # What has no more room is what was asked for longest ago, and not the newest.
    with Server(recording, options=("--cache-memory", "16M")) as server:
        server.wait_open()
        via = [server.get("/r/1/sizes?from=%d%%25" % (at // 2))["via"] for at in range(2, 60)]
        check("asked twice", via == ["pass", "cache"] * 29, via)
        check("asked long ago", server.get("/r/1/sizes?from=1%25")["via"] == "pass")


def main():
    scratch = Scratch()
    recording = scratch.record("subject.mtr", 300000)
    profile = scratch.record("subject.mtp", 30000, how="run")
    with Server(recording, profile) as server:
        for source in (1, 2):
            server.wait_open(source)
        check_summary(server, recording, 1)
        check_summary(server, profile, 2)
        check_filters(server, recording)
        check_windows(server)
        check_tables(server)
        check_columns(server)
        check_timeline(server)
        check_commands(server, scratch, recording)
        check_text(server, recording)
        check_differences(server, (recording, profile))
    check_runs(scratch)
    check_options(scratch, recording)


main()
