#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gcc_pass.py CASE FLAGS... : the GCC plugin, on gcc_subject.{c,cpp,f90}.

A program built with the plugin must print what it prints without, keep the promises that
check_contract.py proves on its machine code, and give no warning that it does not give without.
FLAGS are the compiler's. CASE is c, cxx, fortran, or one of the functions test_* below.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

import check_contract
from harness import BUILD, equal, fail, finish, skip

MAJOR = os.environ.get("TEST_GCC", "12")
PLUGIN = os.path.join(BUILD, "lib", "memtrace", "gcc-" + MAJOR, "memtrace.so")
LOAD = ["-fplugin=" + PLUGIN]
LANGUAGES = {
    "c": ("gcc-" + MAJOR, "gcc_subject.c", ["-pthread"]),
    "cxx": ("g++-" + MAJOR, "gcc_subject.cpp", ["-std=c++20", "-pthread"]),
    "fortran": ("gfortran-" + MAJOR, "gcc_subject.f90", []),
}
# Words that the subject must have at least, at any level.
LEAST = {"c": 15, "cxx": 10, "fortran": 5}


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600,
                          text=True, check=False, **options)


def compile_to(out, language, flags, **options):
    compiler, source, own = LANGUAGES[language]
    if shutil.which(compiler) is None:
        skip("no " + compiler)
    return run([compiler, "-o", out, os.path.join(HERE, source), *own, *flags],
               cwd=os.path.dirname(out), **options)


def warnings(done):
    """What the compiler said, but for the attribute that only the plugin knows."""
    return [line for line in done.stderr.split("\n")
            if re.search(r"(warning|error):", line) and "memtrace_no_alloc" not in line and
            "executable stack" not in line]  # the linker's, about nested functions


def check(folder, language, flags, compiler=compile_to, least=None):
    """The same program without and with the plugin, which gives it `least` words."""
    bare, built = os.path.join(folder, "bare"), os.path.join(folder, "built")
    without = compiler(bare, language, flags)
    if without.returncode != 0:
        skip("no program without the plugin: " + without.stderr[-500:])
    done = compiler(built, language, flags + LOAD)
    if not equal(done.returncode, 0, "compiler", done.stderr[-2000:]):
        return
    equal(warnings(done), warnings(without), "warnings")
    expected, got = run([bare]), run([built])
    equal((got.returncode, got.stdout), (expected.returncode, expected.stdout), "output", got.stderr)
    prove(built, least or LEAST[language])


def prove(program, least, *options):
    done = run([sys.executable, os.path.join(HERE, "check_contract.py"), "--least", str(least),
                "--no-alloc", "promised", *options, program])
    print(done.stdout)
    equal(done.returncode, 0, "promises", done.stdout[-3000:], done.stderr[-2000:])


def report_of(folder, flags, language="c"):
    """The pass report of a build: name -> (instrumented, reason, place, stores, calls)."""
    report = os.path.join(folder, "report")
    done = compile_to(os.path.join(folder, "program"), language, [*LOAD, *flags, "-c"],
                      env=dict(os.environ, MEMTRACE_PASS_REPORT=report))
    equal(done.returncode, 0, "compiler", done.stderr[-2000:])
    with open(report, encoding="utf-8") as file:
        lines = file.read().split("\n")
    equal(lines[0], "# memtrace pass report 1", "first line")
    equal(lines[-1], "", "end of the last line")
    found = {}
    for line in lines[1:-1]:
        match = re.fullmatch(r"(instrumented|left-out)\t([^\t]+)\t([^\t]+)\t([^\t]+):(\d+)\t"
                             r"stores:(\d+) calls:(\d+)", line)
        if not match:
            fail("line of the report", line)
            continue
        kind, reason, name, _, _, stores, calls = match.groups()
        equal(kind == "instrumented", stores != "0", line)
        found[name] = (kind, reason, int(stores), int(calls))
    return found


