# SPDX-License-Identifier: MIT
"""What the program named like a formula is text in every CSV, and the same otherwise; numbers and other
forms stay as they are."""

import csv
import io
import json
import os
import re

from exported import HERE, MEMTRACE, build, equal, execute, fail, finish, record, recordings, scratch

NUMBER = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?$")
COMMANDS = (
    ("report", "--csv"), ("report", "--csv", "--show-threads"), ("report", "--csv", "--flat"),
    ("report", "--csv", "--show-marks"), ("report", "--csv", "--show-groups"), ("report", "--csv", "--paths"),
    ("export", "--format", "csv"),
)
QUERIES = ("SELECT name FROM threads", "SELECT name, -5, -0.5 FROM markers", "SELECT function FROM frames",
           "SELECT DISTINCT path FROM contexts", "SELECT name AS \"=1\" FROM threads")


def check(words, text):
    """All cells of one command's CSV."""
    cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    for cell in cells:
        if cell[:1] in tuple("=+-@\t\r") and not NUMBER.match(cell):
            fail(words, "cell", repr(cell))
    return cells


def run(*words):
    done = execute([MEMTRACE, *words])
    equal(done.returncode, 0, words, done.stderr)
    return done.stdout.decode()


def main():
    folder = scratch()
    program = build(os.path.join(HERE, "formulas.c"), optimize="-O0", mode="preload", flags=["-g0"])
    result = record([program], folder)
    equal(result.returncode, 0, result.stderr)
    path = recordings(folder)[0]
    seen = set()
    for words in COMMANDS:
        seen.update(check(words, run(*words, path)))
    for sql in QUERIES:
        seen.update(check(sql, run("query", "--format", "csv", "--header", "on", path, sql)))
    for name in ("'=HYPERLINK(1)", "'+1", "'-1+1", "'@SUM(1)", "'\t=1", "plain=1", "'=1+1", "'=2+2", "-5",
                 "-0.5", "'-1+cmd|'/C calc'!A0", "'=1"):
        if name not in seen:
            fail("no cell", repr(name))
    names = {thread["name"] for thread in json.loads(run("report", "--json", path))["threads"]}
    equal({"=HYPERLINK(1)", "-1+1"} < names, True, "JSON", names)
    equal("=HYPERLINK(1)\n" in run("query", "--format", "tsv", path, QUERIES[0]), True, "TSV")
    finish()


main()
