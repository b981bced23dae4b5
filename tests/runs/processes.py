# SPDX-License-Identifier: MIT
"""--process in every command that takes a run: by number, by name, by image; what is said where several
are meant, where none is, and where nothing was kept."""

import json
import os

from runfolder import command, describe, equal, finish, folder, make, process, record, told

run = make("run")
record(run + "/sh.10.mtp", "sh", 1000)
record(run + "/cc1.10.2.mtp", "cc1", 20000)
record(run + "/cc1.11.mtp", "cc1", 30000, 5)
record(run + "/others.mtp", "true", 40)
describe(run, [process(10, 1, "sh", 0, 10, 1000, end="execed", file="sh.10.mtp"),
               process(10, 1, "cc1", 10, 90, 20000, image=2, file="cc1.10.2.mtp"),
               process(11, 10, "cc1", 20, 80, 30000, file="cc1.11.mtp"),
               process(12, 10, "true", 30, 31, 40, file="others.mtp"),
               process(13, 10, "gone", 30, 31, 90000),
               process(14, 10, "worker", 30, 31, 300, file="sh.10.mtp", light=True, arguments=[])])


def total(*options):
    return told(run, *options)["total_bytes"]


def said(*options, status=0, name="report"):
    return command(name, *options, status=status)[1].strip()


def check_choice():
    equal(total(), 30005, "the one that held most")
    equal(total("--process", "11"), 30005)
    equal(total("--process", "10"), 20000, "of several images the one that held most")
    equal(total("--process", "10:1"), 1000)
    equal(total("--process", "sh"), 1000)
    equal(total("--process", "cc1:2"), 20000)
    equal(total("--process", "/usr/bin/cc1"), 30005)
    equal(told(run, "--process", "10:2")["run"]["chosen"], {"pid": 10, "image": 2})
    equal(total("--process", "true"), 40)
    equal(total("--process", "14"), 1000)


def check_words():
    equal(said(run, "--process", "10"), "", "images of one process are no choice")
    equal(said(run, "--process", "cc1"),
          "memtrace: 'cc1' means 2 processes; process 11 is shown, which has the highest peak (29.3 KiB) of "
          "those that have a file")
    equal(said(run, "--process", "true"),
          "memtrace: process 12 is a small one: others.mtp has the sums of all small processes")
    equal(said(run, "--process", "worker"),
          "memtrace: process 14 is a small forked child: this is the profile of its parent, "
          "sh.10.mtp; --all-processes adds the child's call paths")
    none = ("memtrace: there is no process '%s' in " + run + "; it has gone (13), cc1 (11), cc1 (10), "
            "sh (10), worker (14), true (12)")
    for wrong in ("nosuch", "4711", "cc1:3", "10:9", "", ":1", "evil\x1b[2J"):
        equal(said(run, "--process", wrong, status=1), none % wrong.replace("\x1b", "?"))
    equal(said(run, "--process", "gone", status=1),
          "memtrace: process 13 was seen, but nothing of it was kept")
    equal(said(run, "--process", "sh", "--all-processes", status=1),
          "memtrace: --process and --all-processes: only one of them")


def check_commands():
    """The others take it, too."""
    data = json.loads(command("export", "--format", "json", "--process", "sh", run)[0])
    equal(data["total_bytes"], 1000, "export")
    equal(command("query", "--process", "10:1", run, "SELECT total_bytes FROM summary")[0], "1000\n")
    rows = command("query", run, "SELECT pid, image, peak_bytes, file, light FROM processes")[0]
    equal(rows, "10\t1\t1000\tsh.10.mtp\t0\n10\t2\t20000\tcc1.10.2.mtp\t0\n11\t1\t30000\tcc1.11.mtp\t0\n"
          "12\t1\t40\tothers.mtp\t0\n13\t1\t90000\t\t0\n14\t1\t300\tsh.10.mtp\t1\n", "processes")
    equal(command("query", run, "SELECT command FROM processes WHERE pid = 11")[0], "cc1 x.c\n")
    command("check", "--process", "sh", "--max-peak", "1000", run)
    command("check", "--process", "cc1:1", "--max-peak", "1000", run, status=1)
    command("check", "--process", "sh", "--max-growth", "0", "--baseline", run, run)
    after = make("after")
    record(after + "/sh.20.mtp", "sh", 1500)
    record(after + "/cc1.21.mtp", "cc1", 90000)
    data = json.loads(command("diff", "--json", "--process", "sh", run, after)[0])
    equal([data[side]["source"].rsplit("/", 1)[1] for side in ("before", "after")],
          ["sh.10.mtp", "sh.20.mtp"], "diff")
    totals = data["totals"]["peak_bytes"]
    equal((totals["before"], totals["after"]), (1000, 1500), "diff")
    equal(said(run, after, "--process", "cc1:2", status=1, name="diff").split(";")[0],
          "memtrace: there is no process 'cc1:2' in " + after)


def check_files():
    """A file of its own is one process."""
    file = run + "/cc1.11.mtp"
    equal(told(file, "--process", "cc1")["total_bytes"], 30005)
    pid = told(file)["process"]["pid"]
    equal(said(file, "--process", "sh", status=1),
          "memtrace: %s is the file of one process, cc1 (%d), not of 'sh'" % (file, pid))
    equal(command("query", file, "SELECT pid, peak_bytes FROM processes")[0], "%d\t30005\n" % pid)
    equal("run" in told(file), False)


def check_info():
    text = command("info", run)[0]
    wanted = {"sh.10.mtp": "sh (10) and 1 forked children", "cc1.10.2.mtp": "cc1 (10)",
              "cc1.11.mtp": "cc1 (11)", "others.mtp": "the sums of 1 small process"}
    for line in text.splitlines():
        for name, owner in wanted.items():
            if name in line:
                equal(line.split("KiB")[1].strip(), owner, name)
    data = json.loads(command("info", "--json", run)[0])
    equal([entry["file"] for entry in data["files"]], sorted(wanted))
    for name in ("strip", "anonymize", "repack"):
        err = command(name, "-o", folder + "/out", run, status=1)[1]
        equal("folder" in err, True, name, "of a folder:", err)
    equal(os.path.exists(folder + "/out"), False)
    command("merge", "-o", folder + "/all.mtp", run)
    equal(told(folder + "/all.mtp")["total_bytes"], 1000 + 20000 + 30005 + 40, "merge of a folder")


check_choice()
check_words()
check_commands()
check_files()
check_info()
finish()
