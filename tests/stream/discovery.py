#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`gather --discoverable`, `--to auto`, `gather --scan`: who is found by whom, what is ignored, and that nothing is sent
unasked. Packets are made here from what docs/stream.md says of them. On the loopback address, and between two network
namespaces where that is permitted."""

import hashlib
import hmac
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import time

from pull import Listening
from streamed import (MEMTRACE, Command, Gather, clean_environment, equal, fail, finish, make_recording, make_token,
                      received, record, recordings, same, scratch, settings_for, wait_until)

ALL = "127.255.255.255"
BYTES = 512


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((ALL, 0))
        return one.getsockname()[1]


def key_of(secret):
    """HKDF-SHA256 without salt, of 32 bytes."""
    first = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(first, b"memtrace discovery 1" + b"\1", "sha256")


def question(nonce, key=None, kinds=3):
    head = b"MTD?" + bytes([1, kinds]) + bytes(10) + nonce
    proof = hmac.digest(key, head, hashlib.sha256) if key else bytes(32)
    return (head + proof).ljust(BYTES, b"\0")


def answer(nonce, key, kind, port, host):
    head = b"MTD!" + bytes([1, kind]) + struct.pack("<HII", port, 0, 0) + b"i" * 16
    texts = host + b"\0there\0DIR\0"
    proof = hmac.digest(key, nonce + head + texts, hashlib.sha256) if key else nonce + bytes(16)
    return head + proof + texts


def asker():
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    one.bind(("127.0.0.1", 0))
    one.settimeout(0.5)
    return one


def answers(one):
    found = []
    try:
        while True:
            found.append(one.recv(2048))
    except TimeoutError:
        return found


def scan(port, *token):
    done = subprocess.run([MEMTRACE, "gather", "--scan", "--discovery-port", str(port), *token], capture_output=True, text=True,
                          timeout=60, env=clean_environment(), check=False)
    return done.returncode, done.stdout, done.stderr


def finds(folder, path, *token):
    port = free_port()
    equal(scan(port, *token)[:2], (1, ""), "nobody is there")
    quiet = Gather(folder + "/quiet", *token)
    equal(scan(port, *token)[:2], (1, ""), "nobody wants to be found")
    options = ("--discoverable", "--discovery-port", str(port), *token)
    gather = Gather(folder + "/got", *options)
    sender = Listening("send", "--listen", "127.0.0.1:0", *options, path)
    status, output, _ = scan(port, *token)
    equal((status, len(re.findall(r"^gathers +127\.0\.0\.1:%d .* into %s/got$" % (gather.port, folder), output, re.M)),
           len(re.findall(r"^offers +%s .*, 1 recording$" % re.escape(sender.at()), output, re.M)),
           output.count("\n")), (0, 1, 1, 2), output)
    other = Command("send", path, "--to", "auto:%d" % port, *token)
    equal((other.wait(), len(other.said(r"gatherer at 127\.0\.0\.1:%d" % gather.port))), (0, 1), other.lines)
    there = scratch()
    done = record([sys.executable, "-c", "pass"], there, "--embed", "none", "--to", "auto:%d" % port, *token)
    equal(done.returncode, 0, done.stderr)
    same(folder + "/got", path, *recordings(there))
    for one in (gather, sender, quiet):
        one.end()
        equal(one.said("discovery"), [], "nothing was ignored")


def by_token(folder, path):
    """Each with its own: nobody finds the other."""
    right, wrong = make_token(folder), make_token(folder, "wrong", "another token of some length")
    port = free_port()
    gather = Gather(folder + "/tokens", "--discoverable", "--discovery-port", str(port), "--token", right)
    for other in (("--token", wrong), ()):
        equal(scan(port, *other)[:2], (1, ""), other)
    sender = Command("send", path, "--to", "auto:%d" % port, "--token", wrong, "--give-up", "1s")
    equal((sender.wait(), len(sender.said("no gatherer answers"))), (1, 1), sender.lines)
    gather.end()
    equal((len(gather.said("asks without our token")), received(folder + "/tokens")), (1, []), gather.lines)


def ignores(folder):
    key = key_of(b"0123456789abcdef0123456789abcdef")
    port = free_port()
    gather = Gather(folder + "/ignores", "--discoverable", "--discovery-port", str(port), "--token", make_token(folder))
    with asker() as one:
        good = question(b"n" * 16, key)
        one.sendto(good, (ALL, port))
        found = answers(one)
        equal(len(found), 1, "an answer")
        if found:
            got = found[0]
            equal(len(got) <= BYTES, True, "no longer than the question")
            texts = got[64:]
            equal(got[32:64], hmac.digest(key, b"n" * 16 + got[:32] + texts, hashlib.sha256), "its proof")
            equal((got[:6], struct.unpack("<H", got[6:8])[0], texts.split(b"\0")[0]),
                  (b"MTD!\1\1", gather.port, b"127.0.0.1"), "what it says")
        one.sendto(good, (ALL, port))  # by another network, at the same moment
        time.sleep(2.2)  # the time after which it is a repetition
        one.sendto(good, (ALL, port))
        for packet in (b"", b"x" * 100, good[:-1], good[:4] + b"\2" + good[5:], good.ljust(600, b"\0"), b"x" * 60000,
                       question(b"m" * 16), question(b"m" * 16, b"k" * 32), good[:40] + b"\0" + good[41:]):
            for _ in range(3):
                one.sendto(packet, (ALL, port))
        equal(answers(one), [], "answers to what makes no sense")
        one.sendto(question(b"o" * 16, key, kinds=2), (ALL, port))
        equal(answers(one), [], "who asks for something else")
        for i in range(300):
            one.sendto(question(b"p" * 12 + struct.pack("<I", i), key), (ALL, port))
        equal(0 < len(answers(one)) <= 200, True, "as many as are answered in a second or two")
    gather.end()
    for line in ("is not a question", "is too large", "without our token", "repeats a question", "more often than",
                 r"discovery: \d+ packets were ignored"):
        equal(len(gather.said(line)), 1, line, gather.lines)


def wrong_ones_cost_nothing(folder):
    """Packets without the token, and another address that asks too often, use up nobody's answers."""
    key = key_of(b"0123456789abcdef0123456789abcdef")
    port = free_port()
    gather = Gather(folder + "/flooded", "--discoverable", "--discovery-port", str(port), "--token", make_token(folder))
    with asker() as one, asker() as liar, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        one.settimeout(3)
        got = []
        for i in range(10):
            for kind in range(40):
                liar.sendto((b"x" * 512, b"", question(b"w" * 16), question(b"w" * 16, b"k" * 32))[kind % 4], (ALL, port))
            one.sendto(question(b"q" * 12 + struct.pack("<I", i), key), (ALL, port))
            try:
                got.append(one.recv(2048)[:4])
            except TimeoutError:
                got.append(None)
        equal(got, [b"MTD!"] * 10, "answers to those who know the token while others flood")
        for i in range(300):
            liar.sendto(question(b"l" * 12 + struct.pack("<I", i), key), (ALL, port))
            if i % 20 == 19:  # what is answered has room in the sockets
                time.sleep(0.002)
        wait_until(lambda: gather.said("more often than"), "one address that asks too often")
        other.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        other.bind(("127.0.0.2", 0))
        other.settimeout(1)
        other.sendto(question(b"r" * 16, key), (ALL, port))
        equal(len(answers(other)), 1, "an answer to another address")
        one.sendto(question(b"s" * 16, key), (ALL, port))
        equal(len(answers(one)), 1, "an answer in a later second")
    gather.end()


