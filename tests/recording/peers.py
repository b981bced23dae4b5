# SPDX-License-Identifier: MIT
"""peers.py CASE: what bytehound's integration tests ask of it, asked of MemTrace: each case names the
tests that it stands for. Everything is as MemTrace does it unasked (settings say where files lie, and
what a case is about), in four ways: `memtrace record`, `memtrace run`, and preloaded by hand, with a
profile or with a recording.

Blocks of one thread are in the order in which it took them. The order of those of different threads,
and times, are as fine as the recording's clock, some milliseconds: idle.py compares them.
"""

import json
import os
import re
import signal
import subprocess
import sys

from recorded import child_of, is_closed, report_so_far, wait_until  # finds the modules below
from harness import (MEMTRACE, PRELOAD, TIMEOUT, build, clean_environment, equal, execute, fail, files,
                     finish, have, report, scratch)
from rust import compile_rust

PAGE = 4096
WAIT_SECONDS = 60
WAYS = {  # command, settings, what it leaves
    "record": ([MEMTRACE, "record", "--no-summary", "--"], {}, ".mtr"),
    "run": ([MEMTRACE, "run", "--no-summary", "--"], {}, ".mtp"),
    "preloaded": ([], {"LD_PRELOAD": PRELOAD, "MEMTRACE_SUMMARY": "0"}, ".mtp"),
    "preloaded, recording": ([], {"LD_PRELOAD": PRELOAD, "MEMTRACE_SUMMARY": "0",
                                  "MEMTRACE_RECORD": "1"}, ".mtr"),
}
RECORDING = [way for way, (_, _, ending) in WAYS.items() if ending == ".mtr"]


