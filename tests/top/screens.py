#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""screens.py [CASE]: what `memtrace top` draws on a terminal, to the letter, and what keys and signals do."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess

from terminal import (DOWN, LEFT, RIGHT, MEMTRACE, Subject, Terminal, build, check, environment, equal, folder,
                      run_cases, until)

PROGRAM = build("heap.c")
PAIR = build("pair.c", "-pthread")
FOOT = "? help  q quit  Enter open  / filter  f functions  g paths  T threads  x charts"
FUNCTIONS = """
     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS  FUNCTION
>   100.6K        0   100.6K        0    0%       4  ▸ keep heap.c:16
         0        0     1000        0  100%       0  ▸ pass heap.c:31
"""


def test_first_screen():
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid)) as terminal:
        terminal.wait_rows(FUNCTIONS)
        lines = terminal.lines()
        check(re.fullmatch(r"heap \(%d\)  up 0:0\d:\d\d  every 0\.1 s {2,}\[live\]" % subject.pid, lines[0]), lines[0])
        check(re.fullmatch(r"live 100\.6K  max 101\.6K  rss [\d.]+M  \+0/s  0 allocations/s  lost 0(  cgroup .*)?", lines[1]),
              lines[1])
        check(re.fullmatch(r"live █+ +rate", lines[2]), lines[2])
        terminal.wait(lambda lines: lines[-1] == FOOT, "the foot")


def test_delta_and_mark():
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid)) as terminal:
        terminal.wait_rows(FUNCTIONS)
        subject.step()
        terminal.wait_rows("""
     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS  FUNCTION
>   201.2K  +100.6K   201.2K        0    0%       8  ▸ keep heap.c:16
         0        0     2.0K        0  100%       0  ▸ pass heap.c:31
""")
        terminal.press("z")
        terminal.wait_rows("""
     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS  FUNCTION
>   201.2K        0   201.2K        0    0%       8  ▸ keep heap.c:16
         0        0     2.0K        0  100%       0  ▸ pass heap.c:31
""")


def test_drilling():
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid)) as terminal:
        terminal.wait_rows(FUNCTIONS)
        terminal.press(RIGHT, DOWN, b"\r")
        terminal.wait_rows("""
     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS  FUNCTION
    100.6K        0   100.6K        0    0%       4  ▾ keep heap.c:16
>    97.7K        0    97.7K        0    0%       1    ▾ few heap.c:20
     97.7K        0    97.7K        0    0%       1      ▸ step heap.c:36
      2.9K        0     2.9K        0    0%       3    ▸ many heap.c:26
         0        0     1000        0  100%       0  ▸ pass heap.c:31
""")
        terminal.press(DOWN, LEFT, LEFT, LEFT, LEFT)
        terminal.wait_rows(FUNCTIONS)


def test_paths():
    with Subject(PROGRAM) as subject, Terminal("--paths", str(subject.pid), width=110) as terminal:
        terminal.wait_rows("""
     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS      MAX  CALL PATH
>    97.7K        0    97.7K        0    0%       1    97.7K  ▸ keep heap.c:16 < few < step < main
      2.9K        0     2.9K        0    0%       3     2.9K  ▸ keep heap.c:16 < many < step < main
         0        0     1000        0  100%       0     1000  ▸ pass heap.c:31 < step < main
""")
        terminal.press(RIGHT)
        terminal.wait_rows("""
     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS      MAX  CALL PATH
>    97.7K        0    97.7K        0    0%       1    97.7K  ▾ keep heap.c:16
                                                                  few heap.c:20
                                                                  step heap.c:36
                                                                  main heap.c:45
      2.9K        0     2.9K        0    0%       3     2.9K  ▸ keep heap.c:16 < many < step < main
         0        0     1000        0  100%       0     1000  ▸ pass heap.c:31 < step < main
""")


