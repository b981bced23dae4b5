# SPDX-License-Identifier: MIT
"""debuginfod.py: names of a stripped program and a stripped library, whose debug files only a server has:
Debian's debuginfod, here. Asked are report, symbolize, top and serve; not asked is what must not ask: with
--no-debuginfod, while a program runs, where no server is named. Servers that are gone or slow cost a line."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
from harness import (MEMTRACE, build, clean_environment, equal, execute, fail, finish, have, report,  # noqa: E402
                     scratch, skip, wait_until)

RECORDING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "recording")
LIBRARY = [("leak", 7), ("entry", 14), ("main", 27)]
OWN = [("own_leak", 11), ("main", 29)]


def stripped(folder, debug):
    """The program and the library, without what names functions; their debug files go elsewhere."""
    paths = []
    for source, shared in (("gone.c", False), ("gone_library.c", True)):
        built = build(os.path.join(RECORDING, source), flags=("-Wl,--build-id",), shared=shared)
        path = os.path.join(folder, os.path.basename(built))
        subprocess.run(["objcopy", "--only-keep-debug", built, os.path.join(debug, os.path.basename(built) + ".debug")],
                       check=True)
        subprocess.run(["strip", "-o", path, built], check=True)
        paths.append(path)
    return paths


def free_port():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return listener.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read()


class Server:
    """debuginfod over a folder. The port was free; if another took it meanwhile the next one is tried."""

    def __init__(self, folder):
        for _ in range(5):
            self.port = free_port()
            self.url = "http://127.0.0.1:%d" % self.port
            self.log = os.path.join(folder, "..", "log-%d" % self.port)
            with open(self.log, "w") as log:
                self.process = subprocess.Popen(
                    ["debuginfod", "-v", "-F", folder, "-p", str(self.port), "-d", ":memory:", "-c", "1", "-t", "0",
                     "-g", "0"], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                    env={**clean_environment(), "DEBUGINFOD_URLS": ""})
            wait_until(lambda: self.is_ready() or self.process.poll() is not None, "debuginfod")
            if self.process.poll() is None:
                return
            self.stop()
        skip("debuginfod does not start here: " + open(self.log).read()[-300:])

    def is_ready(self):
        try:
            return b'scanned_files_total{source="file"} 2\n' in get(self.url + "/metrics")
        except OSError:
            return False

    def asked(self):
        return open(self.log).read().count("GET /buildid/")

    def stop(self):
        self.process.kill()
        self.process.wait()


def named(data):
    found = {context["total_bytes"]: [(frame["function"], frame["line"]) for frame in context["frames"]
                                      if os.path.basename(frame["module"]) in ("gone", "gone_library.so") and frame["function"] != "_start"]
             for context in data["contexts"] if context["total_bytes"] in (100 * 1000, 4000)}
    return found == {100 * 1000: LIBRARY, 4000: OWN}


def warnings(data):
    return [line for line in data["warnings"] if "DEBUGINFOD" in line]


class Slow:
    """Takes connections, and says nothing."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.taken = []
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        with contextlib.suppress(OSError):
            while True:
                self.taken.append(self.listener.accept()[0])


def main():
    have("debuginfod", "objcopy", "strip")
    base = scratch()
    folder, debug = os.path.join(base, "files"), os.path.join(base, "debug")
    os.makedirs(folder)
    os.makedirs(debug)
    program, library = stripped(folder, debug)
    profile = os.path.join(base, "p.mtp")
    server = Server(debug)
    try:
        asking = {"DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": os.path.join(base, "cache")}
        for how in ("run", "record"):
            under = execute([MEMTRACE, how, "--no-summary", "--output", profile, "--", program, library, "never", "0"],
                            clean_environment(MEMTRACE_SUMMARY="0", **asking))
            equal(under.returncode, 0, how, under.stderr)
            equal(server.asked(), 0, how, ": questions while the program ran")
            equal(named(report(profile)), False, how, ": names without a server")
            equal(named(report(profile, asking, "--no-debuginfod")), False, how, ": names with --no-debuginfod")
            equal(os.path.exists(asking["DEBUGINFOD_CACHE_PATH"]), False, how, ": a cache was made")
            data = report(profile, asking)
            equal((named(data), warnings(data)), (True, []), how, ": names from the server, notes")
            shutil.rmtree(asking["DEBUGINFOD_CACHE_PATH"])
            asked, server_log = server.asked(), server.log
            open(server_log, "w").close()
            equal(asked > 0, True, how, ": was asked")
        symbolize_and_top(program, library, asking)
        serve(profile, asking, base)
        equal(named(report(profile, {**asking, "MEMTRACE_CACHE": os.path.join(base, "kept")})), True, "with our cache")
    finally:
        server.stop()
    equal(named(report(profile, asking)), True, "the server is gone, its files are in the library's cache")
    failures(profile, server.url, base)
    hint()


