# SPDX-License-Identifier: MIT
"""completion_test.py CASE: what the shells themselves make of the scripts of `memtrace completion`."""

import os
import shutil
import subprocess

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
    check("--not-module" not in fish("memtrace list --not"), "filters of commands that take none")
    check("--suppressions" not in fish("memtrace run --su"), "options of other commands")


def test_completion_zsh():
    if shutil.which("zsh") is not None:
        in_shell(["zsh", "-f", "-n", script("zsh")])


def test_completion_unknown_shell():
    for arguments in ((), ("tcsh",), ("bash", "zsh")):
        done = execute(MEMTRACE, "completion", *arguments)
        equal((done.returncode, done.out, done.err.count(b"\n")), (2, b"", 1), done.err)
        check(b"bash, zsh or fish" in done.err, done.err)


case(globals())
