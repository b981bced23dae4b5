# SPDX-License-Identifier: MIT
"""What shows an allocation of a program on another machine: a report of the received file, `memtrace top` on a terminal
that pyte emulates, the answers that the page of `memtrace serve` asks for. Each can be asked how many bytes it shows."""

import http.client
import json
import os
import re
import subprocess
import sys

from harness import RunFailed
from stream import peers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests", "top", "screen"))

import emulated  # noqa: E402

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Report:
    """Asked again and again, as a reader sees it: its own time counts."""

    name = "in a report of the received file"

    def __init__(self, bench, path):
        self.words = [bench.command, "report", path]

    def shown_bytes(self):
        done = subprocess.run(self.words, capture_output=True, text=True, check=False)
        found = re.search(r"^  peak .*\(([0-9,]+) bytes", done.stdout, re.MULTILINE)
        return int(found.group(1).replace(",", "")) if done.returncode == 0 and found else 0

    def close(self):
        pass


class Top:
    """Looks each second, as it does unless told otherwise."""

    name = "in top on the received file"

    def __init__(self, bench, path):
        try:
            self.terminal = emulated.Emulated([bench.command, "top", path], peers.environment(bench) |
                                              {"LC_ALL": "C.UTF-8", "TERM": "linux"}, bench.scratch, 120, 40)
        except emulated.Unavailable as reason:
            raise RunFailed(str(reason)) from reason

    def shown_bytes(self):
        self.terminal.read(0.01)
        found = re.search(r"^(?:heap|live) ([0-9.]+)([KMG]?)", "\n".join(self.terminal.lines()), re.MULTILINE)
        return float(found.group(1)) * UNITS[found.group(2)] if found else 0

    def close(self):
        self.terminal.end()


class Page:
    """Asks when it is told that there is more, as the page does."""

    name = "in the page on the received file"

    def __init__(self, bench, path):
        self.server = subprocess.Popen([bench.command, "serve", "--no-open", path], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True, env=peers.environment(bench))
        line = self.server.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\S*#token=([0-9a-f]{32})", line)
        if found is None:
            raise RunFailed("memtrace serve: " + line)
        self.port, self.token = int(found.group(1)), found.group(2)
        peers.wait_until(lambda: self.ask("/r/1") is not None, "the page opens the file")
        self.events = self.request("/r/1/events")

    def request(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/api/v1" + path, headers={"Authorization": "Bearer " + self.token})
        return connection.getresponse()

    def ask(self, path):
        answer = self.request(path)
        return json.loads(answer.read())["data"] if answer.status == 200 else None

    def shown_bytes(self):
        while not self.events.readline().startswith(b"event: live"):
            pass
        return self.ask("/r/1")["totals"]["live_bytes"]

    def close(self):
        self.server.terminate()
        self.server.wait()


SCREENS = (Report, Top, Page)
