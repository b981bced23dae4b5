#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`memtrace control FILE` on what `memtrace gather` receives: what is counted on the machine of the program, and marks in
its recording, only where the sender allows it. Seen in the recordings, by the numbers of blocks that a program was told
to allocate. Frames are made here from what docs/stream.md says of them."""

import errno
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from pull import Listening, pull
from streamed import (HERE, MEMTRACE, PATIENCE, Command, Gather, build, clean_environment, equal, execute, fail, finish,
                      frame, hello, make_token, received, recordings, same, scratch, settings_for, wait_until)

TOLD = build(os.path.join(HERE, "told.c"), "gcc", "-O1")
NOT_ALLOWED = "its sender does not allow it: it was begun without --allow-control"


class Program:
    """A program, and its forked children, that allocate when they are told. `command` records it."""

    def __init__(self, folder, *options, processes=1, start=Command, prefix=()):
        self.folder, self.regions = folder, scratch(where="/dev/shm")
        pairs = [socket.socketpair() for _ in range(processes)]
        self.ends = [ours for ours, _ in pairs]
        for end in self.ends:
            end.settimeout(PATIENCE)
        numbers = [theirs.fileno() for _, theirs in pairs]
        self.command = start("record", *options, "--precise", "--embed", "none", "--keep-small", "--", *prefix, TOLD,
                             *map(str, numbers),
                             cwd=folder, pass_fds=numbers, settings=settings_for(folder, regions=self.regions))
        for _, theirs in pairs:
            theirs.close()

    def allocate(self, count, size, process=0):
        self.ends[process].sendall(b"%d %d" % (count, size))
        equal(self.ends[process].recv(100), b"done\n", "it allocates")

    def end(self):
        for end in reversed(self.ends):
            try:
                end.sendall(b"end")
            except BrokenPipeError:
                pass
            end.close()
        return self.command.wait()


def control(path, *words, env=None):
    done = execute([MEMTRACE, "control", path, *words], clean_environment(**(env or {})), timeout=PATIENCE)
    return done.returncode, (done.stdout or done.stderr).decode("utf-8", "replace")


def does(path, *words, says):
    """It is done, and one line tells what is now."""
    status, text = control(path, *words)
    name = "/".join(path.split("/")[-2:])
    equal((status, text), (0, "%s: %s\n" % (name, says)), words)


def refuses(path, *words, says, status=1):
    """It is not, and one line tells why."""
    got, text = control(path, *words)
    equal((got, text.count("\n"), says in text, text.startswith("memtrace: ")), (status, 1, True, True), words, text)


def counted(path):
    """{size: number} of the blocks that programs were told to allocate."""
    rows = rows_of(path, "SELECT size, count(*) AS count FROM allocations WHERE size >= 70000 GROUP BY size")
    return {row["size"]: row["count"] for row in rows}


def rows_of(path, statement):
    done = execute([MEMTRACE, "query", "--format", "json", path, statement], clean_environment(), timeout=PATIENCE)
    equal(done.returncode, 0, statement, done.stderr)
    return json.loads(done.stdout)


def switches(program, path, process=0):
    """Blocks of 70001 to 70006 bytes, while something else is counted each time."""
    program.allocate(10, 70001, process)
    does(path, says="exact, every allocation is recorded")
    does(path, "off", says="off, nothing new is recorded")
    program.allocate(20, 70002, process)
    does(path, says="off, nothing new is recorded")
    does(path, "on", says="exact, every allocation is recorded")
    program.allocate(30, 70003, process)
    does(path, "mark", "now \x1b[31m", says='marked "now ?[31m"')
    program.allocate(40, 70004, process)
    does(path, "sample", "64M", says="sampled, one allocation in 64.0 MiB is recorded")
    program.allocate(5000, 70005, process)
    does(path, "exact", says="exact, every allocation is recorded")
    program.allocate(60, 70006, process)


def switched(path):
    """What the recording has of that. 5000 blocks of 70005 bytes are 334 MiB: some five are picked."""
    found = counted(path)
    picked = found.pop(70005, 0)
    equal(found, {70001: 10, 70003: 30, 70004: 40, 70006: 60}, path)
    equal(picked < 100, True, "picked", picked)
    marks = [row for row in rows_of(path, "SELECT time, name FROM markers ORDER BY time") if "[31m" in (row["name"] or "")]
    equal([row["name"] for row in marks], ["now ?[31m"], "marks")
    before, after = (rows_of(path, "SELECT %s(born) AS at FROM allocations WHERE size = %d" % (which, size))[0]["at"]
                     for which, size in (("max", 70003), ("min", 70004)))
    if marks and not before < marks[0]["time"] < after:
        fail("the mark stands at", marks[0]["time"], "between", before, after)


def one_file(there):
    wait_until(lambda: received(there), "something arrives")
    return received(there)[0]


def of_process(there, parent):
    """The files of the first process of the run, and of its child."""
    wait_until(lambda: len(received(there)) == 2, "two recordings arrive")
    files = sorted(received(there), key=lambda path: "told.%d." % parent not in path)
    return files


def pushed():
    """With TLS, and beside one that allows nothing."""
    folder, other, there = scratch(), scratch(), scratch()
    token = ("--token", make_token(folder))
    gather = Gather(there, *token)
    to = ("--to", "127.0.0.1:%d" % gather.port, *token)
    program = Program(folder, *to, "--allow-control", processes=2)
    wait_until(lambda: len(recordings(folder)) == 2, "the child is recorded, too")
    files = of_process(there, int(re.search(r"\.(\d+)\.mtr", recordings(folder)[0]).group(1)))
    switches(program, files[0])
    switches(program, files[1], process=1)
    silent = Program(other, *to)
    wait_until(lambda: len(received(there)) == 3, "a third recording arrives")
    path = (set(received(there)) - set(files)).pop()
    for words in ((), ("off",), ("sample",), ("mark", "text")):
        refuses(path, *words, says=NOT_ALLOWED)
    silent.allocate(50, 70007)
    refuses(files[0], "record", says="record takes a process id", status=2)
    refuses(files[0], "mark", "m" * 256, says="1 to 255 bytes", status=2)
    equal((program.end(), silent.end()), (0, 0), program.command.lines, silent.command.lines)
    for path_of_it in files:
        refuses(path_of_it, "off", says="complete; its program has ended")
    equal(len(gather.said("may be controlled")), 2, gather.lines)
    gather.end()
    same(there, *recordings(folder), *recordings(other))
    equal(counted(path), {70007: 50}, "nothing happened to it")
    for path_of_it in files:
        switched(path_of_it)
        refuses(path_of_it, "off", says="complete; its program has ended")
    equal(os.path.exists(there + "/.control"), False, "the socket is gone")


def pulled():
    folder, there = scratch(), scratch()
    program = Program(folder, "--listen", "127.0.0.1:0", "--allow-control", start=Listening)
    receivers = [pull(there + "/%d" % i, program.command.at()) for i in range(2)]
    paths = [one_file(there + "/%d" % i) for i in range(2)]
    switches(program, paths[0])
    does(paths[1], "mark", "of the other", says='marked "of the other"')
    equal(program.end(), 0, program.command.lines)
    equal([receiver.wait() for receiver in receivers], [0, 0], "receivers")
    for path in paths:
        switched(path)
        same(os.path.dirname(os.path.dirname(path)), *recordings(folder))


def gone():
    """The sender is killed; the receiver is, and comes again; there is none."""
    folder, there = scratch(), scratch()
    gather = Gather(there)
    program = Program(folder, "--to", "127.0.0.1:%d" % gather.port, "--allow-control", "--rotate", "8K")
    path = one_file(there)
    program.allocate(20000, 70001)  # some parts
    wait_until(lambda: len(gather.said(r"part\d+\.mtr: from")) > 1, "parts of a rotated recording")
    does(path, "off", says="off, nothing new is recorded")  # the file of an earlier part
    gather.end(signal.SIGKILL)
    equal(os.path.exists(there + "/.control"), True, "its socket is left")
    gather = Gather(there, port=gather.port)
    wait_until(lambda: control(path, "on")[0] == 0, "the sender comes again")
    children = "/proc/%d/task/%d/children" % ((program.command.process.pid,) * 2)
    with open(children, encoding="ascii") as file:
        senders = [int(pid) for pid in file.read().split()]
    os.kill(program.command.process.pid, signal.SIGSTOP)  # it begins no other
    for pid in senders:
        with open("/proc/%d/cmdline" % pid, "rb") as words:
            if words.read().split(b"\0")[1:2] == [b"sender"]:
                os.kill(pid, signal.SIGKILL)
    wait_until(lambda: "its sender is not connected" in control(path, "off")[1], "the sender is gone")
    os.kill(program.command.process.pid, signal.SIGCONT)
    wait_until(lambda: control(path, "mark", "again")[0] == 0, "another sender")
    # Without a receiver the file of a program of this machine stands for it, of another's for nothing.
    local = recordings(folder)[0]
    newest = max(recordings(folder), key=os.path.getmtime)
    equal(control(newest, "off", env={"MEMTRACE_REGION_DIR": program.regions})[0], 0, "by the file that is written", local)
    equal(program.end(), 0, program.command.lines)
    gather.end()
    same(there, *recordings(folder))


def stays_alone(gather, there, program, path, what):
    """A recording that is sent with --allow-control, and whose program is not the one that runs."""
    before = len(received(there))
    with open(path, "r+b"):  # somebody seems to write it
        sender = Command("send", path, "--to", "127.0.0.1:%d" % gather.port, "--allow-control",
                         settings={"MEMTRACE_REGION_DIR": program.regions})
        wait_until(lambda: len(received(there)) > before, "it is sent")
        newest = max(received(there), key=os.path.getctime)
        wait_until(lambda: "its program has ended, or runs where" in control(newest, "off")[1], what)
        sender.end()


def reused():
    """The process is gone and another one has its number; or it is another program by now."""
    folder, there = scratch(), scratch()
    gather = Gather(there)
    program = Program(folder, prefix=("/bin/sh", "-c", 'exec "$@"', "sh"))
    program.allocate(10, 70001)
    wait_until(lambda: len(recordings(folder)) == 2, "one of the shell, and one of what it has become")
    wait_until(lambda: any(counted(path) == {70001: 10} for path in recordings(folder)), "it is written down")
    shell, path = sorted(recordings(folder), key=lambda path: bool(counted(path)))
    for name, whose, change in (("ticks", path, 1), ("exec", shell, 0)):
        with open(whose, "rb") as file:
            data = bytearray(file.read())
        number, ticks = struct.unpack_from("<IQ", data, 20)
        struct.pack_into("<IQ", data, 20, number, ticks - change)
        copy = os.path.join(folder, name)
        with open(copy, "wb") as file:
            file.write(data[:-16])  # without the end of an index
        stays_alone(gather, there, program, copy, name)
        os.unlink(copy)
    gather.end()
    equal(control(path, env={"MEMTRACE_REGION_DIR": program.regions})[1].splitlines()[0].split(": ")[1],
          "exact, every allocation is recorded", "the program")
    program.allocate(10, 70001)
    equal(program.end(), 0, program.command.lines)
    equal(sorted(map(str, map(counted, recordings(folder)))), ["{70001: 20}", "{}"], "nothing happened to it")


# ---- Strangers ----


def read_frame(peer):
    head = b""
    while len(head) < 16:
        try:
            got = peer.recv(16 - len(head))
        except ConnectionError:
            got = b""
        if not got:
            return None, b"", 0
        head += got
    kind, size, offset = struct.unpack("<BIQ", head[3:])
    payload = b""
    while len(payload) < size:
        payload += peer.recv(size - len(payload))
    return kind, payload, offset


def read_wanted(peer, kind):
    """The next frame but those that say how far all is, and that it is there."""
    while True:
        got = read_frame(peer)
        if got[0] not in (4, 5):
            equal(got[0], kind, "the frame", got)
            return got


def answer_of(peer, number):
    """The sender's answer to the control of that number: whether it is done, and the text."""
    while True:
        kind, payload, offset = read_frame(peer)
        if kind is None:
            return None, "closed"
        if kind == 9:
            equal(offset, number, "its number")
            return struct.unpack("<I", payload[:4])[0], payload[4:].decode()


