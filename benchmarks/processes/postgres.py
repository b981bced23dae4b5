# SPDX-License-Identifier: MIT
"""A PostgreSQL server for `benchmarks/run processes`: made in a scratch folder, started in each
variant, asked by pgbench through a Unix socket. As root it runs as the user nobody or postgres."""

import glob
import os
import pwd
import re
import signal
import subprocess
import time

from harness import RunFailed

START_LIMIT_S, ROOT = 20, 0


class Unavailable(Exception):
    """No server can be had here; the message says why."""


def folder_of_programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/pgbench"))
    if not found:
        raise Unavailable("no PostgreSQL (Debian package postgresql)")
    return os.path.dirname(found[-1])


def user():
    """What to give to subprocess: the server refuses to run as root."""
    if os.geteuid() != ROOT:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise Unavailable("no user postgres or nobody to run it as")


class Server:
    def __init__(self, tree):
        self.tree = tree
        self.programs = folder_of_programs()
        self.user = user()
        self.folder = os.path.join(tree.scratch, "postgres")
        os.mkdir(self.folder)
        if self.user:
            os.chown(self.folder, self.user["user"], self.user["group"])
        self.data = os.path.join(self.folder, "data")
        self._call("initdb", "-D", self.data, "-A", "trust", "-U", "bench", "-N")
        process = self._start("bare")
        try:
            self._call("pgbench", *self._where(), "-i", "-q", "postgres")
        finally:
            self._stop(process)

    def _where(self):
        return ["-h", self.folder, "-U", "bench"]

    def _call(self, program, *arguments):
        done = subprocess.run([os.path.join(self.programs, program), *arguments], cwd=self.folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, **self.user)
        if done.returncode != 0:
            raise RunFailed(f"{program}: {done.stdout.strip()[-300:]}")
        return done.stdout

    def _start(self, variant):
        process = self.tree.start(
            variant, [os.path.join(self.programs, "postgres"), "-D", self.data, "-k", self.folder,
                      "-c", "listen_addresses=", "-c", "fsync=off", "-c", "log_destination=csvlog",
                      "-c", "logging_collector=on"], cwd=self.folder, **self.user)
        end = time.monotonic() + START_LIMIT_S
        while time.monotonic() < end and process.poll() is None:
            ready = subprocess.run([os.path.join(self.programs, "pg_isready"), "-q", *self._where()],
                                   check=False)
            if ready.returncode == 0:
                return process
            time.sleep(0.05)
        self._stop(process)
        raise RunFailed(f"postgres ({variant}) does not start")

    def _stop(self, process):
        process.send_signal(signal.SIGINT)  # its fast shutdown
        try:
            process.communicate(timeout=START_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._kill_all()
            process.wait()
            raise RunFailed("postgres does not end: a process of it hangs") from None

    def _kill_all(self):
        """Its processes have sessions of their own; what they share is the folder that they are in."""
        for link in glob.glob("/proc/[0-9]*/cwd"):
            try:
                if os.readlink(link) == self.data:
                    os.kill(int(link.split("/")[2]), signal.SIGKILL)
            except OSError:
                pass

    def rate(self, variant, seconds):
        """Transactions a second of one run."""
        process = self._start(variant)
        try:
            output = self._call("pgbench", *self._where(), "-C", "-S", "-n", "-c", "4", "-j", "1",
                                "-T", str(seconds), "postgres")
        finally:
            self._stop(process)
        found = re.search(r"^tps = ([\d.]+)", output, re.M)
        if process.returncode != 0 or not found:
            raise RunFailed(f"postgres ({variant}): status {process.returncode}")
        return float(found.group(1))