def believes(folder, path):
    """Answers of somebody who does not know the token, or heard one to another question."""
    token = make_token(folder)
    key = key_of(b"0123456789abcdef0123456789abcdef")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as liar, socket.create_server(("127.0.0.1", 0)) as trap:
        liar.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        liar.bind((ALL, 0))
        liar.settimeout(5)
        port, there = liar.getsockname()[1], trap.getsockname()[1]
        sender = Command("send", path, "--to", "auto:%d" % port, "--token", token)
        for _ in range(3):
            asked, peer = liar.recvfrom(2048)
            equal((len(asked), asked[32:64]), (BYTES, hmac.digest(key, asked[:32], hashlib.sha256)), "the question's proof")
            nonce = asked[16:32]
            wrong = answer(nonce, key, 1, there, b"127.0.0.1")
            for lie in (answer(nonce, b"k" * 32, 1, there, b"127.0.0.1"), answer(nonce, None, 1, there, b"127.0.0.1"),
                        answer(b"n" * 16, key, 1, there, b"127.0.0.1"), wrong[:6] + b"\1\1" + wrong[8:], wrong[:70],
                        wrong + b"more", answer(nonce, key, 3, there, b"127.0.0.1"), b"MTD!", b""):
                liar.sendto(lie, peer)
        wait_until(lambda: sender.said("no gatherer answers; trying again"), "it believes none of them")
        sender.end()
        trap.settimeout(0.1)
        try:
            trap.accept()
            fail("it was sent to whom it should not believe")
        except TimeoutError:
            pass


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=False)


