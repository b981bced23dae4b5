#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who may ask `memtrace serve`: other hosts, other pages, other tokens get 401 or 403 and not one byte
of data; nothing can be written; what may be opened is what is listed."""
import json
import os
import re
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "python"))
from webserver import Scratch, Server, check

SECRETS = (b"subject", b"malloc", b"inner", b"peak_bytes", b"sources")
ENDPOINTS = ("/session", "/sources", "/r/1", "/r/1/tree", "/r/1/threads", "/r/1/events", "/openapi.json", "/nowhere")


def refused(server, what, wanted, **how):
    for endpoint in ENDPOINTS:
        status, headers, body = server.ask("/api/v1" + endpoint, **how)
        check("%s, %s" % (what, endpoint), status in wanted, status, body)
        check("%s: data" % what, not any(secret in body for secret in SECRETS), body)
        check("%s: problem" % what, headers.get("Content-Type") == "application/problem+json", headers)
        told = json.loads(body)
        check("%s: problem" % what, told["status"] == status and "\n" not in told["detail"], told)
        check("%s: CORS" % what, not any(name.lower().startswith("access-control") for name in headers), headers)


def check_refusals(server):
    port = server.port
    refused(server, "no token", (401,), token=None)
    refused(server, "old token", (401,), token="0" * 32)
    refused(server, "longer token", (401,), token=server.token + "0")
    refused(server, "shorter token", (401,), token=server.token[:-1])
    refused(server, "empty token", (401,), token="")
    refused(server, "token of another scheme", (401,), headers={"Authorization": "Basic " + server.token})
    for host in ("evil.example", "evil.example:%d" % port, "127.0.0.1:%d" % (port + 1), "127.0.0.1",
                 "localhost.evil.example:%d" % port, "127.0.0.1:%d.evil.example" % port, "",
                 "192.168.1.1:%d" % port, "127.0.0.1:%d@evil.example" % port):
        refused(server, "host " + host, (403,), headers={"Host": host})
        status, _, body = server.ask("/", headers={"Host": host})
        check("the page for host " + host, status == 403, status, body)
    for origin in ("http://evil.example", "null", "https://127.0.0.1:%d" % port, "http://127.0.0.1:%d" % (port + 1),
                   "http://127.0.0.1", "http://localhost:%d.evil.example" % port):
        refused(server, "origin " + origin, (403,), headers={"Origin": origin})
    for site in ("cross-site", "same-site", "whatever"):
        refused(server, "site " + site, (403,), headers={"Sec-Fetch-Site": site})


def check_parameters(server):
    """An address of 16 KiB, however many parameters that are, is answered at once."""
    for count in (257, 600, 8150):
        address = "/api/v1/r/1?" + "a&" * count
        status, _, body = server.ask(address, timeout=20)
        check("%d parameters" % count, status == 400, status, body)


def check_allowed(server):
    port = server.port
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        status, _, _ = server.ask("/api/v1/session", headers={"Host": "%s:%d" % (host, port)})
        check("host " + host, status == 200, status)
    for origin in ("http://127.0.0.1", "http://localhost", "http://[::1]"):
        status, _, _ = server.ask("/api/v1/session", headers={"Origin": "%s:%d" % (origin, port),
                                                              "Sec-Fetch-Site": "same-origin"})
        check("origin " + origin, status == 200, status)
    if socket.has_ipv6:
        with socket.create_connection(("::1", port), timeout=5) as six:
            six.sendall(b"GET /api/v1/session HTTP/1.1\r\nHost: [::1]:%d\r\nAuthorization: Bearer %s\r\n"
                        b"Connection: close\r\n\r\n" % (port, server.token.encode()))
            check("IPv6", six.recv(100).startswith(b"HTTP/1.1 200"))


def check_everywhere(recording):
    """All addresses of the machine are ours, and its name; other names are not."""
    with Server(recording, options=("--listen", "0.0.0.0", "--allow-remote")) as server:
        check("address", "//%s:" % socket.gethostname() in server.said, server.said)
        for host in ("192.0.2.7", "127.0.0.1", "[2001:db8::7]", socket.gethostname()):
            status, _, _ = server.ask("/api/v1/session", headers={"Host": "%s:%d" % (host, server.port)})
            check("host " + host, status == 200, status)
        for host in ("evil.example:%d" % server.port, "192.0.2.7", "192.0.2.7:%d" % (server.port + 1), "192.0.2:%d" % server.port,
                     "192.0.2.7.evil.example:%d" % server.port, "[::1:%d" % server.port, "[evil]:%d" % server.port, "[", ":"):
            refused(server, "host " + host, (403,), headers={"Host": host})
        check("warned", "not encrypted" in server.stderr(), server.stderr())
    with Server(recording, options=("--listen", "127.0.0.2", "--allow-remote")) as server:
        check("address", "//127.0.0.2:" in server.said, server.said)


def check_headers(server):
    for path in ("/", "/flame?r=1", "/api/v1/session", "/api/v1/nowhere"):
        _, headers, _ = server.ask(path)
        policy = headers.get("Content-Security-Policy", "")
        for part in ("default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'",
                     "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'",
                     "trusted-types 'none'"):
            check("policy of " + path, part in policy, policy)
        check("unsafe", "unsafe" not in policy and "*" not in policy, policy)
        check("headers of " + path, headers.get("X-Content-Type-Options") == "nosniff" and
              headers.get("Referrer-Policy") == "no-referrer" and
              headers.get("Cross-Origin-Resource-Policy") == "same-origin", headers)
        check("kept", headers.get("Cache-Control") == "no-store", path, headers)


def check_page(server):
    """The page holds no data, so it needs no token; its files are those of web/ui/dist."""
    dist = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "web", "ui", "dist")
    names = sorted(set(os.listdir(dist)) - {"onefile.html"})  # that is what a saved page is made of
    for name in names:
        with open(os.path.join(dist, name), "rb") as file:
            wanted = file.read()
        hashed = re.search(r"-[0-9A-Za-z]+\.", name)
        status, headers, body = server.ask("/" + name, token=None)
        check(name, status == 200 and body == wanted and "Content-Encoding" not in headers, status, headers)
        check("kept", ("immutable" in headers["Cache-Control"]) == bool(hashed), name, headers)
        status, headers, packed = server.ask("/" + name, token=None, headers={"Accept-Encoding": "gzip, zstd"})
        if headers.get("Content-Encoding") == "zstd":
            body = subprocess.run(["zstd", "-dc"], input=packed, stdout=subprocess.PIPE, check=True).stdout
            check("packed", body == wanted and len(packed) < len(wanted), name)
        else:
            check("not packed", packed == wanted and len(wanted) < 300, name, len(wanted))
    for view in ("/", "/flame?r=1&metric=leaked", "/summary") if names else ():
        status, headers, body = server.ask(view, token=None)
        check(view, status == 200 and headers["Content-Type"].startswith("text/html"), status, headers)
        check("data in the page", server.token.encode() not in body and b"subject" not in body, view)


def check_read_only(server, scratch):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"):
        status, _, body = server.ask("/api/v1/session", method=method)
        check(method, status in (400, 405, 501), status, body)
    for path in ("/", "/api/v1/session", "/api/v1/r/1"):
        status, _, body = server.ask(path, method="POST", body="{}")
        check("POST " + path, status == 405, status, body)
    status, _, _ = server.ask("/api/v1/session", method="HEAD")
    check("HEAD", status == 200, status)
    secret = scratch.file("secret.mtr")
    with open(secret, "wb") as out:
        out.write(b"x")
    for body in ({"path": secret}, {"path": "/etc/passwd"}, {"path": "../../etc/passwd"}, {"pid": os.getpid()},
                 {"pid": 1}, {"path": 5}, {}):
        status, _, said = server.ask("/api/v1/sources", method="POST", body=json.dumps(body))
        check("opening %r" % body, status == 403, status, said)
    deep = "[" * 500000 + "]" * 500000
    for body in ("", "[]", "nothing", '{"path": "', "null", "[" * 100000, deep, '{"path": %s}' % deep):
        for endpoint in ("/sources", "/r/1/query"):
            status, _, said = server.ask("/api/v1" + endpoint, method="POST", body=body)
            check("body %r for %s" % (body[:20], endpoint), status == 400, status, said)
    status, _, said = server.ask("/api/v1/sources", method="POST", body=b'{"path": "a\0b"}')
    check("NUL in a body", status == 400, status, said)


def check_listed(scratch):
    folder = scratch.file("listed")
    os.mkdir(folder)
    os.rename(scratch.record("one.mtr", 1000), os.path.join(folder, "one.mtr"))
    with Server(folder) as server:
        found = server.get("/sources")["found"]
        check("found", [one["name"] for one in found] == ["one.mtr"] and found[0]["kind"] == "recording", found)
        status, _, body = server.ask("/api/v1/sources", method="POST", body=json.dumps({"path": found[0]["path"]}))
        check("opened", status == 200 and json.loads(body)["id"] == 1, status, body)
        check("opens", server.wait_open()["state"] == "open")


def check_token_is_new(recording):
    tokens = set()
    for _ in range(3):
        with Server(recording) as server:
            tokens.add(server.token)
            with open("/proc/%d/cmdline" % server.process.pid, "rb") as file:
                check("token on the command line", server.token.encode() not in file.read())
    check("tokens differ", len(tokens) == 3, tokens)


def main():
    scratch = Scratch()
    recording = scratch.record("subject.mtr", 20000)
    with Server(recording) as server:
        server.wait_open()
        check_refusals(server)
        check_allowed(server)
        check_parameters(server)
        check_headers(server)
        check_page(server)
        check_read_only(server, scratch)
        check("still there", server.get("/r/1")["data"]["pid"] > 0)
    check_everywhere(recording)
    check_listed(scratch)
    check_token_is_new(recording)


main()