def test_sorting():
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid)) as terminal:
        terminal.wait_rows(FUNCTIONS)
        terminal.press("e")
        terminal.wait_rows("""
      LIVE    DELTA    TOTAL  ALLOC/s TEMP*  BLOCKS  FUNCTION
>        0        0     1000        0  100%       0  ▸ pass heap.c:31
    100.6K        0   100.6K        0    0%       4  ▸ keep heap.c:16
""")
        terminal.press("t", "r")
        terminal.wait_rows("""
      LIVE    DELTA   TOTAL^  ALLOC/s  TEMP  BLOCKS  FUNCTION
>        0        0     1000        0  100%       0  ▸ pass heap.c:31
    100.6K        0   100.6K        0    0%       4  ▸ keep heap.c:16
""")


def test_filter():
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid)) as terminal:
        terminal.wait_rows(FUNCTIONS)
        terminal.press("/", "^manx", b"\x7f", "y$", b"\r")
        terminal.wait_rows("""
     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS  FUNCTION
>     2.9K        0     2.9K        0    0%       3  ▸ keep heap.c:16
""")
        check(terminal.lines()[0].split("  ")[3] == "/^many$", terminal.lines()[0])
        check(terminal.lines()[1].startswith("live 2.9K  max 2.9K"), terminal.lines()[1])
        terminal.press("/", b"\x7f" * 6, "no[", b"\r")
        terminal.wait(lambda lines: lines[-1] == "/no[", "the wrong filter is asked for again")
        terminal.press(b"\x1b")
        terminal.press("/", b"\x7f" * 6, "nobody", b"\r")
        terminal.wait_rows("""
     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS  FUNCTION
 nothing matches the filter
""")


def test_pages():
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid), width=120) as terminal:
        terminal.wait(lambda lines: "keep heap.c" in lines[4], "rows")
        terminal.press("T")
        thread = r" +2  %d +5 +101\.6 KiB +1 +100\.6 KiB +0  main" % subject.pid
        terminal.wait(lambda lines: any(re.fullmatch(thread, line) for line in lines), "threads")
        terminal.press("x")
        terminal.wait(lambda lines: lines[4] == "live bytes" and lines[5].startswith("  100.6K █")
                      and lines[13] == "allocations a second", "charts")
        terminal.press("?")
        terminal.wait(lambda lines: lines[4].startswith("Rows: functions that allocate"), "help")
        terminal.press(b"\x1b")
        terminal.wait(lambda lines: "keep heap.c" in lines[4], "rows again")


def test_threads():
    """One thread's costs, and who frees whose blocks."""
    with Subject(PAIR) as subject, Terminal("--function", "^(produce|consume)$", str(subject.pid),
                                            width=90) as terminal:
        both = """
     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS  FUNCTION
>     5.9K        0     9.8K        0    0%       6  ▸ produce pair.c:22
      4.9K        0     4.9K        0    0%       1  ▸ consume pair.c:36
"""
        terminal.wait_rows(both)
        terminal.press(">")
        terminal.wait_rows("""
     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS  FUNCTION
>     4.9K        0     4.9K        0    0%       1  ▸ consume pair.c:36
""")
        check("  thread 2 main" in terminal.lines()[0], terminal.lines()[0])
        terminal.press(">")
        terminal.wait(lambda lines: "  thread 3" in lines[0], "the worker")
        subject.step()
        terminal.wait_rows("""
     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS  FUNCTION
>    19.5K    +9.8K    19.5K        0    0%      20  ▸ produce pair.c:22
""")
        terminal.press("T")
        terminal.wait(lambda lines: "Who freed whose blocks" in lines and any(
            re.fullmatch(r" +3  \S+ +2  main +8 +7\.8 KiB", line) for line in lines), "who freed whose")
        terminal.press("T", ">")
        terminal.wait(lambda lines: " thread " not in lines[0] and "11.7K" in lines[4], "all threads")
        terminal.press("<")
        terminal.wait(lambda lines: "  thread 3" in lines[0] and "19.5K" in lines[4], "the last thread")


def freed(lines):
    """Of the chart of lifetimes, which is the machine's: how many blocks there are."""
    return sum(int(match[1]) for line in lines[6:-1] if (match := re.match(r" +<\S+ m?s +(\d+) +\d+% █", line)))


