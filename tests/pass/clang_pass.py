#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the Clang plugin does to programs: clang_pass.py CASE CLANG PLUGIN

Programs built with the pass print what they print without it, keep the contract of the frame word
in their machine code (check_contract.py), and the report tells what was done.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import clang_names

HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
SKIP = 77

CLANG, PLUGIN = sys.argv[2:4]
VERSION = re.search(r"-(\d+)$", os.path.dirname(PLUGIN)).group(1)
FOLDER = tempfile.mkdtemp(prefix="memtrace-test-")
REPORT = os.path.join(FOLDER, "report")
LOADED = ["-fplugin=" + PLUGIN, "-fpass-plugin=" + PLUGIN]
failures = []


def check(true, *what):
    if not true:
        failures.append(" ".join(map(str, what)))


def skip(why):
    print("skipped:", why)
    shutil.rmtree(FOLDER)
    sys.exit(SKIP)


def execute(command, **environment):
    return subprocess.run(command, env=dict(os.environ, **environment), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)


def path(name):
    return os.path.join(FOLDER, name)


def write(name, text):
    with open(path(name), "w", encoding="utf-8") as file:
        file.write(text)
    return path(name)


def compiler(source):
    return clang_names.plus(CLANG) if source.endswith("pp") else CLANG


def compile_to(output, *arguments, may_fail=False):
    result = execute([compiler(arguments[-1]), "-w", *arguments, "-o", path(output)],
                     MEMTRACE_PASS_REPORT=REPORT)
    if result.returncode != 0 and not may_fail:
        failures.append(" ".join(arguments) + ": " + result.stdout)
        finish()
    return result


def read_report():
    """{function: (instrumented?, reason)}; the next compilation begins a new one."""
    with open(REPORT, encoding="utf-8") as file:
        first, *lines = file.read().splitlines()
    os.remove(REPORT)
    check(first == "# memtrace pass report 1", "first line of the report:", first)
    fields = [line.split("\t") for line in lines]
    check(all(len(field) == 5 for field in fields), "five fields a line", lines[:3])
    return {field[2]: (field[0] == "instrumented", field[1]) for field in fields}


def contract(program, *options, but=None):
    """The program keeps the contract; `but`: what may be said about it nevertheless."""
    result = execute([sys.executable, os.path.join(HERE, "check_contract.py"), *options,
                      path(program)])
    wrong = [line for line in result.stdout.splitlines()[1:] if line and not (but and but in line)]
    check(not wrong and (result.returncode == 0 or but), "\n".join(wrong)[:3000] or result.stdout)


def same_with_pass(source, *flags, least=1, proved=True, **environment):
    """Built bare and with the pass, the program prints the same and ends the same."""
    compile_to("bare", *flags, source)
    compile_to("pass", *flags, *LOADED, source)
    bare = execute([path("bare")], **environment)
    with_pass = execute([path("pass")], **environment)
    check(bare.returncode == 0 and bare.stdout != "", *flags, "bare:", bare.returncode, bare.stdout)
    check((bare.returncode, bare.stdout) == (with_pass.returncode, with_pass.stdout), *flags,
          "bare:", bare.stdout, "with the pass:", with_pass.returncode, with_pass.stdout)
    if proved:
        contract("pass", "--least", str(least))
    return read_report()


def subject(name):
    return os.path.join(HERE, name)


def case_levels():
    wanted = {"plain", "recursive", "variable_length", "variadic", "jumped_to", "interpreted",
              "assembly_goto", "seldom", "by_value", "floating", "wide", "cell", "main"}
    for level in LEVELS:
        report = same_with_pass(subject("clang_subject.c"), level, least=13)
        check(wanted <= {name for name in report if report[name][0]}, level, report)
        for name, reason in (("uses_pure", "no call may allocate"),
                             ("even", "no call may allocate"),
                             ("odd", "no call may allocate"), ("aligned", "realigns its stack"),
                             ("assembly_call", "asm"), ("naked", "naked")):
            check(report[name] == (False, reason), level, name, report[name])
        if level not in ("-O0", "-O1"):
            check(report["tail_call"] == (False, "only tail calls"), level, report["tail_call"])


