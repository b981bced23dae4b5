# SPDX-License-Identifier: MIT
"""startup.py: functions that only start a program or a thread are left out of reports; one that allocates
itself is shown in each of them."""

import os
import re

from reports import written
from harness import MEMTRACE, build, clean_environment, execute, fail, finish, profiles, scratch, traced

# C libraries have functions of these names, which seldom allocate.
SOURCE = """
#include <stdlib.h>
static void *volatile kept;
__attribute__((noinline)) static void inner(size_t size) { kept = malloc(size); __asm__ volatile(""); }
__attribute__((noinline)) static void start_thread(size_t size) {
    kept = malloc(size);
    inner(11);
}
__attribute__((noinline)) static void thread_start(size_t size) { kept = malloc(size); __asm__ volatile(""); }
int main(int argc, char **argv) {
    start_thread(50001 * (size_t)argc);
    thread_start(20000 / (size_t)argc);
    return 0;
}
"""


def profile(*arguments):
    folder = scratch()
    source = os.path.join(folder, "starts.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    traced([build(source, optimize="-O1"), *arguments], "preload", folder)
    return profiles(folder)[0]


def expect(text, words, what):
    """A line that ends with the function has the number."""
    lines = [line for line in text.split("\n") if "start_thread" in line]
    if not any(all(word in line for word in words) for line in lines):
        fail(what, "no line of start_thread with", words, "in", text)


def expect_rows(text, changes):
    """Each function's own row in a difference: what changed, and below it where."""
    for function, change in changes.items():
        if not re.search(r"^ +%s .*\n +%s " % (re.escape(change), function), text, re.MULTILINE):
            fail("diff: no row of", function, "with", change, "in", text)


def main():
    small, large = profile(), profile("argument")
    for options in (["--top-down"], ["--bottom-up"], ["--flat"], ["--flat", "--all-frames"]):
        expect(written(small, "--show-leaked", *options).decode(), ["48.8 KiB"], options)
    shown = written(small, "--show-leaked", "--paths").decode()
    if "start_thread" not in shown.split("inner")[0]:
        fail("--paths:", shown)
    done = execute([MEMTRACE, "diff", small, large], clean_environment())
    expect_rows(done.stdout.decode(), {"start_thread": "+48.8 KiB", "thread_start": "-9.8 KiB"})
    finish()


if __name__ == "__main__":
    main()