def test_reasons(folder, flags):
    """Which functions have a word, and why."""
    got = report_of(folder, ["-O2", "-fplugin-arg-memtrace-exclude-functions=other,excluded", *flags])
    expected = {
        "by_pointer": ("instrumented", "indirect call"),
        "allocates": ("instrumented", "calls malloc"),
        "calls_harmless": ("left-out", "no call may allocate"),
        "even": ("left-out", "no call may allocate"),
        "odd": ("left-out", "no call may allocate"),
        "calls_promised": ("left-out", "no call may allocate"),
        "promised": ("left-out", "memtrace_no_alloc"),
        "not_instrumented": ("left-out", "no_instrument_function"),
        "excluded": ("left-out", "excluded by option"),
        "calls_weak": ("instrumented", "calls weak_leaf"),
        "calls_resolved": ("instrumented", "calls resolved"),
        "basename_of": ("left-out", "no call may allocate"),  # its only call is a tail call
        "tail_call": ("left-out", "no call may allocate"),
        "recursive": ("instrumented", "calls recursive"),
        "realigned": ("left-out", "realigns its stack"),
        "assembly_only": ("left-out", "calls in assembly only"),
        "assembly_plain": ("instrumented", "asm"),
        "bare": ("left-out", "naked"),
    }
    for name, wanted in expected.items():
        equal(got.get(name, ("", ""))[:2], wanted, name)
    # One store before the loop or the recursion, none on the way that returns early.
    equal(got["variadic"][2], 1, "stores of variadic")
    equal(got["recursive"][2], 1, "stores of recursive")


def test_replaced(folder, flags):
    """In a shared library every exported function may be another's."""
    got = report_of(folder, ["-O2", "-fPIC", *flags])
    equal(got["recursive"][0], "instrumented", "recursive")
    alone = report_of(os.path.join(folder), ["-O2", "-fPIC", "-fvisibility=hidden", *flags])
    equal(alone["calls_harmless"][0], "left-out", "hidden")


def test_options(folder, flags):
    """Lists of the user, and a refusal of what is none."""
    listed = report_of(folder, ["-O2", "-fplugin-arg-memtrace-no-alloc=malloc,free,weak_leaf", *flags])
    equal(listed["allocates"][:2], ("left-out", "no call may allocate"), "allocates")
    equal(listed["calls_weak"][0], "left-out", "calls_weak")
    excluded = os.path.join(folder, "files")
    os.mkdir(excluded)
    files = report_of(excluded, ["-O2", "-fplugin-arg-memtrace-exclude-files=none,_subject", *flags])
    equal({entry[0] for entry in files.values()}, {"left-out"}, "an excluded file")
    for wrong, words in ((["-fplugin-arg-memtrace-nonsense=1"], "no option"),
                         (["-m32"], "only for x86-64"), (["-mx32"], "only for x86-64"),
                         (["-fsplit-stack"], "not with -fsplit-stack")):
        done = compile_to(os.path.join(folder, "refused"), "c", LOAD + wrong + ["-c", *flags])
        equal(done.returncode != 0 and words in done.stderr, True, wrong, done.stderr[:500])


def test_other_compiler(folder, flags):
    """Another GCC says in one line that the plugin is not its own."""
    others = [name for name in ("gcc-%d" % n for n in range(9, 21))
              if name != "gcc-" + MAJOR and shutil.which(name)]
    if not others:
        skip("only one GCC here")
    done = run([others[0], *flags, *LOAD, "-c", "-o", os.path.join(folder, "o"),
                os.path.join(HERE, "gcc_subject.c")])
    equal(done.returncode != 0 and "memtrace" in done.stderr, True, done.stderr[:500])


