#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bad requests, bad files and bad surroundings: one clear line, and the server goes on."""
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "python"))
from webserver import MEMTRACE, Scratch, Server, check

MIB = 1 << 20
IDLE_S = 50  # somewhat less than a silent connection may last at least (web/server/http.c)


def is_problem(headers):
    return headers.get("Content-Type") == "application/problem+json"


def problem(server, path, wanted, words="", **how):
    status, headers, body = server.ask(path, **how)
    check(path[:80], status == wanted and is_problem(headers), status, body)
    check(path[:80], words in body.decode(), body)


# ---- Requests ----

def check_paths(server):
    for path in ("/../etc/passwd", "/..", "/a/../../b", "/%2e%2e/%2e%2e/etc/passwd", "/api/v1/../../etc/passwd",
                 "/api/v1/r/1/files/..%2f..%2fetc%2fpasswd", "/\\..\\x", "/api/v1/r/1?function=%00",
                 "/api/v1/r/1?%00=1", "/api/v1/r/1?function=%ff",
                 "/api/v1/r/1?" + "&".join("a=%d" % i for i in range(300))):
        problem(server, path, 400)
    for path in ("/api/v1/r/1/%00", "/index.html%00.js", "/%zz", "/%", "/%e"):
        status, headers, body = server.ask(path)
        by_library = b"<title>Bad Request Path</title>" in body  # libmicrohttpd 1.0 answers these itself
        check(path, status == 400 and (is_problem(headers) or by_library), status, body)
    for path in ("/nothing.js", "/etc/passwd.txt", "/api/v1/", "/api/v1/r", "/api/v1/r/", "/api/v1/r/0", "/api/v1/r/2",
                 "/api/v1/r/99999999999999999999", "/api/v1/r/-1", "/api/v1/r/1/", "/api/v1/r/1/nothing",
                 "/api/v1/r/1x", "/api/v1/session/", "/api/v1//session", "/api/v2/session.js", "/api/v1/r/0/events",
                 "/api/v1/r/2/events", "/api/v1/r/+1/events", "/api/v1/r/%201/events", "/api/v1/r/-1/events",
                 "/api/v1/r/1x/events", "/api/v1/r/1/events/", "/api/v1/r/1/eventsx", "/api/v1/r/1/eventsx/events",
                 "/api/v1/r/1/events/events", "/api/v1/r/4294967297/events", "/api/v1/r/1/x/events"):
        problem(server, path, 404)


def check_parameters(server):
    for query, words in (("unknown=1", "there is no parameter 'unknown' here"), ("limit=1", "limit"), ("from=never", "--from"),
                         ("function=(", "--function"), ("size=x", "--size"), ("from=1&from=2", "--from is given twice"),
                         ("from=2s&to=1s", "nothing is selected"), ("leaked=no", "--leaked takes no value"),
                         ("thread=nobody", "there is no thread"), ("full-names=2", "full-names"), ("by=x", "by is"),
                         ("by=line&by=line", "by is given twice"), ("base-from=1s", "base-from needs base"), ("suppressions=/etc/passwd", "no parameter"),
                         ("debug-folders=/etc", "no parameter"), ("no-cache=1", "no parameter"),
                         ("process=1&all-processes", "contradict"), ("at=1s&to=2s", "same")):
        problem(server, "/api/v1/r/1?" + query, 400, words)
    for query in ("sort=nothing", "order=up", "limit=-1", "limit=x", "limit=999999999", "cursor=x", "limit=1&limit=2"):
        problem(server, "/api/v1/r/1/threads?" + query, 400)
    for query in ("points=1", "points=x", "series=nothing"):
        problem(server, "/api/v1/r/1/timeline?" + query, 400)
    problem(server, "/api/v1/session?x=1", 400, "no parameter")
    for query in ("x=1", "from=1s", "jobs=a", "job=a&job=b"):
        problem(server, "/api/v1/r/1/events?" + query, 400)
    problem(server, "/api/v1/r/1?base=7", 404, "there is no source 7")
    # What looks like two filters is one, and is not answered as the two were.
    both = server.get("/r/1/functions?function=inner&not-function=churn")["data"]["total"]
    one = server.get("/r/1/functions?function=inner%0Anot-function%3Dchurn")["data"]["total"]
    check("a line break in a filter", both > 0 and one == 0, both, one)
    server.get("/r/1?all-processes")
    problem(server, "/api/v1/r/1?process=all%20", 400, "'all '")
    problem(server, "/api/v1/r/1?process=" + "x" * 1000, 400, "process")
    # What the command line says is what is said here.
    said = subprocess.run([MEMTRACE, "report", "--from", "never", server.recording], stderr=subprocess.PIPE,
                          text=True).stderr
    sentence = server.get("/r/1?from=never", 400)["detail"]
    check("the same sentence", sentence in said, sentence, said)
    for regex in ("a{1,32767}", "((a{1,255}){1,255}){1,255}"):
        problem(server, "/api/v1/r/1/threads?function=" + regex, 400, "Too large with its repetitions")
        problem(server, "/api/v1/r/1/search?regex=" + regex, 400, "Too large with its repetitions")
        problem(server, "/api/v1/r/1/query", 400, "Too large with its repetitions", method="POST",
                body='{"sql": "SELECT \'a\' REGEXP \'%s\'"}' % regex)
    server.get("/r/1/threads?function=" + "(((((x*)*)*)*)*)*" * 3 + "y")
    with connect_endless(server) as asker:
        server.get("/r/1/functions?function=inner")
        check("others wait", not select.select([asker], [], [], 0)[0])