def case_frames():
    """Flags that change what frames look like."""
    for flags in (["-O2", "-fno-omit-frame-pointer"], ["-O0", "-fomit-frame-pointer"],
                  ["-O2", "-fPIC", "-fno-plt"], ["-O2", "-fno-pic", "-no-pie"],
                  ["-O2", "-mno-red-zone"], ["-O2", "-mavx2", "-ffast-math"],
                  ["-O2", "-fstack-protector-strong"], ["-O2", "-fstack-clash-protection"],
                  ["-O2", "-fno-integrated-as"],
                  ["-O2", "-fno-optimize-sibling-calls"], ["-O2", "-ffunction-sections", "-g"],
                  ["-O2", "-fcf-protection=full"]):
        same_with_pass(subject("clang_subject.c"), *flags, least=12)
    # The other subject has assembly of its own, in the other dialect.
    same_with_pass(subject("clang_subject.cpp"), "-std=c++17", "-O2", "-masm=intel", least=10)


def case_debugging():
    """A debugger shows the same stacks and variables."""
    if shutil.which("gdb") is None:
        skip("no gdb")
    commands = ["set print address off", "set print entry-values no", "break cell",
                "break seldom if value == 4000", "run", "bt", "info args", "up", "info args",
                "info locals", "delete 1", "continue", "info args", "finish"]
    for level in ("-O0", "-Og", "-O2"):
        shown = []
        for load in ([], LOADED):
            compile_to("debugged", "-g", level, *load, subject("clang_subject.c"))
            told = [part for command in commands for part in ("-ex", command)]
            shown.append(execute(["gdb", "-nx", "-batch", *told, path("debugged")]).stdout)
        check("value = 4000" in shown[0] and shown[0] == shown[1], level, *shown)


def case_unwind_tables():
    """Unwind information is asked for where there would be none."""
    same_with_pass(subject("clang_subject.c"), "-O2", "-fno-asynchronous-unwind-tables",
                   "-fno-unwind-tables", least=13)


def case_exceptions():
    for level in LEVELS:
        same_with_pass(subject("clang_subject.cpp"), "-std=c++17", level, least=10)
    same_with_pass(subject("clang_subject.cpp"), "-std=c++17", "-O2", "-fno-omit-frame-pointer",
                   least=10)


def case_coroutines():
    source = subject("clang_coroutines.cpp")
    # Clang 14 has the names of the technical specification only for libc++.
    if compile_to("bare", "-std=c++20", source, may_fail=True).returncode != 0:
        skip("coroutines of this Clang and this C++ library do not fit together")
    for level in LEVELS:
        report = same_with_pass(source, "-std=c++20", level, least=3)
        check(any(re.search(r"generate.*\.resume$", name) and report[name][0] for name in report),
              level, report)


def case_openmp():
    source = subject("clang_openmp.c")
    if compile_to("bare", "-fopenmp", source, may_fail=True).returncode != 0:
        skip("no OpenMP library")
    for level in LEVELS:
        report = same_with_pass(source, "-fopenmp", level, least=3)
        check(any("omp_outlined" in name and report[name][0] for name in report), level, report)


def case_sanitizers():
    programs = (("-O0", "clang_subject.c"), ("-O2", "clang_subject.c"),
                ("-O2", "clang_subject.cpp"))
    for sanitizer in ("address", "undefined", "thread"):
        flags = ["-fsanitize=" + sanitizer, "-g"]
        empty = write("empty.c", "int main(void) { return 0; }\n")
        if compile_to("bare", *flags, empty, may_fail=True).returncode != 0:
            print("no run-time library for", sanitizer)
            continue
        for level, source in programs:
            report = same_with_pass(subject(source), level, *flags, proved=False,
                                    ASAN_OPTIONS="detect_leaks=0")
            check(report["main"][0] or report["main"][1] == "realigns its stack", report["main"])
            # A shared library does not have the sanitizer's own code in it.
            compile_to("library.so", level, *flags, *LOADED, "-shared", "-fPIC", subject(source))
            imports = re.findall(r" U (__[a-z]+_\w+)",
                                 execute(["nm", "-D", path("library.so")]).stdout)
            contract("library.so", "--least", "8", "--no-alloc", ",".join(
                name for name in imports if name.startswith(("__asan_", "__tsan_"))),
                     # Reports of errors do not return, but this does not know it.
                     but="<__clang_call_terminate>")
            os.remove(REPORT)


