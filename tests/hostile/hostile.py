# SPDX-License-Identifier: MIT
"""hostile.py CASE: a program, its files and the command line full of what moves a terminal's cursor or
the order of a line: none of it comes out of any command, in any text. Each text of the subject holds
marks that are replaced in the program (what it does live) and in its files (what someone made up)."""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))

from outside import (BUILD, MEMTRACE, case, check, environment, equal, execute, folder, start,  # noqa: E402
                     wait_until)

PUT_TEXT = os.path.join(BUILD, "tests", "hostile", "put_text")
# An escape sequence; C1 as UTF-8 and alone, DEL; an override and a byte that is no UTF-8; an isolate and
# the bell; a line of its own; a line separator and a carriage return.
BAD = {b"Q0ZZ": b"\x1b[7m", b"Q1ZZ": b"\xc2\x9b\x9b\x7f", b"Q2ZZ": b"\xe2\x80\xae\xff",
       b"Q3ZZ": b"\xe2\x81\xa6\x07", b"Q4ZZ": b"\n~~~", b"Q5ZZ": b"\xe2\x80\xa8\r"}
MARKS = b"Q0ZZQ1ZZQ2ZZQ3ZZQ4ZZQ5ZZ"
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
TABLES = re.findall(r"^([a-z_]+):", execute(MEMTRACE, "query", "--schema").out.decode(), re.M)
wrong = []


def bad(text):
    for mark, bytes_ in BAD.items():
        text = text.replace(mark, bytes_)
    return text