def check_sizes(server):
    token = b"Authorization: Bearer " + server.token.encode()
    host = b"Host: 127.0.0.1:%d" % server.port
    for size in (20000, 200000, MIB, 4 * MIB):
        said = server.raw(b"GET /api/v1/session?x=" + b"a" * size + b" HTTP/1.1\r\n" + host + b"\r\n" + token + b"\r\n\r\n")
        check("address of %d bytes" % size, said[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 414", b"HTTP/1.1 431", b"") or
              b"HTTP/1.1 4" in said[:20], said[:200])
        said = server.raw(b"GET /api/v1/session HTTP/1.1\r\n" + host + b"\r\nX: " + b"a" * size + b"\r\n\r\n")
        check("header of %d bytes" % size, b" 200 " not in said[:20], said[:200])
    said = server.raw(b"GET /api/v1/session HTTP/1.1\r\n" + host + b"\r\n" + b"X: y\r\n" * 100000 + b"\r\n")
    check("many headers", b" 200 " not in said[:20], said[:200])
    said = server.raw(b"POST /api/v1/sources HTTP/1.1\r\n" + host + b"\r\n" + token +
                      b"\r\nContent-Length: %d\r\n\r\n" % (MIB + 1))
    check("body too large", said.startswith(b"HTTP/1.1 413"), said[:200])
    said = server.raw(b"POST /api/v1/sources HTTP/1.1\r\n" + host + b"\r\n" + token +
                      b"\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"10000\r\n" + b" " * 0x10000 + b"\r\n") * 40 +
                      b"0\r\n\r\n")
    check("chunked body too large", b" 200 " not in said[:20], said[:200])
    for junk in (b"", b"\r\n\r\n", b"\0" * 1000, b"GET", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00",
                 b"GET /api/v1/session HTTP/1.1\r\n\r\n", b"GET /api/v1/session HTTP/1.0\r\n\r\n"):
        check("junk %r" % junk, b" 200 " not in server.raw(junk)[:20])


def connect(server, data):
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=120)
    connection.sendall(data)
    return connection


def connect_endless(server):
    """Who asks a question that has no end."""
    body = b'{"sql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"}'
    return connect(server, b"POST /api/v1/r/1/query HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
                   b"Content-Length: %d\r\n\r\n" % (server.port, server.token.encode(), len(body)) + body)


def is_ended(connection, within_s):
    """Whether the server ends it. What it says before is passed over."""
    connection.settimeout(within_s)
    try:
        while connection.recv(65536):
            pass
        return True
    except socket.timeout:
        return False
    except ConnectionError:
        return True


