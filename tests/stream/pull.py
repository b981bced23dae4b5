#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`memtrace record --listen` and `memtrace send --listen`, from where `memtrace gather HOST` takes recordings: several
receivers, late ones, several machines; whoever is killed meanwhile; who is refused."""

import os
import re
import signal
import socket
import sys
import time

from streamed import (MEMTRACE, Command, Proxy, clean_environment, equal, execute, fail, finish, frame,
                      make_recording, make_token, received, recordings, same, scratch, settings_for, start_recording,
                      talk, wait_until)
from harness import is_gone

# Two processes that allocate until the file "end" is there.
BUSY = """
import json, os
os.fork()
while not os.path.exists("end"):
    json.loads(json.dumps(list(range(300))))
"""


class Listening(Command):
    """A command that others take recordings from."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        wait_until(lambda: self.at() or self.process.poll() is not None, "it listens")

    def at(self):
        found = re.search(r"(?:received from|listening at) (127\.0\.0\.1:\d+)", "\n".join(self.lines))
        return found.group(1) if found else ""

    def port(self):
        return int(self.at().rsplit(":", 1)[1])


def start(folder, *options, regions=None):
    """A recorder whose program runs until "end" is there."""
    started = Listening("record", "--listen", "127.0.0.1:0", *options, "--", sys.executable, "-c", BUSY, cwd=folder,
                        settings=settings_for(folder, regions=regions))
    wait_until(lambda: recordings(folder), "a recording begins")
    return started


def end(folder):
    with open(os.path.join(folder, "end"), "wb"):
        pass


def pull(there, *hosts, options=()):
    return Command("gather", *options, *hosts, there)


def size_of(folder):
    return sum(map(os.path.getsize, received(folder)))


def offerer_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        for child in file.read().split():
            with open("/proc/%s/cmdline" % child, "rb") as words:
                if words.read().split(b"\0")[1:2] == [b"offerer"]:
                    return int(child)
    return 0


def several():
    """Two receivers from the beginning and a late one; a rotated recording of two processes; TLS."""
    folder, there = scratch(), scratch()
    token = ("--token", make_token(there))
    recorder = start(folder, *token, "--rotate", "12K", "--embed", "none")
    first = [pull("%s/got%d" % (there, i), recorder.at(), options=token) for i in range(2)]
    wait_until(lambda: all(size_of("%s/got%d" % (there, i)) > 30_000 for i in range(2)), "both receive")
    late = pull(there + "/got2", recorder.at(), options=token)
    wait_until(lambda: size_of(there + "/got2") > 30_000, "the late one receives")
    wait_until(lambda: len(recordings(folder)) >= 4, "several parts")
    end(folder)
    for receiver in (*first, late):
        equal(receiver.wait(), 0, "a receiver", receiver.lines[-4:])
        equal(len(receiver.said(r"all, \d+ of its \d+ recordings are here")), 1, receiver.lines[-4:])
    equal(recorder.wait(), 0, "the recorder", recorder.lines)
    for i in range(3):
        same("%s/got%d" % (there, i), *recordings(folder))


def kills():
    """The offerer and the receiver, several times."""
    folder, there = scratch(), scratch()
    recorder = start(folder)
    receiver = pull(there, recorder.at())
    for _ in range(4):
        before = size_of(there)
        wait_until(lambda: size_of(there) > before, "more arrives")
        wait_until(lambda: offerer_of(recorder.process.pid), "an offerer")
        os.kill(offerer_of(recorder.process.pid), signal.SIGKILL)
        before = size_of(there)
        wait_until(lambda: size_of(there) > before, "more arrives from the next one")
        receiver.end(signal.SIGKILL)
        receiver = pull(there, recorder.at())
    end(folder)
    equal((recorder.wait(), receiver.wait()), (0, 0), recorder.lines[-3:], receiver.lines[-3:])
    same(there, *recordings(folder))


def recorder_killed():
    """What it had is to be had all the same, and the offerer ends when it was."""
    folder, there, regions = scratch(), scratch(), scratch(where="/dev/shm")
    recorder = start(folder, "--embed", "none", regions=regions)
    receiver = pull(there, recorder.at())
    wait_until(lambda: size_of(there) > 4096, "something arrives")
    offerer = offerer_of(recorder.process.pid)
    recorder.end(signal.SIGKILL)
    end(folder)
    equal(receiver.wait(), 0, "the receiver", receiver.lines[-3:])
    wait_until(lambda: is_gone(offerer), "the offerer ends")
    same(there, *recordings(folder))


def machines():
    """Two at once, one of which is cut again and again, and is there only later."""
    folder, there = scratch(), scratch()
    process, growing = start_recording(folder, 2)
    whole = make_recording(folder, 150)
    one = Listening("send", "--listen", "127.0.0.1:0", growing)
    two = Listening("send", "--listen", "127.0.0.1:0", whole)
    proxy = Proxy(two.port(), cut=[700, 20_000, 30_000, 40_000])  # of what the receiver says: nothing
    with socket.socket() as nobody:  # bound, not listening
        nobody.bind(("127.0.0.1", 0))
        receiver = pull(there, one.at(), "127.0.0.1:%d" % proxy.port, "127.0.0.1:%d" % nobody.getsockname()[1],
                        options=("--give-up", "3s"))
        equal(receiver.wait(), 1, "one of them is not there", receiver.lines)
        equal(len(receiver.said("Connection refused")), 2, "told, and given up", receiver.lines)
    equal(len(receiver.said("not all recordings are here")), 1, receiver.lines)
    equal((one.wait(), two.wait(), process.wait()), (0, 0, 0), one.lines, two.lines)
    same(there, growing, whole)


