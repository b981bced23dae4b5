#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""storm.py [--minutes N] [--seed N] [--memtrace COMMAND] [--plain COMMAND] [--keep FOLDER] [--only WORD], or storm.py
--found: files that are damaged by somebody who knows the format (damage_blocks.c), through every command that reads,
in ones and twos, and through the answers of `memtrace serve`, until the time is over. TEST_BUILD says where MemTrace
was built; --memtrace is a command that was built with sanitizers (-DMEMTRACE_SANITIZE="address;undefined"), which see
what else stays silent; --plain is one without, for files that unpack to far more than their size.

What counts as found: a sanitizer's report, an end by a signal, a server that dies, and more memory, disk or time than
a file of that size can need. Each place is told once, with its seed and the seconds until then, and its files and
command are kept in --keep. The status is 1 if there was one. --found: only what was found once (make_found.c).

Before this, only commands.py damaged blocks behind right checksums: it hit single bytes anywhere, of a file whose
texts all ended, ran no sanitizer, never `serve`, `diff`, `top` or two processes at once, and never looked at memory. A
text without an end, an id just below 2^24 in the column of frees' paths, a profile without nodes and a block of zeros
repeated to 50 MiB have to be made on purpose; and what reads a few bytes too far mostly ends with status 0."""

import argparse
import gzip
import http.client
import json
import os
import random
import re
import resource
import select
import signal
import subprocess
import sys
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "recording"))

from commands import COMMANDS, DAMAGE_BLOCKS, OUTPUT, damage  # noqa: E402
from recorded import record, recordings  # noqa: E402
from harness import MEMTRACE, build, execute, fail, finish, profiles, scratch  # noqa: E402

MANY = 8
SPARE_MIB, SPARE_S = 400, 20  # what sanitizers take, and a busy machine
LIMIT_MIB = 128  # asked for where events are grown
FIRST, SECOND, RUN = "FIRST", "SECOND", "RUN"
ONES = [words[:1] + [FIRST] + words[1:] if words[0] != "check" else words + [FIRST] for words in COMMANDS]
PROFILE_ONES = [["repack", "--raw", "--output", OUTPUT, FIRST]]
RECORDING_ONES = [["export", FIRST, "--format", "replay", "--output", OUTPUT], ["report", FIRST, "--show-shutdown"],
                  ["report", FIRST, "--show-leaked", "--chain-leaked", "--freed-by-others"],
                  ["report", FIRST, "--show-caller-callee", "/./", "--between", "begin,end"]]
ONES += [["top", "--once", "-i", "50ms", FIRST], ["top", "--once", "-i", "50ms", "--paths", FIRST],
         ["extract", "--output", OUTPUT, FIRST], ["report", FIRST, "--flat", "--show-pools", "--show-processes"],
         ["report", FIRST, "--csv"], ["report", FIRST, "--show-findings"], ["report", FIRST, "--show-peak"],
         ["symbolize", FIRST], ["report", FIRST, "--bottom-up", "--show-allocated", "--all-frames"],
         ["query", FIRST, "SELECT sum(length(command)), count(*) FROM processes"]]
PAIRS = [["diff", FIRST, SECOND], ["diff", "--json", FIRST, SECOND], ["diff", "--limit", "1", SECOND, FIRST],
         ["merge", "--output", OUTPUT, FIRST, SECOND], ["report", RUN], ["info", RUN], ["top", "--once", "-i", "50ms", RUN],
         ["diff", RUN, FIRST], ["check", "leaked <= 0", RUN], ["merge", "--output", OUTPUT, RUN],
         ["report", "--json", RUN], ["report", "--show-processes", "--processes", "0", RUN], ["info", "--json", RUN],
         ["query", RUN, "SELECT * FROM processes"], ["report", "--process", "1", RUN]]
ALL = [["report", "--all-processes", RUN], ["report", "--all-processes", "--json", FIRST],
       ["query", "--all-processes", RUN, "SELECT * FROM processes"], ["query", "--all-processes", RUN, "SELECT * FROM contexts"],
       ["diff", "--all-processes", FIRST, SECOND], ["report", "--all-processes", FIRST],
       ["export", "--all-processes", "--format", "folded", "--output", OUTPUT, RUN]]
WRITERS = ("extract", "repack", "merge", "strip", "anonymize")
SANITIZERS = re.compile(r"runtime error:|(?:Address|UndefinedBehavior|Leak)Sanitizer")
OWN = re.compile(r"(?:analyze|ask|collect|web|cli|top|stream)/[a-z_/]+\.[ch]:\d+")
ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=0:exitcode=99:allocator_may_return_null=1:detect_stack_use_after_return=0",
               "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=99", "MEMTRACE_CACHE": ""}
NUMBERS = (0, 1, 2, 3, 7, 100, 4096, (1 << 24) - 16, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 63, (1 << 64) - 1)
WORDS = {"direction": ("down", "up"), "over": ("time", ""), "per": ("path", ""), "passes": ("", "1"), "graphs": ("", "1"),
         "sizes": ("", "1"), "all": ("", "1"), "metric": ("live", "peak", "total", "allocations", "leaked", "temporary", "x"),
         "regex": (".", "main", "("), "format": ("json", "folded", "pprof", "html", "speedscope", "csv", "sqlite")}


def ways_of_api():
    """Every answer that is got, of the document that the server gives: path, names of what can be asked."""
    with open(os.path.join(HERE, "..", "..", "web", "openapi.json"), encoding="utf-8") as file:
        paths = json.load(file)["paths"]
    ways = []
    for path, way in paths.items():
        if "get" in way and not path.endswith("/events"):
            told = way["get"].get("parameters", [])
            ways.append((path, [one["name"] for one in told if one.get("in") == "query"] +
                         [one["$ref"].rsplit("/", 1)[1] for one in told if "$ref" in one]))
    return ways


class Need:
    """What the undamaged file takes, of the same command."""

    def __init__(self, mib, seconds):
        self.mib, self.seconds = mib, seconds


class Storm:
    def __init__(self, options, folder):
        self.options, self.folder, self.start = options, folder, time.monotonic()
        self.memtrace = options.memtrace or MEMTRACE
        self.plain = options.plain or MEMTRACE
        self.needs, self.found, self.runs, self.seed, self.answers, self.by_command = {}, {}, 0, 0, 0, {}
        told = execute([self.plain, "report", "--help"]).stdout
        self.limited = ["--memory-limit", "%dM" % LIMIT_MIB] if b"--memory-limit" in told else []

    def spell(self, memtrace, words, names):
        names = {OUTPUT: os.path.join(self.folder, "output"), **names}
        return [memtrace] + [names.get(word, word) for word in words]

    def execute(self, words, patience, most_mib):
        """status, errors, MiB, seconds of the processor (or those that were too many), MiB written."""
        errors = os.path.join(self.folder, "errors")
        start = time.monotonic()

        def prepare():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with open(errors, "wb") as to:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=to,
                                       cwd=self.folder, env={**os.environ, **ENVIRONMENT}, preexec_fn=prepare)
        pid, status, wait, late = 0, 0, 0.002, 0
        while pid == 0:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            late = time.monotonic() - start if time.monotonic() - start > 5 * patience else 0
            if pid == 0 and (late or memory_mib(process.pid) > most_mib):
                process.kill()
                pid, status, usage = os.wait4(process.pid, 0)
            time.sleep(wait if pid == 0 else 0)
            wait = min(wait * 1.2, 0.05)
        process.returncode = os.waitstatus_to_exitcode(status)
        with open(errors, encoding="utf-8", errors="replace") as file:
            said = file.read(1 << 20)
        return process.returncode, said, usage.ru_maxrss >> 10, late or usage.ru_utime + usage.ru_stime, self.clear()

    def clear(self):
        """MiB of what was written, which goes."""
        output = os.path.join(self.folder, "output")
        size = 0
        for at, _, names in os.walk(self.folder):
            if at.startswith(output) or any(name.startswith("output") for name in names):
                size += sum(os.lstat(os.path.join(at, name)).st_blocks * 512 for name in names
                            if at.startswith(output) or name.startswith("output"))
        subprocess.run("rm -rf %s*" % output, shell=True, check=True)
        return size >> 20

    def need_of(self, memtrace, words, names):
        key = (memtrace, tuple(words), tuple(sorted(names.items())))
        if key not in self.needs:
            self.needs[key] = Need(*self.execute(self.spell(memtrace, words, names), 120, 4000)[2:4])
        return self.needs[key]

    def tell(self, place, words, files, said):
        if place in self.found:
            return
        self.found[place] = self.seed
        print("FOUND after %.0f s, seed %d: %s\n  %s" % (time.monotonic() - self.start, self.seed, place, " ".join(words)))
        lines = [line[:180] for line in said.splitlines() if SANITIZERS.search(line) or re.match(r" *#\d", line)]
        print("  " + "\n  ".join((lines or said.splitlines()[-3:])[:16])[:2500], flush=True)
        if self.options.keep:
            number = len(self.found)
            for name, path in files.items():
                to = os.path.join(self.options.keep, "%d.%s%s" % (number, name, os.path.splitext(path)[1]))
                subprocess.run(["cp", "-r", path, to], check=True)
            with open(os.path.join(self.options.keep, "%d.txt" % number), "w", encoding="utf-8") as out:
                out.write("seed %d\n%s\n%s" % (self.seed, " ".join(words), said[:100000]))

    def judge(self, result, words, files, most_mib, most_s, most_written):
        status, said, mib, seconds, written = result
        own = OWN.search(said)
        command = words[1]
        if SANITIZERS.search(said):
            self.tell("sanitizer: " + (own.group(0) if own else "%s, status %d" % (command, status)), words, files, said)
        elif mib > most_mib:
            self.tell("memory of " + command, words, files, "%d MiB, %d would do\n%s" % (mib, most_mib, said))
        elif seconds > most_s:
            self.tell("time of " + command, words, files, "%d s, %d would do\n%s" % (seconds, most_s, said))
        elif written > most_written:
            self.tell("disk of " + command, words, files, "%d MiB, %d would do\n%s" % (written, most_written, said))
        elif status not in (0, 1, 2):
            self.tell("status %d of %s" % (status, command), words, files, said)
        self.runs += 1
        self.by_command[command] = self.by_command.get(command, 0) + seconds

    def run(self, words, files, wholes):
        need = self.need_of(self.memtrace, words, wholes)
        most_mib, most_s = MANY * need.mib + SPARE_MIB, MANY * need.seconds + SPARE_S
        spelled = self.spell(self.memtrace, words, files)
        self.judge(self.execute(spelled, most_s + SPARE_S, most_mib + SPARE_MIB), spelled, files, most_mib, most_s, 1 << 20)

    def run_grown(self, words, files, kind):
        """Without a sanitizer: what it takes is what counts. Events may be honest, so what they take is asked for."""
        size = os.path.getsize(files[FIRST]) >> 10
        # Of tables as analyze/read/budget.h has it; a recording's stand in memory several times.
        honest = 4 * (32 + size // 4) + 100 if files[FIRST].endswith(".mtr") else 2 * (192 + size // 4) + 100
        limited = self.limited if kind == "events" else []
        if kind == "events" and words[0] in ("top", "symbolize", "import", "replay"):
            return
        most_mib = LIMIT_MIB + 100 if limited else honest
        spelled = self.spell(self.plain, words[:1] + limited + words[1:], files)
        most_written = size // 4 + 192 if words[0] in WRITERS else 1 << 20
        most_s = 2 * SPARE_S + size // 1024
        self.judge(self.execute(spelled, most_s + SPARE_S, most_mib + 200), spelled, files, most_mib, most_s, most_written)

    # ---- The server ----

    def ask(self, files, dice, kind=""):
        """All that a page could ask of a file that is served, ids of all kinds among them."""
        errors = os.path.join(self.folder, "served")
        start = time.monotonic()
        memtrace = self.plain if kind else self.memtrace
        words = [memtrace, "serve", "--no-open"] + (self.limited if kind == "events" else []) + [files[FIRST]]
        with open(errors, "wb") as to:
            server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=to, text=True, env={**os.environ, **ENVIRONMENT},
                                      cwd=self.folder)
        line = server.stdout.readline() if select.select([server.stdout], [], [], 60)[0] else ""
        found = re.search(r"http://[^:/]+:(\d+)/\S*token=(\S+)", line)
        asked, good = "", 0
        if found:
            asking = Asking(int(found.group(1)), found.group(2), dice)
            while asking.status("/r/1") == 503 and time.monotonic() - start < 30:
                time.sleep(0.05)  # it is read
            unknown = 0
            for asked in asking.wishes():
                status = asking.status(asked)
                good += status == 200
                unknown = unknown + 1 if status == 404 and "blocks" in asked else 0
                self.answers += 1
                if status == 0:
                    ended(server)
                if server.poll() is not None or time.monotonic() - start > 40 or unknown > 3:
                    break
            asking.close()
        died = server.poll() if found else None
        mib = memory_mib(server.pid) if server.poll() is None else 0
        server.kill()
        server.wait()
        server.stdout.close()
        self.clear()
        with open(errors, encoding="utf-8", errors="replace") as file:
            said = file.read(1 << 20)
        most_mib = LIMIT_MIB + SPARE_MIB if kind else 4 * SPARE_MIB
        self.judge((died or 0, said, mib, time.monotonic() - start, 0), words + [asked], files, most_mib, 120, 1)
        return good


class Asking:
    """Of one server."""

    def __init__(self, port, token, dice):
        self.port, self.token, self.dice, self.connection = port, token, dice, None
        self.ids = {"hash": ["0", "ffffffffffffffff"], "id": ["0", "1"]}

    def wishes(self):
        ways = ways_of_api()
        self.dice.shuffle(ways)
        for path, names in ways:
            yield self.spell(path, names)
        for hashed in self.ids["hash"][:20]:
            yield "/r/1/paths/%s?sizes=1" % hashed
        for number in range(1, 130):
            yield "/r/1/blocks/%d" % number

    def spell(self, path, names):
        dice = self.dice
        path = path.replace("{r}", "1" if dice.random() < 0.95 else "2")
        path = re.sub(r"\{(\w+)\}", lambda m: dice.choice(self.ids.get(m.group(1), [])[-20:] or WORDS.get(m.group(1), ()) or
                                                          [str(dice.choice(NUMBERS))]), path)
        query = {}
        for name in names:
            if name in ("rows", "shape", "r", "filters") or dice.random() < 0.5:
                continue
            query[name] = dice.choice(WORDS.get(name, [str(number) for number in NUMBERS]))
        return path + ("?" + urllib.parse.urlencode(query) if query else "")

    def status(self, path):
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            self.connection.request("GET", "/api/v1" + path, headers={"Authorization": "Bearer " + self.token})
            answer = self.connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            return 0
        for name, found in self.ids.items():
            found += [text.decode() for text in re.findall(rb'"%s": ?"?(\w+)' % name.encode(), body[:100000])][:50]
        return answer.status

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


def ended(server):
    """It does not answer: it may be on its way out."""
    try:
        server.wait(2)
    except subprocess.TimeoutExpired:
        pass


def memory_mib(pid):
    try:
        with open("/proc/%d/statm" % pid, encoding="utf-8") as file:
            return int(file.read().split()[1]) * resource.getpagesize() >> 20
    except (OSError, IndexError):
        return 0


def make_wholes(folder):
    """Two recordings and two profiles; what is read by `replay` and by `import`."""
    program = build(os.path.join(HERE, "storm_subject.c"), "gcc", "-O1")
    wholes = []
    for options in (["--embed", "symbols"], ["--embed", "none"]):
        os.makedirs(os.path.join(folder, options[1]))
        record([program], os.path.join(folder, options[1]), "--free-stacks", *options)
        wholes.append(max(recordings(os.path.join(folder, options[1])), key=os.path.getsize))
    recording, profile = wholes[1], max(profiles(os.path.join(folder, "none")), key=os.path.getsize)
    packed, raw = os.path.join(folder, "packed.mtp"), os.path.join(folder, "raw.mtp")
    replay = os.path.join(folder, "whole.replay")
    execute([MEMTRACE, "repack", "--output", packed, profile])
    execute([MEMTRACE, "repack", "--raw", "--output", raw, profile])
    execute([MEMTRACE, "export", "--format", "replay", "--output", replay, recording])
    heaptrack = [os.path.join(HERE, "heaptrack", name) for name in sorted(os.listdir(os.path.join(HERE, "heaptrack")))]
    return wholes + [packed, raw], [replay], heaptrack


def damage_run(text, dice):
    """Of run.json: numbers and words, or bytes."""
    if dice.random() < 0.2:
        return damage(text.encode(), dice)

    def other(found):
        if dice.random() > 0.1:
            return found.group(0)
        if found.group(0)[0] != '"':
            return str(dice.choice((-1, 0.5, 1e300, *NUMBERS)))
        return json.dumps(dice.choice(("", "A" * 5000, "../x", "/etc/passwd", "\x1b[2J", "run.json", "damaged0.mtr", "\ud800")))
    return re.sub(r'"[^"]*"(?!:)|(?<=[ ,\[])\d+', other, text).encode()


def ones_of(storm, recording):
    """Also all of each table that a query can have."""
    told = execute([storm.plain, "query", "--schema", recording]).stdout.decode()
    names = re.findall(r"^(\w+): ", told, re.M)
    if len(names) < 5:
        fail("no tables:", told)
    return ONES + [["query", FIRST, "SELECT * FROM \"%s\" LIMIT 2000" % name] for name in names]


def as_run(folder, files):
    """A folder of several processes."""
    subprocess.run(["rm", "-rf", folder], check=True)
    os.makedirs(folder)
    for number, path in enumerate(files):
        subprocess.run(["cp", path, os.path.join(folder, "p.%d%s" % (number + 1, os.path.splitext(path)[1]))], check=True)
    return folder


class Files:
    """Damaged ones of a seed, and what is done with them."""

    def __init__(self, storm, folder):
        self.folder = folder
        self.blocks, self.replays, self.imports = make_wholes(folder)
        self.ones = ones_of(storm, self.blocks[0])

    def ones_for(self, path):
        """The commands that do something with a file of this kind."""
        return self.ones + (RECORDING_ONES if path.endswith(".mtr") else PROFILE_ONES)

    def make(self, seed, number, whole):
        """path, and how it is grown: "", "tables", "events"."""
        path = os.path.join(self.folder, "damaged%d%s" % (number, os.path.splitext(whole)[1]))
        made = execute([DAMAGE_BLOCKS, whole, path, str(2 * seed + number), "grow"])
        if made.returncode != 0:
            fail("damage_blocks", made.returncode, seed, whole, made.stderr)
            finish()
        return path, made.stdout.decode().partition("grown ")[2].strip()

    def make_run(self, dice, names, whole, same):
        """Of two files alone; or the run as it was recorded, its first file and what it says of itself being damaged."""
        if names[FIRST].endswith(".mtp") or dice.random() < 0.5:
            as_run(names[RUN], [names[FIRST], names[SECOND] if same else whole])
            return
        subprocess.run(["rm", "-rf", names[RUN]], check=True)
        subprocess.run(["cp", "-r", os.path.dirname(self.blocks[1]), names[RUN]], check=True)
        if dice.random() < 0.5:
            subprocess.run(["cp", names[FIRST], os.path.join(names[RUN], os.path.basename(self.blocks[1]))], check=True)
        told = os.path.join(names[RUN], "run.json")
        with open(told, encoding="utf-8") as file:
            text = file.read()
        with open(told, "wb") as file:
            file.write(damage_run(text, dice))

    def make_text(self, dice, wholes):
        """Of bytes that are hit anywhere, compressed or not."""
        whole = dice.choice(wholes)
        with open(whole, "rb") as file:
            data = file.read()
        data = damage(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, dice)
        path = os.path.join(self.folder, "damaged.text")
        with open(path, "wb") as file:
            file.write(gzip.compress(data, 1) if dice.random() < 0.5 else data)
        return path, whole


# ---- What was found once (make_found.c) ----

EACH = [["info", FIRST], ["report", FIRST], ["report", "--all-processes", FIRST],
        ["query", FIRST, "SELECT * FROM processes"], ["export", FIRST, "--format", "sqlite", "--output", OUTPUT]]
OF_TWO = [(["top", "--once", "-i", "10ms", FIRST], "nothing.mtp", "nothing.mtp"),
          (["merge", "--output", OUTPUT, FIRST, SECOND], "most.mtp", "most_again.mtp"),
          (["diff", "--limit", "1", FIRST, SECOND], "example.mtp", "most.mtp"),
          (["diff", "--all-processes", FIRST, SECOND], "no_nodes.mtp", "most.mtp"),
          (["query", FIRST, "SELECT * FROM allocations"], "freeing_path.mtr", "freeing_path.mtr")]
# Command, file, MiB that do, and what it says: that there is too much of it.
BOMBS = [(["report", "--show-mappings", FIRST], "smaps.mtr", 64, "--memory-limit SIZE reads it"),
         (["info", FIRST], "modules.mtr", 64, "--memory-limit SIZE reads it"),
         (["report", FIRST], "samples.mtr", 64, "--memory-limit SIZE reads it"),
         (["report", FIRST], "segments.mtp", 400, "--memory-limit SIZE reads it"),
         (["extract", "--output", OUTPUT, FIRST], "files.mtr", 64, "--max-size SIZE writes more"),
         (["report", "--memory-limit", "128M", FIRST], "events.mtr", 192, "the limit is 128.0 MiB")]


def again(storm, folder):
    """Files that did harm once: they do none, and bombs are told as such."""
    execute([os.path.join(os.path.dirname(DAMAGE_BLOCKS), "make_found"), folder])
    small = sorted(set(os.listdir(folder)) - {bomb[1] for bomb in BOMBS})
    if len(small) < 9:
        fail("make_found made", small)
    runs = [(words, name, name) for name in small for words in EACH if name[:-4] not in ("most_again", "example")]
    for words, first, second in runs + OF_TWO:
        names = {FIRST: os.path.join(folder, first), SECOND: os.path.join(folder, second)}
        spelled = storm.spell(storm.memtrace, words, names)
        storm.judge(storm.execute(spelled, 60, 2000), spelled, names, SPARE_MIB, 30, 16)
    for words, name, most_mib, says in BOMBS:
        names = {FIRST: os.path.join(folder, name)}
        spelled = storm.spell(storm.plain, words, names)
        result = storm.execute(spelled, 60, 2000)
        storm.judge(result, spelled, names, most_mib, 30, 16)
        if result[0] == 0 or says not in result[1] or result[1].count("\n") != 1:
            fail(words, name, "status", result[0], "said", result[1][:500])
    for name in ("freeing_path.mtr", "arguments.mtr", "endless.mtp"):
        good = storm.ask({FIRST: os.path.join(folder, name)}, random.Random(1))
        if good < 15:
            fail("serve", name, "answers", good)


def blow(storm, made, seed, all_of_it):
    """The commands that a seed's files go through."""
    only, dice = storm.options.only, random.Random(seed)

    def some(commands, count):
        wanted = [words for words in commands if not only or only in words]
        return dice.sample(wanted, min(count, len(wanted)))
    wholes = [dice.choice(made.blocks) for _ in range(2)]
    (first, kind), (second, other) = [made.make(seed, number, whole) for number, whole in enumerate(wholes)]
    if other and not kind:
        first, kind, wholes[0] = second, other, wholes[1]
    if kind and (storm.options.minutes < 1 or os.path.getsize(first) > 8 << 20):
        return  # they take their time, and --found has some; what is large may take a lot
    same = os.path.splitext(first)[1] == os.path.splitext(second)[1]
    names = {FIRST: first, SECOND: second if not other else wholes[1], RUN: os.path.join(made.folder, "run")}
    made.make_run(dice, names, wholes[0], same)
    if kind:
        for words in some(made.ones_for(first), 5) + some(PAIRS + ALL, 1):
            storm.run_grown(words, names, kind)
    else:
        spare = {FIRST: wholes[0], SECOND: wholes[1], RUN: wholes[0]}
        for commands, count in ((made.ones_for(first), 5), (PAIRS, 1), (ALL, 2)):
            for words in some(commands, count):
                storm.run(words, names, spare)
    if not only and dice.random() < 0.3:
        path, whole = made.make_text(dice, made.replays)
        storm.run(["replay", FIRST], {FIRST: path}, {FIRST: whole})
        path, whole = made.make_text(dice, made.imports)
        storm.run(["import", "--output", OUTPUT, FIRST], {FIRST: path}, {FIRST: whole})
    if (not only or only == "serve") and (all_of_it or dice.random() < 0.3):
        storm.ask(names, dice, kind)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memtrace")
    parser.add_argument("--plain")
    parser.add_argument("--keep")
    parser.add_argument("--only", help="commands that have this word alone; serve: the server")
    parser.add_argument("--found", action="store_true", help="only what was found once")
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    folder = scratch()
    storm = Storm(options, folder)
    if options.found:
        again(storm, scratch())
    else:
        look(storm, options, folder)
    print("seconds: " + ", ".join("%s %.0f" % one for one in sorted(storm.by_command.items(), key=lambda one: -one[1])))
    for place in sorted(storm.found):
        fail(place, "seed", storm.found[place])
    finish()


def look(storm, options, folder):
    made = Files(storm, folder)
    # What looks at nothing finds nothing: whole files are read, and answers come.
    for whole in made.blocks:
        for words in (["report", FIRST], ["info", FIRST]):
            status, said = storm.execute(storm.spell(storm.memtrace, words, {FIRST: whole}), 120, 4000)[:2]
            if status != 0 or SANITIZERS.search(said):
                fail(words, whole, status, said[-2000:])
    good = storm.ask({FIRST: made.blocks[0]}, random.Random(1))
    if good < 60:
        fail("the server does not answer:", good)
    end = storm.start + 60 * options.minutes
    storm.seed = options.seed
    while time.monotonic() < end:
        blow(storm, made, storm.seed, options.only == "serve")
        storm.seed += 1
        if (storm.seed - options.seed) % 50 == 0 or time.monotonic() >= end:
            print("%s: %d files, %d commands, %d answers, %d places found" %
                  (time.strftime("%H:%M:%S"), 2 * (storm.seed - options.seed), storm.runs, storm.answers, len(storm.found)),
                  flush=True)


if __name__ == "__main__":
    main()
