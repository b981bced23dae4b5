# SPDX-License-Identifier: MIT
"""A `memtrace serve` for the tests beside: started, asked, ended; and subjects for it."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

TESTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TESTS, "programs"))
import leftovers  # noqa: E402, F401

BUILD = os.environ["TEST_BUILD"]
# A build with sanitizers has no library of its own: tests/sanitize.
MEMTRACE = os.environ.get("TEST_MEMTRACE", os.path.join(BUILD, "bin", "memtrace"))

SUBJECT = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *kept[4096];
__attribute__((noinline)) static void *inner(size_t size) { return malloc(size); }
__attribute__((noinline)) static void *keep(size_t i) { return kept[i % 4096] = inner(16 + i % 1000); }
__attribute__((noinline)) static void churn(size_t i) { free(inner(32 + i % 500)); }
static void *work(void *rounds) {
    for (size_t i = 0; i < (size_t)rounds; i++) churn(i);
    return NULL;
}
int main(int count, char **words) {
    size_t rounds = count > 1 ? strtoul(words[1], NULL, 10) : 100000;
    unsigned pause_us = count > 2 ? strtoul(words[2], NULL, 10) : 0;
    pthread_t thread;
    pthread_create(&thread, NULL, work, (void *)rounds);
    for (size_t i = 0; i < rounds; i++) {
        free(kept[i % 4096]);
        keep(i);
        if (pause_us != 0 && i % 100 == 0) usleep(pause_us);
    }
    pthread_join(thread, NULL);
    while (count > 3 && access(words[3], F_OK) != 0) usleep(10000);
    return 0;
}
"""


def fail(text):
    print(text)
    sys.exit(1)


def check(what, condition, *seen):
    if not condition:
        fail("%s: %s" % (what, " ".join(repr(one)[:600] for one in seen)))


class Scratch:
    """A folder with the subject, its recording and its profile."""

    def __init__(self):
        self.holder = tempfile.TemporaryDirectory(prefix="memtrace-web-")
        self.path = self.holder.name
        # The library is the main build's, whichever command is tested.
        os.environ["MEMTRACE_LIBRARY"] = os.path.join(BUILD, "lib", "libmemtrace.so")
        os.environ["MEMTRACE_REGION_DIR"] = os.path.join(self.path, "regions")
        os.mkdir(os.environ["MEMTRACE_REGION_DIR"], 0o700)
        with open(self.file("subject.c"), "w", encoding="utf-8") as out:
            out.write(SUBJECT)
        subprocess.run(["cc", "-g", "-O1", "-o", self.file("subject"), self.file("subject.c"), "-pthread"],
                       check=True)

    def file(self, name):
        return os.path.join(self.path, name)

    def record(self, name, *arguments, how="record"):
        subprocess.run([os.path.join(BUILD, "bin", "memtrace"), how, "--no-summary", "-o", self.file(name),
                        "--", self.file("subject"), *map(str, arguments)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self.file(name)


class Server:
    def __init__(self, *names, options=(), folder=None, env=None, command=None):
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8")
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION")}
        environment.update(env or {})
        self.process = subprocess.Popen(command or [MEMTRACE, "serve", "--no-open", *options, *names],
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        cwd=folder, env=environment)
        self.said = self.process.stdout.readline()
        found = re.search(r"http://([^/:]+|\[[0-9a-f:]+\]):(\d+)/\S*#token=([0-9a-f]{32})$", self.said.strip())
        if not found:
            self.process.kill()
            fail("no address: %r %r" % (self.said, self.stderr()))
        self.port = int(found.group(2))
        self.token = found.group(3)

    def stderr(self):
        self.errors.seek(0)
        return self.errors.read()

    def ask(self, path, method="GET", headers=None, body=None, token=True, timeout=60):
        """(status, headers, bytes)"""
        every = {"Authorization": "Bearer " + self.token} if token is True else {}
        if isinstance(token, str):
            every["Authorization"] = "Bearer " + token
        every.update(headers or {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, every)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path, status=200):
        told, _, body = self.ask("/api/v1" + path)
        check("GET " + path, told == status, told, body)
        return json.loads(body)

    def raw(self, data, timeout=10):
        """What the server says to these bytes, until it ends the connection or is silent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        said = b""
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while True:
                more = connection.recv(65536)
                if not more:
                    break
                said += more
        except OSError:
            pass
        finally:
            connection.close()
        return said

    def wait_open(self, source=1, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            state = self.get("/session")["sources"][source - 1]
            if state["state"] != "opening":
                return state
            time.sleep(0.02)
        return fail("still opening after %d s" % seconds)

    def events(self, source=1, path=None):
        """A connection whose answer streams events."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", path or "/api/v1/r/%d/events" % source, headers={
            "Authorization": "Bearer " + self.token})
        answer = connection.getresponse()
        check("events", answer.status == 200 and answer.getheader("Content-Type") == "text/event-stream",
              answer.status)
        return connection, answer

    def stop(self, number=signal.SIGINT, seconds=20):
        """Ends it; it must end well, with nothing said on stderr but what is expected."""
        self.process.send_signal(number)
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            fail("it did not end")
        check("status", status == 0, status, self.stderr())
        said = self.stderr()
        check("a sanitizer speaks", "Sanitizer" not in said and "runtime error" not in said, said)
        return said

    def __enter__(self):
        return self

    def __exit__(self, kind, *ignored):
        if kind is None:
            self.stop()
        else:
            print(self.stderr()[-3000:])
            self.process.kill()


def next_event(answer):
    """(name, data) of a stream."""
    name = None
    while True:
        line = answer.readline()
        if not line:
            return None
        line = line.decode().rstrip("\n")
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            return name, json.loads(line[6:])
