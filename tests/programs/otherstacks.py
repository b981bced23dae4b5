# SPDX-License-Identifier: MIT
"""otherstacks.py calls|CASE: stacks that are not the thread's own, or that nobody told of.

`calls`: ten thousands of pairs in ten frames there make hardly a system call. The cases: each block's
path is the one that its size stands for, and no word is read that is not there (the program would die).
"""

import sys

from harness import (build, clean_environment, equal, execute, fail, finish, heap, only_profile, scratch,
                     skip, sums_by_path, traced)

SUBJECT = "otherstacks.c"
WHERE = ["own", "fiber", "thread", "timer", "handler", "clone"]
PAIRS = 20000
DEEP = ["descend"] * 11


def both(first, count, frames):
    """One block after the other, the second two bytes larger."""
    return [(first, count, frames), (first + 2, count, frames)]


def neighbour():
    """What lies beyond the outermost function is shown where it looks like code and is there."""
    ends = [([], []), ([], []), (["pretended"], ["pretended"]),
            (["pretended", "pretended"], ["pretended"]), (["pretended", "pretended"], ["pretended"])]
    rows = []
    for is_seen in range(2):
        for index, (before, after) in enumerate(ends[:4 + is_seen]):
            size = 71001 + is_seen * 1000 + index * 100
            for frames in (["alone"], ["alone", *DEEP, "deep_alone"]):
                rows += both(size, 2, frames + before) + both(size + 4, 2, frames + after)
                size += 8
    return rows


FIBER = ["take_two", *DEEP, "fiber_main"]
CASES = {
    "neighbour": neighbour(),
    "caller": [(72001, 3, ["once"]), (72005, 3, ["once", "pretended"])],
    "smaller": both(73001, 24, FIBER),
    "interrupted": both(74001, 6, ["on_interruption", "first_interrupted", "case_interrupted", "main"])
                   + both(74005, 6, ["on_interruption", "second_interrupted", "case_interrupted", "main"]),
    "threads": both(75001, 4, ["descend_far"] * 401 + ["far_in_thread"])
               + [(75005, 4, ["descend_far"] * (401 - depth) + ["far_in_thread"]) for depth in range(100, 401, 100)]
               + [(75007, 2, ["far_in_thread"])] + both(75009, 4, FIBER),
}


def calls(program):
    for where in WHERE:
        result = traced([program, "calls", where], "preload", scratch())
        if result.returncode == 77:
            skip("no seccomp filter")
        counted = result.stdout.decode().strip()
        print(where + ":", counted, "system calls")
        if not counted.isdigit() or int(counted) > PAIRS // 20:
            fail(where, "took", counted, "system calls for", PAIRS, "pairs, status", result.returncode)


def check_paths(program, case, mode):
    what = "%s %s:" % (case, mode)
    folder = scratch()
    equal(execute([program, case], clean_environment()).returncode, 3, what, "status bare")
    result = traced([program, case], "preload", folder, {"MEMTRACE_UNWIND": mode})
    if not equal(result.returncode, 3, what, "exit status"):
        return
    data = only_profile(folder, what)
    known = {name for _, _, frames in CASES[case] for name in frames}
    expected = sums_by_path((tuple(frames), count, count * size) for size, count, frames in CASES[case])
    got = sums_by_path((tuple(frame["function"] for frame in context["frames"] if frame["function"] in known),
                        context["allocations"], context["total_bytes"])
                       for context in heap(data) if context["allocations"])
    for frames in sorted(set(expected) | set(got) - {(), ("main",)}):
        equal(got.get(frames), expected.get(frames), what, "blocks and bytes of", *frames)


def main():
    case = sys.argv[1]
    program = build(SUBJECT, "gcc", "-O1", "preload", ["-fno-optimize-sibling-calls"])
    if case == "calls":
        calls(program)
    else:
        for mode in ("patch", "verify"):
            check_paths(program, case, mode)
    finish()


main()