def test_blocks():
    """How long the blocks of a row lived, and how large they are."""
    with Subject(PAIR) as subject, Terminal(str(subject.pid)) as terminal:
        terminal.wait(lambda lines: "produce pair.c:22" in lines[4], "rows")
        terminal.press("h")
        terminal.wait(lambda lines: lines[3] == "of produce pair.c:22, call paths: 1"
                      and lines[5] == "lifetimes of blocks that were freed      sizes, by each call path's mean"
                      and re.search(r" <1\.0K +10 +100% █+", lines[6]) and freed(lines) == 4, "the worker's")
        subject.step()
        terminal.wait(lambda lines: re.search(r" <1\.0K +20 +100% █+", lines[6]) and freed(lines) == 8, "a step more")
        terminal.press("h", DOWN, "h")
        terminal.wait(lambda lines: lines[3] == "of consume pair.c:36, call paths: 1"
                      and re.fullmatch(r" none +<16\.0K +2 +100% █+", lines[6]), "main's")


def test_wide():
    """Columns that only wide terminals have: how long half of the freed blocks lived, and how many threads allocated."""
    with Subject(PAIR) as subject, Terminal("--sort", "total", str(subject.pid), width=130) as terminal:
        terminal.wait(lambda lines: lines[3].endswith(" MAX        P50  THR  FUNCTION") and
                      re.search(r" 5\.9K +<\S+ m?s +1 +▸? *produce pair\.c:22", "\n".join(lines)) and
                      re.search(r" 4\.9K +- +1 +▸? *consume pair\.c:36", "\n".join(lines)), "both columns")
        terminal.resize(119, 24)
        terminal.wait(lambda lines: lines[3].endswith(" MAX  FUNCTION"), "a narrower one has neither")


def memory_group():
    """A folder of the memory cgroups, version 2 or 1, in which we may make one; None: there is none."""
    for folder, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        path = "%s/memtrace-top-%d" % (folder, os.getpid())
        try:
            os.mkdir(path)
            with open(path + "/" + limit, "w") as file:
                file.write(str(256 << 20))
            return path
        except OSError:
            if os.path.isdir(path):
                os.rmdir(path)
    return None


def is_removed(path):
    try:
        os.rmdir(path)
        return True
    except OSError:
        return False


def test_group():
    """What its memory cgroup may use."""
    path = memory_group()
    if path is None:
        print("cgroup: not tested, none can be made here")
        return
    try:
        with Subject(PROGRAM) as subject:
            with open(path + "/cgroup.procs", "w") as file:
                file.write(str(subject.pid))
            with open("/proc/%d/cgroup" % subject.pid) as file:
                if not any(os.path.dirname(path) + line.strip().rpartition(":")[2] == path for line in file):
                    print("cgroup: not tested, its name here is another one")
                    return
            with Terminal(str(subject.pid), width=100) as terminal:
                terminal.wait(lambda lines: re.search(r"  lost 0  cgroup \d+% of 256\.0M$", lines[1]), "the limit")
                terminal.resize(70, 24)
                terminal.wait(lambda lines: len(lines[3]) <= 70 and lines[1].endswith("  lost 0"), "no room for it")
    finally:
        until(lambda: is_removed(path), "its cgroup to be empty")


def test_hash():
    """It is that of the report, and the terminal may keep it."""
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid), TERM="xterm-256color") as terminal:
        terminal.wait_rows(FUNCTIONS)
        terminal.press("y")
        terminal.wait(lambda lines: lines[-1] == "2 call paths are in this row: g shows each, and y there copies its hash",
                      "of several none")
        terminal.press("g")
        terminal.wait(lambda lines: lines[4].startswith(">    97.7K"), "paths")
        terminal.press("y")
        terminal.wait(lambda lines: lines[-1].startswith("hash "), "the hash")
        found = terminal.lines()[-1].split()[1]
        report = json.loads(subprocess.run([MEMTRACE, "report", "--format", "json", str(subject.pid)], check=True,
                                           stdout=subprocess.PIPE, env=environment, cwd=folder).stdout)
        equal(found, [path["hash"] for path in report["contexts"] if path["live_bytes"] == 100000][0])
        check(b"\x1b]52;c;" + base64.b64encode(found.encode()) + b"\a" in terminal.raw, terminal.raw[-2000:])


