#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`memtrace record --to`: what is recorded arrives while it is, byte for byte, whoever is killed meanwhile; and one
line says what did not arrive."""

import os
import re
import signal
import subprocess
import sys

from streamed import (MEMTRACE, PATIENCE, Gather, clean_environment, equal, execute, fail, finish, make_token, received,
                      recordings, same, scratch, send, settings_for, wait_until)

# Allocates while that is so.
BUSY = """
import glob, json, os
i = 0
while %s:
    i += 1
    json.loads(json.dumps(list(range(500 + i %% 500))))
"""


def busy(condition):
    return sys.executable, "-c", BUSY % condition


def command(to, *options, program=busy("i < 400")):
    return [MEMTRACE, "record", "--to", to, *options, "--", *program]


def run(folder, to, *options, **more):
    return execute(command(to, *options, **more), clean_environment(**settings_for(folder)), timeout=240, cwd=folder)


def start(folder, to, *options, regions=None):
    """The recorder of a program that runs until "end" is there."""
    process = subprocess.Popen(command(to, *options, program=busy('not os.path.exists("end")')), cwd=folder,
                               env=clean_environment(**settings_for(folder, regions=regions)), stderr=subprocess.PIPE)
    wait_until(lambda: recordings(folder), "a recording begins")
    return process


def end(folder):
    with open(os.path.join(folder, "end"), "wb"):
        pass


def senders(pid):
    """The senders of that recorder."""
    found = []
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        for child in file.read().split():
            try:
                with open("/proc/%s/cmdline" % child, "rb") as words:
                    found += [int(child)] if words.read().split(b"\0")[1:2] == [b"sender"] else []
            except OSError:
                pass
    return found


def size_of(folder):
    return sum(map(os.path.getsize, received(folder)))


def arrives(folder, there, gather, *what):
    gather.end()
    same(there, *recordings(folder))
    if not recordings(folder):
        fail(*what, ": nothing was recorded")


def whole(*options, parts=1, **more):
    folder, there = scratch(), scratch()
    token = make_token(there)
    gather = Gather(there + "/got", "--token", token)
    done = run(folder, "127.0.0.1:%d" % gather.port, "--token", token, *options, **more)
    equal(done.returncode, 0, "record", options, done.stderr)
    equal(len(recordings(folder)) >= parts, True, "recordings", options, recordings(folder))
    arrives(folder, there + "/got", gather, options)


def kills():
    """The sender, then the receiver, several times; the recorder goes on and sends on."""
    folder, there = scratch(), scratch()
    gather = Gather(there)
    port = gather.port
    process = start(folder, "127.0.0.1:%d" % port)
    for _ in range(5):
        before = size_of(there)
        wait_until(lambda: size_of(there) > before, "more arrives")
        wait_until(lambda: senders(process.pid), "a sender runs")
        os.kill(senders(process.pid)[0], signal.SIGKILL)
        wait_until(lambda: senders(process.pid), "another sender")
        gather.end(signal.SIGKILL)
        gather = Gather(there, port=port)
    end(folder)
    equal(process.wait(PATIENCE), 0, "the recorder", process.stderr.read())
    arrives(folder, there, gather, "kills")


def recorder_killed():
    """The program and the sender go on; so does the recording with its next collector."""
    folder, there, regions = scratch(), scratch(), scratch(where="/dev/shm")
    gather = Gather(there)
    process = start(folder, "127.0.0.1:%d" % gather.port, "--rotate", "1G", regions=regions)
    wait_until(lambda: size_of(there) > 4096, "something arrives")
    process.send_signal(signal.SIGKILL)
    process.wait()
    settled = os.path.getsize(recordings(folder)[0])

    def goes_on():
        execute([MEMTRACE, "list"], clean_environment(**settings_for(folder, regions=regions)))
        return os.path.getsize(recordings(folder)[0]) > settled

    wait_until(goes_on, "another collector goes on")
    before = size_of(there)
    wait_until(lambda: size_of(there) > before, "the sender goes on")
    end(folder)
    wait_until(lambda: gather.said("complete"), "all is there")
    arrives(folder, there, gather, "recorder killed")


def unreachable():
    folder, there = scratch(), scratch()
    done = run(folder, "127.0.0.1:1", "--linger", "1s", program=("/bin/sh", "-c", "exit 7"))
    text = done.stderr.decode()
    equal(done.returncode, 7, "the program's status", text)
    path = recordings(folder)[0]
    equal(len(re.findall(r"only here; memtrace send --to 127\.0\.0\.1:1 %s sends them" % re.escape(path), text)), 1,
          "the line", text)
    gather = Gather(there)
    equal(send(path, gather.port).wait(), 0, "sent later")
    arrives(folder, there, gather, "unreachable")
    folder = scratch()
    done = run(folder, "127.0.0.1:1", "--linger", "1s", program=("/bin/sh", "-c", "/bin/sh -c true; true"))
    equal(len(re.findall(r"\d recordings \(.*\) are only here, in ", done.stderr.decode())), 1, "of several",
          done.stderr)


def stopped():
    """Who does not want to wait for the network presses Ctrl-C."""
    folder = scratch()
    process = start(folder, "127.0.0.1:1", "--linger", "1h")
    end(folder)
    for line in process.stderr:
        if b"until Ctrl-C" in line:
            break
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read().decode()
    equal(process.wait(PATIENCE), 0, "stopped", rest)
    equal("stopped: 0 B have arrived" in rest, True, "the line", rest)


def refused():
    folder = scratch()
    for options, status, line in ((("--to", "127.0.0.1:0"), 2, "a host and a port are needed"),
                                  (("--linger", "1s"), 2, "belong to --to"),
                                  (("--to", "127.0.0.1:1", "--token", folder + "/none"), 1, "No such file")):
        done = execute([MEMTRACE, "record", *options, "--", "/bin/touch", folder + "/ran"],
                       clean_environment(**settings_for(folder)))
        equal((done.returncode, line in done.stderr.decode(), os.path.exists(folder + "/ran")),
              (status, True, False), options, done.stderr)


def main():
    whole()
    whole("--rotate", "8K", parts=3, program=busy('len(glob.glob("*.mtr")) < 3'))
    whole("--children", "all", parts=3, program=("/bin/sh", "-c", "/bin/sh -c true; /bin/ls / >/dev/null; true"))
    for test in (kills, recorder_killed, unreachable, stopped, refused):
        test()
    finish()


if __name__ == "__main__":
    main()