def check_crowd(server):
    """More connections than there may be: who is silent, before a request, in one or after one, and who does not
    read, gives way to who comes; pages that follow events, and whose answers are being made, stay."""
    ask = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer " + server.token.encode() + b"\r\n\r\n"
    tabs = [connect(server, ask % (b"/api/v1/r/1/events", server.port)) for _ in range(6)]
    session = ask % (b"/api/v1/session", server.port)
    table = ask % (b"/api/v1/r/1/query", server.port)
    body = b'{"sql": "SELECT * FROM allocations LIMIT 100000"}'
    table = table.replace(b"GET", b"POST").replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % len(body)) + body
    crowds = {"half a request": (session[:-2], 150, 0), "half a body": (table[:-2], 150, 0), "nothing": (b"", 150, 0),
              "an answer, and no more": (session, 150, 0), "a long answer, not read": (table, 58, 8)}
    for what, (data, size, wait_s) in crowds.items():
        crowd = [connect(server, data) for _ in range(size)]
        time.sleep(wait_s)
        begin = time.monotonic()
        server.get("/session")
        check(what + ": others wait", time.monotonic() - begin < IDLE_S, time.monotonic() - begin)
        check(what + ": the oldest gives way", is_ended(crowd[0], IDLE_S))
        for connection in crowd:
            connection.close()
    for connection in tabs:
        check("a tab had to give way", not is_ended(connection, 0.05))
        connection.close()


def check_slow_clients(server):
    """One byte a second does not keep a connection: a request is whole in 30 s, or never."""
    begin = time.monotonic()
    slow = connect(server, b"GET /api/v1/session HTTP/1.1\r\nHost: 127.0")
    ended = False
    while not ended and time.monotonic() - begin < 50:
        ended = is_ended(slow, 1)
        try:
            slow.sendall(b".")
        except ConnectionError:
            ended = True
    check("a slow client stays", ended)
    slow.close()


# ---- Signals ----

def check_signals(server):
    """A mapped file that becomes shorter ends nothing: no thread blocks the SIGBUS that tells of it."""
    tasks = "/proc/%d/task" % server.process.pid
    for task in os.listdir(tasks):
        with open(os.path.join(tasks, task, "status"), encoding="utf-8") as file:
            blocked = int(re.search(r"^SigBlk:\s*([0-9a-f]+)$", file.read(), re.M).group(1), 16)
        check("SIGBUS is blocked in " + task, not blocked >> (signal.SIGBUS - 1) & 1, hex(blocked))


# ---- Files ----

def state_of(*names, **how):
    with Server(*names, **how) as server:
        return server.wait_open(), server.stderr()


def check_files(scratch, recording):
    missing = scratch.file("missing.mtr")
    done = subprocess.run([MEMTRACE, "serve", "--no-open", missing], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=120)
    check("missing", done.returncode == 1 and done.stderr.count("\n") == 1 and missing in done.stderr and
          done.stdout == "", done)
    for name, data in (("text.mtr", b"hello\n"), ("empty.mtp", b""), ("zeros.mtr", b"\0" * 100000)):
        with open(scratch.file(name), "wb") as out:
            out.write(data)
        state, _ = state_of(scratch.file(name))
        check(name, state["state"] == "failed" and name in state["error"] and "\n" not in state["error"], state)
        with Server(scratch.file(name)) as server:
            server.wait_open()
            check(name, server.get("/r/1", 410)["detail"] == state["error"])
    with open(recording, "rb") as file:
        whole = file.read()
    rng = random.Random(1)
    for i in range(6):
        cut = scratch.file("cut%d.mtr" % i)
        with open(cut, "wb") as out:
            data = bytearray(whole[:rng.randrange(len(whole))] if i % 2 else whole)
            for _ in range(0 if i % 2 else 20):
                data[rng.randrange(len(data))] = rng.randrange(256)
            out.write(data)
        with Server(cut) as server:
            if server.wait_open()["state"] == "open":
                for path in ("", "/tree", "/threads", "/timeline", "?from=10%25&to=60%25", "?size=1K.."):
                    status, _, _ = server.ask("/api/v1/r/1" + path)
                    check("cut or damaged", status in (200, 400), path, status)