def test_resizing():
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid)) as terminal:
        terminal.wait_rows(FUNCTIONS)
        terminal.resize(50, 8)
        terminal.wait_rows("""
     LIVE*    DELTA  ALLOC/s  FUNCTION
>   100.6K        0        0  ▸ keep heap.c:16
         0        0        0  ▸ pass heap.c:31
""")
        terminal.wait(lambda lines: lines[-1] == FOOT[:50].rstrip(), "the foot")
        terminal.resize(119, 40)
        terminal.wait_rows("""
     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS      MAX  FUNCTION
>   100.6K        0   100.6K        0    0%       4   100.6K  ▸ keep heap.c:16
         0        0     1000        0  100%       0     1000  ▸ pass heap.c:31
""")
        for width, height in ((1, 1), (3, 2), (20, 5), (80, 24)):
            terminal.resize(width, height)
            terminal.read(0.2)
        terminal.wait_rows(FUNCTIONS)


def test_low_and_narrow():
    """A title, rows and the foot fit anywhere; numbers are whole or not there."""
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid), width=20, height=5) as terminal:
        wanted = ["     LIVE*  FUNCTION", ">   100.6K  ▸ keep h", "         0  ▸ pass h", FOOT[:20].rstrip()]
        terminal.wait(lambda lines: lines[1:] == wanted, wanted)
        check(re.fullmatch(r"heap( \(%d\))? +\[live\]" % subject.pid, terminal.lines()[0]), terminal.lines()[0])
        terminal.resize(30, 7)
        terminal.wait(lambda lines: lines[2:4] == ["     LIVE*  FUNCTION", ">   100.6K  ▸ keep heap.c:16"] and
                      lines[1] == "live 100.6K  max 101.6K", "totals, too")