def test_unwind_tables(folder, flags):
    """They are there even if the build does not want them."""
    check(folder, "c", ["-O2", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", *flags])


def test_profile(folder, flags):
    """Built, run, and built again with the profile."""
    check(folder, "c", ["-O2", "-fprofile-generate", "-fprofile-update=atomic", *flags])
    # The profile is named by the output file: both are built to the same name.
    trained = os.path.join(folder, "trained")
    for step in ("generate", "use"):
        done = compile_to(trained, "c", ["-O2", "-fprofile-" + step, "-Wno-missing-profile", *flags, *LOAD])
        equal(done.returncode, 0, step, done.stderr[-2000:])
        equal(run([trained], cwd=folder).returncode, 0, step)
    prove(trained, LEAST["c"])


def test_link_time(folder, flags):
    """The plugin in the compiler, the linker's compiler, or both."""
    def two_steps(out, language, flags):
        compiler, source, own = LANGUAGES[language]
        done = run([compiler, "-flto", *own, *[f for f in flags if not f.startswith("-fplugin")], "-c",
                    "-o", out + ".o", os.path.join(HERE, source)])
        return done if done.returncode != 0 else \
            run([compiler, "-flto", *own, *flags, "-o", out, out + ".o"])
    for language in ("c", "cxx"):
        check(folder, language, ["-O2", "-flto", *flags])
        check(folder, language, ["-O2", *flags], two_steps)


def realigning_functions(path):
    """All names of those that round the stack pointer down."""
    program = check_contract.Program(path, set())
    places = {code.start for code in program.functions if any(
        insn.mnemonic == "and" and re.match(r"\$0xf+[0-9a-f]0,%rsp$", insn.operands)
        for insn in code.instructions(program))}
    return {name for section in program.elf.sections if section.type == 2
            for name, _, _, value, _ in program.elf.symbols_of(section) if value in places}


def test_realigned(folder, flags):
    """Functions without a word for that reason are those whose code does it, and they alone. How many a
    compiler realigns depends on its version: all together there are as many as without."""
    flags = ["-O2", "-mstackrealign", *flags]
    check(folder, "cxx", flags, least=1)
    realigning = realigning_functions(os.path.join(folder, "built"))
    report = {name: entry for name, entry in report_of(folder, flags, "cxx").items() if entry[3] != 0}
    without = {name for name, entry in report.items() if entry[1] == "realigns its stack"}
    equal(without, realigning & set(report), "functions that realign their stack")
    equal({name for name, entry in report.items() if entry[0] != "instrumented"}, without, "without a word")
    equal(without != set() and len(report) >= LEAST["cxx"], True, len(without), len(report))


def test_variables(folder, flags):
    """gdb shows arguments and variables as it does without the plugin."""
    if shutil.which("gdb") is None:
        skip("no gdb")
    script = [item for place in ("large_frame", "variadic", "recursive if n==3", "switches if n==3")
              for item in ("-ex", "tbreak " + place)]
    script += [item for _ in range(4)
               for item in ("-ex", "continue", "-ex", "info args", "-ex", "bt 3", "-ex", "next", "-ex",
                            "info locals")]
    seen = []
    for extra in ([], LOAD):
        program = os.path.join(folder, "debugged")
        done = compile_to(program, "c", ["-g", *flags, *extra])
        equal(done.returncode, 0, done.stderr[-500:])
        text = run(["gdb", "-batch", "-nx", "-ex", "set pagination off", "-ex",
                    "set disable-randomization on", "-ex", "break main", "-ex", "run", *script,
                    program]).stdout
        seen.append([re.sub(r"0x[0-9a-f]+", "ADDRESS", line) for line in text.split("\n")
                     if re.match(r"(n|count|sum|i) = |#\d", line)])
    if len(seen[0]) < 12:
        skip("gdb shows nothing here")
    equal(seen[1], seen[0], "what gdb shows")


def test_warnings(folder, flags):
    """None, with everything on."""
    for language in ("c", "cxx"):
        check(folder, language, ["-O2", "-Wall", "-Wextra", *flags])


def main():
    case, flags = sys.argv[1], sys.argv[2:]
    if not os.path.exists(PLUGIN):
        skip("no plugin for GCC " + MAJOR)
    with tempfile.TemporaryDirectory() as folder:
        if case in LANGUAGES:
            check(folder, case, flags)
        else:
            globals()["test_" + case](folder, flags)
    finish()


if __name__ == "__main__":
    main()