def check_vanished(scratch, recording):
    """A file that is removed, or made shorter, while it is open."""
    copy = scratch.file("copy.mtr")
    shutil.copy(recording, copy)
    with Server(copy) as server:
        server.wait_open()
        before = server.get("/r/1")["data"]["totals"]
        os.unlink(copy)
        check("removed", server.get("/r/1")["data"]["totals"] == before)
        server.get("/r/1?from=20%25&to=30%25")
    shutil.copy(recording, copy)
    with Server(copy) as server:
        server.wait_open()
        os.truncate(copy, 5000)
        status, _, body = server.ask("/api/v1/r/1?from=20%25&to=30%25&size=1..")
        check("made shorter", status in (200, 400, 500), status, body)
        check("goes on", server.get("/r/1")["data"]["totals"] == before)


def check_replaced(scratch, recording):
    """Another file takes the name of one that is open: that one is answered from as before, whatever is
    asked, and the new one can be opened beside it."""
    path = scratch.file("replaced.mtr")
    questions = ("", "?from=20%25&to=60%25", "?size=100..", "/blocks?limit=3", "/functions", "/timeline?points=20")
    shutil.copy(recording, path)
    other = scratch.record("other.mtr", 20000)
    with Server(path, scratch.path) as server:
        server.wait_open()
        before = [server.get("/r/1" + question)["data"] for question in questions]
        listed = [one for one in server.get("/sources")["found"] if one["name"] == "replaced.mtr"]
        check("it is open", [one.get("source") for one in listed] == [1], listed)
    with Server(path, scratch.path) as server:
        server.wait_open()
        os.rename(other, path)
        check("replaced", [server.get("/r/1" + question)["data"] for question in questions] == before)
        server.ask("/api/v1/r/1/query", method="POST", body='{"sql": "SELECT count(*) FROM allocations"}')
        listed = [one for one in server.get("/sources")["found"] if one["name"] == "replaced.mtr"]
        check("another one", [one.get("source") for one in listed] == [None], listed)
        for _ in range(2):
            status, _, body = server.ask("/api/v1/sources", method="POST", body=json.dumps({"path": listed[0]["path"]}))
            check("opened once", status == 200 and json.loads(body)["id"] == 2, body)
        server.wait_open(2)
        told = subprocess.run([MEMTRACE, "report", "--json", path], stdout=subprocess.PIPE, check=True).stdout
        check("the new one", server.get("/r/2")["data"]["totals"]["allocations"] ==
              json.loads(told)["allocations"] != before[0]["totals"]["allocations"])


# ---- Surroundings ----