def test_resize_storm():
    """However fast it comes, and whatever is pressed meanwhile, the last size is drawn."""
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid)) as terminal:
        terminal.wait_rows(FUNCTIONS)
        for step in range(60):
            terminal.resize(1 + step * 37 % 300, 1 + step * 11 % 100)
            if step % 6 == 0:
                os.write(terminal.master, (b"x", b"T", b"h", b"?", b"g", DOWN, RIGHT)[step // 6 % 7])
            terminal.read(0.01)
        terminal.resize(80, 24)
        terminal.press(b"\x1b", "f", LEFT, LEFT)
        terminal.wait_rows(FUNCTIONS)
        terminal.press("q")
        equal(terminal.wait_end(), 0)


def marked(lines):
    """The place of the row that is selected."""
    return [row for row, line in enumerate(lines) if line.startswith(">")]


def test_keys_of_terminals():
    """Arrows as terminals send them in either mode, whatever TERM says; keys that are none of ours do nothing."""
    with Subject(PROGRAM) as subject:
        for kind in ("xterm", "vt100", "linux"):
            with Terminal(str(subject.pid), TERM=kind) as terminal:
                terminal.wait(lambda lines: "keep heap.c" in lines[4], "rows")
                for down, up in ((b"\x1b[B", b"\x1b[A"), (b"\x1bOB", b"\x1bOA"), (b"\x1b[F", b"\x1b[H"),
                                 (b"\x1bOF", b"\x1bOH"), (b"\x1b[4~", b"\x1b[1~"), (b"\x1b[8~", b"\x1b[7~"),
                                 (b"\x1b[6~", b"\x1b[5~")):
                    for key, row in ((down, 5), (up, 4)):
                        os.write(terminal.master, key)
                        terminal.wait(lambda lines: marked(lines) == [row], kind, key)
                # Ctrl and Alt with arrows, function keys, Alt-x. Then one that is known, at once.
                os.write(terminal.master, b"\x1b[1;5B\x1b[1;3A\x1bOP\x1b[15~\x1b[[A\x1b[24;2~" + b"\x1bOB")
                terminal.wait(lambda lines: marked(lines) == [5], kind, "what is not known")
                check("LIVE*" in terminal.lines()[3] and "keep heap.c" in terminal.lines()[4], kind, terminal.lines())
                os.write(terminal.master, b"h\x1bOA")  # a page; its Escape is one, whatever is typed behind it
                terminal.wait(lambda lines: lines[3].startswith("of "), kind, "lifetimes")
                os.write(terminal.master, b"\x1bx")
                terminal.wait(lambda lines: lines[4] == "live bytes", kind, "Escape, and x")


JOBS = 'set -m; "$@"; echo suspended; read -r line; fg >/dev/null; echo "ended $?"'


def begins(lines, text):
    """Of a line behind which the last screen's rest may stand: pyte has one screen alone, and not each ncurses clears it."""
    return any(line.startswith(text) for line in lines)


def test_suspending():
    """Only a shell's job can be stopped from its terminal."""
    with Subject(PROGRAM) as subject, \
            Terminal(str(subject.pid), shell=("bash", "-c", JOBS, "bash")) as terminal:
        terminal.wait_rows(FUNCTIONS)
        terminal.press(b"\x1a")
        terminal.wait(lambda lines: begins(lines, "suspended"), "Ctrl-Z")
        terminal.is_sane()
        terminal.press("\n")
        terminal.wait_rows(FUNCTIONS)
        terminal.press("q")
        terminal.wait(lambda lines: begins(lines, "ended 0"), "its end")
        terminal.is_sane()


def test_ends():
    with Subject(PROGRAM) as subject:
        for what, status in (("q", 0), (b"\x03", 0), (signal.SIGTERM, -signal.SIGTERM),
                             (signal.SIGHUP, -signal.SIGHUP)):
            with Terminal(str(subject.pid)) as terminal:
                terminal.wait_rows(FUNCTIONS)
                if isinstance(what, signal.Signals):
                    terminal.process.send_signal(what)
                else:
                    terminal.press(what)
                equal(terminal.wait_end(), status, what)
                terminal.is_sane()


def test_target_killed():
    subject = Subject(PROGRAM)
    with Terminal(str(subject.pid)) as terminal:
        terminal.wait_rows(FUNCTIONS)
        os.kill(subject.pid, signal.SIGKILL)
        terminal.wait(lambda lines: lines[0].endswith("[ended]"), "its end")
        terminal.wait_rows(FUNCTIONS)
        terminal.press(RIGHT, "o")
        terminal.wait(lambda lines: lines[-1] == "it does not run" and "few heap.c:20" in lines[5], "keys")
        terminal.press("q")
        equal(terminal.wait_end(), 0)
    subject.end()


def test_exec():
    """A wrapper becomes the program that it is for: that one is shown then."""
    wrapper = folder + "/wrapper"
    with open(wrapper, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\necho ready\nread line\nexec %s\n" % PROGRAM)
    os.chmod(wrapper, 0o755)
    with Subject(wrapper) as subject, Terminal("--function", "^few$", str(subject.pid)) as terminal:
        terminal.wait(lambda lines: lines[4] == " nothing matches the filter", "the shell")
        subject.step()
        terminal.wait(lambda lines: lines[0].startswith("heap (%d)  up 0:00:" % subject.pid) and lines[0].endswith("[live]") and
                      lines[-1] == "it has become heap (exec)", "the program")
        terminal.wait_rows("""
     LIVE*    DELTA    TOTAL  ALLOC/s  TEMP  BLOCKS  FUNCTION
>    97.7K        0    97.7K        0    0%       1  ▸ keep heap.c:16
""")
        subject.step()
        terminal.wait(lambda lines: lines[4].startswith(">   195.3K   +97.7K   195.3K "), "it is looked at")


def test_counting():
    """A program follows at its next allocation."""
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid)) as terminal:
        terminal.wait_rows(FUNCTIONS)
        for key, said, word in (("o", "asked to count nothing new", "[off]"), ("o", "asked to count again", "[live]"),
                                ("O", "asked to count a sample: one allocation in 512.0 KiB", "[sampled]")):
            terminal.press(key)
            terminal.wait(lambda lines: lines[-1] == said, said)
            subject.step()
            terminal.wait(lambda lines: lines[0].endswith(word), word)


def test_saving():
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid)) as terminal:
        terminal.wait_rows(FUNCTIONS)
        for number in (1, 2):
            name = "heap.%d.%d.mtp" % (subject.pid, number)
            terminal.press("s")
            terminal.wait(lambda lines: lines[-1] == "saved as " + name, "it is saved")
            out = subprocess.run([MEMTRACE, "report", "--format", "csv", "--flat", name], cwd=folder, env=environment,
                                 check=True, stdout=subprocess.PIPE, text=True).stdout
            check("keep" in out, out)


