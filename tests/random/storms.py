# SPDX-License-Identifier: MIT
"""storms.py CASE [rounds=N] [mode=M] [compiler=C] [level=L]: frames left in one way, a million times
where the level is -O2 and the mode is pass, fewer times elsewhere; then the marked allocations must
have their real stacks. The programs are in storms/.
"""

import os
import subprocess
import sys

import compilers
import oracle
from harness import clean_environment, equal, execute, fail, finish, scratch, skip

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "storms")
MANY, FEW = 1000000, 20000
LOW, HIGH = 70000, 199999
LEVELS = ["-O0", "-O2"]
SECONDS = 600  # for one run, on a loaded machine
# case: (source, flags, compilers that have it)
CASES = {name: ("control.c", [], ("gcc", "clang"))
         for name in ("longjmp", "fibers", "computed_goto", "alloca", "tail_calls")}
CASES.update({name: ("signals.c", [], ("gcc", "clang"))
              for name in ("siglongjmp", "interrupted_copy", "stale_word")})
CASES.update({
    "nested_functions": ("control.c", [], ("gcc",)),
    "exceptions": ("control.cpp", ["-std=c++17"], ("gcc", "clang")),
    "coroutines": ("control.cpp", ["-std=c++20"], ("gcc", "clang")),
    "openmp": ("openmp.c", ["-fopenmp"], ("gcc", "clang")),
    "inline_asm": ("inline_asm.c", ["-mno-red-zone", "-fno-omit-frame-pointer"], ("gcc", "clang")),
    "dlopen": ("modules.c", [], ("gcc", "clang")),
})
# Clang 14's hooks and libstdc++'s C++20 headers do not link together.
IMPOSSIBLE = {("coroutines", "clang", "hooks")}


def build(case, pair, level, flags, folder, library=None):
    source, more, _ = CASES[case]
    out = os.path.join(folder, "storm" if library is None else "module%d.so" % library)
    command = [pair[source.endswith(".cpp")], "-w", "-g", "-pthread", level, *more, *flags,
               *(["-std=gnu17", "-D_GNU_SOURCE"] if source.endswith(".c") else []),
               *(["-shared", "-fPIC", "-DMODULE=%d" % library] if library is not None else []),
               os.path.join(HERE, source), "-o", out]
    made = subprocess.run(command, capture_output=True, text=True, env=clean_environment())
    if made.returncode != 0:
        if "-fopenmp" in more and "omp" in made.stderr:
            return None  # without the library of OpenMP
        fail("does not compile:", " ".join(command), made.stderr)
        finish()
    return out


def check(case, pair, level, flags, rounds, what):
    folder = scratch()
    program = build(case, pair, level, flags, folder)
    if program is None:
        return False
    command = [program, case, str(rounds)]
    if case == "dlopen":
        command += [build(case, pair, level, flags, folder, number) for number in range(3)]
    alone = execute(command, timeout=SECONDS)
    equal((alone.returncode, alone.stdout), (3, b"done\n"), what, "bare")
    try:
        real, watched = oracle.real_stacks(command, folder, LOW, HIGH, timeout=SECONDS)
        recorded, traced = oracle.recorded_stacks(command, folder, timeout=SECONDS)
        if case == "fibers":
            recorded = oracle.cut_beyond(recorded, real)
    except oracle.Trouble as trouble:
        fail(what, trouble)
        return True
    for name, run in (("observed", watched), ("traced", traced)):
        equal((run.returncode, run.stdout), (3, b"done\n"), what, name, run.stderr[-300:])
    lines = oracle.difference(real, recorded, exactly=False)
    if lines or len(real) < 2:
        fail(what, "\n".join(lines or ["too few stacks"]))
    return True


def main():
    case = sys.argv[1]
    only = dict(word.split("=") for word in sys.argv[2:])
    oracle.make_observer()
    checked = 0
    for family, pair in compilers.find().items():
        if family not in CASES[case][2] or only.get("compiler", family) != family:
            continue
        for mode, flags in compilers.modes(family, pair[0]).items():
            for level in LEVELS:
                if only.get("mode", mode) != mode or only.get("level", level) != level \
                        or (case, family, mode) in IMPOSSIBLE:
                    continue
                rounds = MANY if mode == "pass" and level == "-O2" else FEW
                checked += check(case, pair, level, flags, int(only.get("rounds", rounds)),
                                 "%s %s %s %s:" % (case, family, mode, level))
    if not checked:
        skip("nothing here can build " + case)


if __name__ == "__main__":
    main()
    finish()
