# SPDX-License-Identifier: MIT
"""names_test.py CASE: what a program is called in reports: its arguments, empty ones among them, and its name,
where its file has several. Each as it was typed."""

import json
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
from harness import (MEMTRACE, PRELOAD, build, clean_environment, equal, execute, finish, profiles,  # noqa: E402
                     report, scratch)

ARGUMENTS = ["1", "", "a b", "''", ""]


def memtrace(*arguments, folder=None):
    done = execute([MEMTRACE, *arguments], clean_environment(MEMTRACE_SUMMARY="0", MEMTRACE_KEEP_SMALL="1"), folder)
    equal(done.returncode, 0, arguments, done.stderr)
    return done.stdout.decode()


def program():
    return build(os.path.join(HERE, "subject.c"))


def line_of(text, label):
    return re.search(r"^ *%s +(.*)$" % label, text, re.MULTILINE)[1]


def test_arguments():
    """In a profile, a recording, one that was written anew, and SQL; an empty one ends nothing."""
    folder, subject = scratch(), program()
    command = [subject, *ARGUMENTS]
    execute([MEMTRACE, "run", "-o", "a.mtp", "--", *command], clean_environment(MEMTRACE_SUMMARY="0"), folder)
    execute([MEMTRACE, "record", "-o", "a.mtr", "--", *command], clean_environment(MEMTRACE_SUMMARY="0"), folder)
    execute(command, clean_environment(LD_PRELOAD=PRELOAD, MEMTRACE_SUMMARY="0", MEMTRACE_OUTPUT="bare.mtp"), folder)
    memtrace("repack", "a.mtr", "-o", "repacked.mtr", folder=folder)
    for name in ("a.mtp", "a.mtr", "bare.mtp", "repacked.mtr"):
        path = os.path.join(folder, name)
        equal(report(path)["process"]["command"], command, name)
        equal(line_of(memtrace("report", path), "command"), "%s 1 '' 'a b' '''' ''" % subject, name)
        equal(line_of(memtrace("info", path), "command"), "%s 1 '' a b '' ''" % subject, name)
        equal(json.loads(memtrace("query", "--format", "json", path, "SELECT command FROM processes"))[0]["command"],
              "%s 1 '' a b '' ''" % subject, name)
    memtrace("anonymize", "a.mtr", "-o", "hidden.mtr", folder=folder)
    equal(len(report(os.path.join(folder, "hidden.mtr"))["process"]["command"]), len(command), "hidden ones")


def test_run():
    """The processes of a run have theirs in its summary."""
    folder, subject = scratch(), program()
    script = "%s 2 '' z; %s 3 ''; true" % (subject, subject)
    execute([MEMTRACE, "run", "-o", "whole", "--", "sh", "-c", script, ""], clean_environment(MEMTRACE_SUMMARY="0"), folder)
    told = json.loads(memtrace("report", "--json", "whole", folder=folder))["run"]
    equal(told["command"], ["sh", "-c", script, ""], "the command")
    equal(sorted(process["arguments"] for process in told["processes"] if process["arguments"][0] == subject),
          [[subject, "2", "", "z"], [subject, "3", ""]], "processes")


def test_name():
    """The one that was typed, where it is a link to the file; never that of a script or of argv[0] alone."""
    folder = scratch()
    file, link = os.path.join(folder, "file-of-it"), os.path.join(folder, "as-it-is-called")
    shutil.copy(program(), file)
    os.symlink(file, link)
    settings = clean_environment(LD_PRELOAD=PRELOAD, MEMTRACE_SUMMARY="0", MEMTRACE_OUTPUT=os.path.join(folder, "%e.mtp"))
    execute([link, "1"], settings)
    execute([file, "1"], settings)
    execute(["bash", "-c", "exec -a neither-of-them %s 1" % file],
            clean_environment(MEMTRACE_SUMMARY="0", MEMTRACE_OUTPUT=os.path.join(folder, "%e.mtp")))
    equal(sorted(os.path.basename(path) for path in profiles(folder)), ["as-it-is-called.mtp", "file-of-it.mtp"], "%e")
    called = os.path.join(folder, "as-it-is-called.mtp")
    equal(memtrace("report", called).splitlines()[0], "MemTrace report of as-it-is-called", "the title")
    equal(report(called)["program"], file, "the file")
    equal(memtrace("report", os.path.join(folder, "file-of-it.mtp")).splitlines()[0], "MemTrace report of file-of-it", "the file's own")


def test_pools():
    """Totals of `report --json --class pool` are those of pools, as in the text."""
    folder = scratch()
    subject = build(os.path.join(os.path.dirname(HERE), "recording", "pooled.c"))
    execute([MEMTRACE, "run", "-o", "pools.mtp", "--", subject, "4000"], clean_environment(MEMTRACE_SUMMARY="0"), folder)
    path = os.path.join(folder, "pools.mtp")
    told, whole = json.loads(memtrace("report", "--json", "--class", "pool", path)), report(path)
    for name, of_context in (("total_bytes", "total_bytes"), ("allocations", "allocations"), ("frees", "frees"),
                             ("live_bytes", "live_bytes"), ("live_blocks", "live_blocks")):
        equal(told[name], sum(context[of_context] for context in whole["pools"]), name)
    equal(told["allocations"], 4000, "as many as it makes")
    equal((len(told["pools"]), told["contexts"]), (len(whole["pools"]), []), "each in its place")
    both = json.loads(memtrace("report", "--json", "--class", "pool", "--class", "heap", path))
    equal(both["allocations"], 4000 + whole["allocations"], "both")


if __name__ == "__main__":
    globals()["test_" + sys.argv[1]]()
    finish()
