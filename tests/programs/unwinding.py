# SPDX-License-Identifier: MIT
"""unwinding.py SUBJECT [CASE...]: prebuilt code in each mode of MEMTRACE_UNWIND: the program prints
and ends as without us, nothing is lost, and the paths are the stacks that gdb shows.

Stacks are made deep and busy (subjects/depth.h), so that in mode patch return addresses within the
case's own frames are replaced. Mode fp has a build of its own: it promises something only where all
functions keep a frame pointer, which the C library's do not.
"""

import sys

from backtraces import ARITHMETIC, MISLEADING, check_deep, compare, gdb_stacks, plain_name
from harness import (bare, build, clean_environment, equal, execute, finish, only_profile,
                     same_behaviour, scratch, traced)

MODES = ["verify", "patch", "fp", "libunwind"]
DEPTH = {"SUBJECT_DEPTH": "60"}
WITH_FRAME_POINTERS = ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"]
CASES = {
    "stacks.c": """plain recursion deep qsort strdup alloca variadic returns tail_calls longjmp siglongjmp
                   signal sigaltstack threads cancel fibers exits thread_keys""",
    "stacks_cxx.cpp": "classes sort exceptions rethrow throw_through_qsort many_throws coroutines",
    "returns.c": "all",
    "switches.c": """fibers_interleaved fibers_inside fiber_moves fiber_moves_inside assembly_switch
                     user_stacks copied_slices""",
    "leaving.c": """thread_exit_below cancel_below jumps_in_a_loop own_backtrace own_unwinder
                    backtrace_in_handler""",
    "exceptions.cpp": """any_frame nested carried through_qsort no_leak terminate terminate_noexcept
                         terminate_in_thread""",
}
# No code of a library without frame pointers between the allocation and main.
FRAME_POINTERS_THROUGHOUT = {
    "plain", "recursion", "deep", "alloca", "variadic", "returns", "tail_calls", "longjmp", "classes",
    "rethrow", "many_throws", "all", "any_frame", "jumps_in_a_loop", "own_backtrace", "own_unwinder"}


def up_to(function, frames):
    """(The path without what called `function`, whether it is there)"""
    for index, frame in enumerate(frames):
        if function in (frame["names"] if "names" in frame else {plain_name(frame["function"])}):
            return frames[:index + 1], True
    return frames, False


def up_to_main(frames):
    """What called main, in the C library, keeps no frame pointer; nor does what runs before it."""
    frames, found = up_to("main", frames)
    return frames if found else []


def up_to_fiber(frames):
    """libunwind ends where a fiber starts; others see __start_context, which nobody called."""
    return up_to("fiber_main", frames)[0]


PARTS = {"fp": up_to_main, "libunwind": up_to_fiber}


class Subject:
    """A program for a case, with what it does alone and what gdb says of it, each asked for once."""

    def __init__(self, source, case, flags):
        self.source, self.case = source, case
        self.program = build(source, "gcc", "-O2", "preload", flags)
        # The recursion of `deep` is deep enough, and the test counts its frames.
        self.settings = {} if case in ARITHMETIC else dict(DEPTH)
        if case == "exits":
            self.settings["SUBJECT_CONSTRUCTOR"] = "1"
        self.alone = bare([self.program, case]) if not self.settings else execute(
            [self.program, case], clean_environment(SUBJECT_DISTURB="1", **self.settings))
        self.stacks = None

    def check(self, mode, what):
        folder = scratch()
        # Regions apart: what a subject that is killed leaves behind is told to whoever runs next.
        settings = {**self.settings, "SUBJECT_DISTURB": "1", "MEMTRACE_UNWIND": mode,
                    "MEMTRACE_REGION_DIR": scratch(where="/dev/shm")}
        equal(self.alone.returncode, 3, what, "bare exit status")
        same_behaviour(self.alone, traced([self.program, self.case], "preload", folder, settings), what)
        data = only_profile(folder, what)
        if mode == "fp" and self.case not in FRAME_POINTERS_THROUGHOUT:
            print(what, "behaves as bare; its paths lead through code without frame pointers")
            return
        lost = data["lost"]
        if self.case.endswith("_inside"):  # a thread's own stack seems to end within
            lost -= data["lost_by_kind"]["frames"]
        equal(lost, 0, what, "lost", data["lost_by_kind"])
        if self.case in ARITHMETIC:
            check_deep(data, what)
        elif (self.case, "gcc", "-O2") not in MISLEADING:
            if self.stacks is None:
                self.stacks = gdb_stacks(self.program, [self.case], self.settings)
            compare(data, self.stacks, self.program, what, PARTS.get(mode, list))


def main():
    source, *wanted = sys.argv[1:]
    for case in wanted or CASES[source].split():
        prebuilt = Subject(source, case, [])
        for mode in MODES:
            subject = Subject(source, case, WITH_FRAME_POINTERS) if mode == "fp" else prebuilt
            subject.check(mode, "%s %s %s:" % (source, case, mode))


if __name__ == "__main__":
    main()
    finish()