def refused():
    folder = scratch()
    path = make_recording(folder, 30)
    right, wrong = make_token(folder), make_token(folder, "wrong", "another token of some length")
    sender = Listening("send", "--listen", "127.0.0.1:0", "--token", right, path)
    half_open = [socket.create_connection(("127.0.0.1", sender.port())) for _ in range(20)]
    for options, line in ((("--token", wrong), "does not take the token"), ((), r"refuses: it wants a token")):
        receiver = pull(os.path.join(folder, "none"), sender.at(), options=options)
        equal(receiver.wait(), 1, options, receiver.lines)
        equal((len(receiver.said(line)), len(receiver.lines)), (1, 2), options, receiver.lines)
    talk(sender.port(), b"GET / HTTP/1.1\r\n\r\n", b"wants a token")
    no_token(folder, path)
    wait_until(lambda: len(sender.said("said nothing for 10 s")) == 20, "half-open connections end", 30)
    half_open += [socket.create_connection(("127.0.0.1", sender.port())) for _ in range(20)]
    receiver = pull(os.path.join(folder, "got"), sender.at(), options=("--token", right))
    equal(receiver.wait(), 0, "beside half-open connections", receiver.lines)
    same(os.path.join(folder, "got"), path)
    equal(sender.wait(), 0, sender.lines[-3:])
    for one in half_open:
        one.close()


def no_token(folder, path):
    sender = Listening("send", "--listen", "127.0.0.1:0", path)
    talk(sender.port(), b"GET / HTTP/1.1\r\n\r\n", b"does not speak")
    talk(sender.port(), frame(10, (7).to_bytes(4, "little") + bytes(16)), b"it speaks version 7 of the protocol")
    talk(sender.port(), frame(10, (3).to_bytes(4, "little") + b"x" * 16), b"a recording that is not here")
    other = Command("send", path, "--to", sender.at())
    equal((other.wait(), len(other.said("recordings are taken from here, not to here"))), (1, 1), other.lines)
    sender.end()
    equal(len(sender.said("nobody has taken all of 1 recording")), 1, sender.lines)
    # Who answers with something else than the protocol.
    with socket.create_server(("127.0.0.1", 0)) as server:
        receiver = pull(os.path.join(folder, "other"), "127.0.0.1:%d" % server.getsockname()[1])
        peer, _ = server.accept()
        with peer:
            peer.sendall(b"220 mail.example ESMTP\r\n")
            wait_until(lambda: receiver.said("does not speak MemTrace's protocol"), "it says so")
        receiver.end()


def asked_wrongly():
    folder = scratch()
    ran = folder + "/ran"
    settings = clean_environment(**settings_for(folder))
    for options, status, line in ((("--listen", "0.0.0.0:0"), 1, "only with --token FILE"),
                                  (("--listen", "127.0.0.1:0", "--to", "127.0.0.1:1"), 2, "do not go together"),
                                  (("--listen", "127.0.0.1:x"), 2, "is not a port")):
        done = execute([MEMTRACE, "record", *options, "--", "/bin/touch", ran], settings)
        equal((done.returncode, line in done.stderr.decode(), os.path.exists(ran)), (status, True, False), options,
              done.stderr)
    done = execute([MEMTRACE, "gather", "192.0.2.1", folder], settings)
    equal((done.returncode, b"--token FILE only" in done.stderr), (1, True), done.stderr)
    done = execute([MEMTRACE, "record", "--listen", "127.0.0.1:0", "--linger", "1s", "--", "/bin/sh", "-c", "exit 7"],
                   settings)
    equal((done.returncode, len(re.findall(r"nobody has taken .* offers it", done.stderr.decode()))), (7, 1), done.stderr)


def at_all_addresses():
    """What it tells others to ask is what they can call it by."""
    folder = scratch()
    token = make_token(folder)
    for words in (["send", make_recording(folder), "--listen", "0.0.0.0:0", "--token", token],
                  ["record", "--listen", "0.0.0.0:0", "--token", token, "--linger", "1s", "--", "/bin/true"]):
        command = Command(*words, settings=settings_for(folder))
        wait_until(lambda asked=command: asked.said("memtrace gather"), "it says how to ask")
        equal(len(command.said(r"(?:at|from) 0\.0\.0\.0:(\d+).* memtrace gather --token FILE %s:\1 DIR$"
                               % re.escape(socket.gethostname()))), 1, command.lines)
        command.end()


def main():
    """Nobody comes: without --linger it ends after a minute, also where the program ran for a while before."""
    waiting = Command("record", "--listen", "127.0.0.1:0", "--", "/bin/sleep", "1", settings=settings_for(scratch()))
    begun = time.monotonic()
    for test in (several, kills, recorder_killed, machines, refused, asked_wrongly, at_all_addresses):
        test()
    equal((waiting.wait(90), len(waiting.said("nobody has taken .* offers it"))), (0, 1), waiting.lines)
    equal(time.monotonic() - begun > 60, True, "the minute")
    finish()


if __name__ == "__main__":
    main()