def case_profile():
    """Counts of an instrumented run decide where the stores are."""
    merge = shutil.which("llvm-profdata-" + VERSION)
    if merge is None:
        skip("no llvm-profdata-" + VERSION)
    for kind in ("instr", ""):
        generate = "-fprofile-%s" % (kind + "-generate" if kind else "generate")
        use = "-fprofile-%s" % (kind + "-use" if kind else "use")
        source = subject("clang_subject.c")
        if compile_to("train", "-O2", generate, *LOADED, source, may_fail=True).returncode != 0:
            skip("no library for profiles")
        execute([path("train")], LLVM_PROFILE_FILE=path("raw"))
        check(execute([merge, "merge", path("raw"), "-o", path("data")]).returncode == 0, "merge")
        contract("train", "--least", "8")
        os.remove(REPORT)
        same_with_pass(source, "-O2", use + "=" + path("data"), least=10)


def lto_units():
    """Two units that inline from each other when linked."""
    first = write("first.c", """
#include <stdio.h>
#include <stdlib.h>
long second(long);
static void *volatile last;
__attribute__((noinline)) long excluded(long n) { last = malloc(n); free(last);
    long a = second(n); last = malloc(a); free(last); return a + 1; }
long first(long n) { last = malloc(n); free(last); return second(n) + excluded(n); }
int main(void) { printf("%ld\\n", first(5)); return 0; }
""")
    second = write("second.c", """
#include <stdlib.h>
static void *volatile kept;
long second(long n) { if (n < 3) return n; kept = malloc(n); free(kept); return n * 2; }
""")
    return first, second


def link_with_lto(kind, program, *link_flags):
    first, second = lto_units()
    for source in (first, second):
        exclude = ["-mllvm", "-memtrace-exclude-functions=excluded"]
        compile_to(os.path.basename(source)[:-1] + "o", "-O2", "-flto=" + kind, *LOADED, *exclude,
                   "-c", source)
    # Its last argument names the language.
    result = execute([CLANG, "-O2", "-flto=" + kind, "-fuse-ld=lld", *link_flags, path("first.o"),
                      path("second.o"), "-o", path(program)], MEMTRACE_PASS_REPORT=REPORT)
    check(result.returncode == 0, kind, *link_flags, result.stdout)
    check(execute([path(program)]).stdout == "21\n", kind, "output of the linked program")


def linker():
    found = shutil.which("ld.lld-" + VERSION)
    if found is None:
        skip("no lld of this Clang's version")
    return ["--ld-path=" + found]


def case_lto():
    """The pass before linking. Functions that others are inlined into have words that disagree:
    they count as without. Nothing is inlined into functions that the pass has not judged."""
    for kind in ("full", "thin"):
        link_with_lto(kind, "linked", *linker())
        contract("linked", "--least", "1", but="words at")
        check(read_report()["excluded"] == (False, "excluded by option"), "excluded")
        excluded = execute(["objdump", "-d", "--disassemble=excluded",
                            path("linked")]).stdout
        check("call" in excluded and "0x5a17c0de" not in excluded, kind, excluded)


def case_lto_linker():
    """The pass in the linker: words of inlined functions are gone, one is left in each function."""
    if int(VERSION) < 15:
        skip("lld cannot load passes before version 15")
    for kind in ("full", "thin"):
        link_with_lto(kind, "linked", *linker(), "-Wl,--load-pass-plugin=" + PLUGIN)
        contract("linked", "--least", "1")
        text = execute(["objdump", "-d", path("linked")]).stdout
        check(text.count("$0x5a17c0de") >= 1, kind, "no store in the linked program")


