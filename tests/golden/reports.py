# SPDX-License-Identifier: MIT
"""What the tests of reports share: asking `memtrace report` for its tables as JSON and CSV."""

import csv
import io
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../programs", "../recording", "../selection"):
    sys.path.insert(0, os.path.join(HERE, folder))

from harness import MEMTRACE, clean_environment, execute, fail, finish, scratch  # noqa: E402

SETTINGS = {"MEMTRACE_CACHE": scratch()}


def ask(path, *options, cwd=None):
    """A report, whatever becomes of it."""
    result = execute([MEMTRACE, "report", *options, path], clean_environment(**SETTINGS), cwd)
    if b"runtime error:" in result.stderr or b"Sanitizer" in result.stderr:  # of such a build
        fail(options, result.stderr.decode(errors="replace")[:3000])
    return result


def written(path, *options, cwd=None):
    """What the report is, as bytes; exits the test if there is none."""
    result = ask(path, *options, cwd=cwd)
    if result.returncode != 0:
        fail("memtrace report", options, "status", result.returncode, result.stderr.decode())
        finish()
    return result.stdout


def tables(path, *options, **more):
    """{name: rows} of the tables of a report."""
    data = json.loads(written(path, "--json", *options, **more))
    return {table["name"]: table["rows"] for table in data["reports"]}


def csv_tables(path, *options, **more):
    """Rows of each table of a report, in their order."""
    text = written(path, "--csv", *options, **more).decode()
    found = []
    for part in text.split("\r\n\r\n"):
        rows = list(csv.DictReader(io.StringIO(part, newline="")))
        found.append(rows)
    return found
