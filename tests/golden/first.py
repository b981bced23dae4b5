# SPDX-License-Identifier: MIT
"""first.py: the usual report shows what is wrong with a program, and commands that can be pasted as they
are; of a program with nothing wrong it does not. Fragmentation is looked at when it is worst."""

import json
import os
import re
import shlex
import sys

import reports
import lives
from recorded import only_recording, profiles, record
from harness import BUILD, MEMTRACE, SOURCE, build, clean_environment, equal, execute, fail, finish, scratch

QUIET = """
#include <stdlib.h>
int main(void) {
    static void *all[3000];
    for (int i = 0; i < 3000; i++) { all[i] = malloc(1000); }
    for (int i = 0; i < 3000; i++) { free(all[i * 7 % 3000 + 0]); all[i * 7 % 3000] = 0; }
}
"""


# A vector that grows to 100 numbers makes 8 allocations, of 1, 2, 4 to 128 of them: seven are freed right after the next one,
# only the last one before it.
GROWING = """
#include <unistd.h>
#include <vector>
__attribute__((noinline)) static long grow(void) {
    std::vector<long> numbers;
    for (long i = 0; i < 100; i++) { numbers.push_back(i); } // the line
    return numbers.back();
}
int main(void) {
    long sum = 0;
    usleep(60000); // so that a tick of the clock is little beside the run
    for (int i = 0; i < 8000; i++) { sum += grow(); }
    return sum == 8000 * 99 ? 0 : 1;
}
"""
GROWN = 8000 * 8
GROWING_LINE = 1 + GROWING.split("// the line")[0].count("\n")


# A cache of 2,000 blocks of 300 bytes that grows with each fourth request and is freed at exit; with an argument all of it is
# there at the start.
CACHE = """
#include <stdlib.h>
#include <unistd.h>
static void *cache[2000];
static void *volatile reply;
__attribute__((noinline)) static void fill(int i) { cache[i] = malloc(300); __asm__ volatile(""); }
static void clear(void) { for (int i = 0; i < 2000; i++) { free(cache[i]); } }
int main(int count, char **arguments) {
    (void)arguments;
    atexit(clear);
    for (int i = 0; count > 1 && i < 2000; i++) { fill(i); }
    for (int i = 0; i < 8000; i++) {
        free(reply = malloc(100));
        if (count == 1 && i % 4 == 0) { fill(i / 4); }
        if (i % 100 == 0) { usleep(16000); }
    }
}
"""


