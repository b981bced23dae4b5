#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Connections are kept: many requests go over one, also two that are sent at once, and what is slow, refused or
given up on a kept connection is treated as on a new one. Connections are counted, times are not."""
import json
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "python"))
from webserver import Scratch, Server, check

ESTABLISHED = "01"
REQUEST_S = 30  # within which a request is whole (web/server/clients.c)
PATIENCE_S = 60


def connections_of(server):
    """Its connections that are open on both sides."""
    found = 0
    for name in ("tcp", "tcp6"):
        with open("/proc/net/" + name, encoding="ascii") as table:
            for line in table.readlines()[1:]:
                fields = line.split()
                found += int(fields[1].rsplit(":", 1)[1], 16) == server.port and fields[3] == ESTABLISHED
    return found


def check_connections(server, what, wanted):
    """Those that were closed a moment ago may still be known."""
    end = time.monotonic() + PATIENCE_S
    while connections_of(server) != wanted and time.monotonic() < end:
        time.sleep(0.02)
    check("connections: " + what, connections_of(server) == wanted, connections_of(server), wanted)


class Kept:
    """A connection over which requests go one after the other."""

    def __init__(self, server):
        self.server = server
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
        self.read = self.socket.makefile("rb")

    def send(self, path, method="GET", body=None, token=None):
        head = "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n" % (
            method, path, self.server.port, token if token is not None else self.server.token)
        if body is not None:
            head += "Content-Length: %d\r\n" % len(body)
        self.socket.sendall(head.encode() + b"\r\n" + (body or b""))

    def receive(self, has_body=True):
        """(status, headers, body), or None: the connection has ended."""
        line = self.read.readline()
        if not line:
            return None
        headers = {}
        while (field := self.read.readline().decode().strip()) != "":
            name, value = field.split(": ", 1)
            headers[name.lower()] = value
        body = b""
        if has_body and "content-length" in headers:
            body = self.read.read(int(headers["content-length"]))
        return int(line.split()[1]), headers, body

    def ask(self, path, has_body=True, **how):
        self.send(path, **how)
        return self.receive(has_body)

    def close(self):
        self.read.close()
        self.socket.close()


def check_kept(server):
    """All kinds of answers over one connection."""
    check_connections(server, "before", 0)
    kept = Kept(server)
    for number in range(5):
        for path, status in (("/api/v1/session", 200), ("/api/v1/r/1/tree?from=%d%%25" % number, 200), ("/", 200),
                             ("/api/v1/nowhere", 404), ("/nothing.js", 404), ("/api/v1/r/1?unknown=1", 400)):
            told = kept.ask(path)
            check(path, told is not None and told[0] == status and told[1].get("connection") != "close", told)
        told = kept.ask("/api/v1/r/1/query", method="POST", body=b'{"sql": "SELECT %d AS one"}' % number)
        check("POST", told is not None and told[0] == 200 and json.loads(told[2])["data"]["rows"] == [[number]], told)
        told = kept.ask("/api/v1/session", has_body=False, method="HEAD")
        check("HEAD", told is not None and told[0] == 200, told)
    check_connections(server, "of 40 requests", 1)
    # Two at once, and the half of a third; each is answered, in order.
    kept.send("/api/v1/r/1/functions?limit=1")
    kept.send("/api/v1/session")
    kept.socket.sendall(b"GET /api/v1/r/1/marks HTTP/1.1\r\nHo")
    first, second = kept.receive(), kept.receive()
    check("two at once", first[0] == second[0] == 200 and b'"columns"' in first[2] and b'"sources"' in second[2],
          first, second)
    kept.socket.sendall(b"st: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n\r\n" % (server.port, server.token.encode()))
    third = kept.receive()
    check("the third", third[0] == 200 and b'"columns"' in third[2], third)
    kept.close()


def check_refused(server):
    """What is refused before its body is read ends the connection: nobody knows where the next request begins."""
    for path, method, body, token, status in (
            ("/api/v1/session", "GET", None, "0" * 32, 401), ("/api/v1/session", "PUT", b"x" * 10, None, 405),
            ("/api/v1/sources", "POST", b"{}", "0" * 32, 401), ("/", "POST", b"GET /x HTTP/1.1\r\n\r\n", None, 405)):
        kept = Kept(server)
        check("before", kept.ask("/api/v1/session")[0] == 200)
        told = kept.ask(path, method=method, body=body, token=token)
        check("refused " + path, told[0] == status and b"sources" not in told[2], told)
        check("and ended", kept.receive() is None)
        kept.close()
    # The body of a GET is none of the next request's.
    kept = Kept(server)
    told = kept.ask("/api/v1/session", body=b"GET /api/v1/r/1 HTTP/1.1\r\n\r\n")
    check("GET with a body", told[0] == 200, told)
    told = kept.ask("/api/v1/nowhere")
    check("after a body", told[0] == 404, told)
    kept.close()


def check_given_up(server):
    """A pass whose asker leaves is given up on a kept connection, too: the next asker of the same finds nothing."""
    for number in range(20):  # a pass may be over before its asker is gone
        address = "/api/v1/r/1?size=%d.." % (17 + number)
        kept = Kept(server)
        check("before", kept.ask("/api/v1/session")[0] == 200)
        kept.send(address)
        time.sleep(0.02 * number)
        kept.close()
        other = Kept(server)
        told = json.loads(other.ask(address)[2])
        other.close()
        if told["via"] == "pass":
            return
    check("given up", False)


def check_stream(server):
    """A stream of events goes over a kept connection; its end frees the server's place."""
    kept = Kept(server)
    check("before", kept.ask("/api/v1/session")[0] == 200)
    kept.send("/api/v1/r/1/events")
    told = kept.receive()
    check("events", told[0] == 200 and told[1]["content-type"] == "text/event-stream", told)
    kept.close()