def wish(what, number, mean=0, text=b""):
    return frame(8, struct.pack("<IQ", what, mean) + text, number)


def strange_receivers():
    """Who receives is no `gather` of ours, but sends what it likes."""
    for allowed in (False, True):
        folder = scratch()
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(PATIENCE)
            options = ("--allow-control",) if allowed else ()
            program = Program(folder, "--to", "127.0.0.1:%d" % server.getsockname()[1], "--linger", "1s", *options)

            def welcome():
                peer, _ = server.accept()
                peer.settimeout(PATIENCE)
                _, payload, _ = read_frame(peer)
                equal(struct.unpack_from("<I", payload, 12)[0], int(allowed), "what it allows")
                peer.sendall(frame(2, struct.pack("<I", 4 << 20)))
                return peer

            program.allocate(10, 70001)
            if not allowed:
                with welcome() as peer:
                    for what in range(1, 7):
                        peer.sendall(wish(what, what, 4096, b"text"))
                        equal(answer_of(peer, what), (0, NOT_ALLOWED), "not allowed")
                    peer.sendall(wish(1, 7) + wish(1, 8))
            else:
                with welcome() as peer:
                    begun = time.monotonic()
                    for number in range(1, 12):
                        peer.sendall(wish(5, number, 0, b"\x1b]0;title\x07 \xff\0rest"))
                        equal(answer_of(peer, number), (1, 'marked "?]0;title? ?"'), "a mark")
                    equal(time.monotonic() - begun >= 0.5, True, "they come slowly")
                    for mean, text in ((0, "one allocation in 1 byte"), (1 << 40, "one allocation in 1 byte")):
                        peer.sendall(wish(4, 20, mean))
                        done, said = answer_of(peer, 20)
                        equal((done, text in said), (0, True), said)
                    peer.sendall(wish(5, 21))
                    equal(answer_of(peer, 21), (0, "a mark needs a text"), "without a text")
                for nonsense in (wish(7, 1), wish(0, 1), wish(5, 1, 0, b"x" * 256), frame(9, struct.pack("<I", 1)),
                                 b"".join(wish(5, i, 0, b"flood") for i in range(1000))):
                    with welcome() as peer:
                        peer.sendall(nonsense)
                        while read_frame(peer)[0] is not None:
                            pass
            program.allocate(10, 70002)
        equal(program.end(), 0, program.command.lines)
        path = recordings(folder)[0]
        equal(counted(path), {70001: 10, 70002: 10}, "what is counted")
        marks = [row["name"] or "" for row in rows_of(path, "SELECT name FROM markers")]
        equal(len([name for name in marks if name == "?]0;title? ?"]), 11 * allowed, marks)
        equal(len(marks) <= 13, True, marks)