def test_recording():
    """R begins a recording with what is live then, which goes on without top, and ends it."""
    name = os.path.join(folder, "memtrace.heap.%d.mtr")
    with Subject(PROGRAM) as subject:
        path = name % subject.pid
        with Terminal(str(subject.pid)) as terminal:
            terminal.wait_rows(FUNCTIONS)
            terminal.press("R")
            terminal.wait(lambda lines: lines[-1].startswith("recording to "), "it is asked for")
            until(lambda: subject.step() or "[recorded]" in terminal.lines()[0] or terminal.read(0.1), "its beginning")
        subject.step()
        with Terminal(str(subject.pid)) as terminal:
            terminal.wait(lambda lines: lines[0].endswith("[recorded]"), "it goes on")
            terminal.press("R")
            terminal.wait(lambda lines: lines[-1].startswith("recorded to "), "its end is asked for")
            until(lambda: subject.step() or "[live]" in terminal.lines()[0] or terminal.read(0.1), "its end")
        until(lambda: '"closed": true' in subprocess.run([MEMTRACE, "report", "--json", "--depth", "0", path],
                                                        env=environment, stdout=subprocess.PIPE, check=True,
                                                        text=True).stdout, "the file is whole")
    out = subprocess.run([MEMTRACE, "query", "--format", "csv", "--header", "off", path,
                          "SELECT min(inherited), max(inherited) FROM allocations"], env=environment, check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    check(out.split() == ["0,1"], out)


def test_pausing():
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid)) as terminal:
        terminal.wait_rows(FUNCTIONS)
        terminal.press(" ")
        terminal.wait(lambda lines: lines[0].endswith("[paused]"), "the pause")
        subject.step()
        terminal.read(0.5)
        terminal.wait_rows(FUNCTIONS)
        terminal.press(" ")
        terminal.wait(lambda lines: "201.2K  +100.6K" in lines[4], "the step")


def test_recording():
    """A recording that grows is read again."""
    recording = folder + "/growing.mtr"
    with Subject(PROGRAM, "record", "-o", recording) as subject:
        until(lambda: os.path.exists(recording) and os.path.getsize(recording) > 0, "the recording begins")
        with Terminal(recording) as terminal:
            terminal.wait(lambda lines: lines[0].endswith("[recording]"), "the recording")
            subject.step()
            terminal.wait(lambda lines: re.match(r">   201\.2K .* keep heap\.c:16", lines[4]), "the step")
            subject.end()
            terminal.wait(lambda lines: lines[0].endswith("[file]"), "the end")


def test_hostile_names():
    """Whatever the program is called, the terminal obeys nothing of it."""
    program = folder + "/e\x1b[31m\u009b\u202e\u0301漢"
    os.link(PROGRAM, program)
    with Subject(program) as subject, Terminal(str(subject.pid)) as terminal:
        terminal.wait_rows(FUNCTIONS)
        check(terminal.lines()[0].startswith("e?[31m??"), repr(terminal.lines()[0]))
        check(terminal.screen.display[0].rstrip().endswith("[live]"), repr(terminal.lines()[0]))
        check(b"\xc2\x9b" not in terminal.raw and "\u202e".encode() not in terminal.raw, "unsafe characters")