def check_slow(server):
    """A second request has no more time than a first one; who goes on asking is not ended."""
    slow, quiet, steady = Kept(server), Kept(server), Kept(server)
    for kept in (slow, quiet, steady):
        check("before", kept.ask("/api/v1/session")[0] == 200)
    begin = time.monotonic()
    ended = set()
    slow.socket.sendall(b"GET /api/v1/session HTTP/1.1\r\nHost: 127.0")
    while len(ended) < 2 and time.monotonic() - begin < 3 * REQUEST_S:
        time.sleep(1)
        check("steady", steady.ask("/api/v1/session")[0] == 200)
        for name, kept in (("slow", slow), ("quiet", quiet)):
            kept.socket.settimeout(0.01)
            try:
                if name == "slow" and name not in ended:
                    kept.socket.sendall(b".")
                if kept.socket.recv(4096) == b"":
                    ended.add(name)
            except socket.timeout:
                pass
            except OSError:
                ended.add(name)
    check("ended", ended == {"slow", "quiet"}, ended)
    check("not before its time", time.monotonic() - begin > REQUEST_S - 2, time.monotonic() - begin)
    check("steady", steady.ask("/api/v1/session")[0] == 200)
    for kept in (slow, quiet, steady):
        kept.close()


def check_many(server):
    """Many at once, each over its own: as many connections as askers."""
    check_connections(server, "before many", 0)
    kept = [Kept(server) for _ in range(12)]
    wrong = []

    def work(mine, number):
        for turn in range(10):
            told = mine.ask("/api/v1/r/1/paths?limit=3&from=%d%%25" % (number + turn))
            if told is None or told[0] != 200:
                wrong.append(told)

    threads = [threading.Thread(target=work, args=(mine, number)) for number, mine in enumerate(kept)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("many", not wrong, wrong)
    check_connections(server, "of 12 askers", 12)
    for mine in kept:
        mine.close()


def main():
    scratch = Scratch()
    recording = scratch.record("subject.mtr", 400000)
    with Server(recording) as server, Server(recording) as other:
        check("open", server.wait_open()["state"] == "open")
        failed = []
        slow = threading.Thread(target=lambda: failed.append(True) or check_slow(other) or failed.pop())
        slow.start()
        check_kept(server)
        check_refused(server)
        check_stream(server)
        check_many(server)
        check_given_up(server)
        idle = Kept(server)
        check("an idle one", idle.ask("/api/v1/session")[0] == 200)
        slow.join()
        check("slow ones", not failed)
    # The server has ended while a connection was kept.
    check("it ends", idle.receive() is None)


main()
