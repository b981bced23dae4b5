# SPDX-License-Identifier: MIT
"""The figures of `benchmarks/run stream`: recordings that go to another machine while they are made. Each function takes a
Bench and yields Rows. All connections are on the loopback address, with TLS."""

import filecmp
import glob
import json
import os
import subprocess
import sys
import time

from harness import RunFailed, median
from stream import peers
from stream.screens import SCREENS
from table import Row, check

TITLES = {"value": "median", "most": "most", "of": "of"}
RATE_LIMIT, SCREEN_LIMIT_S, QUEUE = 10e6, 2, 64 << 20
QUEUE_MOST = QUEUE * 1.1
HERE = os.path.dirname(os.path.abspath(__file__))

SEEN_BYTES = 8_000_000
# Allocates so many now and then, and says when; what it has besides is much less than that.
SEEN = """
import time
kept = []
for i in range(%d):
    time.sleep(1.5 + i * 3 %% 10 / 10)
    at = time.monotonic()
    kept.append(bytearray(8_000_000))
    print(at, flush=True)
time.sleep(6)
"""
# Lets its recording grow by so many bytes a second, for some seconds.
PACED = """
import os, random, sys, time
path, rate, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
start = time.monotonic()
grown, kept = 0, [None] * 5000
while (passed := time.monotonic() - start) < seconds:
    try:
        grown = os.stat(path).st_size
    except OSError:
        pass
    if grown < rate * passed:
        for i in range(2000):
            kept[random.getrandbits(12)] = bytearray(600 + random.getrandbits(14))
    else:
        time.sleep(0.002)
"""


def clean(bench):
    for pattern in ("recording*", "*.mtp", "received*/*/*"):
        for path in glob.glob(os.path.join(bench.scratch, pattern)):
            os.unlink(path)


def only_file(receiver):
    files = receiver.files()
    if len(files) != 1:
        raise RunFailed(f"received files: {files}")
    return files[0]


def same(bench, receiver):
    return filecmp.cmp(only_file(receiver), bench.recording, shallow=False)


def rate(bench):
    """Events a second, from the program's start until all of them are at the receiver."""
    for name, subject, options in (
            ("malloc and free in a loop", "pair", ["--batch", 100000, "--batches", 100]),
            ("four threads that free each other's blocks", "threads", ["--threads", 4, "--batches", 8000])):
        found, missing, equal = [], 0, True
        for number in range(1 if bench.quick else 3):
            bench.progress(f"{name}: round {number + 1}")
            receiver = peers.Receiver(bench)
            start = time.perf_counter()
            peers.finished(peers.record(bench, receiver, receiver.port, [],
                                        bench.command_line(subject, "bare", options)))
            seconds = time.perf_counter() - start
            receiver.close()
            events, lost = peers.told(bench, only_file(receiver))
            equal = equal and same(bench, receiver)
            missing += lost
            found.append(events / seconds)
            clean(bench)
        value = median(found)
        yield Row(f"{name}: million events a second until all are there",
                  {"value": f"{value / 1e6:.1f}", "of": str(len(found))},
                  [check(f"{value / 1e6:.1f} of {RATE_LIMIT / 1e6:.0f} million", value >= RATE_LIMIT),
                   check(f"{missing} lost", missing == 0), check("the same bytes", equal)])


def screen(bench):
    """From an allocation until it is shown, by each of what shows it."""
    rounds = 3 if bench.quick else 10
    for Screen in SCREENS:
        receiver = peers.Receiver(bench)
        process = peers.record(bench, receiver, receiver.port, [], [sys.executable, "-c", SEEN % rounds])
        peers.wait_until(receiver.files, "a file is received")
        shown = Screen(bench, only_file(receiver))
        found = []
        for number in range(rounds):
            bench.progress(f"{Screen.name}: {number + 1} of {rounds}")
            at = float(process.stdout.readline())
            while shown.shown_bytes() < SEEN_BYTES * (number + 1):
                if time.monotonic() > at + 60:
                    raise RunFailed(f"an allocation was not to be seen {Screen.name} within 60 s")
            found.append(time.monotonic() - at)
        shown.close()
        peers.finished(process)
        receiver.close()
        clean(bench)
        yield Row(f"an allocation {Screen.name}: seconds",
                  {"value": f"{median(found):.2f}", "most": f"{max(found):.2f}", "of": str(rounds)},
                  [check(f"{max(found):.2f} of {SCREEN_LIMIT_S} s", max(found) <= SCREEN_LIMIT_S)])


def outage(bench):
    """The network is gone while 1 MB a second is recorded."""
    gone_s, rate_bytes = (10 if bench.quick else 60), 1_000_000
    receiver = peers.Receiver(bench)
    network = peers.Network(receiver.port)
    process = peers.record(bench, receiver, network.port, ["--precise"],
                           [sys.executable, "-c", PACED, bench.recording, rate_bytes, gone_s + 20])
    peers.wait_until(lambda: receiver.received_bytes() > 100_000, "something is received")
    network.break_off()
    most, end = 0, time.monotonic() + gone_s
    bench.progress(f"the network is gone for {gone_s} s")
    while time.monotonic() < end:
        time.sleep(0.1)
        most = max(most, os.path.getsize(bench.recording) - receiver.received_bytes())
    network.come_back()
    peers.finished(process)
    receiver.close()
    lost = peers.told(bench, only_file(receiver))[1]
    equal = same(bench, receiver)
    clean(bench)
    yield Row(f"an outage of {gone_s} s at 1 MB/s: MiB that wait", {"most": f"{most / 2**20:.1f}", "of": "1"},
              [check(f"{most / 2**20:.1f} of {QUEUE >> 20} MiB", 0 < most <= QUEUE), check(f"{lost} lost", lost == 0),
               check("the same bytes", equal)])


