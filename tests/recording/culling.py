# SPDX-License-Identifier: MIT
"""culling.py: the same deterministic program is recorded whole and with its short-lived blocks left out.
Totals are the same call path by call path, the culled ones included; events are fewer. Threads that
free and resize each other's blocks at random leave both ends of a block in the file, or none."""

import os

from recorded import HERE, only_recording, record, whole
from harness import build, consistent, equal, fail, finish, profiles, report, scratch, totals

BUSY = os.path.join(os.path.dirname(HERE), "selection", "busy.c")

PAIRS = 200000
COSTS = ("total_bytes", "allocations", "frees", "live_bytes", "live_blocks")


def recorded(*options):
    program = build(os.path.join(HERE, "counted.c"), "gcc", "-O2")
    folder = scratch()
    under = record([program, os.path.join(folder, "counts"), "1", str(PAIRS)], folder, *options)
    equal(under.returncode, 0, options, "exit status", under.stderr)
    data = report(only_recording(folder, options))
    whole(data, options)
    consistent(data, options)
    return data


def main():
    uncut, culled = recorded(), recorded("--cull-below", "50ms")
    by_path = [{context["hash"]: {name: context[name] for name in COSTS} for context in data["contexts"]}
               for data in (uncut, culled)]
    equal(by_path[1], by_path[0], "costs with short-lived blocks left out")
    threads = [[(thread["allocations"], thread["frees"], thread["total_bytes"])
                for thread in data["threads"]] for data in (uncut, culled)]
    equal(threads[1], threads[0], "threads")
    if culled["recording"]["events"] > uncut["recording"]["events"] / 2:
        fail("hardly anything was left out:", culled["recording"]["events"], "of",
             uncut["recording"]["events"])


def several_threads():
    for options in (["--cull-below", "20ms"], ["--cull-below", "20ms", "--precise"],
                    ["--cull-below", "600s"]):
        folder = scratch()
        under = record([build(BUSY), "7", "4", "4000"], folder, *options)
        equal(under.returncode, 0, options, "exit status", under.stderr)
        data = report(only_recording(folder, options))
        whole(data, options)
        consistent(data, options)
        equal(totals(data), totals(report(profiles(folder)[0])), options, "totals")


QUEUE = r"""
#include <stdlib.h>
#include <unistd.h>
enum { BLOCKS = 4096, ROUNDS = 320, STEP = 512 };
int main(void) {
    static void *queue[BLOCKS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = round * STEP % BLOCKS, end = i + STEP; i < end; i++) {
            free(queue[i]);
            queue[i] = malloc(48);
        }
        usleep(5000);
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(queue[i]);
    }
    return 0;
}
"""


def waiting():
    """A queue whose blocks wait 40 ms for their turn. Where few blocks may wait until it is known how
    long they live, what waits is written: more events, the same costs, nothing lost. How many more
    depends on how often a busy machine's collector gets to look: hence so many rounds."""
    source = os.path.join(scratch(), "queue.c")
    with open(source, "w") as file:
        file.write(QUEUE)
    program, events, sums = build(source, "gcc", "-O1"), [], []
    for more in ([], ["--cull-pending", "100"]):
        folder = scratch()
        under = record([program], folder, "--cull-below", "600s", *more)
        equal(under.returncode, 0, more, "exit status", under.stderr)
        data = report(only_recording(folder, more))
        whole(data, more)
        consistent(data, more)
        events.append(data["recording"]["events"])
        sums.append(totals(data))
    equal(sums[1], sums[0], "totals")
    if events[1] < events[0] * 5 // 4:
        fail("events where many blocks may wait, and where few may:", events)


main()
several_threads()
waiting()
finish()