def symbolize_and_top(program, library, asking):
    symbol = [line.split()[0] for line in
              subprocess.run(["nm", "-D", library], capture_output=True, text=True).stdout.splitlines()
              if line.endswith(" entry")][0]
    line = "%s+0x%x\n" % (library, int(symbol, 16) + 12)
    for options, known in (((), True), (("--no-debuginfod",), False)):
        said = subprocess.run([MEMTRACE, "symbolize", *options], input=line, capture_output=True, text=True,
                              env=clean_environment(**asking))
        equal("gone_library.c" in said.stdout, known, "symbolize", options, said.stdout, said.stderr)
    with subprocess.Popen([MEMTRACE, "run", "--no-summary", "--output", os.path.join(os.path.dirname(program), "top.mtp"),
                           "--", program, library, "never", "60000"],
                          env=clean_environment(MEMTRACE_SUMMARY="0")) as running:
        try:
            def screen(*options):
                return execute([MEMTRACE, "top", "--once", "--interval", "100ms", *options, str(child(running.pid))],
                               clean_environment(**asking)).stdout.decode()
            wait_until(lambda: child(running.pid), "the program")
            wait_until(lambda: "own_leak" in screen(), "top: own_leak")
            equal("own_leak" in screen("--no-debuginfod"), False, "top --no-debuginfod")
        finally:
            with contextlib.suppress(TypeError, ProcessLookupError):
                os.kill(child(running.pid), 9)


def child(parent):
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True).stdout.split()
    return int(found[0]) if found else None


def serve(profile, asking, base):
    """The page's data has the names, too."""
    with subprocess.Popen([MEMTRACE, "serve", "--no-open", profile], stdout=subprocess.PIPE, text=True,
                          env=clean_environment(**{**asking, "DEBUGINFOD_CACHE_PATH": os.path.join(base, "second")})) \
            as process:
        try:
            address = process.stdout.readline().split()[-1]
            equal(address.startswith("http://"), True, "serve says", address)
            wait_until(lambda: os.path.exists(os.path.join(base, "second")), "serve: asked the server")
        finally:
            process.terminate()


def hint():
    """What would name the functions of a library of the system's, by dpkg's own word."""
    base = scratch()
    program = build(os.path.join(os.path.dirname(os.path.abspath(__file__)), "unnamed.c"), libraries=("-lsqlite3",))
    profile = os.path.join(base, "p.mtp")
    execute([MEMTRACE, "run", "--no-summary", "--output", profile, "--", program])
    text = execute([MEMTRACE, "report", profile]).stdout.decode()
    if "libsqlite3.so.0+0x" not in text:
        return  # its debug symbols are installed
    owner = ""
    if shutil.which("dpkg-query"):
        owner = subprocess.run(["dpkg-query", "-S", "*/libsqlite3.so.0"], capture_output=True, text=True).stdout
    wanted = "the package %s-dbgsym has" % owner.split(":")[0] if owner else "its debug symbols have"
    said = [line for line in text.splitlines() if "no name here" in line]
    equal(len(said), 1, "hints", said)
    for part in (wanted, "or a server that DEBUGINFOD_URLS names"):
        equal(part in "".join(said), True, "hint", said, ":", part)


def failures(profile, gone, base):
    """One line, soon, and no names; one that has nothing is no failure."""
    slow = Slow()
    for url, line in ((gone, "DEBUGINFOD_URLS: "), (slow.url, "DEBUGINFOD_URLS: nothing came for 1 s")):
        start = time.monotonic()
        data = report(profile, {"DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": os.path.join(base, "third"),
                                "DEBUGINFOD_TIMEOUT": "1"})
        took = time.monotonic() - start
        told = warnings(data)
        if named(data) or len(told) != 1 or line not in told[0]:
            fail("a server that is gone or slow:", url, told)
        if took > 20:
            fail("took %.1f s" % took)
    slow.listener.close()


main()
finish()
