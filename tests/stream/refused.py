#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is not to be: each is refused by one clear line, and harms nobody else."""

import filecmp
import os
import shutil
import socket
import struct
import subprocess

from streamed import (MEMTRACE, Gather, clean_environment, equal, fail, finish, frame, hello, make_recording, make_token,
                      received, same, scratch, send, talk, wait_until)


def refuses(command, pattern, *what):
    """It ends as a failure, and its last line says why."""
    equal(command.wait(), 1, *what, command.lines)
    equal(len(command.said(pattern)), 1, *what, command.lines)
    equal(len(command.lines), 1, "lines of", *what, command.lines)


def tokens(folder, path):
    right = make_token(folder)
    wrong = make_token(folder, "wrong", "another token of some length")
    gather = Gather(os.path.join(folder, "tokens"), "--token", right)
    refuses(send(path, gather.port, "--token", wrong), "does not take the token", "wrong token")
    refuses(send(path, gather.port), r"wants a token \(--token FILE\)", "no token")
    talk(gather.port, b"GET / HTTP/1.1\r\n\r\n", b"wants a token")
    equal(send(path, gather.port, "--token", right).wait(), 0, "right token")
    gather.end()
    same(os.path.join(folder, "tokens"), path)
    equal((len(gather.said("not our token")), len(gather.said("without a token"))), (1, 2), gather.lines)
    gather = Gather(os.path.join(folder, "clear"))
    refuses(send(path, gather.port, "--token", right), "does not take the token", "a token that is not wanted")
    gather.end()
    equal(len(gather.said("there is none here")), 1, gather.lines)
    os.chmod(wrong, 0o640)
    refuses(send(path, 1, "--token", wrong), "can be read by others", "a token for all")
    refuses(send(path, 1, "--token", make_token(folder, "short", "x" * 15)), "fewer than 16 bytes", "short")


def addresses(folder, path):
    for command in (["send", path, "--to", "192.0.2.1:9"], ["gather", "--listen", "0.0.0.0:0", folder]):
        done = subprocess.run([MEMTRACE, *command], capture_output=True, text=True, timeout=30, check=False,
                              env=clean_environment())
        equal((done.returncode, done.stderr.count("\n"), "--token FILE" in done.stderr), (1, 1, True), command,
              done.stderr)
    with socket.socket() as nobody:  # bound, not listening
        nobody.bind(("127.0.0.1", 0))
        sender = send(path, nobody.getsockname()[1], "--give-up", "1s")
        equal(sender.wait(), 1, "nobody there")
        equal(len(sender.said("Connection refused")), 2, sender.lines)


def garbage(folder, path):
    there = os.path.join(folder, "garbage")
    gather = Gather(there)
    silent = socket.create_connection(("127.0.0.1", gather.port))
    talk(gather.port, b"GET / HTTP/1.1\r\n\r\n", b"does not speak")
    talk(gather.port, frame(3, b"x"), b"does not speak")
    talk(gather.port, hello(version=7), b"it speaks version 7 of the protocol, this is version 3")
    talk(gather.port, frame(1, b"\3\0\0\0rubbish"), b"makes no sense")
    talk(gather.port, hello() + frame(3, b"x", 17), b"do not follow each other")
    talk(gather.port, hello() + frame(3, bytes(200)), b"not the bytes of the recording")
    talk(gather.port, frame(3, b"")[:8] + struct.pack("<Q", 2**63))
    talk(gather.port, hello(host=b"../../..", program=b"/etc/\x1b[31mpasswd\r\n") + frame(3, b"x" * 10) + frame(99))
    for name in received(there):
        where = os.path.relpath(name, there)
        if where.count("/") != 1 or ".." in where.split("/") or not where.isprintable():
            fail("a name that came from outside:", repr(where))
    equal(sorted(name for name in os.listdir(there) if name != ".control"), ["_._.._..", "there"], "hosts")
    equal(send(path, gather.port).wait(), 0, "a good one beside")
    wait_until(lambda: gather.said("said nothing for 10 s"), "the silent one is dropped", 15)
    silent.close()
    gather.end()
    if not any(filecmp.cmp(path, name, shallow=False) for name in received(there)):
        fail("the good one is not there")
    # Who answers with something else than the protocol.
    with socket.create_server(("127.0.0.1", 0)) as other:
        sender = send(path, other.getsockname()[1])
        peer, _ = other.accept()
        peer.sendall(b"220 mail.example ESMTP\r\n")
        refuses(sender, "does not speak MemTrace's protocol", "another server")
        peer.close()
        sender = send(path, other.getsockname()[1])
        peer, _ = other.accept()
        peer.sendall(hello())
        refuses(sender, "does not speak MemTrace's protocol", "another sender")
        peer.close()


