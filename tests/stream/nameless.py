#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A name server that says nothing holds nobody up: `send` and `gather` end when they are told to. In namespaces of
this test's own, in which the server is."""

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys

from streamed import Command, equal, fail, finish, make_recording, make_token, scratch

SKIP = 77
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
SOON = 10  # seconds; the resolver asks for 90


def loopback_up(any_socket):
    name = b"lo".ljust(16, b"\0")
    flags, = struct.unpack_from("H", fcntl.ioctl(any_socket, SIOCGIFFLAGS, name + bytes(24)), 16)
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, name + struct.pack("H", flags | IFF_UP) + bytes(22))


def ends(server, *arguments):
    """Once it has asked for the name."""
    command = Command(*arguments)
    server.settimeout(60)
    server.recv(512)
    command.process.send_signal(signal.SIGINT)
    command.wait(SOON)
    server.setblocking(False)
    try:
        while server.recv(512):
            pass
    except BlockingIOError:
        pass


def inside(folder, resolver):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    loopback_up(server)
    server.bind(("127.0.0.1", 53))
    equal(subprocess.run(["mount", "--bind", resolver, "/etc/resolv.conf"], check=False).returncode, 0, "mount")
    path, token = make_recording(folder), make_token(folder)
    ends(server, "send", path, "--to", "nowhere.example", "--token", token)
    ends(server, "gather", "nowhere.example", "--token", token, os.path.join(folder, "there"))
    server.close()
    finish()


def main():
    if len(sys.argv) > 1:
        inside(*sys.argv[1:])
        return
    unshare = ["unshare", "--mount", "--net", *(["--map-root-user"] if os.geteuid() != 0 else [])]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        print("no namespaces here")
        sys.exit(SKIP)
    folder = scratch()
    resolver = os.path.join(folder, "resolv.conf")
    with open(resolver, "w", encoding="ascii") as file:
        file.write("nameserver 127.0.0.1\noptions timeout:30 attempts:3\n")
    done = subprocess.run([*unshare, sys.executable, __file__, folder, resolver], check=False)
    if done.returncode != 0:
        fail("inside")
    finish()


main()