def device(bench):
    """The same outage, on a device without a disk, by the command that is built for devices: what is there is freed, and
    what waits lies in memory."""
    gone_s, rate_bytes = (10 if bench.quick else 60), 1_000_000
    if not peers.Device.can_be():
        yield Row("a device without a disk: skipped, it takes root and a mount namespace", {"of": "0"}, [])
        return
    receiver = peers.Receiver(bench)
    network = peers.Network(receiver.port)
    box = peers.Device(bench, QUEUE * 5 // 4)
    process = peers.record(bench, receiver, network.port, ["--precise", "--queue", str(QUEUE)],
                           [sys.executable, "-c", PACED, box.folder + "/recording.mtr", rate_bytes, gone_s + 20], box)
    peers.wait_until(lambda: receiver.received_bytes() > 100_000, "something is received")
    network.break_off()
    bench.progress(f"a device, the network is gone for {gone_s} s")
    end = time.monotonic() + gone_s
    while time.monotonic() < end:
        time.sleep(0.1)
        box.look()
    network.come_back()
    while process.poll() is None and receiver.received_bytes() < rate_bytes * (gone_s + 10):
        time.sleep(0.1)  # what waited is sent, while more comes
        box.look()
    peers.finished(process)
    receiver.close()
    lost = peers.told(bench, only_file(receiver))[1]
    clean(bench)
    name = f"an outage of {gone_s} s at 1 MB/s with --queue 64M, on a device without a disk"
    yield Row(f"{name}: MiB of its memory, all told", {"most": f"{box.most / 2**20:.1f}", "of": "1"},
              [check(f"{box.most / 2**20:.1f} of {QUEUE_MOST / 2**20:.1f} MiB", 0 < box.most <= QUEUE_MOST),
               check(f"{lost} lost", lost == 0)])
    yield Row(f"{name}: MiB of its memory but for pages of program files and libraries",
              {"most": f"{box.most_kept / 2**20:.1f}", "of": "1"},
              [check(f"{box.most_kept / 2**20:.1f} of {QUEUE_MOST / 2**20:.1f} MiB", 0 < box.most_kept <= QUEUE_MOST)])
    yield Row(f"{name}: MiB of it in files (recording and region)", {"most": f"{box.most_blocks / 2**20:.1f}", "of": "1"}, [])
    yield Row(f"{name}: MiB of it of recorder and sender", {"most": f"{box.most_memory / 2**20:.1f}", "of": "1"}, [])


def kills(bench):
    """Sender and receiver are killed, so many times each (the test stream.many_kills)."""
    count = 10 if bench.quick else 200
    tests = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests", "stream")
    bench.progress(f"{count} kills of each side")
    done = subprocess.run([sys.executable, os.path.join(tests, "kills.py"), "--count", str(count)],
                          env=os.environ | {"TEST_BUILD": os.path.dirname(bench.programs)}, capture_output=True,
                          text=True, check=False)
    yield Row("each side killed: times", {"value": str(count), "of": "1"},
              [check("the same bytes, nothing acknowledged was lost" if done.returncode == 0 else
                     (done.stdout + done.stderr).strip()[-300:], done.returncode == 0)])


SOURCES, SOURCE_RATE, SOURCE_KIB = 200, 100_000, 256


def processor_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def gather(bench):
    """One receiver of many sources, alone and beside connections that are of no use."""
    seconds = 5 if bench.quick else 30
    for name, silent, garbage in (("alone", 0, 0), ("beside 200 half-open connections and garbage", 200, 10)):
        bench.progress(f"{SOURCES} sources, {name}")
        receiver = peers.Receiver(bench)
        before = receiver.resident_kib()
        sources = subprocess.Popen(
            [os.path.join(bench.programs, "sources"),
             *map(str, (receiver.port, receiver.token, SOURCES, SOURCE_RATE, seconds, silent, garbage))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if sources.stdout.readline() != "ready\n":
            raise RunFailed("not all sources could connect: " + receiver.said()[-200:])
        used, start = processor_s(receiver.process.pid), time.monotonic()
        sources.stdin.write("\n")
        sources.stdin.flush()
        if sources.stdout.readline() != "sent\n":
            raise RunFailed("not all could be sent: " + receiver.said()[-200:])
        took = time.monotonic() - start
        share = (processor_s(receiver.process.pid) - used) / took
        each = (receiver.resident_kib() - before) / SOURCES
        told = json.loads(sources.communicate("\n", timeout=peers.PATIENCE_S)[0])
        receiver.close()
        clean(bench)
        yield Row(f"{SOURCES} sources at {SOURCE_RATE // 1000} KB/s, {name}: share of a core",
                  {"value": f"{share:.2f}", "of": "1"},
                  [check(f"{share:.2f} of 1 core", share <= 1),
                   check(f"{took:.1f} of {seconds} s", took <= seconds * 1.05),
                   check(f"{told['ended']} of {SOURCES} complete", told["ended"] == SOURCES)])
        yield Row(f"{SOURCES} sources, {name}: KiB resident each", {"value": f"{each:.0f}", "of": "1"},
                  [check(f"{each:.0f} of {SOURCE_KIB} KiB", each <= SOURCE_KIB)])
        yield Row(f"{SOURCES} sources, {name}: ms until it is acknowledged, on the disk",
                  {"value": f"{told['median_ms']:.0f}", "most": f"{told['most_ms']:.0f}", "of": "1"}, [])


GROUPS = {"rate": rate, "screen": screen, "outage": outage, "device": device, "kills": kills, "gather": gather}