def case_rust():
    """Stable Rust: the linker optimises, and loads the pass."""
    rustc = shutil.which("rustc")
    lld = linker()[0]
    version = re.search(r"LLVM version: (\d+)", execute([rustc, "-vV"]).stdout) if rustc else None
    if version is None or not 15 <= int(version.group(1)) <= int(VERSION):
        skip("no rustc whose bitcode this version reads")
    source = subject("clang_program.rs")
    result = execute([rustc, "--crate-name=program", "-O", "-g", "-Clinker-plugin-lto",
                      "-Clinker=" + CLANG, "-Clink-arg=" + lld,
                      "-Clink-arg=-Wl,--load-pass-plugin=" + PLUGIN, source, "-o", path("program")],
                     MEMTRACE_PASS_REPORT=REPORT)
    check(result.returncode == 0, result.stdout)
    check(execute([path("program")]).stdout == "14850 610\n", "output of the Rust program")
    report = {re.sub(r"17h\w+E$", "", name): found for name, found in read_report().items()}
    check(report["_ZN7program4grow"][0], report)
    check(report["_ZN7program4pure"] == (False, "no call may allocate"), report)
    contract("program", "--least", "2")


def case_placement():
    """A hot early exit of a function with a frame pays nothing: the same number of instructions,
    give or take the start."""
    if shutil.which("valgrind") is None:
        skip("no valgrind")
    source = write("placement.c", """
#include <stdio.h>
#include <stdlib.h>
static void *volatile last;
__attribute__((noinline)) long seldom(long n) {
    volatile long frame[5];
    frame[4] = n;
    if (__builtin_expect(n < 1000, 1)) return frame[4];
    last = malloc(n); free(last);
    return n + (long)last % 2;
}
int main(void) {
    long sum = 0;
    for (volatile long i = 0; i < 100000; i++) sum += seldom(i % 999);
    printf("%ld\\n", sum + seldom(1001));
}
""")
    report = same_with_pass(source, "-O2", least=2)
    check(report["seldom"][0], report)
    counts = []
    for program in ("bare", "pass"):
        told = execute(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + path("counts"),
                        path(program)]).stdout
        counts.append(int(re.search(r"Collected : (\d+)", told).group(1)))
    check(abs(counts[0] - counts[1]) < 1000, "instructions bare and with the pass:", counts)


def case_options():
    source = write("options.cpp", """
extern "C" long unknown(long);
namespace ns { struct type { long method(long n) { return other(n) + 1; } long other(long n); }; }
__attribute__((noinline)) long ns::type::other(long n) { return unknown(n) + 1; }
long plain(long n) { return unknown(n) + 2; }
extern "C" long linker_name(long n) { return unknown(n) + 3; }
extern "C" long stays(long n) { return unknown(n) + ns::type().method(n); }
""")
    def words(*options):
        flags = [part for option in options for part in ("-mllvm", "-memtrace-" + option)]
        compile_to("options.o", "-O2", "-c", *LOADED, *flags, source)
        return {name for name, (done, _) in read_report().items() if done}

    everything = {"_ZN2ns4type5otherEl", "_Z5plainl", "linker_name", "stays"}
    check(words() == everything, words())
    check(words("exclude-functions=ns::type::other,plain") == {"linker_name", "stays"}, "scoped")
    check(words("exclude-functions=other,linker_name") == {"_Z5plainl", "stays"}, "unscoped")
    check(words("exclude-functions=_Z5plainl") == everything - {"_Z5plainl"}, "linker's name")
    check(words("exclude-files=nowhere,options.c") == set(), "file")
    check(words("exclude-files=nowhere") == everything, "another file")
    check(words("no-alloc=unknown") == set(), "all calls are promised")
    check(words("no-alloc=other") == everything - {"_ZN2ns4type5otherEl"}, "one is promised")


def case_attribute():
    """annotate() of Clang: newer ones keep it for declarations, too; older ones keep assume()."""
    attribute = "annotate" if int(VERSION) >= 18 else "assume"
    source = write("attribute.c", """
#define MEMTRACE_NO_ALLOC __attribute__((%s("memtrace_no_alloc")))
MEMTRACE_NO_ALLOC long promised(long);
__attribute__((annotate("memtrace_no_alloc"))) long defined(long n);
long unknown(long);
long a(long n) { return promised(n) + 1; }
long b(long n) { return unknown(n) + 1; }
long defined(long n) { return unknown(n) + 2; }
long c(long n) { return defined(n) + 1; }
""" % attribute)
    for level in ("-O0", "-O2"):
        compile_to("attribute.o", level, "-fno-inline", "-c", *LOADED, source)
        report = read_report()
        check(report["a"] == (False, "no call may allocate"), level, report["a"])
        check(report["b"] == (True, "calls unknown"), level, report["b"])
        check(report["defined"] == (False, "memtrace_no_alloc"), level, report["defined"])
        check(report["c"] == (False, "no call may allocate"), level, report["c"])


