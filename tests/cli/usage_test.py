# SPDX-License-Identifier: MIT
"""usage_test.py CASE: command lines that are wrong, of every command: exit status 2 and one line that
says what was meant, before anything is done."""

import re

from outside import MEMTRACE, case, check, equal, execute, folder

COMMANDS = ("run record report diff query check export replay import extract repack strip anonymize merge "
            "info list trace control attach detach symbolize flags completion").split()


def refused(arguments, *words):
    done = execute(MEMTRACE, *arguments)
    equal((done.returncode, done.out, done.err.count(b"\n")), (2, b"", 1), arguments, done.err)
    for word in words:
        check(word.encode() in done.err, arguments, "no", repr(word), "in", done.err)


def test_help_is_not_torn():
    """Lines in columns fit: what is too long for a line of them would go on at its beginning."""
    commands = re.findall(r"(?m)^  ([a-z]+)\s+\S", execute(MEMTRACE, "--help").out.decode().split("examples:")[0])
    check(len(commands) > 20, commands)
    for command in commands:
        lines = execute(MEMTRACE, command, "--help").out.decode().splitlines()
        for before, line in zip(lines, lines[1:]):
            check(len(line) <= 80 or not line.startswith(" "), command, line)
            check(not before.startswith("  ") or before.lstrip().startswith("memtrace ") or line[:1] in ("", " ", "."),
                  command, before, line)


def test_misspelt_names():
    refused(["reprot"], "did you mean report?")
    refused(["help", "recrod"], "did you mean record?")
    refused(["--hepl"], "did you mean --help?")
    refused(["xyzzy"], "there is no command 'xyzzy' (try:")
    for command in COMMANDS:
        refused([command, "--hlep"], "there is no option --hlep: did you mean --help?")
        refused([command, "--xyzzy=3"], "there is no option --xyzzy (try: memtrace %s --help)" % command)
        equal(execute(MEMTRACE, command, "--help").returncode, 0, command)
    refused(["report", "--show-leak"], "did you mean --show-leaked?")  # not --show-peak
    refused(["report", "--show-frag"], "did you mean --show-fragmentation?")
    refused(["report", "--jsno", "x.mtp"], "did you mean --json?")
    refused(["run", "--evrey", "1s", "--", "true"], "did you mean --every?")
    refused(["export", "--format", "pporf", "x.mtp"], "did you mean pprof?")


def test_two_answers():
    """One output has one form."""
    refused(["report", "--json", "--csv", "x.mtp"], "--json and --csv exclude each other")
    refused(["report", "--format", "markdown", "--json", "x.mtp"],
            "--format markdown and --json exclude each other")
    refused(["report", "--flat", "--paths", "x.mtp"], "--flat and --paths")
    refused(["report", "--top-down", "--bottom-up", "x.mtp"], "exclude each other")
    refused(["diff", "--markdown", "--csv", "a.mtp", "b.mtp"], "--markdown and --csv")
    for command in ("query", "check", "export"):
        refused([command, "--format", "json", "--format", "gcc" if command == "check" else "csv", "x.mtp"],
                "exclude each other")
    done = execute(MEMTRACE, "report", "--json", "--format", "json", "x.mtp")
    equal(done.returncode, 1, "the same twice", done.err)


def test_wrong_values():
    for sizes in ("10-5", "5", "a-b", "-0", "1-2-3"):
        refused(["record", "--sizes=" + sizes, "--", "true"], "--sizes", "the smaller first")
    for sizes in ("4K-", "-1M", "100-200"):
        equal(execute(MEMTRACE, "record", "--sizes", sizes, "--", "true").returncode, 0, sizes)
    refused(["report", "--size", "10..5", "x.mtp"], "10..5")
    refused(["report", "--size", "10-5", "x.mtp"], "try 1K..64K")
    for arguments in (["report", "--format", "xml"], ["report", "--by", "lines"], ["report", "--color", ""],
                      ["report", "--blocks-by", "big"], ["diff", "--by", "line"], ["diff", "--metric", "x"],
                      ["query", "--header", "yes"], ["query", "--format", "xml"], ["check", "--format", "xml"],
                      ["export", "--by", "x"], ["export", "--cost", "x"], ["flags", "--mode", "x"],
                      ["run", "--stacks", "x"], ["record", "--embed", "x"], ["report", "--class", "x"]):
        refused(arguments, arguments[1], " or ", "'%s'" % arguments[2], "memtrace %s --help" % arguments[0])
    for arguments in (["report", "--limit", "x"], ["report", "-n", "-1"], ["report", "--limit=18446744073709551616"],
                      ["diff", "--line-tolerance", "4294967296"], ["run", "--top", "1e3"], ["run", "--contexts", "0"],
                      ["strip", "--below", "0"], ["strip", "--below", "x"], ["repack", "--level", "20"],
                      ["report", "--min-percent", "101"], ["report", "--temporary-within", ""],
                      ["check", "--tolerance", "x"], ["diff", "--min", "1Q"], ["run", "--every", "x"],
                      ["run", "--limit", "0"], ["record", "--rotate", ""]):
        refused(arguments, " is ", ", not '")
    for command in ("run", "record"):
        refused([command, "-o", folder + "/absent/x", "--", "true"], "/absent/: No such file or directory")


