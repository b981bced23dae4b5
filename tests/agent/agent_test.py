#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""agent_test.py CASE: the memtrace command for devices (MEMTRACE_TOOLS=agent): which commands it has, what it says of
the others, what it is linked with; and that what it records is named where it is received."""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path += [os.path.join(TESTS, folder) for folder in ("stream", "attach", "programs")]

from harness import (BUILD, MEMTRACE, SOURCE, build, clean_environment, equal, execute, fail, files, finish,  # noqa: E402
                     profiles, report, scratch)
from streamed import Gather, make_token, received, same, wait_until  # noqa: E402

AGENT = os.path.join(BUILD, "tests", "agent", "installed", "bin", "memtrace")
FOLDER = scratch()
SETTINGS = {"MEMTRACE_REGION_DIR": scratch(where="/dev/shm"), "MEMTRACE_SUMMARY": "0", "MEMTRACE_KEEP_SMALL": "1"}
HAS = ["run", "record", "list", "send", "control", "attach", "detach", "completion"]


def agent(*arguments, **more):
    return execute([AGENT, *map(str, arguments)], clean_environment(**SETTINGS, **more.pop("settings", {})), FOLDER, **more)


def commands_of(command):
    told = execute([command, "help"]).stdout.decode()
    return re.findall(r"^  (\w+) +\S", told.partition("commands:\n")[2].partition("\n\n")[0], re.MULTILINE)


def test_commands():
    """Each command of the whole build is here, or is refused by a line that says what to do."""
    equal(commands_of(AGENT), HAS, "commands of the agent")
    whole = commands_of(MEMTRACE)
    equal(len(whole) > 20 and set(HAS) < set(whole), True, "commands of the whole build", whole)
    for name in whole:
        if name in HAS:
            for words in ([name, "--help"], ["help", name]):
                done = agent(*words)
                equal((done.returncode, done.stderr), (0, b""), words)
                equal(done.stdout.startswith(b"usage: memtrace %s" % name.encode()), True, words, done.stdout[:80])
            continue
        for words in ([name], [name, "--help"], ["help", name], [name, "file.mtr"]):
            done = agent(*words)
            equal((done.returncode, done.stdout, done.stderr.decode()),
                  (1, b"", "memtrace: %s is not in this build for devices: take or send what was recorded to a machine with "
                           "the whole of MemTrace, and use it there\n" % name), words)
    done = agent("nonsense")
    equal((done.returncode, b"there is no command" in done.stderr), (2, True), "no command", done.stderr)
    told = agent("complete", "--", "").stdout.decode()
    equal((bool(re.search(r"^detach\t", told, re.M)), bool(re.search(r"^flags\t", told, re.M))), (True, False), "completion", told)
    for shell in ("bash", "zsh", "fish"):
        equal("memtrace complete" in agent("completion", shell).stdout.decode(), True, shell)


def test_libraries():
    """What it is linked with is what docs/stream.md says."""
    told = execute(["readelf", "--dynamic", AGENT]).stdout.decode()
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", told)
    own = [name for name in needed if not re.match(r"lib[cm]\.so|ld-linux", name)]
    with open(os.path.join(SOURCE, "docs", "stream.md"), encoding="utf-8") as page:
        stated = re.search(r"^\| libraries of the command \| (.*) \|$", page.read(), re.MULTILINE)
    equal(sorted(own), sorted(re.findall(r"`([^`]+)`", stated.group(1)) if stated else []), "libraries, and those of the page")


def functions(path, *options):
    data = report(path, None, *options)
    return {frame["function"] for context in data["contexts"] for frame in context["frames"]}


def stripped(program):
    """A copy without symbols, as devices have it, and the folder of debug files that its maker keeps."""
    bare, debug = os.path.join(FOLDER, "device"), os.path.join(FOLDER, "debug")
    notes = execute(["readelf", "--notes", program]).stdout.decode()
    build_id = re.search(r"Build ID: (\w+)", notes).group(1)
    place = os.path.join(debug, ".build-id", build_id[:2])
    os.makedirs(place)
    subprocess.run(["objcopy", "--only-keep-debug", program, os.path.join(place, build_id[2:] + ".debug")], check=True)
    subprocess.run(["strip", "-o", bare, program], check=True)
    return bare, debug


def test_device():
    """From the device to the receiver, which names the functions: by what the recording brings along, of a program
    without symbols by its build-id; and of a profile by copies of the files."""
    token = make_token(FOLDER)
    gather = Gather(os.path.join(FOLDER, "there"), "--token", token)
    program = build(os.path.join(HERE, "device.c"), flags=("-Wl,--build-id",))
    bare, debug = stripped(program)
    sent = []
    for one in (program, bare):
        before = set(files(FOLDER, ".mtr"))
        done = agent("record", "--to", "127.0.0.1:%d" % gather.port, "--token", token, "--", one)
        equal((done.returncode, done.stdout), (0, b"done\n"), "record --to", done.stderr)
        sent += [path for path in files(FOLDER, ".mtr") if path not in before and "there" not in path]
    equal(len(sent), 2, "recordings", sent)
    gather.end()
    same(gather.folder, *sent)
    profile, copies = os.path.join(FOLDER, "taken.mtp"), os.path.join(FOLDER, "copies")
    equal(agent("run", "--output", profile, "--", program).returncode, 0, "run")
    os.makedirs(copies + os.path.dirname(program))
    shutil.copy(program, copies + program)
    os.rename(program, program + ".away")  # the receiver has no such file
    try:
        equal("keep_some" in functions(profile), False, "a profile brings no names along")
        equal({"keep_some", "main"} <= functions(profile, "--root", copies), True, "but its files may lie elsewhere")
        for path in received(gather.folder):
            names = functions(path, *(["--debug-folders", debug] if "device." in os.path.basename(path) else []))
            equal({"keep_some", "main"} <= names, True, "functions of", path, sorted(filter(None, names)))
    finally:
        os.rename(program + ".away", program)


def test_process():
    """Attached to, recorded, and left again; and profiled."""
    from attach_test import Subject, need_ptrace  # its own folder
    need_ptrace()
    for options, ending in (([], ".mtp"), (["--record"], ".mtr")):
        output = os.path.join(FOLDER, "attached" + ending)
        subject = Subject(build(os.path.join(TESTS, "attach", "known.c")), "counts")
        done = agent("attach", "--output", output, *options, subject.pid)
        equal((done.returncode, b"memtrace report" in done.stdout), (0, False), "attach", done.stdout, done.stderr)
        subject.rounds()
        equal(str(subject.pid) in agent("list").stdout.decode(), True, "list")
        equal(agent("detach", subject.pid).returncode, 0, "detach")
        wait_until(lambda: os.path.exists(output), "it is written")
        equal("main" in functions(output), True, "functions of", output)
        subject.process.kill()
        subject.process.wait()


def test_refused():
    """What is asked of this build in vain, and reports that it prints itself: places, not names."""
    program = build(os.path.join(HERE, "device.c"))
    done = agent("run", "--serve", "--", program)
    equal((done.returncode, b"--serve" in done.stderr), (2, True), "run --serve", done.stderr)
    done = agent("run", "--every", "1ms", "--", program)
    equal((done.returncode, done.stdout), (0, b"done\n"), "run --every", done.stderr)
    equal(bool(re.search(rb"^      /.*device\+0x[0-9a-f]+$", done.stderr, re.MULTILINE)), True, "places", done.stderr[-2000:])
    equal(len(profiles(FOLDER)), 1, "profiles")
    equal({"keep_some", "main"} <= functions(profiles(FOLDER)[0]), True, "functions of a profile")


globals()["test_" + sys.argv[1]]()
finish()
