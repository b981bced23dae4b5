#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The examples of expectations, built as outside projects against the installed package: the tests
that hold pass under ctest, those with a flaw fail with a message that says where and why.
examples.py EXAMPLE PREFIX"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import (SOURCE, clean_environment, equal, execute, fail, finish, scratch,  # noqa: E402
                     skip)

NEEDS = {"gtest": ("/usr/include/gtest/gtest.h", "libgtest-dev"),
         "catch2": ("/usr/include/catch2", "catch2")}
# For each example: tests that pass, the one that fails, and what it says.
EXPECTED = {
    "ctest": (["words.count"], "words.longest",
              r"words_test\.c:\d+: error: MEMTRACE_EXPECT_NO_LEAK: 6 bytes in 1 block were not freed; "
              r"the first of them at\n.*\+0x"),
    "gtest": (["Queue.RingDoesNotAllocateOnceItIsMade", "Queue.RingTakesTwoAllocationsAtMost"],
              "Queue.DequeDoesNotAllocateOnceItIsMade",
              r"queue_test\.cpp:\d+: Failure\n(?:Failed\n)?MEMTRACE_EXPECT_NO_ALLOC: \d+ allocations of \d+ "
              r"bytes, more than 0; beyond that first at\n.*\+0x"),
    "catch2": (["the cache stays within its budget", "the cache gives everything back"],
               "a shared cache gives everything back",
               r"cache_test\.cpp:\d+: MEMTRACE_EXPECT_NO_LEAK: \d+ bytes in 3 blocks were not freed; the "
               r"first of them at\n.*\+0x"),
}


# Catch2 breaks lines at this width, and paths among them at any place.
CONSOLE = "-DCMAKE_CXX_FLAGS=-DCATCH_CONFIG_CONSOLE_WIDTH=5000"


def run(*command, status=0):
    result = execute(list(command), clean_environment())
    text = result.stdout.decode() + result.stderr.decode()
    if status is not None:
        equal(result.returncode, status, command, text)
    return text


def main():
    example, prefix = sys.argv[1:]
    path, package = NEEDS.get(example, ("/", ""))
    if not os.path.exists(path):
        skip("no %s (scripts/test installs it)" % package)
    build = scratch()
    run("cmake", "-S", os.path.join(SOURCE, "examples", example), "-B", build, "-G", "Ninja",
        "-DCMAKE_PREFIX_PATH=" + prefix, CONSOLE)
    log = run("cmake", "--build", build)
    if "warning" in log:
        fail("warnings:", log)
    passing, failing, message = EXPECTED[example]
    for name in passing:
        text = run("ctest", "--test-dir", build, "-V", "--no-tests=error", "-R",
                   "^" + re.escape(name) + "$")
        if "memtrace: " in text or "not measured" in text:
            fail(name, "is not quiet:", text)
    text = run("ctest", "--test-dir", build, "--output-on-failure", "-R", "^" + re.escape(failing) + "$",
               status=8)
    if not re.search(message, re.sub(r"\n  +(?=[a-z0-9])", " ", text)):  # Catch2 breaks lines
        fail(failing, "says:", text)
    finish()


main()
