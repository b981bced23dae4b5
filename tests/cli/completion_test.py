# SPDX-License-Identifier: MIT
"""completion_test.py CASE: what the shells themselves make of the scripts of `memtrace completion`."""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import termios
import time

from outside import MEMTRACE, case, check, equal, execute, folder


def script(shell):
    path = folder + "/memtrace." + shell
    with open(path, "wb") as file:
        file.write(execute(MEMTRACE, "completion", shell).out)
    return path


def in_shell(arguments):
    path = os.path.dirname(MEMTRACE) + ":" + os.environ["PATH"]
    done = subprocess.run(arguments, cwd=folder, env={**os.environ, "PATH": path},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    equal((done.returncode, done.stderr), (0, b""), arguments[-1])
    return done.stdout.decode().splitlines()


def bash(*words):
    quoted = " ".join("'%s'" % word for word in words)
    return in_shell(["bash", "-c", "source '%s'; COMP_WORDS=(%s); COMP_CWORD=%d; _memtrace; "
                     "printf '%%s\\n' \"${COMPREPLY[@]}\"" % (script("bash"), quoted, len(words) - 1)])


def fish(line):
    lines = in_shell(["fish", "--no-config", "-c", "source '%s'; complete -C '%s'" % (script("fish"), line)])
    begun = line.rpartition(" ")[2]  # fish 4 also offers what has these letters elsewhere
    return [line.split("\t")[0] for line in lines if line.startswith(begun)]


def files():
    for name in ("one.mtp", "two.mtr", "three.txt"):
        with open(folder + "/" + name, "w"):
            pass


def test_completion_bash():
    files()
    equal(bash("memtrace", "rec"), ["record"])
    equal(bash("memtrace", "report", "--show-le"), ["--show-leaked"])
    equal(bash("memtrace", "report", "--col"), ["--color"])
    equal(bash("memtrace", "report", "--color", ""), ["auto", "always", "never"])
    equal(bash("memtrace", "report", "-f", "m"), ["markdown"])
    equal(bash("memtrace", "query", "--not-mod"), ["--not-module"])
    equal(bash("memtrace", "query", "--class", ""), ["heap", "mapping", "pool"])
    equal(bash("memtrace", "record", "--not-mod"), [""])
    equal(bash("memtrace", "report", "--color", "=", "al"), ["always"])
    equal(bash("memtrace", "report", "--color", "="), ["auto", "always", "never"])
    equal(bash("memtrace", "diff", "--base-not-mod"), ["--base-not-module"])
    equal(bash("memtrace", "help", "repo"), ["report"])
    equal(sorted(bash("memtrace", "diff", "one"))[:1], ["one.mtp"])
    check("three.txt" not in bash("memtrace", "report", ""), "a text file is no profile")
    equal(bash("memtrace", "strip", "t"), ["two.mtr", "tmp"])
    equal(bash("memtrace", "export", "--format", "spee"), ["speedscope"])
    equal(bash("memtrace", "control", "1", "ex"), ["exact"])
    equal(bash("memtrace", "control", "1", "ma"), ["mark"])
    check("1" in bash("memtrace", "control", ""), "process 1 is there")
    check("true" in bash("memtrace", "run", "--", "tru"), "commands behind --")
    equal(bash("memtrace", "run", "--", "cat", "three"), ["three.txt"])


def test_completion_fish():
    if shutil.which("fish") is None:
        return
    files()
    equal(fish("memtrace rec"), ["record"])
    equal(fish("memtrace report --show-le"), ["--show-leaked"])
    equal(fish("memtrace report --color a"), ["always", "auto"])
    equal(fish("memtrace export --format spee"), ["speedscope"])
    equal(fish("memtrace check --not-mod"), ["--not-module"])
    equal(fish("memtrace query --class m"), ["mapping"])
    equal(fish("memtrace query --class=m"), ["--class=mapping"])
    check("two.mtr" in fish("memtrace strip t"), "a recording")
    equal(fish("memtrace run -- cat thr"), ["three.txt"])
    check("1" in fish("memtrace trace 1"), "process 1 is there")
    check("--not-module" not in fish("memtrace list --not"), "filters of commands that take none")
    check("--suppressions" not in fish("memtrace run --su"), "options of other commands")


def zsh(line):
    """What the line has become when Tab was pressed in it: by a zsh at a terminal, as people have it."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    path = os.path.dirname(MEMTRACE) + ":" + os.environ["PATH"]
    shell = subprocess.Popen(["zsh", "-f", "-i"], cwd=folder, stdin=follower, stdout=follower, stderr=follower,
                             start_new_session=True, env={**os.environ, "PATH": path, "TERM": "dumb", "PS1": "", "HOME": folder})
    os.close(follower)

    def say(text):
        os.write(leader, text.encode())

    def until(pattern):
        """What it has printed up to there; each step of it prints something, so that nothing is timed."""
        nonlocal printed
        end = time.monotonic() + 60
        while not re.search(pattern, printed):
            check(select.select([leader], [], [], max(0, end - time.monotonic()))[0], pattern, printed)
            printed += os.read(leader, 4096).decode()
        before, printed = printed, ""
        return re.search(pattern, before)

    printed = ""
    try:
        say("autoload -U compinit && compinit -D -u && source '%s' && unset zle_bracketed_paste && LISTMAX=9999 && "
            "show() { print -r \"now=[$BUFFER]\" } && zle -N show && bindkey '^X' show && echo rea''dy\n" % script("zsh"))
        until("ready")
        say(line + "\t\x18")
        return until(r"now=\[(.*?)\]").group(1)
    finally:
        shell.kill()
        shell.wait()
        os.close(leader)


def test_completion_zsh():
    if shutil.which("zsh") is None:
        return
    files()
    for typed, wanted in (("memtrace rec", "memtrace record "), ("memtrace report --show-le", "memtrace report --show-leaked "),
                          ("memtrace report --color al", "memtrace report --color always "),
                          ("memtrace report --color=al", "memtrace report --color=always "),
                          ("memtrace diff --base-not-mod", "memtrace diff --base-not-module "),
                          ("memtrace strip tw", "memtrace strip two.mtr "), ("memtrace report on", "memtrace report one.mtp "),
                          ("memtrace export -f spee", "memtrace export -f speedscope "),
                          ("memtrace run -- cat thr", "memtrace run -- cat three.txt ")):
        equal(zsh(typed), wanted, typed)


def test_completion_unknown_shell():
    for arguments in ((), ("tcsh",), ("bash", "zsh")):
        done = execute(MEMTRACE, "completion", *arguments)
        equal((done.returncode, done.out, done.err.count(b"\n")), (2, b"", 1), done.err)
        check(b"bash, zsh or fish" in done.err, done.err)


case(globals())
