# SPDX-License-Identifier: MIT
"""suppressions.py: LeakSanitizer itself and `memtrace report` leave the same leaks with the same
suppressions, and say the same of what each pattern suppressed; the program's own list, built by several
compilers and options, is read from its file."""

import os
import re
import sys

import reports
from recorded import only_recording, record, settings_for
from harness import MEMTRACE, build, clean_environment, equal, execute, fail, finish, have, report, scratch, skip

SOURCE = os.path.join(reports.HERE, "leaks.c")
LISTS = [
    "", "leak:cache_fill\n", "leak:^cache_*fill$\n", "# all of it\nleak:leaks.c\n", "leak:parse_line$\n",
    "leak:^parse\n\nleak:nothing_like_it\n", "leak:cache\nleak:cache_fill\n",
    "leak:*of*line\n", "leak:^pars*line$\n", "leak:^fill$\n", "leak:^no_one*it$\nleak:e_l*ne\n",
    "leak:subject$\n", "leak:^main$\n",
]


def sanitized(program, suppressions):
    """(blocks, bytes) left, and {pattern: (blocks, bytes)} of what was suppressed."""
    options = "print_suppressions=1:detect_leaks=1" + (
        ":suppressions=" + suppressions if suppressions else "")
    result = execute([program], clean_environment(LSAN_OPTIONS=options))
    text = result.stderr.decode()
    if "LeakSanitizer has encountered a fatal error" in text or "does not work under ptrace" in text:
        skip("LeakSanitizer does not work here: " + text.strip()[:200])
    left = re.search(r"SUMMARY: LeakSanitizer: (\d+) byte\(s\) leaked in (\d+) allocation", text)
    used = {pattern: (int(blocks), int(size)) for blocks, size, pattern in
            re.findall(r"^ +(\d+) +(\d+) +(\S+)$", text, re.MULTILINE)}
    return (int(left.group(2)), int(left.group(1))) if left else (0, 0), used


def ours(path, *options):
    told = reports.tables(path, "--show-leaked", "--paths", "--no-builtin-suppressions", *options)
    used = {row["pattern"]: (row["blocks"], row["bytes"]) for row in told.get("suppressed", [])}
    return (sum(row["blocks"] for row in told["leaked"]), sum(row["cost"] for row in told["leaked"])), used


def recorded(program):
    folder = scratch()
    under = record([program], folder)
    equal(under.returncode, 0, program, under.stderr)
    return only_recording(folder, program)


def same_as_sanitizer():
    program = build(SOURCE, flags=["-fsanitize=leak", "-DEMBEDDED"])
    path = recorded(build(SOURCE, flags=["-DEMBEDDED"]))
    folder = scratch()
    for number, text in enumerate(LISTS):
        name = os.path.join(folder, "list%d.supp" % number)
        with open(name, "w") as file:
            file.write(text.replace("subject$", "leaks$"))
        want = sanitized(program, name)
        equal(ours(path, "--suppressions", name), want, repr(text))
    without = reports.tables(path, "--show-leaked", "--no-builtin-suppressions",
                             "--no-embedded-suppressions")
    data = report(path, reports.SETTINGS)
    equal(sum(row["self"] for row in without["leaked"]),
          data["live_bytes"], "nothing suppressed")
    return path


def embedded():
    for compiler in ("gcc", "clang"):
        for optimize in ("-O0", "-O1", "-O2"):
            for flags in ([], ["-fPIE", "-pie"], ["-no-pie", "-fno-pie"], ["-fcf-protection"],
                          ["-fno-omit-frame-pointer"]):
                if compiler == "clang" and not any(
                        os.access(os.path.join(path, "clang"), os.X_OK)
                        for path in os.environ["PATH"].split(":")):
                    continue
                path = recorded(build(SOURCE, compiler, optimize, flags=["-DEMBEDDED", *flags]))
                equal(ours(path)[1], {"embedded_leak": (13, sum(range(70, 83)))}, compiler, optimize,
                      flags)


def builtin():
    """The built-in list leaves nothing but the program's own leak."""
    path = recorded(build(os.path.join(reports.HERE, "kept.cpp")))
    told = reports.tables(path, "--show-leaked", "--paths")
    equal([(row["cost"], row["path"][0]["function"]) for row in told["leaked"]],
          [(321, "own_leak()")], "left by the built-in list")
    used = {row["pattern"] for row in told["suppressed"]}
    for pattern in ("/libstdc++.so called by /ld-linux", "^_IO_file_doallocate$"):
        if pattern not in used:
            fail("not suppressed:", pattern, "but", used)
    all_of_it = sum(row["self"] for row in reports.tables(
        path, "--show-leaked", "--no-builtin-suppressions")["leaked"])
    data = report(path, reports.SETTINGS)
    equal((data["live_bytes"] - data["suppressed_bytes"], data["live_blocks"] - data["suppressed_blocks"]), (321, 1), "leaked, as the tree has it")
    equal(all_of_it, data["live_bytes"], "without the list")
    one_meaning(path)
    equal(sum(row["bytes"] for row in told["suppressed"]), all_of_it - 321, "suppressed")


def one_meaning(path):
    """The summary at the end, the header and the check tell what the tree tells, for C and for C++."""
    head = reports.ask(path).stdout.decode()
    if "321 B (321 bytes in 1 block; " not in head or " of common libraries' not counted)" not in head:
        fail("header:", head[:900])
    equal([execute([MEMTRACE, "check", "--max-leaked", limit, path], clean_environment()).returncode for limit in ("321", "320")], [0, 1], "check")
    folder = scratch()
    source = os.path.join(folder, "quiet.cpp")
    with open(source, "w") as file:
        file.write("#include <cstdlib>\nvoid *volatile kept;\nint main() { kept = malloc(4); kept = nullptr; }\n")
    quiet = build(source, flags=["-static-libgcc", "-Wl,--no-as-needed", "-lstdc++"])
    told = execute([MEMTRACE, "run", "-o", "quiet.mtp", "--", quiet], clean_environment(), cwd=folder).stderr.decode()
    if not re.search(r"leaked             4 B \(4 bytes in 1 block; 7\d\.\d KiB of the C\+\+ library's not counted\)\n", told):
        fail("summary:", told)


def errors(path):
    folder = scratch()
    name = os.path.join(folder, "other.supp")
    with open(name, "w") as file:
        file.write("race:whatever\n  leak:cache_refill \nthread:x\n")
    result = reports.ask(path, "--show-leaked", "--suppressions", name)
    equal((result.returncode, b"not of leaks: 2 suppressions" in result.stderr,
           b"cache_refill" in result.stdout.split(b"Suppressed")[0]), (0, True, False), "other kinds")
    for text, says in (("leak\n", b"is not a suppression"), ("leak:\n", b"a pattern is missing"),
                       ("leak:a\n:b\n", b"bad.supp:2: ")):
        name = os.path.join(folder, "bad.supp")
        with open(name, "w") as file:
            file.write(text)
        result = reports.ask(path, "--suppressions", name)
        if result.returncode != 1 or says not in result.stderr or result.stderr.count(b"\n") != 1:
            fail(repr(text), ":", result.returncode, result.stderr)
    result = reports.ask(path, "--suppressions", os.path.join(folder, "none"))
    equal(result.returncode, 1, "no such file", result.stderr)


def main():
    have("gcc")
    if sys.argv[1] == "embedded":
        embedded()
    else:
        errors(same_as_sanitizer())
        builtin()


main()
finish()
