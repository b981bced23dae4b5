#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Symbols of program files go over the network once, whichever recording has them, and each recording arrives byte
for byte: also where the one that they were received with is gone, or is not what it was."""

import os
import struct
from concurrent.futures import ThreadPoolExecutor

from streamed import (Gather, Proxy, equal, fail, finish, frame, hello, make_recording, received, same, scratch, send,
                      talk)

PIECE_LEAST, AROUND = 4096, 128  # smaller ones are sent; bytes of frames a piece


def pieces_of(path):
    """Offset and size of each payload of a block of a program file, as docs/format.md says."""
    with open(path, "rb") as file:
        data = file.read()
    found, at = [], 64
    while at + 80 <= len(data):
        magic, kind, size = struct.unpack_from("<IHxxI", data, at)
        if magic != 0x4b4c424d:
            break
        if kind == 9 and size >= PIECE_LEAST:
            found.append((at + 80, size))
        at += (80 + size + 7) & ~7
    return found


class Sending:
    """What is sent through here is counted."""

    def __init__(self, folder):
        self.gather = Gather(folder)
        self.proxy = Proxy(self.gather.port)

    def sent(self, path, what):
        before = self.proxy.carried
        sender = send(path, self.proxy.port)
        equal((sender.wait(), sender.said("anew|refuses|trying again")), (0, []), what, sender.lines)
        return self.proxy.carried - before


def once(there, paths):
    sending = Sending(there)
    for number, path in enumerate(paths):
        known = sum(size for _, size in pieces_of(path)) if number != 0 else 0
        rest = os.path.getsize(path) - known
        most = rest + (len(pieces_of(path)) + rest // 65536 + 8) * AROUND
        carried = sending.sent(path, ("recording", number))
        if not rest <= carried <= most:
            fail("recording", number, "of", os.path.getsize(path), "bytes,", known, "of them known, took", carried,
                 "bytes, expected", rest, "to", most)
    sending.gather.end()
    same(there, *paths)


def not_there_any_more(there, paths, what, change):
    """The first recording is not what it was when the second comes: this has the symbols itself then."""
    sending = Sending(there)
    sending.sent(paths[0], what)
    first = received(there)[0]
    lost = change(first)
    carried = sending.sent(paths[1], what)
    equal(carried >= lost, True, what, "what is not there comes", carried, lost)
    carried = sending.sent(paths[2], what)
    equal(carried < os.path.getsize(paths[2]) / 2, True, what, "of the third one, what it shares with the second is known",
          carried, os.path.getsize(paths[2]))
    sending.gather.end()
    if os.path.exists(first):
        os.unlink(first)
    same(there, *paths[1:])


# Each returns so many bytes of symbols that are not there any more.


def delete(name):
    lost = sum(size for _, size in pieces_of(name))
    os.unlink(name)
    return lost


def cut(name):
    lost = sum(size for _, size in pieces_of(name))
    os.truncate(name, 1000)
    return lost


def overwrite(name):
    offset, size = max(pieces_of(name), key=lambda piece: piece[1])
    with open(name, "r+b") as file:
        file.seek(offset + size // 2)
        byte = file.read(1)
        file.seek(offset + size // 2)
        file.write(bytes([byte[0] ^ 1]))
    return size


def strangers(there):
    """What makes no sense is refused in one line, and no byte comes into a file that was not sent or is here."""
    gather = Gather(there)
    piece = struct.pack("<I", 5000) + bytes(32)
    senseless = b"what it asks for makes no sense"
    said = [
        (frame(14, piece), b"what it says is known makes no sense"),
        (frame(14, piece, 99), b"do not follow each other"),
        (frame(12, struct.pack("<I", 0) + bytes(32)), senseless),
        (frame(12, struct.pack("<I", 9 << 20) + bytes(32)), senseless),
        (b"".join(frame(12, piece, 100 + i) for i in range(33)), senseless),
        (frame(3, b"MEM") + frame(12, piece, 2), senseless),
        (frame(3, b"MEM") + frame(14, piece, 3), b"not there any more"),
        (frame(13, struct.pack("<I", 1), 7), b"does not speak"),
    ]
    with ThreadPoolExecutor(len(said)) as all_at_once:
        for number, (data, answer) in enumerate(said):
            all_at_once.submit(talk, gather.port, hello(ident=bytes([number] * 16)) + data, answer)
    gather.end()
    equal(sum(map(os.path.getsize, received(there))) <= 6, True, "bytes of nobody", received(there))


def main():
    folder = scratch()
    paths = [make_recording(folder, rounds) for rounds in (10, 20, 30)]
    equal(all(pieces_of(path) for path in paths), True, "recordings with symbols")
    once(os.path.join(folder, "once"), paths)
    not_there_any_more(os.path.join(folder, "deleted"), paths, "deleted", delete)
    not_there_any_more(os.path.join(folder, "cut"), paths, "cut", cut)
    not_there_any_more(os.path.join(folder, "other"), paths, "changed", overwrite)
    strangers(os.path.join(folder, "strangers"))
    finish()


if __name__ == "__main__":
    main()
