# SPDX-License-Identifier: MIT
"""golden.py [--update]: reports of files that are always the same are what they were: expected/ has them,
one file a command. --update writes them anew: look at the differences before you commit them."""

import difflib
import os
import shutil
import sys

import reports
from harness import BUILD, MEMTRACE, clean_environment, execute, fail, finish, scratch

EXPECTED = os.path.join(reports.HERE, "expected")
MAKER = os.path.join(BUILD, "tests", "golden", "make_golden")
SHOP = {
    "default": [],
    "maximum": ["--show-maximum"],
    "leaked": ["--show-leaked"],
    "leaked-bottom-up": ["--show-leaked", "--bottom-up"],
    "leaked-flat": ["--show-leaked", "--flat"],
    "leaked-paths": ["--show-leaked", "--paths"],
    "held-at": ["--show-leaked", "--at", "205ms"],
    "window": ["--show-cumulative", "--show-allocations", "--from", "100ms", "--to", "mark:half"],
    "shutdown": ["--show-shutdown"],
    "shutdown-at": ["--shutdown-at", "400ms", "--paths"],
    "temporary": ["--show-temporary"],
    "short-lived": ["--temporary-within", "4ms", "--flat"],
    "callers": ["--show-caller-callee", "handle_request(request&)"],
    "callers-regex": ["--show-caller-callee", "/^(cache|config)::/", "--show-leaked", "--show-cumulative"],
    "findings": ["--show-findings"],
    "groups": ["--show-groups", "--full-names", "--depth", "0"],
    "lifetimes": ["--show-lifetimes"],
    "sizes": ["--show-sizes"],
    "blocks": ["--show-blocks", "-n", "5"],
    "blocks-oldest": ["--blocks-by", "oldest", "-n", "5", "--depth", "1"],
    "blocks-first": ["--blocks-by", "first", "-n", "5", "--leaked"],
    "fragmentation": ["--show-fragmentation", "--at", "300ms"],
    "mappings": ["--show-mappings"],
    "timeline": ["--show-timeline"],
    "marks": ["--show-marks", "-n", "6"],
    "threads": ["--show-threads"],
}
KEPT = "compressed.mtp"  # example.mtp as it was when profiles were first compressed
PROFILE = {"profile-lifetimes": ["--show-lifetimes", "--show-groups", "--show-mappings", "--show-timeline"]}
FORMS = {"text": "txt", "markdown": "md", "csv": "csv", "json": "json"}
EVERY_FORM = ("findings", "leaked", "leaked-flat", "leaked-paths", "groups", "fragmentation", "timeline", "callers")


def cases():
    """(name of the expected file, arguments)"""
    for file, commands in (("shop.mtr", SHOP), ("example.mtp", PROFILE)):
        for name, options in commands.items():
            for form, ending in FORMS.items():
                if form == "text" or name in EVERY_FORM:
                    yield "%s.%s" % (name, ending), ["--format", form, *options, file]
    yield "profile-compressed.txt", [*PROFILE["profile-lifetimes"], KEPT]
    yield "profile-compressed.json", ["--format", "json", KEPT]  # what is not known is 0
    yield "timeline-ascii.txt", ["--show-timeline", "--show-fragmentation", "shop.mtr"]


def answer(arguments, folder, name):
    settings = dict(reports.SETTINGS, LC_ALL="C" if "ascii" in name else "C.UTF-8")
    result = execute([MEMTRACE, "report", *arguments], clean_environment(**settings), folder)
    if result.returncode != 0:
        fail(arguments, result.returncode, result.stderr)
    return result.stdout


def compare(name, got):
    try:
        with open(os.path.join(EXPECTED, name), "rb") as file:
            want = file.read()
    except FileNotFoundError:
        fail(name, "has no expected output: golden.py --update")
        return
    if got != want:
        lines = [part.decode(errors="replace").splitlines() for part in (want, got)]
        fail(name, "is not as expected (golden.py --update):\n" + "\n".join(
            list(difflib.unified_diff(*lines, "expected", "got", lineterm=""))[:60]))


def documented():
    """The samples in docs/report.md are what the reports are."""
    with open(os.path.join(reports.HERE, "..", "..", "docs", "report.md"), encoding="utf-8") as file:
        text = file.read().split("## What it looks like")[1].split("\n## ")[0]
    known = []
    for name in os.listdir(EXPECTED):
        with open(os.path.join(EXPECTED, name), encoding="utf-8") as file:
            known.append("\n".join(line.rstrip() for line in file.read().split("\n")))
    for sample in text.split("\n\n"):
        lines = sample.strip("\n").split("\n")
        if all(line.startswith("    ") for line in lines):
            wanted = "\n".join(line[4:].rstrip() for line in lines)
            if not any(wanted in report for report in known):
                fail("docs/report.md has what no report is:\n" + wanted)


def main():
    update = "--update" in sys.argv
    folder = scratch()
    made = execute([MAKER, folder])
    if made.returncode != 0:
        fail("make_golden", made.returncode, made.stderr)
        finish()
    shutil.copy(os.path.join(reports.HERE, KEPT), folder)
    os.makedirs(EXPECTED, exist_ok=True)
    names = set()
    for name, arguments in cases():
        got = answer(arguments, folder, name)
        names.add(name)
        if update:
            with open(os.path.join(EXPECTED, name), "wb") as file:
                file.write(got)
        else:
            compare(name, got)
    documented()
    for name in sorted(set(os.listdir(EXPECTED)) - names):
        fail("expected/" + name, "belongs to no command")


main()
finish()