def between_machines(path):
    """Two namespaces and a wire between them."""
    if shutil.which("ip") is None:
        print("not tested between machines: no ip command")
        return
    name = "mt%d" % os.getpid()
    here, there = name + "a", name + "b"
    try:
        made = [ip("netns", "add", here), ip("netns", "add", there),
                ip("link", "add", name, "netns", here, "type", "veth", "peer", "name", name, "netns", there)]
        if any(one.returncode for one in made):
            print("not tested between machines: namespaces are not permitted here:",
                  [one.stderr.strip() for one in made if one.returncode])
            return
        for number, one in enumerate((here, there)):
            ip("-n", one, "addr", "add", "10.77.9.%d/24" % (number + 1), "broadcast", "+", "dev", name)
            ip("-n", one, "link", "set", name, "up")
            ip("-n", one, "link", "set", "lo", "up")
        across(path, ("ip", "netns", "exec", here), ("ip", "netns", "exec", there))
    finally:
        for one in (here, there):
            subprocess.run(["ip", "netns", "delete", one], capture_output=True, check=False)


def across(path, here, there):
    folder, recorded = scratch(), scratch()
    token = ("--token", make_token(folder))
    gather = Command("gather", "--listen", "0.0.0.0", "--discoverable", *token, folder + "/got", prefix=here)
    wait_until(lambda: gather.said("listening at"), "gather listens")
    none = Command("send", path, "--to", "auto", "--give-up", "1s", prefix=there)
    sender = Command("send", path, "--to", "auto", *token, prefix=there)
    equal((sender.wait(), len(sender.said(r"gatherer at 10\.77\.9\.1:6364"))), (0, 1), sender.lines)
    equal((none.wait(), len(none.said("no gatherer answers"))), (1, 1), "without a token", none.lines)
    gather.end()
    same(folder + "/got", path)
    recorder = Command("record", "--listen", "10.77.9.2", "--discoverable", *token, "--", sys.executable, "-c",
                       "import time; time.sleep(2)", prefix=there, settings=settings_for(recorded), cwd=recorded)
    wait_until(lambda: recorder.said("can be received from") and recordings(recorded), "it listens")

    def found():
        done = subprocess.run([*here, MEMTRACE, "gather", "--scan", *token], capture_output=True, text=True, check=False,
                              env=clean_environment())
        return re.search(r"^offers +10\.77\.9\.2:6364 .*python3.*, 1 recording$", done.stdout, re.M)

    wait_until(found, "the recorder is found")
    receiver = Command("gather", *token, "10.77.9.2", folder + "/pulled", prefix=here)
    equal((receiver.wait(), recorder.wait()), (0, 0), receiver.lines, recorder.lines)
    same(folder + "/pulled", *recordings(recorded))


def main():
    folder = scratch()
    path = make_recording(folder, 20)
    finds(scratch(), path)
    token_folder = scratch()
    finds(token_folder, path, "--token", make_token(token_folder))
    by_token(folder, path)
    ignores(folder)
    wrong_ones_cost_nothing(folder)
    believes(folder, path)
    between_machines(path)
    finish()


if __name__ == "__main__":
    main()