def strange_senders():
    """Answers that nobody wanted, with another number, that come never, or would take over a terminal."""
    there = scratch()
    gather = Gather(there)
    greeting = bytearray(hello(ident=b"i" * 16))
    struct.pack_into("<I", greeting, 16 + 12, 1)  # may be controlled

    def connect():
        peer = socket.create_connection(("127.0.0.1", gather.port), timeout=PATIENCE)
        peer.sendall(bytes(greeting))
        if read_wanted(peer, 2)[2] == 0:
            peer.sendall(frame(3, b"MEMTRREC" + bytes(56)))
        return peer

    def refused(peer, data):
        peer.sendall(data)
        equal(b"does not speak" in read_wanted(peer, 7)[1], True, "refused")
        peer.close()

    def begin(*words):
        asking = subprocess.Popen([MEMTRACE, "control", received(there)[0], *words], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env=clean_environment())
        return asking, *read_wanted(silent, 8)[1:]

    first = connect()
    wait_until(lambda: os.path.getsize(received(there)[0]) == 64, "it begins as a recording does")
    refused(first, frame(9, struct.pack("<I", 1) + b"unasked", 1))
    silent = connect()
    asking, payload, number = begin("mark", "text")
    equal(payload, struct.pack("<IQ", 5, 0) + b"text", "what it is asked")
    silent.sendall(frame(9, struct.pack("<I", 1) + b"done \x1b[31m\n", number))
    output, _ = asking.communicate(timeout=PATIENCE)
    equal((asking.returncode, output.split(b": ")[1]), (0, b"done ?[31m?\n"), output)
    asking, _, number = begin("off")
    refused(silent, frame(9, struct.pack("<I", 1) + b"done", number + 1))
    output, _ = asking.communicate(timeout=PATIENCE)
    equal((asking.returncode, b"its sender went away before it answered" in output), (1, True), output)
    silent = connect()
    asking, _, number = begin("off")
    other = subprocess.Popen([MEMTRACE, "control", received(there)[0], "on"], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, env=clean_environment())  # waits behind it
    asking.kill()
    asking.wait()
    silent.sendall(frame(9, struct.pack("<I", 1) + b"done", number))
    equal(read_wanted(silent, 8)[1], struct.pack("<IQ", 2, 0), "the other one's")
    for _ in range(4):  # it goes on to say that it is there
        time.sleep(3)
        silent.sendall(frame(5))
    output, _ = other.communicate(timeout=PATIENCE)
    equal((other.returncode, b"its sender has not answered for 10 s" in output), (1, True), output)
    strange_users(there)
    silent.close()
    gather.end()