def test_one_vocabulary():
    """Every command takes each name of a metric, and says the same one for all of them."""
    names = {"peak": ("maximum",), "leaked": ("live",), "allocated": ("total", "cumulative"),
             "allocations": (), "temporary": ()}
    summary = execute(MEMTRACE, "run", "-o", "some.mtp", "--", "ls").err.decode()
    check("memtrace: peak  " in summary and "memtrace: leaked  " in summary, summary)

    def answer(*arguments):
        done = execute(MEMTRACE, *arguments)
        check(done.returncode in (0, 1) and not done.err.startswith(b"memtrace: "), arguments, done.err)
        return done.out.replace(b"[%s " % arguments[-1].split()[0].encode(), b"[")

    for name, synonyms in names.items():
        for synonym in synonyms:
            for before, after in ((["report", "some.mtp", "--show-"], []),
                                  (["diff", "some.mtp", "some.mtp", "--metric="], []),
                                  (["export", "some.mtp", "--format=folded", "--cost="], [])):
                equal(answer(*before[:-1], before[-1] + synonym, *after),
                      answer(*before[:-1], before[-1] + name, *after), synonym)
            equal(answer("check", "some.mtp", synonym + " <= 1"), answer("check", "some.mtp", name + " <= 1"))
            equal(answer("check", "some.mtp", "--max-%s=1" % synonym),
                  answer("check", "some.mtp", "--max-%s=1" % name))
        refused(["diff", "a.mtp", "b.mtp", "--metric", name + "x"])
    for arguments in (["report", "some.mtp"], ["diff", "some.mtp", "some.mtp"], ["list"],
                      ["report", "some.mtp", "--show-lifetimes", "--show-groups"]):
        out = answer(*arguments).lower()
        for word in (b"maximum", b"cumulative", b"half of those"):
            check(word not in out, arguments, "says", word)


def test_outputs_that_would_harm():
    """No text takes the place of what was measured, and no name is empty."""
    execute(MEMTRACE, "run", "-o", "a.mtp", "--", "true")
    execute(MEMTRACE, "record", "-o", "a.mtr", "--", "true")
    for path in ("a.mtp", "a.mtr"):
        with open(folder + "/" + path, "rb") as file:
            before = file.read()
        for arguments in (["report", "a.mtp"], ["diff", "a.mtp", "a.mtr"], ["query", "a.mtp", "SELECT 1"],
                          ["check", "a.mtp", "peak <= 0"], ["export", "a.mtp", "--format", "csv"]):
            done = execute(MEMTRACE, *arguments, "--output", path)
            check(done.returncode in (1, 2) and b"is a profile or a recording: name another" in done.err, done.err)
            with open(folder + "/" + path, "rb") as file:
                equal(file.read(), before, arguments)
    for arguments in (["extract", "a.mtr"], ["report", "a.mtp"], ["repack", "a.mtr"], ["query", "a.mtp", "SELECT 1"]):
        refused([*arguments, "--output", ""], "--output is a name, not ''")


def test_long_arguments():
    """The line is short, and has what was wrong at its end."""
    for arguments in ("run", "report", "list", "check", "query", "info", "symbolize", "trace 1", "completion"):
        done = execute(MEMTRACE, *arguments.split(), "x" * 50000)
        check(done.returncode not in (0, None) and done.err.count(b"\n") == 1 and len(done.err) < 1500, arguments, done.err)
        check(not done.err.rstrip().endswith(b"x"), arguments, done.err)


def test_output_that_cannot_be_written():
    """A full disk, a closed stdout, nobody who reads."""
    execute(MEMTRACE, "run", "-o", "a.mtp", "--", "ls")
    execute(MEMTRACE, "record", "-o", "a.mtr", "--", "ls")
    lines = ["report a.mtp", "report a.mtr --json", "report a.mtp --csv", "diff a.mtp a.mtr", "query --schema",
             "query a.mtp SELECT+*+FROM+frames", "check a.mtp peak+<=+0", "check a.mtp peak+<=+0 --format junit",
             "export --list", "export a.mtp --format folded", "export a.mtp --format pprof", "extract a.mtr --list",
             "info a.mtp", "info a.mtr --json", "list", "list --json", "flags --libs", "completion zsh", "manual",
             "help", "--version", "diff --help"]
    for line in lines:
        words = [word.replace("+", " ") for word in line.split()]
        with open("/dev/full", "w") as full:
            done = execute(MEMTRACE, *words, stdout=full)
        check(done.returncode in (1, 2) and b"No space left on device" in done.err and done.err.count(b"\n") == 1,
              line, done.returncode, done.err)
        done = execute("sh", "-c", '"$0" "$@" >&-', MEMTRACE, *words)
        check(done.returncode in (1, 2) and done.err.count(b"\n") == 1, line, "closed", done.returncode, done.err)
        done = execute("bash", "-c", '"$0" "$@" | true; exit ${PIPESTATUS[0]}', MEMTRACE, *words)
        check(done.returncode in (0, 1, 141) and done.err == b"", line, "a pipe", done.returncode, done.err)
        done = execute("sh", "-c", '"$0" "$@" <&- 2>&-', MEMTRACE, *words, env={"LC_ALL": "C", "TERM": "dumb"})
        check(done.returncode in (0, 1) and (b"\x1b" not in done.out or "pprof" in line), line, "no stdin")


case(globals())