class Run:
    """A program that was started in one of the ways, in a folder of its own."""

    def __init__(self, way, command, **settings):
        prefix, more, self.ending = WAYS[way]
        self.folder = scratch()
        self.what = "%s, %s:" % (" ".join(map(os.path.basename, command)), way)
        self.environment = clean_environment(**{
            "MEMTRACE_REGION_DIR": scratch(where="/dev/shm"), **more, **settings})
        self.process = subprocess.Popen(prefix + command, cwd=self.folder, env=self.environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.is_ours = prefix != []

    def pid(self):
        """Of the program, which waits for input, not of the command that started it."""
        return child_of(self.process.pid) if self.is_ours else self.process.pid

    def line(self):
        return self.process.stdout.readline()

    def say(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def end(self, status=3):
        """Closes its input. What it wrote, without what was read of it."""
        out, err = self.process.communicate(timeout=TIMEOUT)
        equal((self.process.returncode, err), (status, b""), self.what, "status and stderr", out)
        equal(b"WRONG" in out, False, self.what, out)
        if self.environment.get("MEMTRACE_RECORD") or status < 0:
            self.wait_until(self.is_complete, "the end of the file")
        return out

    def is_complete(self):
        """A collector may still be at it; what a killed program left, the next command finishes."""
        execute([MEMTRACE, "list"], self.environment)
        found = files(self.folder, self.ending)
        return found and all(is_closed(path) if self.ending == ".mtr" else True for path in found)

    def has_begun(self):
        """A recording is there, and can be read."""
        found = files(self.folder, ".mtr")
        return found and report_so_far(found[0]) is not None

    def wait_until(self, condition, what):
        wait_until(condition, self.what + " " + what, WAIT_SECONDS)

    def path(self):
        """Of the only recording or profile."""
        return only(files(self.folder, self.ending), self.what)


def only(found, what):
    if len(found) != 1:
        fail(what, "one file was expected:", found)
        finish()
    return found[0]


def done(way, command, **settings):
    run = Run(way, command, **settings)
    run.end()
    return run


def ask(source, sql, *options):
    """The rows of a statement. Files and process numbers are asked alike."""
    result = execute([MEMTRACE, "query", "--format", "json", *options, str(source), sql])
    if result.returncode != 0:
        fail(sql, source, result.stderr.decode(errors="replace"))
        finish()
    return json.loads(result.stdout)


# Blocks that the subject took itself: not those of pthread_create, dlopen and so on.
OWN = "IN (SELECT context FROM frames WHERE level = 0 AND file REGEXP '/(peers|returns|plugin)[^/]*$')"


def costs(source, *options):
    """{size of the only block of a call path: how often it was freed}."""
    rows = ask(source, "SELECT * FROM contexts WHERE class = 'heap' AND id " + OWN, *options)
    return {row["total_bytes"] // row["allocations"]: row["frees"] / row["allocations"]
            for row in rows}


def sums(source):
    """Blocks, bytes and frees of all that the subject took."""
    return tuple(ask(source, "SELECT sum(allocations), sum(total_bytes), sum(frees) FROM contexts WHERE "
                             "class = 'heap' AND id " + OWN)[0].values())


def paths(source):
    """{size of the only block of a call path: its functions from main on}."""
    rows = ask(source, "SELECT * FROM contexts WHERE class = 'heap' AND id " + OWN)
    found = {row["total_bytes"] // row["allocations"]: row["path"].split(";") for row in rows}
    return {size: path[path.index("main"):] for size, path in found.items() if "main" in path}


def blocks(source):
    """Rows of the subject's own blocks, thread by thread in their order."""
    return ask(source, "SELECT a.*, f.function, f.line, max(chain_length) OVER (PARTITION BY chain) AS "
                       "whole_chain FROM allocations a JOIN frames f ON f.context = a.context AND "
                       "f.level = 0 WHERE a.context %s ORDER BY a.thread, a.number" % OWN)


def by_thread(source):
    """Lists of sizes, one for each thread."""
    found = {}
    for block in blocks(source):
        found.setdefault(block["thread"], []).append(block["size"])
    return sorted(found.values())


def c_program():
    return build("peers.c", "gcc", "-O0", flags=["-rdynamic"])


def cxx_program():
    return build("peers_cxx.cpp", "gcc", "-O0")


# --- blocks ----------------------------------------------------------------------------------------

BASIC = {11: 0, 111: 1, 1111: 1, 11111: 0, 111111: 0, 1111111: 0}  # size: freed


def check_basic(source, what):
    equal(costs(source), BASIC, what, "blocks")
    if not source.endswith(".mtr"):
        return
    found = blocks(source)
    equal([block["size"] for block in found], sorted(BASIC), what, "their order")
    equal([block["freed"] is not None for block in found], [BASIC[size] == 1 for size in sorted(BASIC)],
          what, "freed ones")
    equal({block["thread"] for block in found} == {found[0]["thread"]}, True, what, "one thread")
    equal([block["whole_chain"] for block in found], [1, 1, 2, 2, 1, 1], what, "reallocations")
    equal(found[3]["realloc_of"], found[2]["id"], what, "what was reallocated")
    equal(found[5]["address"] % 65536, 0, what, "the aligned block's address")
    equal(found[1]["line"], found[0]["line"] + 1, what, "lines that follow each other")


def basic():
    """test_basic."""
    for way in WAYS:
        run = done(way, [c_program(), "basic"])
        check_basic(run.path(), run.what)


def alloc_in_tls():
    """test_alloc_in_tls: of bytehound it is asked only that there is a file."""
    for way in WAYS:
        run = done(way, [cxx_program(), "thread_local"])
        found = ask(run.path(), "SELECT sum(allocations) AS taken, sum(frees) AS freed FROM contexts "
                                "WHERE id %s AND total_bytes / allocations IN (10123, 10333)" % OWN)
        equal(found, [{"taken": 4, "freed": 4}], run.what, "blocks of two threads' objects")


# --- mappings --------------------------------------------------------------------------------------

# Pages mapped at a place: pages of it that stay.
STAY = {127: 127, 5: 5, 11: 0, 13: 7, 17: 1, 19: 17, 23: 22, 29: 0, 31: 1, 1: 1}


def mappings():
    """test_mmap_with_set_vma_anon_name, test_mmap_without_set_vma_anon_name."""
    for way in WAYS:
        run = Run(way, [c_program(), "mappings"])
        named = run.line() == b"named\n"
        if run.ending == ".mtr":
            run.wait_until(lambda: run.has_begun() and ask(run.path(), TOUCHED), "a look at smaps")
        run.end()
        rows = ask(run.path(), "SELECT * FROM contexts WHERE class = 'mapping' AND id " + OWN)
        equal({row["total_bytes"] // PAGE: row["live_bytes"] // PAGE for row in rows}, STAY, run.what,
              "pages")
        if run.ending == ".mtr":
            check_pieces(run)
            check_smaps(run, named)


TOUCHED = "SELECT * FROM smaps WHERE size = 5 * 4096 AND resident_bytes = 2 * 4096"
PIECES = {  # (page of the mapping where a piece begins, its pages, whether it was unmapped)
    127: [(0, 127, False)], 5: [(0, 5, False)], 11: [(0, 11, True)],
    13: [(0, 6, True), (6, 7, False)],  # cut at the start,
    17: [(0, 1, False), (1, 16, True)],  # at the end,
    19: [(0, 3, False), (3, 2, True), (5, 14, False)],  # in the middle,
    23: [(0, 22, False), (22, 1, True)], 1: [(0, 1, False)],  # and by another mapping
    29: [(0, 29, True)], 31: [(0, 30, True), (30, 1, False)],
}


def own_mappings(path):
    """{pages: its pieces, by address}."""
    found = {}
    for row in ask(path, "SELECT * FROM mappings WHERE context %s ORDER BY id, address" % OWN):
        found.setdefault(row["id"], []).append(row)
    return {sum(row["size"] for row in pieces) // PAGE: pieces for pieces in found.values()}


def check_pieces(run):
    found = own_mappings(run.path())
    for pages, pieces in found.items():
        start = pieces[0]["address"]
        equal([((piece["address"] - start) // PAGE, piece["size"] // PAGE, piece["freed"] is not None)
               for piece in pieces], PIECES.get(pages), run.what, "pieces of the mapping of", pages)
        equal({(piece["operation"], piece["protection"], piece["shared"]) for piece in pieces},
              {("mremap" if pages == 31 else "mmap", "r--" if pages == 1 else "rw-", 0)},
              run.what, "what the mapping is of", pages)
    if equal(sorted(found), sorted(PIECES), run.what, "mappings"):
        covered, cover = found[23][1], found[1][0]
        equal((cover["address"], cover["born"], cover["thread"]),
              (covered["address"], covered["freed"], covered["freed_by"]), run.what,
              "a mapping ends by another")


def check_smaps(run, named):
    """The kernel's view of two that were never unmapped: one with two pages in use, one with none."""
    found = own_mappings(run.path())
    for pages, resident in ((127, 0), (5, 2)):
        rows = ask(run.path(), "SELECT * FROM smaps WHERE address = %d AND "
                               "time = (SELECT max(time) FROM smaps)" % found[pages][0]["address"])
        equal({(row["size"] // PAGE, row["resident_bytes"] // PAGE, row["protection"], row["shared"],
                row["offset"]) for row in rows}, {(pages, resident, "rw-", 0, 0)}, run.what, "smaps of",
              pages)
        if named and pages == 5:
            equal({row["name"] for row in rows}, {"[anon:peers]"}, run.what, "the name that it was given")
    if not named:
        print(run.what, "this kernel has no names for memory (PR_SET_VMA): they are not compared")


# --- on and off ------------------------------------------------------------------------------------

def start_stop():
    """test_start_stop_api, test_start_stop_sigusr1: without a recording no signal is MemTrace's."""
    for way in WAYS:
        for how in ("api", "signal") if way in RECORDING else ("api",):
            run = done(way, [c_program(), "switched", how], MEMTRACE_START="off", MEMTRACE_SIGNALS="USR1,USR2")
            equal(costs(run.path()), {10002: 1, 10003: 0, 10005: 0, 20002: 0, 20003: 0}, run.what,
                  "blocks, and which were freed")
            if way in RECORDING:
                equal(by_thread(run.path()), [[10002, 10003, 10005], [20002, 20003]], run.what,
                      "blocks by thread")


# --- processes -------------------------------------------------------------------------------------

PARENT = [[10001, 10002, 10003], [20001, 20002, 20003]]
CHILD = [20011, 30001, 30002]


def fork():
    """test_fork: what the child does is not in the parent's recording. Unlike with bytehound it is not
    dropped: it has a file of its own, or its sums stand in the profile of small processes or in the
    parent's."""
    for way in WAYS:
        run = Run(way, [c_program(), "fork"])
        mine = "peers.%s." % run.end().decode().strip()
        everywhere = sorted(size for path in files(run.folder, ".mtr") + files(run.folder, ".mtp")
                            for size in costs(path, "--all-processes") if size in CHILD)
        equal(everywhere, CHILD, run.what, "the child's blocks, each once")
        parents = {size: 0 for sizes in PARENT for size in sizes}
        found = files(run.folder, run.ending)
        path = only([path for path in found if mine in os.path.basename(path)] or found, run.what)
        equal({size: frees for size, frees in costs(path).items() if size not in CHILD}, parents, run.what,
              "the parent's blocks")
        if way in RECORDING:
            equal(by_thread(path), PARENT, run.what, "the parent's blocks by thread")


def track_spawned_children():
    """test_track_spawned_children: the child becomes another program by exec. What it is then tells all
    that it would tell alone."""
    for way in WAYS:
        run = done(way, [c_program(), "spawn", c_program()])
        found = {tuple(sorted(costs(path))): path for path in
                 files(run.folder, ".mtr") + files(run.folder, ".mtp")}
        if equal(sorted(found), [tuple(sorted(BASIC)), (10001, 10003)], run.what, "processes"):
            check_basic(found[tuple(sorted(BASIC))], run.what)


def exits():
    """test_normal_exit, test_immediate_exit_unistd, test_immediate_exit_stdlib."""
    for way in WAYS:
        for how in ("exit", "_exit", "_Exit"):
            run = done(way, [c_program(), "exit", how])
            equal(costs(run.path()), {11001: 0}, run.what, "blocks")


# --- what there is of a program that runs, and of one that was killed --------------------------------

def of_steps(count):
    return count, sum(10001 + step for step in range(count)), 0


def steps(way, count, killed):
    """Its blocks up to the end, however it ends."""
    run = Run(way, [c_program(), "steps"])
    for step in range(count):
        equal(run.line(), b"took\n", run.what)
        if step + 1 < count:
            run.say(b"n")
    if killed:
        run.say(b"k")
    run.end(-signal.SIGKILL if killed else 3)
    what = run.what + " %d blocks, then %s:" % (count, "killed" if killed else "its end")
    equal(sums(run.path()), of_steps(count), what, "blocks, bytes, frees")
    if way in RECORDING:
        equal(by_thread(run.path()), [[10001 + step for step in range(count)]], what, "their order")


def gather():
    """test_gather_full_graceful, test_gather_initial_graceful, test_gather_initial_killed,
    test_gather_partial_killed (which expects one block of two), test_gather_partial_graceful (which
    bytehound leaves out)."""
    for way in WAYS:
        for count, killed in ((3, False), (1, False), (1, True), (2, True), (2, False)):
            steps(way, count, killed)


def gather_while_it_runs():
    """The same program is read while it waits for its third step."""
    for way in ("record", "run", "preloaded"):
        run = Run(way, [c_program(), "steps"])
        run.line()
        run.say(b"n")
        run.line()
        run.wait_until(lambda: so_far(run) == of_steps(2), "two blocks while it runs")
        run.say(b"n")
        run.end()
        equal(sums(run.path()), of_steps(3), run.what, "blocks, bytes, frees at the end")


def so_far(run):
    """A recording is read while it is written, a profile in the program's memory."""
    if run.ending == ".mtr":
        return run.has_begun() and sums(run.path())
    return sums(run.pid())


# --- call paths ------------------------------------------------------------------------------------

def dlopen():
    """test_dlopen."""
    library = build("plugin.c", "gcc", "-O0", shared=True, flags=["-DPLUGIN_INNER=inner", "-DSIZE=123123"])
    for way in WAYS:
        run = done(way, [c_program(), "dlopen", library])
        equal(paths(run.path()), {123123: ["main", "case_dlopen", "plugin_run", "inner"]}, run.what,
              "call paths")


def unwound(program, arguments, case):
    """Each block's path has what is on the stack, nothing of what was left by a jump."""
    whole = ["main", *case, "catch_last", "call_through", "catch_first", "between", "leave", "take"]
    first = whole.index("catch_first") + 1
    last = whole.index("catch_last") + 1
    expected = {70001: whole, 70002: whole[:first] + ["take"], 70003: whole[:last] + ["take"],
                70004: ["main", *case, "take"]}
    for way in WAYS:
        run = done(way, [program, *arguments])
        equal(paths(run.path()), expected, run.what, "call paths")


def throw():
    """test_throw."""
    unwound(cxx_program(), ["throw"], [])


def longjmp():
    """test_longjmp."""
    unwound(c_program(), ["longjmp"], ["case_longjmp"])


def backtrace():
    """test_backtrace: the program's own backtrace() is as without MemTrace, which the subject checks."""
    for way in WAYS:
        run = done(way, [c_program(), "backtrace"])
        equal(paths(run.path())[123456], ["main", "case_backtrace", "look_outside", "look_inside", "take"],
              run.what, "call path")


def returns():
    """test_return_opt_u128, test_return_f64: what is returned through replaced return addresses is whole
    (the subject looks), and the call paths are."""
    have("rustc")
    program = compile_rust("returns", scratch())
    for way in WAYS:
        run = done(way, [program])
        for size, name in ((70001, "give_wide"), (70002, "give_real")):
            rows = ask(run.path(), "SELECT * FROM contexts WHERE class = 'heap' AND allocations = 50 AND "
                                   "total_bytes = 50 * %d" % size)
            if equal(len(rows), 1, run.what, "call paths of 50 blocks of", size):
                functions = [function.split("::")[-1] for function in rows[0]["path"].split(";")]
                start = functions.index("compare") if "compare" in functions else 0
                equal(functions[start:][:2], ["compare", name], run.what, rows[0]["path"])


# --- short and long lives --------------------------------------------------------------------------

SURE_NS = 85000000  # what lived shorter is certainly left out, by docs/record.md


def cull():
    """test_cull. A chain of reallocations is kept or left out as one. What was left out is in the sums of
    its call path (of bytehound's it is not)."""
    for way in RECORDING:
        run = Run(way, [c_program(), "lives"], MEMTRACE_CULL="100ms")
        took_ns = int(re.search(rb"at most (\d+) ns", run.end()).group(1))
        found = blocks(run.path())
        kept = [1235, 1236, 2000, 3000]
        sizes = [block["size"] for block in found]
        equal(sizes[-4:], kept, run.what, "blocks that are kept")
        if len(sizes) > 4 and not (sizes[0] == 1234 and took_ns >= SURE_NS):  # a machine that is held up
            fail(run.what, "blocks that should not be kept:", sizes)
        equal([(block["freed"] is not None, block["whole_chain"]) for block in found][-4:],
              [(True, 1), (False, 1), (True, 2), (False, 2)], run.what, "freed, blocks of the chain")
        equal(ask(run.path(), "SELECT allocations, live_blocks FROM contexts JOIN frames ON context = id AND "
                              "level = 1 WHERE frames.function = 'live'"),
              [{"allocations": 3, "live_blocks": 1}], run.what, "sums of the call path")
        nothing_astray(run)


def nothing_astray(run):
    """Of each block both ends are in the file, or neither."""
    told = report(run.path())
    equal((told["recording"]["foreign_frees"], told["lost"], told["warnings"]), (0, 0, []), run.what,
          "foreign frees, lost, warnings")


def cross_thread_alloc():
    """test_cross_thread_alloc_culled, test_cross_thread_alloc_non_culled."""
    for way in RECORDING:
        for shortest, kept in (("1ms", [1234, 1235, 1236]), ("600s", [])):
            run = done(way, [c_program(), "crossing"], MEMTRACE_CULL=shortest)
            what = "%s culled below %s:" % (run.what, shortest)
            equal(sorted(block["size"] for block in blocks(run.path())), kept, what, "blocks")
            equal(costs(run.path()), {1234: 1, 1235: 1, 1236: 1}, what, "their sums")
            nothing_astray(run)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    finish()