def written(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def usual(path, folder, *options):
    return reports.written(os.path.basename(path), *options, cwd=folder).decode()


def titles(text):
    return [line for before, line in zip([""] + text.split("\n"), text.split("\n")) if before == "" and line]


def hints(text):
    return re.findall(r"^  (memtrace report [^#\n]*[^# \n]) *#", text.split("\nNext\n")[1], re.MULTILINE)


def paste(command, folder):
    """The command as it stands, in a shell."""
    path = os.path.dirname(MEMTRACE) + ":" + os.environ["PATH"]
    done = execute(["sh", "-c", command], clean_environment(PATH=path, **reports.SETTINGS), folder)
    if done.returncode != 0 or not done.stdout:
        fail(command, done.returncode, done.stderr)


def wrong_program():
    """A leak, temporaries and holes: examples/newsdesk."""
    folder = os.path.join(scratch(), "it's a folder")
    os.makedirs(folder)
    program = build(os.path.join(SOURCE, "examples", "newsdesk", "newsdesk.cpp"), optimize="-O2")
    equal(record([program], folder, "--precise").returncode, 0, "newsdesk")
    found = only_recording(folder, "newsdesk")
    path = os.path.join(folder, "a day's.mtr")
    os.rename(found, path)
    text = usual(path, folder)
    shown = titles(text)
    for title in ("Findings", "Top call paths by temporary allocations", "Fragmentation", "Most allocations", "Next"):
        if title not in shown:
            fail("newsdesk:", title, "is not in", shown)
    if not shown.index("Findings") < shown.index("Top call paths by temporary allocations") < shown.index("Fragmentation") < \
            len(shown) - 1 or shown[-1] != "Next":
        fail("what is wrong does not come first:", shown)
    commands = hints(text)
    equal([re.search("--show-[a-z]*", command).group() for command in commands],
          ["--show-leaked", "--show-temporary", "--show-fragmentation", "--show-allocations"], text[-500:])
    findings_come_first(path, folder, text)
    for command in commands:
        paste(command, folder)
    part = reports.written(os.path.basename(path), "--function", "Topics::find|it's", cwd=folder).decode()
    for command in hints(part):
        paste(command, folder)
    worst_moment(path)


def findings_come_first(path, folder, text):
    """The first five of --show-findings, as they are there."""
    every = usual(path, folder, "--show-findings").split("Findings\n")[1].rstrip("\n").split("\n")
    told = text.split("\nFindings\n")[1].split("\n\n")[0].split("\n")
    equal(told, every[:len(told)], "findings of the usual report")
    count = len([line for line in every if re.match(" +[0-9]+[.] ", line)])
    equal(len([line for line in told if re.match(" +[0-9]+[.] ", line)]), min(5, count), "findings of the usual report")


def growing_program():
    """No block of it is freed before the next allocation but one of eight: what makes most allocations is told all the same, and
    Next names nothing that was run."""
    folder = scratch()
    source = written(folder, "growing.cpp", GROWING)
    program = build(source, optimize="-O1")
    equal(record([program], folder, "--precise").returncode, 0, "growing")
    path = only_recording(folder, "growing")
    found = [row for row in reports.tables(path, "--show-findings")["findings"] if row["kind"] == "temporary"]
    equal([(row["title"], row["count"]) for row in found], [("grow allocates for a moment", GROWN)], "hot temporaries")
    profile = execute([MEMTRACE, "run", "-o", "growing.mtp", "--", program], clean_environment(), folder)
    equal(profile.returncode, 0, profile.stderr)
    found = [row for row in reports.tables(os.path.join(folder, "growing.mtp"), "--show-findings")["findings"]
             if row["kind"] == "temporary"]
    equal([row["title"] for row in found], ["grow allocates for a moment"], "hot temporaries of a profile")
    if not GROWN * 0.9 <= found[0]["count"] <= GROWN or "within 4.2 ms" not in found[0]["sentence"]:
        fail("hot temporaries of a profile:", found)
    for file in (path, os.path.join(folder, "growing.mtp")):
        text = usual(file, folder)
        most = text.split("\nMost allocations\n")[1].split("\n")[1]
        for word in ("{:,}".format(GROWN), "{:,}".format(GROWN // 8), "grow at growing.cpp:%d" % GROWING_LINE):
            if word not in most:
                fail(file, word, "is not in the line of who allocates most:", most)
        commands = hints(text)
        if not any("--show-allocations" in command for command in commands):
            fail(file, "Next does not offer who allocates most often:", commands)
        for options in ((), ("--flat",), ("--bottom-up",)):
            for command in hints(usual(file, folder, *options)):
                if options and command.endswith(os.path.basename(file) + " " + " ".join(options)):
                    fail(command, "is offered after", options)


# Of 21,000 allocations 500 are freed after the thread's next one: what is called temporary is what --show-temporary shows.
NEARLY = """
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) static void *get(int size) { void *volatile made = malloc(size); return made; }
int main(void) {
    usleep(60000);
    for (int i = 0; i < 20000; i++) { free(get(10)); }
    for (int i = 0; i < 500; i++) {
        void *first = get(11);
        void *second = get(12);
        free(first);
        free(second);
    }
}
"""


def nearly_temporary():
    folder = scratch()
    source = written(folder, "nearly.c", NEARLY)
    execute([MEMTRACE, "run", "-o", "nearly.mtp", "--", build(source)], clean_environment(), folder)
    found = [row for row in reports.tables(os.path.join(folder, "nearly.mtp"), "--show-findings")["findings"]
             if row["kind"] == "temporary"]
    if equal(len(found), 1, "functions that allocate for a moment"):
        equal(found[0]["count"], 20500, "temporary allocations of get", found[0]["sentence"])


def grown_cache():
    """What grew until the program began to end is found though it was all freed, with its rate; what was loaded is not."""
    folder = scratch()
    source = written(folder, "cached.c", CACHE)
    program = build(source)
    for arguments, wanted in (([], ["Memory held by fill grows"]), (["loaded"], [])):
        folder = scratch()
        equal(record([program, *arguments], folder, "--precise").returncode, 0, "cached", arguments)
        found = [row for row in reports.tables(only_recording(folder, "cached"), "--show-findings")["findings"]
                 if row["kind"] == "growth"]
        if not equal([row["title"] for row in found], wanted, "growth", arguments) or not found:
            continue
        # It is looked at when 99.9 % of the allocations are over.
        if not 0.99 * 2000 * 300 <= found[0]["bytes"] <= 2000 * 300:
            fail("the cache held", 2000 * 300, "bytes, and the finding says", found[0]["bytes"])
        words = shlex.split(found[0]["command"])[1:]
        shown = json.loads(execute([MEMTRACE, *words, "--json"], clean_environment(**reports.SETTINGS), folder).stdout)
        equal(sum(row["cost"] for row in shown["reports"][0]["rows"] if row["depth"] == 0), found[0]["bytes"], "its command")
        rate = re.search(r" end, ([0-9.]+) s after .* by ([0-9.]+) KiB a second", found[0]["sentence"])
        if rate is None or abs(float(rate.group(1)) * float(rate.group(2)) * 1024 / (2000 * 300) - 1) > 0.06:
            fail("the rate of the cache:", found[0]["sentence"])


def unused(path, *options):
    told = reports.tables(path, "--show-fragmentation", *options)["fragmentation"][0]
    return told["hole_bytes"], told["time_ns"]


def worst_moment(path):
    """No moment with an allocation next has more; a twentieth is for pages and bytes."""
    worst, time_ns = unused(path)
    births = sorted({life.birth for life in lives.Story(path).lives if life.heap})
    last_ns = births[-1]
    for at in births[::len(births) // 8 + 1] + births[-2:]:
        other, _ = unused(path, "--at", "%.9fs" % (at / 1e9))
        if other * 0.95 > worst:
            fail(path, "has", other, "bytes in holes at", at, "ns, and", worst, "at", time_ns)
    if time_ns > last_ns + 1:
        fail(path, "fragmentation is told of", time_ns, "after the last allocation at", last_ns)


def quiet_program():
    folder = scratch()
    source = written(folder, "quiet.c", QUIET)
    program = build(source)
    equal(record([program], folder, "--precise").returncode, 0, "quiet")
    text = usual(only_recording(folder, "quiet"), folder)
    for title in titles(text):
        if title in ("Top call paths by temporary allocations", "Fragmentation"):
            fail("a program with nothing wrong has a section", title)
    for command in hints(text):
        paste(command, folder)


def others():
    """Any program's worst moment, and one whose recording holds no heap block."""
    folder = scratch()
    program = build(os.path.join(reports.HERE, "..", "selection", "busy.c"))
    equal(record([program, "7", "2", "3000"], folder, "--precise").returncode, 0, "busy")
    worst_moment(only_recording(folder, "busy"))
    equal(unused(only_recording(folder, "busy"), "--from", "start")[0] > 0, True, "holes from the start on")


wrong_program()
quiet_program()
growing_program()
nearly_temporary()
grown_cache()
others()
finish()
