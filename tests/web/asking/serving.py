# SPDX-License-Identifier: MIT
"""What tests of the server share: `memtrace serve` of some files, and asking it."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from urllib.parse import quote, urlencode

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("programs", "recording", "selection", "query"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), folder))

from harness import LIBRARY, MEMTRACE, clean_environment, equal, execute, fail, finish, scratch  # noqa: E402

# The server may be one with sanitizers (tests/sanitize), where all takes its time.
SERVER = os.environ.get("TEST_MEMTRACE", MEMTRACE)
IS_SANITIZED = SERVER != MEMTRACE
OPENING_S = 60
ENDS_WITHIN_S = 5 if IS_SANITIZED else 0.3  # of processor time; 50 ms are meant (benchmarks/run gui)


class Server:
    """A server of some sources, which are numbered from 1 on."""

    def __init__(self, *sources, options=(), settings=None):
        self.process = subprocess.Popen(
            [SERVER, "serve", "--no-open", *options, *sources], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            env=clean_environment(**({"MEMTRACE_CACHE": ""} | (settings or {}))))
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\S*#token=([0-9a-f]{32})", line)
        if found is None:
            fail("no address:", line, self.process.stdout.read())
            finish()
        self.port, self.token = int(found.group(1)), found.group(2)
        self.wait(len(sources))

    def wait(self, count):
        end = time.monotonic() + OPENING_S
        while time.monotonic() < end:
            states = [source["state"] for source in self.ask("/session")[1]["sources"]]
            if len(states) == count and "opening" not in states:
                return
            time.sleep(0.05)
        fail("sources are not opened within", OPENING_S, "s")
        finish()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def request(self, connection, path, body=None, **parameters):
        """Sends it. A parameter of underscores stands for one of hyphens, a list is given again."""
        given = [(name.replace("_", "-"), value) for name, values in parameters.items()
                 for value in (values if isinstance(values, list) else [values])]
        address = "/api/v1" + quote(path) + ("?" + urlencode(given) if given else "")
        headers = {"Authorization": "Bearer " + self.token}
        if body is None:
            connection.request("GET", address, headers=headers)
        else:
            connection.request("POST", address, body=json.dumps(body),
                               headers=headers | {"Content-Type": "application/json"})

    def raw(self, path, body=None, **parameters):
        """Status, headers and bytes."""
        connection = self.connect()
        self.request(connection, path, body, **parameters)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response.status, dict(response.getheaders()), data

    def ask(self, path, body=None, **parameters):
        """Status, and what the JSON says."""
        status, _, data = self.raw(path, body, **parameters)
        return status, json.loads(data)

    def data(self, path, body=None, **parameters):
        """The data of an answer; what is none is a failure of the test."""
        status, answer = self.ask(path, body, **parameters)
        if status != 200:
            fail(path, parameters, ": status", status, answer)
            finish()
        return answer["data"]

    def rows(self, path, body=None, **parameters):
        return table(self.data(path, body, **parameters))

    def memory_kb(self, field="RssAnon"):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(field + r":\s+(\d+)", status.read()).group(1))

    def close(self):
        self.process.terminate()
        said, _ = self.process.communicate(timeout=60)
        equal(self.process.returncode, 0, "the server's status at its end", said[-3000:])


def table(data):
    """A table's rows as dictionaries; frames are functions, call paths lists of them."""
    frames = [frame["function"] for frame in data.get("frames", [])]
    paths = [[frames[i] for i in path] for path in data.get("paths", [])]
    result = []
    for row in data["rows"]:
        cells = {}
        for column, cell in zip(data["columns"], row):
            if cell is not None and column["kind"] == "path":
                cell = paths[cell]
            elif cell is not None and column["kind"] == "frame":
                cell = frames[cell]
            cells[column["name"]] = cell
        result.append(cells)
    return result


def command(text):
    """What a command of an answer writes as JSON."""
    import shlex
    words = shlex.split(text)
    result = execute([MEMTRACE, *words[1:], "--format", "json"], clean_environment(MEMTRACE_CACHE=""))
    equal(result.returncode, 0, text, result.stderr)
    return json.loads(result.stdout)


def cpu_s(server):
    with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_work(server):
    """Until some processor time was spent: the pass goes on."""
    before, end = cpu_s(server), time.monotonic() + 120
    while cpu_s(server) < before + 0.1 and time.monotonic() < end:
        time.sleep(0.01)
    return cpu_s(server) >= before + 0.1


def ends_after(server):
    """Processor time that the server takes until it comes to rest: none for 100 ms."""
    start, begin = cpu_s(server), time.monotonic()
    last, since = start, begin
    while time.monotonic() - since < 0.1 and time.monotonic() - begin < 30:
        time.sleep(0.01)
        now = cpu_s(server)
        if now > last + 0.011:  # one tick is for looking at sockets
            last, since = now, time.monotonic()
    return last - start
