# SPDX-License-Identifier: MIT
"""What the figures of streams share: a receiver, a recorder that sends to it, and the network between them, which can be
gone for some time. All of it on the loopback address."""

import os
import re
import selectors
import signal
import socket
import subprocess
import threading
import time

from harness import RunFailed, status_mib

PATIENCE_S = 120
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def wait_until(condition, what, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RunFailed(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class Receiver:
    """`memtrace gather` with a token, into a folder of its own."""

    def __init__(self, bench, name="received"):
        self.folder = os.path.join(bench.scratch, name)
        self.token = os.path.join(bench.scratch, "token")
        if not os.path.exists(self.token):
            with open(os.open(self.token, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.write(os.urandom(24).hex().encode())
        self.log = os.path.join(bench.scratch, name + ".log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [bench.command, "gather", "--listen", "127.0.0.1:0", "--token", self.token, self.folder],
                stdin=subprocess.DEVNULL, stderr=log)
        wait_until(lambda: "listening at" in self.said(), "gather listens")
        self.port = int(re.search(r"listening at 127\.0\.0\.1:(\d+)", self.said()).group(1))

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def files(self):
        return [os.path.join(where, name) for where, _, names in os.walk(self.folder) for name in names
                if name.endswith(".mtr")]

    def received_bytes(self):
        return sum(os.path.getsize(path) for path in self.files())

    def peak_kib(self):
        """What was resident at most."""
        return round(status_mib(self.process.pid, "VmHWM") * 1024)

    def resident_kib(self):
        return round(status_mib(self.process.pid, "VmRSS") * 1024)

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class Network:
    """Passes bytes on to a receiver. While it is gone, connections break and new ones find nobody."""

    def __init__(self, to):
        self.to = to
        self.gone = False
        self.open = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            here, _ = self.listener.accept()
            if self.gone:
                here.close()
                continue
            there = socket.create_connection(("127.0.0.1", self.to))
            self.open = [one for one in self.open if one.fileno() >= 0] + [here, there]
            threading.Thread(target=self.carry, args=(here, there), daemon=True).start()

    @staticmethod
    def carry(here, there):
        with selectors.DefaultSelector() as both, here, there:
            both.register(here, selectors.EVENT_READ, there)
            both.register(there, selectors.EVENT_READ, here)
            try:
                while True:
                    for key, _ in both.select():
                        data = key.fileobj.recv(1 << 16)
                        if not data:
                            return
                        key.data.sendall(data)
            except OSError:
                return

    def break_off(self):
        self.gone = True
        for one in self.open:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def come_back(self):
        self.gone = False


def agent_of(bench):
    """The command as devices have it (MEMTRACE_TOOLS=agent), built if it is not there."""
    folder = os.path.join(os.path.dirname(bench.programs), "agent")
    bench.progress("the command for devices")
    for words in (["cmake", "-S", SOURCE, "-B", folder, "-DMEMTRACE_TOOLS=agent", "-DMEMTRACE_TESTS=OFF",
                   "-DCMAKE_BUILD_TYPE=Release"], ["cmake", "--build", folder, "-j", str(os.cpu_count() or 1)]):
        if subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            raise RunFailed("the command for devices could not be built")
    return os.path.join(folder, "bin", "memtrace")


class Device:
    """What a recorder takes of a machine without a disk, seen from outside: its file and the region that it shares with the
    program lie on a tmpfs of this size, which only they see. Counted are the blocks in use there, and what of the memory of
    recorder and senders does not lie there (proportional set size). Not the program itself. What is kept counts without
    pages of program files and libraries, which the kernel reads again when it needs them."""

    def __init__(self, bench, size):
        self.folder, self.size = os.path.join(bench.scratch, "device"), size
        self.memtrace = agent_of(bench)
        os.makedirs(self.folder, exist_ok=True)
        self.process = None
        self.most = self.most_kept = self.most_blocks = self.most_memory = 0

    @staticmethod
    def can_be():
        return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0

    def command(self, words):
        """The command, in a mount namespace where the folder is the tmpfs."""
        script = 'mount -t tmpfs -o size=$1,mode=0700 memtrace "$2" && mkdir -m 700 "$2/regions" && cd "$2" && shift 2 && exec "$@"'
        return ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", str(self.size), self.folder, *words]

    def look(self):
        """Now; keeps the most."""
        blocks = os.statvfs(f"/proc/{self.process.pid}/root{self.folder}")
        blocks = (blocks.f_blocks - blocks.f_bfree) * blocks.f_frsize
        shares = [shares_of(pid) for pid in our_processes(self.process.pid)]
        memory = sum(share["Pss"] - share["Pss_Shmem"] for share in shares)
        self.most = max(self.most, blocks + memory)
        self.most_kept = max(self.most_kept, blocks + sum(share["Pss_Anon"] for share in shares))
        self.most_blocks, self.most_memory = max(self.most_blocks, blocks), max(self.most_memory, memory)


def our_processes(pid):
    """The recorder, and the senders that it started."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            found = [int(child) for child in children.read().split()]
        own = os.readlink(f"/proc/{pid}/exe")
        return [pid] + [child for child in found if os.readlink(f"/proc/{child}/exe") == own]
    except OSError:
        return []


def shares_of(pid):
    """Bytes: its share of all pages (Pss), of shared memory, where the tmpfs is (Pss_Shmem), of its own (Pss_Anon)."""
    shares = dict.fromkeys(("Pss", "Pss_Shmem", "Pss_Anon"), 0)
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
            for name, size, *_ in (line.split() for line in rollup if line.startswith("Pss")):
                shares[name.rstrip(":")] = int(size) * 1024
    except (OSError, ValueError):
        pass  # it has ended
    return shares


def environment(bench):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("MEMTRACE") and name != "LD_PRELOAD"}
    return kept | {"MEMTRACE_OUTPUT": bench.profile, "MEMTRACE_RECORD_OUTPUT": bench.recording,
                   "MEMTRACE_SUMMARY": "0"}


def record(bench, receiver, port, options, program, device=None):
    """A recorder that runs, and sends to the port with the receiver's token; on a device: a Device."""
    words = [device.memtrace if device is not None else bench.command, "record", "--embed", "none", "--to", f"127.0.0.1:{port}", "--token", receiver.token, *options,
             "--", *map(str, program)]
    settings = environment(bench)
    if device is not None:
        words = device.command(words)
        settings |= {"MEMTRACE_REGION_DIR": device.folder + "/regions", "MEMTRACE_OUTPUT": device.folder + "/profile.mtp",
                     "MEMTRACE_RECORD_OUTPUT": device.folder + "/recording.mtr"}
    process = subprocess.Popen(words, env=settings, cwd=bench.scratch, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    if device is not None:
        device.process = process
    return process


def finished(process, seconds=PATIENCE_S):
    """What it printed, when it has ended well."""
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise RunFailed(f"the recorder still ran after {seconds} s")
    if process.returncode != 0:
        raise RunFailed(f"the recorder: status {process.returncode}: {errors.strip()[-200:]}")
    return output


def told(bench, path):
    """Events and lost ones, as the report of a recording says."""
    report = subprocess.run([bench.command, "report", "--limit", "1", path], check=True, capture_output=True,
                            text=True).stdout
    return [int(re.search(rf"^  {word} +([\d,]+)", report, re.M).group(1).replace(",", ""))
            for word in ("events", "lost")]