def quotas(folder, path):
    size = os.path.getsize(path)
    there = os.path.join(folder, "quota")
    gather = Gather(there, "--quota", str(size - 1))
    refuses(send(path, gather.port), "larger than the quota of one recording", "quota")
    gather.end()
    equal(sum(map(os.path.getsize, received(there))) < size, True, "kept within the quota")
    with open(os.path.join(there, "other"), "wb") as file:
        file.write(bytes(1000))
    gather = Gather(there, "--total-quota", str(size + 999))
    refuses(send(path, gather.port), "the quota of all recordings, .*, is used up", "total quota")
    os.unlink(os.path.join(there, "other"))
    gather.end()
    gather = Gather(there, "--total-quota", str(size), "--quota", str(size))
    equal(send(path, gather.port).wait(), 0, "just as large as it may be")
    gather.end()
    same(there, path)


def full_disk(folder, path):
    """A limit of file sizes stands for the disk: what was acknowledged stays, and it goes on when there is room."""
    there = os.path.join(folder, "full")
    blocks = os.path.getsize(path) // 1024 // 2
    gather = Gather(there, prefix=("sh", "-c", "ulimit -f %d; trap '' XFSZ; exec \"$@\"" % (2 * blocks), "sh"))
    sender = send(path, gather.port)
    wait_until(lambda: sender.said("cannot write there: File too large"), "it says that it is full")
    equal(sender.process.poll(), None, "the sender waits")
    port = gather.port
    gather.end()
    kept = os.path.getsize(received(there)[0])
    with open(path, "rb") as whole, open(received(there)[0], "rb") as part:
        equal(whole.read(kept) == part.read(), True, "what is there")
    gather = Gather(there, port=port)
    equal(sender.wait(), 0, "when there is room", sender.lines)
    equal(len(gather.said("goes on behind")), 1, gather.lines)
    gather.end()
    same(there, path)


def files(folder, path):
    text = os.path.join(folder, "text")
    with open(text, "w", encoding="ascii") as file:
        file.write("no recording, but some text that is longer than the header of one\n" * 9)
    refuses(send(text, 1), "is not a recording", "a text")
    refuses(send(folder, 1), "is a folder: its recordings are sent one by one", "a folder")
    refuses(send(os.path.join(folder, "nowhere"), 1), "No such file", "nothing")
    there = os.path.join(folder, "locked")
    gather = Gather(there)
    refuses(Gather(there), "another memtrace gather receives into", "two receivers")
    gather.end()
    cut = os.path.join(folder, "cut.mtr")  # its writer was killed: sent as it is
    shutil.copy(path, cut)
    os.truncate(cut, os.path.getsize(path) * 2 // 3)
    gather = Gather(there)
    equal(send(cut, gather.port).wait(), 0, "a torn file")
    gather.end()
    same(there, cut)


def main():
    folder = scratch()
    path = make_recording(folder, 60)
    for test in (tokens, addresses, garbage, quotas, full_disk, files):
        test(folder, path)
    finish()


if __name__ == "__main__":
    main()
