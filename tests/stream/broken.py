#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The network between both sides delays, and cuts connections after any number of bytes: the file arrives all the
same."""

import os
import sys

from streamed import (Gather, Proxy, equal, fail, finish, make_recording, make_token, same, scratch, send)


def through(folder, path, name, options, **how):
    there = os.path.join(folder, name)
    gather = Gather(there, *options)
    proxy = Proxy(gather.port, **how)
    sender = send(path, proxy.port, *options)
    equal(sender.wait(120), 0, name, sender.lines[-6:])
    gather.end()
    same(there, path)
    if proxy.connections <= len(how.get("cut", ())):
        fail(name, "connections:", proxy.connections, "of cuts", len(how["cut"]))


def main():
    folder = scratch()
    path = make_recording(folder, 40)
    size = os.path.getsize(path)
    token = ("--token", make_token(folder))
    # In the greeting, around its end, in the first frame's header, in the first bytes, and in the middle.
    cuts = [1, 15, 16, 40, 70, 90, 100, 110, 130, 200, 300, 1000, 50000, size // 3]
    through(folder, path, "cut", (), cut=cuts)
    through(folder, path, "cut with TLS", token, cut=[1, 100, 300, 500, 700, 800, 1000, 2000, size // 3])
    through(folder, path, "late", (), delay=0.01, piece=size // 50)
    through(folder, path, "bytewise", token, delay=0.0, piece=977)
    finish()


if __name__ == "__main__":
    sys.exit(main())