def no_escape(data, what, tabs=False, for_programs=False):
    """for_programs: in cells and elements text may have lines of its own."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        wrong.append((what, "no UTF-8", data[max(0, error.start - 60):error.start + 20]))
        return
    if for_programs:
        found = FORBIDDEN.search(text.replace("\r\n", "\n"))
    else:
        found = FORBIDDEN.search(text) or (not tabs and re.search("\t", text)) or \
            re.search("^~~~", text, re.M)
    if found:
        wrong.append((what, text[max(0, found.start() - 60):found.start() + 20]))


def run(*arguments, tabs=False, for_programs=False, **settings):
    done = execute(MEMTRACE, *arguments, **settings)
    what = [word.decode(errors="backslashreplace") if isinstance(word, bytes) else word for word in arguments]
    if done.returncode < 0 or done.returncode not in (0, 1, 2, 126, 127):
        wrong.append((what, "status", done.returncode, done.err[-300:]))
    no_escape(done.out, what, tabs, for_programs)
    no_escape(done.err, what + ["(stderr)"])
    return done


def subject():
    """The subject in a folder of that name, with all marks replaced. Returns its path."""
    place = os.path.join(folder.encode(), b"in" + MARKS)
    os.mkdir(place)
    library = os.path.join(place, b"lib" + MARKS + b".so")
    program = os.path.join(place, b"p" + MARKS)
    include = ["-I", HERE + "/../../include", "-I", BUILD + "/include"]
    for source in ("subject", "library"):
        shutil.copy("%s/%s.c" % (HERE, source), os.path.join(place, source.encode() + MARKS + b".c"))
    subprocess.run(["cc", "-g", "-O1", "-shared", "-fPIC", place + b"/library" + MARKS + b".c", "-o", library],
                   check=True)
    subprocess.run(["cc", "-g", "-O1", *include, place + b"/subject" + MARKS + b".c", library, "-o",
                    program, "-pthread"], check=True)
    return program


def replaced(program):
    """The same with what the marks stand for."""
    for name in os.listdir(os.path.dirname(program)):
        path = os.path.join(os.path.dirname(program), name)
        with open(path, "rb") as file:
            data = file.read()
        with open(path, "wb") as file:
            file.write(bad(data))
        os.rename(path, os.path.join(os.path.dirname(program), bad(name)))
    os.rename(os.path.dirname(program), bad(os.path.dirname(program)))
    return bad(program)


def every_report(path):
    shown = run("report", path, "--show-allocations", "--paths", "--min-percent", "0")
    check(b"leak_?[7m" in shown.out, path, "nothing to see in it", shown.out, shown.err)
    for form in ("text", "markdown", "csv", "json"):
        for shows in ([], ["--show-groups", "--show-threads", "--show-mappings", "--show-timeline"],
                      ["--show-peak", "--show-leaked", "--paths", "--all-frames", "--full-names", "--min-percent", "0"],
                      ["--show-allocations", "--flat"], ["--show-temporary", "--bottom-up", "--by", "line"],
                      ["--show-processes"], ["--show-caller-callee", "/leak_|library_/"],
                      ["--show-marks"], ["--show-blocks", "--show-sizes", "--show-lifetimes"], ["--show-fragmentation"],
                      ["--show-leaked", "--class", "pool"], ["--function", "leak_", "--show-peak"]):
            run("report", path, "--format", form, *shows, for_programs=form in ("csv", "json"))
    for color in ("never",):
        run("report", path, "--color", color, "--all-processes")
    run("report", path, "--json", "--nodes", for_programs=True)


def every_command(path, other, is_recording):
    every_report(path)
    for option in ([], ["--markdown"], ["--json"], ["--csv"]):
        for by in ("path", "function", "file", "module"):
            run("diff", other, path, "--by", by, *option, for_programs=option in (["--json"], ["--csv"]))
    for form in ("gcc", "github", "junit", "json"):
        run("check", path, "--format", form, "leaked <= 0", "peak <= 1 in function leak_",
            b"allocations <= 0 per scope \"scope" + bad(b"Q0ZZQ1ZZ") + b"\"", "temporary <= 0",
            for_programs=form in ("junit", "json"))
    run("info", path)
    run("info", path, "--json", for_programs=True)
    for form in ("table", "markdown", "csv", "tsv", "json"):
        for table in TABLES:
            run("query", path, "--format", form, "--header", "on", "SELECT * FROM %s LIMIT 300" % table,
                tabs=form == "tsv", for_programs=form in ("csv", "json"))
    for line in (b".tables\n", b".schema\n", b".help\n", b"SELECT '" + bad(MARKS) + b"';\n", bad(MARKS) + b";\n",
                 b"." + bad(MARKS) + b"\n"):
        with open(folder + "/script", "wb") as file:
            file.write(line)
        run("query", path, "--script", "script", tabs=True)
    for form in ("folded", "flamegraph", "gprof2dot", "speedscope", "callgrind", "massif", "json", "csv", "html"):
        run("export", path, "--format", form, for_programs=form in (
            "flamegraph", "gprof2dot", "speedscope", "json", "csv", "html"))
    for form in ("heaptrack", "pprof", "sqlite"):
        run("export", path, "--format", form, "--output", bad(b"out" + MARKS))
    if not is_recording:
        return
    run("extract", path, "--list")
    run("extract", path, "--output", bad(b"files" + MARKS))
    for command in ("repack", "strip", "anonymize", "merge"):
        run(command, path, "--output", bad(b"new" + MARKS))
    run("import", path)


def files(program, cwd):
    """A profile, a recording, a run of many processes."""
    os.mkdir(cwd)
    run("run", "-o", "a.mtp", "--", program, b"argument" + bad(MARKS), cwd=cwd)
    run("record", "--free-stacks", "-o", "a.mtr", "--", program, b"argument" + bad(MARKS), cwd=cwd)
    run("run", "--keep-small", "-o", "many.mtp", "--", program, "parent", cwd=cwd)
    run("record", "--keep-small", "-o", "many.mtr", "--", program, "parent", cwd=cwd)
    return [os.path.join(cwd, name) for name in ("a.mtp", "a.mtr", "many.mtp", "many.mtr")]


def finish():
    for line in wrong[:40]:
        print(line)
    check(not wrong, len(wrong), "texts that hold what they should not")


def test_hostile_program():
    """What a program does itself: its names, its arguments, what it marks, what it starts."""
    program = replaced(subject())
    place = bad(b"at" + MARKS).decode(errors="surrogateescape")
    paths = files(program, os.path.join(folder, place))
    for path in paths:
        check(os.path.exists(path), path)
        every_command(path, paths[0], path.endswith(".mtr") and os.path.isfile(path))
    finish()


def test_hostile_live():
    """Top-N of a live run, and commands on a running program."""
    program = replaced(subject())
    run("run", "--every", "10ms", "--top", "0", "--log", bad(b"log" + MARKS), "--", program, "parent")
    check(re.search(b"\nlog", b"\n" + b"\n".join(os.listdir(folder.encode()))), "no log", wrong)
    with open(os.path.join(folder.encode(), bad(b"log" + MARKS)), "rb") as log:
        no_escape(log.read(), "the log")
    run("run", "--churn", "1K", "--top", "0", "--stacks", "full", "--limit", "1M", "--on-limit", "dump", "--", program)
    process = start([MEMTRACE, "record", "--every", "10ms", "--profile", "--", program, "wait", bad(MARKS)],
                    env={"SOME": os.fsdecode(bad(MARKS))})
    address = process.stdout.readline().strip()
    with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as file:
        pid = file.read().split()[0]
    for arguments in (["list"], ["report", pid], ["report", pid, "--show-threads", "--show-groups"],
                      ["trace", pid, address], ["control", pid], ["info", pid],
                      ["query", pid, "SELECT * FROM frames"]):
        run(*arguments, tabs=arguments[0] == "query")
    run("list", "--json", for_programs=True)
    os.kill(int(pid), 9)
    no_escape(process.communicate()[1], "a program that was killed")
    finish()


def test_hostile_files():
    """What a program could not have done, but somebody wrote into its files."""
    program = subject()
    paths = files(program, os.path.join(folder, "made"))
    pairs = [text for pair in BAD.items() for text in pair]
    for top, _, names in os.walk(os.path.join(folder, "made")):
        for name in names:
            path = os.path.join(top, name)
            with open(path, "rb") as file:
                data = file.read()
            if data.startswith(b"MEMTRREC"):
                subprocess.run([PUT_TEXT, path, path + ".new", *pairs], check=True)
                os.rename(path + ".new", path)
            else:
                with open(path, "wb") as file:
                    file.write(bad(data))
    replaced(program)
    paths = [path for path in paths if path.endswith(".mtr")]  # profiles are packed
    for path in paths:
        every_command(path, paths[0], path.endswith(".mtr") and os.path.isfile(path))
    finish()


def test_hostile_arguments():
    """Messages that name what stands on the command line."""
    text = b"x" + bad(MARKS) + b"y"
    os.mkdir(os.path.join(folder.encode(), text))
    run(text)
    run("help", text)
    run(b"--" + text)
    with open(os.path.join(folder.encode(), b"no" + text), "wb") as file:
        file.write(b"harmless\n")  # `memtrace symbolize` copies it
    for command in ("run record report diff query check export replay import extract repack strip anonymize merge info "
                    "list trace control symbolize flags completion companion manual").split():
        options = re.findall(rb"^ .*(--[a-z-]+) [^ ]", execute(MEMTRACE, command, "--help").out, re.M)
        for arguments in ([text], [b"--" + text], [b"-" + text], [b"no" + text], [text, text], ["1", text],
                          ["--output", b"no/" + text, b"no" + text], [b"no" + text, b"no" + text], [b"/" + text]):
            run(command, *arguments)
        for option in sorted(set(options)):
            run(command, option, text, b"no" + text)
            run(command, option + b"=" + text, "true")
    run("symbolize", stdin=subprocess.DEVNULL)
    for variable in ("MEMTRACE_OUTPUT", "MEMTRACE_EVERY", "MEMTRACE_STACKS", "MEMTRACE_LOG", "MEMTRACE_REGION_DIR",
                     "MEMTRACE_" + "Q", "TMPDIR", "MEMTRACE_LIBRARY", "MEMTRACE_CACHE", "PATH"):
        run("run", "--", "/bin/true", env={variable: os.fsdecode(text)})
    finish()


case(globals())
