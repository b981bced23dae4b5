# SPDX-License-Identifier: MIT
"""The programs whose stacks are compared: ordinary ones, as Debian installs them, and one of ours.

A program is started again and again, each time on other input, until it has allocated enough.
"""

import functools
import os
import random
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
from harness import BUILD, SOURCE, clean_environment  # noqa: E402

WORKLOADS = os.path.join(HERE, "workloads")
TIMEOUT_S = 600


class Trouble(Exception):
    """The program could not do its work; the text says why."""


def run(command, environment=None, **more):
    done = subprocess.run(command, env=environment or clean_environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_S, **more)
    if done.returncode != 0:
        raise Trouble("%s: status %d: %s" % (" ".join(command)[:200], done.returncode,
                                             done.stderr.decode(errors="replace")[-500:]))
    return done.stdout.decode(errors="replace")


class Program:
    """`work(seed, folder, environment)` does the work once; `needs` are the commands it takes."""

    def __init__(self, name, needs, version, work):
        self.name, self.needs, self.version_command, self.work = name, needs, version, work

    def missing(self):
        return [command for command in self.needs if shutil.which(command) is None]

    def version(self):
        line = (run(self.version_command).strip() or "?").split("\n")[0]
        found = re.search(r"\d+(\.\d+)+", line)
        return found.group() if found else line


def workload(name):
    return os.path.join(WORKLOADS, name)


def python():
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def work_python(seed, folder, environment):
    run([python(), workload("objects.py"), str(seed)], dict(environment, PYTHONMALLOC="malloc"))


def work_gcc(seed, folder, environment):
    """One of MemTrace's own sources in C, then one in C++ that takes much of libstdc++."""
    places = [os.path.join(SOURCE, "runtime", part) for part in ("base", "stack", "heap", "record")]
    sources = sorted(os.path.join(place, name) for place in places for name in os.listdir(place)
                     if name.endswith(".c"))
    include = ["-I" + os.path.join(where, sub) for where in (SOURCE, BUILD) for sub in ("", "include")]
    level = ["-O0", "-O1", "-O2", "-O3", "-Os"][seed % 5]
    run(["gcc", level, "-g", "-D_GNU_SOURCE", *include, "-S", sources[seed % len(sources)], "-o",
         os.path.join(folder, "out.s")], environment)
    if seed % 4 == 0:
        run(["g++", level, "-std=c++20", "-S", workload("ways.cpp"), "-o", os.path.join(folder, "out.s")],
            environment)


def write_history(folder):
    """A repository of 300 commits."""
    choose = random.Random(1)
    files = {"f%02d/file%d.txt" % (i % 7, i): ["line %d" % n for n in range(120)] for i in range(40)}
    stream = []
    for commit in range(300):
        stream.append("commit refs/heads/main\ncommitter A U Thor <a@example.org> %d +0000\n"
                      "data 8\nchange\n\n" % (1600000000 + commit * 1000))
        for name in files if commit == 0 else choose.sample(sorted(files), 5):
            lines = files[name]
            at = choose.randrange(len(lines))
            lines[at:at + choose.randrange(3)] = ["changed by %d: %d" % (commit, choose.random() * 1e9)]
            text = "\n".join(lines) + "\n"
            stream.append("M 100644 inline %s\ndata %d\n%s\n" % (name, len(text), text))
    run(["git", "init", "-q", "-b", "main", folder])
    subprocess.run(["git", "-C", folder, "fast-import", "--quiet"], input="".join(stream).encode(),
                   check=True)


def work_git(seed, folder, environment):
    repository = os.path.join(folder, "repository")
    if not os.path.isdir(repository):
        write_history(repository)
    for command in (["log", "-p", "-M", "--stat", "--graph"], ["fsck", "--full"],
                    ["grep", "-n", "-E", "changed by [0-9]*%d" % (seed % 10), "main"],
                    ["diff", "--patience", "main~%d" % (seed % 250 + 20), "main"],
                    ["blame", "-C", "main", "--", "f00/file0.txt"], ["shortlog", "-s", "main"],
                    ["repack", "-a", "-d", "-f", "-q"], ["archive", "-o", "../out.tar.gz", "main"]):
        run(["git", "-C", repository, *command], environment)


def work_perl(seed, folder, environment):
    run(["perl", workload("words.pl"), str(seed)], environment)


REDIS = "redis-check-rdb"  # one program of many names, in a package that starts no server
REDIS_LOADS = [
    ["-n", "1000", "-t", "set,get,incr,lpush,rpush,lpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset"],
    ["-n", "200", "eval", "return {KEYS[1], redis.call('incr', KEYS[1]), string.rep('x', 900)}", "1", "n"],
    ["-n", "100", "setrange", "big", "100000", "end"],
    ["-n", "50", "sort", "mylist", "limit", "0", "100", "alpha"],
]


def work_redis(seed, folder, environment):
    socket = os.path.join(folder, "socket")
    client = ["redis-cli", "-s", socket]
    with subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--dir", folder,
                           "--save", "", "--io-threads", "2"], executable=shutil.which(REDIS),
                          env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as server:
        try:
            wait_until(lambda: os.path.exists(socket), "redis-server did not start")
            for load in REDIS_LOADS:
                run(["redis-benchmark", "-s", socket, "-q", "-P", "8", "-r", str(1000 + seed % 1000), *load])
            run(client + ["bgsave"])
            wait_until(lambda: "rdb_bgsave_in_progress:0" in run(client + ["info", "persistence"]),
                       "redis-server did not save")
            run(client + ["shutdown", "nosave"])
            if server.wait(60) != 0:
                raise Trouble("redis-server: status %d" % server.returncode)
        finally:
            if server.poll() is None:
                server.kill()


def wait_until(holds, what):
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)
    raise Trouble(what)


def work_sqlite(seed, folder, environment):
    script = os.path.join(folder, "rows.sql")
    with open(workload("rows.sql"), encoding="utf-8") as rows, open(script, "w", encoding="utf-8") as out:
        out.write("CREATE TABLE setting (seed INTEGER);\nINSERT INTO setting VALUES (%d);\n" % seed)
        out.write(rows.read())
    run(["sqlite3", ":memory:", ".read " + script], environment)


def work_cmake(seed, folder, environment):
    run(["cmake", "-DSEED=%d" % seed, "-P", workload("lists.cmake")], environment)


@functools.lru_cache(maxsize=None)
def ways(folder):
    program = os.path.join(folder, "ways")
    run(["g++", "-O2", "-g", "-std=c++20", "-pthread", workload("ways.cpp"), "-o", program])
    return program


def work_ways(seed, folder, environment):
    run([ways(folder), str(seed), "100"], environment)


PROGRAMS = [
    Program("python3", [], [python(), "--version"], work_python),
    Program("gcc and g++ (cc1, cc1plus, as)", ["gcc", "g++"], ["gcc", "--version"], work_gcc),
    Program("git", ["git"], ["git", "--version"], work_git),
    Program("perl", ["perl"], ["perl", "-e", "print substr($^V, 1)"], work_perl),
    Program("redis-server", [REDIS, "redis-benchmark", "redis-cli"],
            ["redis-cli", "--version"], work_redis),
    Program("sqlite3", ["sqlite3"], ["sqlite3", "--version"], work_sqlite),
    Program("cmake (C++)", ["cmake"], ["cmake", "--version"], work_cmake),
    Program("ways.cpp (C++, ours)", ["g++"], ["g++", "--version"], work_ways),
]
SHORT = ("python3", "git", "perl", "sqlite3", "ways.cpp")