def check_ports(recording):
    with Server(recording) as first:
        with Server(recording) as second:
            check("the next port", second.port > first.port and second.wait_open()["state"] == "open")
        done = subprocess.run([MEMTRACE, "serve", "--no-open", "--port", str(first.port), recording],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        check("port taken", done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1 and
              "port %d is taken" % first.port in done.stderr, done)
    for options in (("--port", "0"), ("--port", "70000"), ("--port", "x"), ("--listen", "0.0.0.0"), ("--nothing",),
                    ("--source-map", "x"), ("--cache-memory", "x")):
        done = subprocess.run([MEMTRACE, "serve", *options, recording], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=120)
        check("options %r" % (options,), done.returncode == 2 and done.stderr.count("\n") == 1, done)


def check_browser(scratch, recording):
    """The browser gets a file that only the user can read; without display or opener the address is
    all there is."""
    tools = scratch.file("tools")
    os.mkdir(tools)
    opened = scratch.file("opened")
    with open(os.path.join(tools, "xdg-open"), "w", encoding="utf-8") as out:
        out.write('#!/bin/sh\nstat -c "%%a %%U" "$1" >%s.mode\ncat "$1" >%s.page\ngrep SigIgn /proc/$$/status >%s.signals\n'
                  'tr "\\0" " " </proc/$$/cmdline >%s.words\n' % (opened, opened, opened, opened))
    os.chmod(os.path.join(tools, "xdg-open"), 0o755)
    path = tools + ":" + os.environ["PATH"]
    how = {"DISPLAY": ":77", "PATH": path, "TMPDIR": scratch.path, "XDG_RUNTIME_DIR": scratch.path}
    with Server(command=[MEMTRACE, "serve", recording], env=how) as server:
        end = time.monotonic() + 120
        while not os.path.exists(opened + ".words") and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.2)
        with open(opened + ".mode", encoding="utf-8") as file:
            check("mode", file.read().startswith("600 "))
        with open(opened + ".words", encoding="utf-8") as file:
            check("token on a command line", server.token not in file.read())
        with open(opened + ".signals", encoding="utf-8") as file:
            ignored = int(file.read().split()[1], 16)
            check("a browser that ignores SIGPIPE", not ignored >> (signal.SIGPIPE - 1) & 1, hex(ignored))
        with open(opened + ".page", encoding="utf-8") as file:
            check("leads to the page", "http://127.0.0.1:%d/#token=%s" % (server.port, server.token) in file.read())
        left = [name for name in os.listdir(scratch.path) if name.endswith(".html")]
        check("one file", len(left) == 1, left)
    check("removed at the end", not [name for name in os.listdir(scratch.path) if name.endswith(".html")])
    for env in ({}, {"DISPLAY": ":77", "PATH": scratch.file("nowhere")}):
        with Server(command=[MEMTRACE, "serve", recording], env=env) as server:
            server.wait_open()
            check("silent", server.stderr() == "", server.stderr())
    with Server(command=[MEMTRACE, "serve", recording], env={**how, "SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"}) as server:
        line = server.process.stdout.readline()
        check("ssh", "ssh -L %d:127.0.0.1:%d " % (server.port, server.port) in line, line)


def check_endings(scratch, recording):
    """Ctrl-C and the like end it well, and nothing is left behind; a second Ctrl-C does not wait for whatever is
    being done."""
    how = {"DISPLAY": ":77", "TMPDIR": scratch.path, "XDG_RUNTIME_DIR": scratch.path,
           "PATH": scratch.file("tools") + ":" + os.environ["PATH"]}

    def left():
        return [name for name in os.listdir(scratch.path) if name.endswith(".html")]

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        server = Server(command=[MEMTRACE, "serve", recording], env=how)
        server.wait_open()
        check("the browser's file", len(left()) == 1, left())
        server.stop(number)  # with status 0
        check("left after %s" % number, not left(), left())
    server = Server(command=[MEMTRACE, "serve", recording], env=how)
    server.wait_open()
    with connect_endless(server):
        time.sleep(0.3)
        for _ in range(2):
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGINT)
                time.sleep(0.2)
        begin = time.monotonic()
        status = server.process.wait(20)
        check("the second Ctrl-C", status in (0, -signal.SIGINT) and time.monotonic() - begin < 30, status)
    check("left after two", not left(), left())


def check_newest(scratch, recording):
    folder = scratch.file("newest")
    os.mkdir(folder)
    with Server(folder=folder) as server:
        state = server.wait_open()
        check("nothing here", state["state"] == "failed" and "no profile" in state["error"], state)
    shutil.copy(recording, os.path.join(folder, "new.mtr"))
    with Server(folder=folder) as server:
        state = server.wait_open()
        check("the newest", state["state"] == "open" and state["name"] == "new.mtr", state)


def main():
    scratch = Scratch()
    recording = scratch.record("subject.mtr", 150000)
    with Server(recording) as server:
        server.recording = recording
        server.wait_open()
        check_paths(server)
        check_parameters(server)
        check_sizes(server)
        check_crowd(server)
        check_slow_clients(server)
        check_signals(server)
        check("still there", server.get("/r/1")["data"]["pid"] > 0)
    check_files(scratch, recording)
    check_vanished(scratch, recording)
    check_replaced(scratch, recording)
    check_ports(recording)
    check_browser(scratch, recording)
    check_endings(scratch, recording)
    check_newest(scratch, recording)


main()