def strange_users(there):
    """Its user alone may ask; who may does not harm it."""
    path = there + "/.control"
    equal(os.stat(path).st_mode & 0o7777, 0o600, "the socket")
    askers = []
    for data in (b"", b"x", b"x" * 4000, bytes(600)) * 5:
        one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        one.connect(path)
        one.send(data) if data else None
        askers.append(one)
    for one in askers:
        one.close()
    if os.geteuid() == 0:
        os.chmod(there, 0o755)
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
                os._exit(7 if one.connect_ex(path) == errno.EACCES else 1)
        equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7, "another user")


def asked_wrongly():
    folder = scratch()
    for command in (["record", "--allow-control", "--", "/bin/true"], ["attach", "--allow-control", "1"]):
        done = execute([MEMTRACE, *command], clean_environment(**settings_for(folder)))
        equal((done.returncode, b"belong to --to" in done.stderr), (2, True), done.stderr)
    text = os.path.join(folder, "text")
    with open(text, "w", encoding="ascii") as file:
        file.write("no recording\n" * 100)
    refuses(text, "off", says="is not a recording")
    refuses(folder + "/none", "off", says="is neither a process nor a file")


def main():
    tests = (strange_senders, pushed, strange_receivers, gone, pulled, reused, asked_wrongly)
    with ThreadPoolExecutor(3) as pool:  # the first one mostly waits
        for done in [pool.submit(test) for test in tests]:
            done.result()
    finish()


if __name__ == "__main__":
    main()
