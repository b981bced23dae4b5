#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Running programs: the page's numbers move on, and stay after kill -9; six tabs follow; recordings
that grow; `run --serve` and `record --serve`."""
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "python"))
from webserver import BUILD, MEMTRACE, Scratch, Server, check, next_event

TABS = 6


def start(scratch, how, name, *arguments):
    """The collector and the pid of the subject, once it allocates."""
    collector = subprocess.Popen([os.path.join(BUILD, "bin", "memtrace"), how, "--no-summary", "-o", scratch.file(name),
                                  "--", scratch.file("subject"), *map(str, arguments)],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while time.monotonic() < end:
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(collector.pid)], stdout=subprocess.PIPE,
                               text=True).stdout.split()
        if found and os.path.exists("/proc/%s/exe" % found[0]) and \
                os.readlink("/proc/%s/exe" % found[0]).endswith("/subject"):
            return collector, int(found[0])
        time.sleep(0.02)
    return check("the subject starts", False)


def follow(server, tabs):
    """Events of all tabs until the end: (name, data) of the first tab."""
    streams = [server.events() for _ in range(tabs)]
    return streams


def read_until(stream, wanted, most=60):
    seen = []
    for _ in range(most):
        event = next_event(stream[1])
        check("the stream ends early", event is not None, seen)
        seen.append(event)
        if event[0] == wanted:
            return seen
    return check("no event " + wanted, False, seen)


def check_killed(scratch):
    collector, pid = start(scratch, "run", "killed.mtp", 100000000, 2000)
    with Server(str(pid)) as server:
        state = server.wait_open()
        check("live", state["state"] == "open" and state["live"] and state["kind"] == "live", state)
        streams = follow(server, TABS)
        lives = [read_until(stream, "live")[-1][1] for stream in streams]
        later = [read_until(stream, "live")[-1][1] for stream in streams]
        for before, after in zip(lives, later):
            check("it moves on", after["allocations"] > before["allocations"] and after["now_ns"] > before["now_ns"] and
                  after["generation"] == before["generation"] + 1, before, after)
        summary = server.get("/r/1")
        check("running", summary["data"]["live"] and summary["data"]["end"] == "running" and
              summary["command"] == "memtrace report %d" % pid, summary)
        os.kill(pid, signal.SIGKILL)
        for stream in streams:
            read_until(stream, "ended")
            stream[0].close()
        collector.wait(30)
        end = time.monotonic() + 120
        while time.monotonic() < end and server.get("/session")["sources"][0]["path"] != scratch.file("killed.mtp"):
            time.sleep(0.1)
        last = server.get("/r/1")["data"]
        check("ended", last["end"] == "killed" and not last["live"], last)
        state = server.get("/session")["sources"][0]
        check("its place", state["path"] == scratch.file("killed.mtp") and not state["live"], state)
    # The collector finished the same region: the same numbers.
    with Server(scratch.file("killed.mtp")) as server:
        server.wait_open()
        check("the last numbers", server.get("/r/1")["data"]["totals"] == last["totals"], last["totals"],
              server.get("/r/1")["data"]["totals"])


def check_nobody_looks(scratch):
    """Without a page no model is made."""
    collector, pid = start(scratch, "run", "idle.mtp", 100000000, 2000)
    with Server(str(pid)) as server:
        server.wait_open()
        server.get("/r/1")
        time.sleep(2.5)
        first = server.get("/session")["sources"][0]["generation"]
        time.sleep(2.5)
        check("nobody asked", server.get("/session")["sources"][0]["generation"] == first)
    os.kill(pid, signal.SIGKILL)
    collector.wait(30)


def check_recording(scratch):
    """A recording that is being written, by its name and by the program's number."""
    collector, pid = start(scratch, "record", "grows.mtr", 400000, 1000)
    end = time.monotonic() + 120
    while not os.path.exists(scratch.file("grows.mtr")) and time.monotonic() < end:
        time.sleep(0.05)
    with Server(scratch.file("grows.mtr"), str(pid)) as server:
        for source in (1, 2):
            state = server.wait_open(source)
            check("grows", state["kind"] == "recording" and state["live"] and
                  os.path.samefile(state["path"], scratch.file("grows.mtr")), state)
        stream = server.events(1)
        before = read_until(stream, "live")[-1][1]
        after = read_until(stream, "live")[-1][1]
        check("it moves on", after["allocations"] > before["allocations"], before, after)
        check("a window", server.get("/r/1?to=50%25")["data"]["totals"]["allocations"] > 0)
        read_until(stream, "ended", 200)
        stream[0].close()
        collector.wait(30)
        check("whole", server.get("/r/1")["data"]["totals"]["allocations"] >= 800000, server.get("/r/1")["data"]["totals"])


