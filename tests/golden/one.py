# SPDX-License-Identifier: MIT
"""one.py: what is counted is one thing where the number is 1: no command says "1 blocks"."""

import os
import re

from reports import ask
from recorded import only_recording, profiles, record
from harness import MEMTRACE, build, clean_environment, execute, fail, finish, scratch, traced

SOURCE = """
#include <stdlib.h>
static void *volatile kept;
__attribute__((noinline)) static void more(void) { kept = malloc(100000); __asm__ volatile(""); }
int main(int argc, char **argv) {
    free(malloc(1));
    kept = malloc(1);
    if (argc == 1) { more(); }
    return 0;
}
"""
THINGS = "(allocation|block|byte|path|free|event|process|frame|file|part|line|region|budget|profile|sum|count)"
WRONG = re.compile(r"(?<![\d.,#])1 ([a-z-]+ )?" + THINGS + "(s|es)\\b")
REPORTS = ([], ["--limit", "1"], ["--show-leaked", "--paths", "--limit", "1"], ["--show-fragmentation"],
           ["--show-allocated", "--depth", "3"], ["--show-blocks"], ["--size", "1"])


def expect(text, what):
    for line in text.split("\n"):
        if WRONG.search(line):
            fail(what, "says", line)


def main():
    folder = scratch()
    source = os.path.join(folder, "one.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    program = build(source, optimize="-O1")
    told = record([program], folder, settings={"MEMTRACE_SUMMARY": "1"})
    expect(told.stderr.decode(), "the summary")
    for mode in ("preload", "run"):
        told = traced([program, "small"], mode, scratch(), {"MEMTRACE_SUMMARY": "1"}).stderr.decode()
        expect(told, "the summary of " + mode)
        if (("leaked" if mode == "run" else "not freed") + "  ") not in told or " 1 B (1 byte in 1 block)" not in told:
            fail(mode, told)
    for path in (only_recording(folder, "one"), profiles(folder)[0]):
        for options in REPORTS:
            expect(ask(path, *options).stdout.decode(), [path, *options])
        for command in (["info", path], ["check", path, "--max-peak", "1G"], ["diff", path, path]):
            done = execute([MEMTRACE, *command], clean_environment())
            expect((done.stdout + done.stderr).decode(), command)
    finish()


if __name__ == "__main__":
    main()
