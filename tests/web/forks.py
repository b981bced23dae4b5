#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that start others while the page is open: those are found by their names, what a process
becomes by exec is another source, killed ones stay with their last numbers, and the run is there
when all have ended."""
import atexit
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "python"))
from webserver import MEMTRACE, Scratch, Server, check

SECONDS = 30
# "helper" is the same program by another name. Those that are looked for wait until they were found.
SHELL = "./subject 6000 20000 never & ./helper 100 0 {0}.seen; exec ./helper 6000 20000 {0}.over"
MAKEFILE = "all: one two\none: ; ./subject 6000 20000 make.over\ntwo: ; ./helper 6000 20000 make.over\n"


def start(scratch, how, name, *program):
    """`run --serve` or `record --serve`: the server; it says its address on stderr."""
    server = Server(command=["sh", "-c", 'exec "$0" "$@" 2>&1 >/dev/null', MEMTRACE, how, "--serve", "--no-summary",
                           "-o", scratch.file(name), "--", *program], folder=scratch.path)
    atexit.register(server.process.kill)  # where the test fails
    return server


def wait(server, what, find):
    """What is found in /sources, as soon as it is there."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        sources = server.get("/sources")
        found = find(sources)
        if found:
            return found
        time.sleep(0.05)
    return check(what, False, sources)


def running(server, name):
    return wait(server, name + " runs", lambda sources: [one for one in sources["found"] if one["name"] == name and
                                                         one["running"]])[0]


def opened(server, **how):
    return wait(server, "opened: %r" % how, lambda sources: [
        one for one in sources["opened"] if all(re.fullmatch(str(want), str(one.get(name))) for name, want in how.items())])[0]


def tell(scratch, name):
    """What waits for this file goes on."""
    with open(scratch.file(name), "w", encoding="utf-8"):
        pass


def end(server):
    server.process.send_signal(signal.SIGINT)
    return server.process.wait(20)


def check_report(what, totals, path):
    """The page's numbers are those of the command line."""
    said = json.loads(subprocess.run([MEMTRACE, "report", "--json", path], stdout=subprocess.PIPE, check=True).stdout)
    check(what, (totals["live_bytes"], totals["allocations"], totals["peak_bytes"]) ==
          (said["live_bytes"], said["allocations"], said["peak_bytes"]), totals, said["live_bytes"])


def check_images(scratch, how, name):
    """A shell, its children, and what it becomes: one number, two images, and the run of all."""
    server = start(scratch, how, name, "sh", "-c", SHELL.format(how))
    child = running(server, "subject")
    shell = opened(server, id=1, state="open")
    check("the shell", shell["live"] and shell["end"] == "running" and child["parent_pid"] == shell["pid"] and
          re.fullmatch(r"(da|ba)?sh \(%d\)" % shell["pid"], shell["name"]), shell, child)
    helper = running(server, "helper")
    check("another process", helper["pid"] not in (child["pid"], shell["pid"]), helper)
    tell(scratch, how + ".seen")
    status, _, body = server.ask("/api/v1/sources", method="POST", body=json.dumps({"pid": child["pid"]}))
    check("opened", status == 200, body)
    image = opened(server, pid=shell["pid"], name=r"helper \(\d+\)", state="open")
    check("it goes on as another", image["id"] == 3 and image["live"], image)
    before = opened(server, id=1)
    check("the shell is no more", not before["live"] and before["end"] == "execed" and before["name"] == shell["name"],
          before)
    held = server.get("/r/1")["data"]
    check("what it held stays", held["end"] == "execed" and not held["live"] and held["totals"]["allocations"] > 0, held)
    os.kill(child["pid"], signal.SIGKILL)
    killed = opened(server, id=2, end="killed")
    check("killed", not killed["live"] and killed["name"] == "subject (%d)" % child["pid"], killed)
    tell(scratch, how + ".over")
    run = opened(server, kind="run", state="open")
    check("the run", run["path"] == scratch.file(name) and run["pid"] == 0, run)
    opened(server, id=3, end="ended")
    check("nothing is left", not server.get("/sources")["found"], server.get("/sources")["found"])
    for number in (1, 2, 3):
        told = server.get("/r/%d" % number)
        check("a command that works", told["command"] == "" or os.path.exists(told["command"].split()[-1]), told["command"])
        check("the end", told["data"]["end"] == ("execed", "killed", "ended")[number - 1], told["data"])
    if how == "record":
        # Its file is moved to the others' folder in the end.
        ours = wait(server, "its file", lambda _: [told for told in [server.get("/r/3")] if told["command"]])[0]
        check_report("the image", ours["data"]["totals"], ours["command"].split()[-1])
    rows = server.get("/r/%d/processes" % run["id"])["data"]
    column = [one["name"] for one in rows["columns"]].index("pid")
    check("two images of one number", [row[column] for row in rows["rows"]].count(shell["pid"]) == 2, rows)
    check(how + " ends as its program", end(server) == 0)


def check_make(scratch):
    """Two at once of a build; the third one that is found is make itself."""
    with open(scratch.file("Makefile"), "w", encoding="utf-8") as out:
        out.write(MAKEFILE)
    server = start(scratch, "run", "make.mtp", "make", "-s", "-j2")
    parents = {running(server, name)["parent_pid"] for name in ("subject", "helper")}
    check("they have one parent", parents == {opened(server, id=1, state="open")["pid"]}, parents)
    tell(scratch, "make.over")
    run = opened(server, kind="run", state="open")
    check_report("the run", server.get("/r/%d" % run["id"])["data"]["totals"], scratch.file("make.mtp"))
    check("make ends well", end(server) == 0)


def main():
    scratch = Scratch()
    os.link(scratch.file("subject"), scratch.file("helper"))
    check_images(scratch, "run", "forks.mtp")
    check_images(scratch, "record", "forks.mtr")
    check_make(scratch)


main()
