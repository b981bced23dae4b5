# SPDX-License-Identifier: MIT
"""cutregion.py CASE: somebody removes the region of a running program, or makes it shorter. Its collector goes
on: it says one line, keeps what it recorded before, and ends as the program does."""

import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
from harness import MEMTRACE, clean_environment, equal, execute, fail, finish, scratch  # noqa: E402

# It allocates, says so, waits without counting anything, and ends so that its runtime writes nothing more.
SUBJECT = r"""
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
void *volatile kept[100];
int main(int count, char **words) {
    char byte;
    (void)words;
    for (int i = 0; i < 100; i++) kept[i] = malloc(1000);
    if (write(1, "held\n", 5) != 5 || read(0, &byte, 1) != 1) return 1;
    if (count == 1) kill(getpid(), SIGKILL);
    for (int i = 0; i < 50; i++) free(kept[i]);
    return 0;
}
"""


def run(how, harm, *arguments):
    """Status, what was said, and the path of what was written."""
    folder = scratch()
    regions, subject, output = (os.path.join(folder, name) for name in ("regions", "subject", "out"))
    os.mkdir(regions, 0o700)
    with open(subject + ".c", "w", encoding="ascii") as source:
        source.write(SUBJECT)
    subprocess.run(["cc", "-O1", "-o", subject, subject + ".c"], check=True)
    process = subprocess.Popen([MEMTRACE, how, "--no-summary", "--output", output, "--", subject, *arguments],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=clean_environment(MEMTRACE_REGION_DIR=regions))
    equal(process.stdout.readline(), b"held\n", "the subject")
    # Its collector has it, and has written down what it did.
    for _ in range(600):
        if how == "run" or os.path.exists(output) and os.path.getsize(output) > 2000:
            break
        signal.sigtimedwait([], 0.05)
    signal.sigtimedwait([], 0.5)
    names = os.listdir(regions)
    equal(len(names), 1, "regions", names)
    harm(os.path.join(regions, names[0]))
    signal.sigtimedwait([], 0.5)
    equal(process.poll(), None, "it ends with its region", names)
    _, said = process.communicate(b"x", timeout=60)
    equal(os.listdir(regions), [], "what is left of it")
    return process.returncode, said.decode(), output


def told(path):
    result = execute([MEMTRACE, "report", "--json", path])
    equal(result.returncode, 0, "report", result.stderr)
    return json.loads(result.stdout)


def case_removed():
    for how in ("run", "record"):
        status, said, output = run(how, os.unlink, "on")
        equal((status, said), (0, ""), how, "with its region removed")
        data = told(output)
        equal((data["allocations"], data["frees"]), (100, 50), how, "counts")


def case_cut():
    for how in ("run", "record"):
        for size in (0, 8192, 20000):
            status, said, output = run(how, lambda path, size=size: os.truncate(path, size))
            equal(status, -signal.SIGKILL, how, size, "status", said)
            if said.count("\n") != 1 or "was made shorter" not in said:
                fail(how, size, "says", said)
            equal(os.path.exists(output), how == "record", how, size, "a profile of nothing")
            if how == "record":
                data = told(output)
                equal((data["allocations"], data["process"]["end"]), (100, "killed"), "what was recorded before")
                if not 0 < data["process"]["duration_ns"] < 60e9:
                    fail("it took", data["process"]["duration_ns"])


globals()["case_" + sys.argv[1]]()
finish()