def test_hostile_functions():
    """Names of functions and files, too: as many bytes in the program's file stand for others."""
    with open(PROGRAM, "rb") as file:
        data = file.read()
    for name, other in ((b"keep", b"\x1b[7m"), (b"few", b"\xff\xfe\x9b"), (b"many", "漢a".encode()),
                        (b"pass", b"\xe2\x80\xaex"), (b"heap.c", b"\x1b]0;p\x07")):
        check(name + b"\0" in data, name)
        data = data.replace(name + b"\0", other + b"\0")
    program = folder + "/" + 12 * "hostile\x1b[31m漢" + "\x07"  # longer than the screen is wide
    with open(program, "wb") as file:
        file.write(data)
    os.chmod(program, 0o755)
    for utf8, handles in (("C.UTF-8", "▸▾"), ("C", "+-")):
        with Subject(program, more=["\x1b[2J"]) as subject, Terminal(str(subject.pid), TERM="xterm", LC_ALL=utf8) as terminal:
            wide = "漢" if utf8 != "C" else "?"
            terminal.wait(lambda lines: lines[4] == ">   100.6K        0   100.6K        0    0%%       4  %s ?[7m ?]0;p?:16"
                          % handles[0] and lines[5].endswith(" ?x ?]0;p?:31"), "rows")
            check(terminal.lines()[0].startswith("hostile?[31m") and
                  re.search(r" \(%d\) +\[live\]$" % subject.pid, terminal.lines()[0]), terminal.lines()[0])
            terminal.press(RIGHT)
            terminal.wait(lambda lines: lines[5].endswith("%s ??? ?]0;p?:20" % handles[0]) and
                          lines[6].endswith("%s %sa ?]0;p?:26" % (handles[0], wide)), "callers")
            for key, shown in (("g", "CALL PATH"), ("h", "of ?[7m"), ("T", "Threads"), ("h", "of ?[7m")):
                terminal.press(key)
                terminal.wait(lambda lines: any(shown in line for line in lines), shown)
            for byte in (b"\x1b[7m ", b"\x1b]0", b"\xff", b"\x07", b"\xe2\x80\xae", b"\x1b[2J?"):
                check(byte not in terminal.raw, byte, "came out")


def test_dumb_terminal():
    """An editor's shell has no places: one screen as text."""
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid), TERM="dumb") as terminal:
        equal(terminal.wait_end(), 0)
        terminal.wait(lambda lines: lines[2].startswith("     LIVE*") and "keep heap.c:16" in lines[3], "a screen as text")
        check(b"\x1b" not in terminal.raw, terminal.raw)


def test_in_tmux():
    """A terminal in a terminal, which says itself what is on it."""
    if shutil.which("tmux") is None:
        print("tmux: not tested, it is not here")
        return
    tmux = ["tmux", "-S", folder + "/tmux", "-f", "/dev/null"]
    with Subject(PROGRAM) as subject:
        subprocess.run([*tmux, "new-session", "-d", "-x", "80", "-y", "24",
                        "%s top --interval 100ms %d; sleep 600" % (MEMTRACE, subject.pid)], check=True, env=environment)
        lines = lambda: subprocess.run([*tmux, "capture-pane", "-p"], check=True, stdout=subprocess.PIPE, text=True,
                                       env=environment).stdout.split("\n")
        try:
            until(lambda: "keep heap.c:16" in lines()[4] and marked(lines()) == [4], "rows")
            subprocess.run([*tmux, "send-keys", "Down"], check=True, env=environment)
            until(lambda: marked(lines()) == [5], "the arrow")
            subprocess.run([*tmux, "send-keys", "F5", "C-Up", "Up"], check=True, env=environment)
            until(lambda: marked(lines()) == [4], "what is not known, and an arrow")
            subprocess.run([*tmux, "send-keys", "q"], check=True, env=environment)
            until(lambda: not any(lines()), "the screen from before")
        finally:
            subprocess.run([*tmux, "kill-server"], check=True, env=environment)


def test_plain_terminal():
    """Without UTF-8 and without colours."""
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid), TERM="vt100", LC_ALL="C") as terminal:
        terminal.wait_rows(FUNCTIONS.replace("▸", "+"))


def test_unknown_terminal():
    with Subject(PROGRAM) as subject, Terminal(str(subject.pid), TERM="no-such-thing") as terminal:
        equal(terminal.wait_end(), 1)
        terminal.is_sane()
        check(any('cannot draw on a terminal of the kind "no-such-thing"' in line for line in terminal.lines()),
              terminal.lines())


run_cases(globals())