def case_interposed():
    """A function that the loader may replace counts as unknown."""
    source = write("interposed.c", """
__attribute__((noinline)) long visible(long n) { return n * 3; }
__attribute__((noinline, visibility("hidden"))) long hidden(long n) { return n * 3; }
__attribute__((noinline, weak)) long weak(long n) { return n * 3; }
long a(long n) { return visible(n) + 1; }
long b(long n) { return hidden(n) + 1; }
long c(long n) { return weak(n) + 1; }
""")
    for flags, wanted in (([], {"c"}), (["-fPIC"], {"a", "c"})):
        compile_to("interposed.o", "-O2", *flags, "-c", *LOADED, source)
        report = read_report()
        check({name for name in report if report[name][0]} == wanted, flags, report)


def case_report():
    """Compilers side by side append whole lines; a report that cannot be written is an error."""
    source = write("report.c", "".join("void u%d(int); void f%d(void) { u%d(1); u%d(2); }\n" % (
        (i,) * 4) for i in range(500)))
    command = [CLANG, "-g", "-c", *LOADED, source, "-o", path("x.o")]
    environment = dict(os.environ, MEMTRACE_PASS_REPORT=REPORT)
    running = [subprocess.Popen(command, env=environment) for _ in range(4)]
    check([process.wait() for process in running] == [0] * 4, "four compilers")
    with open(REPORT, encoding="utf-8") as file:
        lines = file.read().splitlines()
    check(len(lines) == 2001 and lines[0].startswith("#"), len(lines), lines[0])
    # The compiler may name the file from its own folder on.
    last = re.compile(r"instrumented\tcalls u499\tf499\t(\S*/)?report\.c:500\tstores:1 calls:2")
    check(sum(last.fullmatch(line) is not None for line in lines) == 4, lines[-1])
    missing = execute(command, MEMTRACE_PASS_REPORT=path("nowhere/report"))
    check(missing.returncode != 0 and "cannot write the pass report " + path("nowhere/report") in
          missing.stdout, missing.returncode, missing.stdout)


def case_refusal():
    """Other versions and other targets: one clear line, no object file."""
    source = write("refusal.c", "void f(void) {}\n")
    target = execute([CLANG, "-m32", "-c", "-fpass-plugin=" + PLUGIN, source, "-o", path("x.o")])
    check(target.returncode != 0 and re.search("memtrace: .* not for i[3-6]86", target.stdout),
          target.returncode, target.stdout)
    others = [found for found in (shutil.which("clang-%d" % n) for n in range(14, 40))
              if found and not found.endswith("-" + VERSION)]
    for other in others:
        for load in (LOADED, LOADED[1:]):
            result = execute([other, "-c", *load, source, "-o", path("x.o")])
            check(result.returncode != 0 and result.stdout.count("\n") == 1 and
                  "for Clang %s, not for Clang" % VERSION in result.stdout, other, result.stdout)
    check(not os.path.exists(path("x.o")), "an object file in spite of the refusal")


def case_warnings():
    """Nothing is said while compiling, with all warnings on."""
    for source in ("clang_subject.c", "clang_subject.cpp"):
        quiet = [execute([compiler(source), "-O2", "-Wall", "-Wextra", "-g", "-std=" + (
            "c++17" if source.endswith("pp") else "gnu17"), *load, "-c", subject(source), "-o",
            path("x.o")]) for load in ([], LOADED)]
        check(quiet[0].stdout == quiet[1].stdout and quiet[1].returncode == 0, quiet[1].stdout)


def finish():
    shutil.rmtree(FOLDER)
    for failure in failures:
        print("FAIL:", failure[:4000])
    print("%d failures" % len(failures) if failures else "ok")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    globals()["case_" + sys.argv[1]]()
    finish()