def cpu_s(server):
    with open("/proc/%d/stat" % server.process.pid, encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_cost(scratch):
    """Of a recording that grows each further look costs what was added, not what is there."""
    collector, pid = start(scratch, "record", "costs.mtr", 3000000, 20000)
    size, before = 0, -1
    while size < 200000 or size - before > 50000:  # one thread is done soon, the other one goes on slowly
        time.sleep(1)
        before, size = size, os.path.getsize(scratch.file("costs.mtr"))
    with Server(scratch.file("costs.mtr")) as server:
        server.wait_open()
        whole = cpu_s(server)
        stream = server.events(1)
        read_until(stream, "live")
        looks = []
        for _ in range(3):
            start_s = cpu_s(server)
            read_until(stream, "live")
            looks.append(cpu_s(server) - start_s)
        print("opened within %.2f s of processor time, a further look %.2f s" % (whole, min(looks)))
        check("a look costs as much as all", min(looks) < whole / 3, looks, whole)
        stream[0].close()
    os.kill(pid, signal.SIGKILL)
    collector.wait(30)


def start_serving(scratch, how, name, program):
    """The command, and a function that reads what it says until a text is in it."""
    errors = scratch.file(how + ".err")
    environment = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    with open(errors, "w", encoding="utf-8") as out:
        run = subprocess.Popen([MEMTRACE, how, "--serve", "--no-summary", "-o", scratch.file(name), "--", "sh", "-c",
                                program], stderr=out, env=environment, stdout=subprocess.PIPE, text=True)

    def read_until_said(text):
        for _ in range(600):
            with open(errors, encoding="utf-8") as file:
                said = file.read()
            if text in said:
                break
            time.sleep(0.1)
        return said

    return run, read_until_said


def check_serve(scratch, how, name):
    run, said = start_serving(scratch, how, name, "sleep 1; exit 7")
    text = said("the page stays until Ctrl-C")
    check(how + " --serve", "/#token=" in text and "the page stays until Ctrl-C" in text and run.poll() is None, text)
    run.send_signal(signal.SIGINT)
    status = run.wait(20)
    check(how + " --serve ends as the program", status == 7 and run.stdout.read() == "", status)


def check_ended(scratch):
    """As `timeout` and a service manager do it: program and page end."""
    run, said = start_serving(scratch, "run", "ended.mtp", "exec sleep 20")
    said("/#token=")
    run.send_signal(signal.SIGTERM)
    status = run.wait(15)
    check("SIGTERM ends run --serve", status == -signal.SIGTERM, status)


def check_left_alone(scratch):
    """A command that is killed leaves no server behind."""
    run, said = start_serving(scratch, "run", "left.mtp", "sleep 20")
    port = int(re.search(r":(\d+)/", said("/#token=")).group(1))
    run.kill()
    run.wait()
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return
        time.sleep(0.1)
    check("the server ends with the command", False, port)


def check_unwritable(scratch):
    """A program that ended by itself, whose profile could not be written to its place, is not called killed; one that
    was killed there is neither running nor ended."""
    regions = scratch.file("left regions")
    os.mkdir(regions, 0o700)
    library = os.path.join(BUILD, "lib", "libmemtrace.so")
    environment = {"LD_PRELOAD": library, "MEMTRACE_REGION_DIR": regions, "MEMTRACE_SUMMARY": "0",
                   "MEMTRACE_OUTPUT": os.path.join(scratch.file("subject"), "below a file.mtp")}
    expected = {}
    for rounds in ("100", "100000000"):
        program = subprocess.Popen([scratch.file("subject"), rounds, "1000"], env={**os.environ, **environment},
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if rounds != "100":
            while len(os.listdir(regions)) < 2 and program.poll() is None:
                time.sleep(0.01)
            program.kill()
        program.wait(60)
        expected[program.pid] = (False, rounds == "100")
    with Server(scratch.file("idle.mtp"), env={"MEMTRACE_REGION_DIR": regions}) as server:
        server.wait_open()
        found = {one["pid"]: (one["running"], one["ended"]) for one in server.get("/sources")["found"] if "pid" in one}
        check("what is left of programs", found == expected, found, expected, os.listdir(regions))


def main():
    scratch = Scratch()
    check_killed(scratch)
    check_nobody_looks(scratch)
    check_recording(scratch)
    if "TEST_MEMTRACE" not in os.environ:  # no times of builds with sanitizers
        check_cost(scratch)
    check_serve(scratch, "run", "served.mtp")
    check_serve(scratch, "record", "served.mtr")
    check_left_alone(scratch)
    check_ended(scratch)
    check_unwritable(scratch)


main()
