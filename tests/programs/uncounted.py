# SPDX-License-Identifier: MIT
"""uncounted.py CASE: programs with a malloc that is not ours run as without us, and whose malloc it is
gets said: by a line, by the summary, in reports, by `memtrace check`. Never a silent zero."""

import os
import re
import shutil
import sys

from harness import (MEMTRACE, bare, build, clean_environment, equal, execute, fail, finish,
                     profiles, report, scratch, skip, traced)

QUIET = {"ASAN_OPTIONS": "detect_leaks=0"}  # of blocks that the subject keeps
START = re.compile(rb"^memtrace: .* is not counted; .*\n", re.MULTILINE)


def archive(name):
    """The static library of that name, as the compiler finds it; None: not installed."""
    path = execute(["gcc", "-print-file-name=lib%s.a" % name]).stdout.decode().strip()
    return path if os.path.isabs(path) else None


def subject(mode="bare", compiler="gcc", flags=(), libraries=()):
    return build("thousand.c", compiler, "-O1", mode, flags=list(flags), libraries=list(libraries))


def run(program, mode, folder, **settings):
    return traced([program], mode, folder, {**QUIET, "MEMTRACE_SUMMARY": "1", **settings})


def as_alone(program, under, what):
    alone = execute([program], clean_environment(MEMTRACE="off", **QUIET))
    equal((alone.returncode, alone.stdout), (3, b"done\n"), what, "bare")
    equal((under.returncode, under.stdout), (3, b"done\n"), what, "status and stdout", under.stderr)


def profile_of(folder, what):
    found = profiles(folder)
    if len(found) != 1:
        fail(what, "profiles:", found)
        finish()
    return found[0]


def counted(program, mode, what):
    """All is counted, and nothing is said about another malloc."""
    folder = scratch()
    under = run(program, mode, folder)
    as_alone(program, under, what)
    if b"memtrace: not counted" in under.stderr or b", lost 0\n" not in under.stderr:
        fail(what, "stderr:", under.stderr)
    data = report(profile_of(folder, what))
    equal((data["all_counted"], data["warnings"]), (True, []), what, "warnings")
    own = [context for context in data["contexts"]
           if any(frame["function"] == "main" for frame in context["frames"])]
    equal(sum(context["allocations"] for context in own), 1000, what, "allocations")
    equal(sum(context["total_bytes"] for context in own), 599500, what, "bytes")
    equal(sum(context["frees"] for context in own), 500, what, "frees")


def uncounted(program, mode, what, name, at_start=True):
    """One line at the start if the program's malloc can be seen from inside; the rest says the name."""
    folder = scratch()
    under = run(program, mode, folder)
    as_alone(program, under, what)
    equal(len(START.findall(under.stderr)) >= at_start, True, what, "a line at the start", under.stderr)
    if not re.search(rb"call paths +\d+, lost not known \(0 seen\)\n", under.stderr):
        fail(what, "the summary says that it is exact:", under.stderr)
    if mode == "run" and not re.search(rb"memtrace: not counted  .*" + name.encode(), under.stderr):
        fail(what, "the summary does not name", name, under.stderr)
    profile = profile_of(folder, what)
    data = report(profile)
    equal(data["all_counted"], False, what, "all_counted")
    equal([name in line for line in data["warnings"]], [True], what, "warnings", data["warnings"])
    text = execute([MEMTRACE, "report", profile]).stdout.decode()
    if "not known, see the note (0 seen)" not in text or "Note: " not in text:
        fail(what, "report:", text[:1500])
    checked = execute([MEMTRACE, "check", "--max-leaked", "1G", profile])
    equal((checked.returncode, name in checked.stderr.decode()), (2 if name != "mi_malloc" else 0, True), what,
          "check", checked.stderr)
    # Without a summary the line at the start is the only one.
    quiet = run(program, mode, scratch(), MEMTRACE_SUMMARY="0")
    equal(len(START.findall(quiet.stderr)), 1 if at_start else 0, what, "quiet", quiet.stderr)


def static(name):
    path = archive(name)
    if path is None:
        skip("no lib%s.a" % name)
    known = "tcmalloc" if "tcmalloc" in name else name
    libraries = [path, "-lstdc++", "-lm"]
    program = subject(libraries=libraries)
    for mode in ("run", "preload"):
        uncounted(program, mode, "%s %s:" % (name, mode), known)
    # instrumented; the archive stands in front of the library of ours
    first = subject("hooks", flags=["-Wl,--whole-archive", path, "-Wl,--no-whole-archive"],
                    libraries=["-lstdc++", "-lm"])
    uncounted(first, "hooks", name + " hooks:", known)


def stripped(program):
    folder = scratch()
    copy = os.path.join(folder, "stripped")
    shutil.copy(program, copy)
    execute(["strip", copy])
    return copy


def hidden():
    """A malloc that the loader does not see: told by the symbols of the file, or by what is in it."""
    path = archive("jemalloc")
    if path is None:
        skip("no libjemalloc.a")
    script = os.path.join(scratch(), "none.map")
    with open(script, "w", encoding="utf-8") as file:
        file.write("{ local: *; };\n")
    program = subject(libraries=[path, "-Wl,--exclude-libs,ALL", "-Wl,--version-script=" + script,
                                 "-lstdc++", "-lm"])
    uncounted(program, "run", "hidden:", "jemalloc", at_start=False)
    uncounted(stripped(program), "run", "hidden and stripped:", "jemalloc", at_start=False)
    # among several processes, and where the program's file is gone when the report is made
    folder = scratch()
    copy = stripped(program)
    under = execute([MEMTRACE, "run", "-o", folder + "/alone.mtp", "--", copy])
    under = execute([MEMTRACE, "run", "-o", folder + "/run.mtp", "--", "sh", "-c", copy + "; " + copy])
    os.remove(copy)
    if (under.stderr.count(b"memtrace: not counted        stripped has jemalloc") != 1
            or not re.search(rb"processes  .*, lost not known \(0 seen\)\n", under.stderr)):
        fail("hidden, several processes:", under.stderr)
    data = report(folder + "/alone.mtp")
    equal((data["all_counted"], [line[:30] for line in data["warnings"]][:1]),
          (False, ["stripped has jemalloc linked i"]), "hidden, file gone")


def named():
    """An allocator that is called by names of its own."""
    flags = ["-DMALLOC=mi_malloc", "-DFREE=mi_free"]
    if execute(["sh", "-c", "echo 'int main(void){return 0;}' | gcc -x c - -o /dev/null -lmimalloc"]
               ).returncode != 0:
        skip("no -lmimalloc")
    uncounted(subject(flags=flags, libraries=["-lmimalloc"]), "run", "named:", "mi_malloc",
              at_start=False)


def own():
    program = build("own_allocator.c", "gcc", "-O2")
    for mode in ("preload", "run"):
        alone, folder = bare([program]), scratch()
        under = traced([program], mode, folder)
        equal((under.returncode, under.stdout), (alone.returncode, alone.stdout), mode)
        equal(under.stderr, b"memtrace: own_allocator has a malloc of its own: what it gives out is "
              b"not counted; try `memtrace run --alloc auto`, or link the allocator as a shared library\n", mode)
        warnings = report(profile_of(folder, mode))["warnings"]
        equal([line.startswith("own_allocator has a malloc of its own") for line in warnings], [True])


def address_taken():
    """A program that calls malloc by its address has none of its own."""
    program = subject(flags=["-DTAKEN", "-fno-pie", "-no-pie"])
    for mode in ("preload", "run"):
        counted(program, mode, "address taken %s:" % mode)


def library_first():
    """An instrumented program whose shared allocator the loader finds first: `run` mends that."""
    if archive("jemalloc") is None:
        skip("no jemalloc")
    program = subject("hooks", flags=["-Wl,--no-as-needed", "-ljemalloc"])
    uncounted(program, "hooks", "library first:", "libjemalloc.so")
    counted(program, "run", "library first, run:")


def sanitizers():
    """GCC's are libraries, which let ours in front of them; Clang's are in the program."""
    for sanitizer, name in (("address", "libasan.so"), ("thread", "libtsan.so")):
        flags = ["-fsanitize=" + sanitizer]
        if execute(["sh", "-c", "echo 'int main(void){return 0;}' | gcc -x c - -o /dev/null "
                    + flags[0]]).returncode != 0:
            skip("no " + flags[0])
        counted(subject(flags=flags), "run", "gcc %s run:" % sanitizer)
        counted(subject(flags=flags), "preload", "gcc %s preload:" % sanitizer)
        program = subject("hooks", flags=flags)
        uncounted(program, "hooks", "gcc %s hooks:" % sanitizer, name)
        counted(program, "run", "gcc %s hooks run:" % sanitizer)
    if shutil.which("clang"):
        for sanitizer, name in (("address", "AddressSanitizer"), ("thread", "ThreadSanitizer")):
            flags = ["-fsanitize=" + sanitizer]
            uncounted(subject("hooks", "clang", flags), "hooks", "clang %s hooks:" % sanitizer, name)
            uncounted(subject(compiler="clang", flags=flags), "preload", "clang " + sanitizer, name)


def kept(profile):
    """Blocks and bytes of the heap that come from keep()."""
    own = [context for context in report(profile)["contexts"]
           if any(frame["function"] == "keep" for frame in context["frames"])]
    return sum(context["allocations"] for context in own), sum(context["total_bytes"] for context in own)


def keeper(what, command, told, options=(), allocations=None, settings=None):
    """A program whose library has a malloc of its own: it is told by that line, or nothing is lost."""
    profile = os.path.join(scratch(), "p.mtp")
    under = execute([MEMTRACE, "run", "-o", profile, *options, "--", *command],
                    clean_environment(**(settings or {})))
    equal((under.returncode, under.stdout), (3, b"done\n"), what, "status and stdout", under.stderr)
    lines = re.findall(rb"memtrace: not counted +(.*)\n", under.stderr)
    equal([line.decode().split(":")[0] for line in lines], told, what, "not counted")
    equal(b", lost 0\n" in under.stderr, not told, what, "lost", under.stderr)
    data = report(profile)
    equal((data["all_counted"], len(data["warnings"])), (not told, len(told)), what, data["warnings"])
    checked = execute([MEMTRACE, "check", "--max-leaked", "1G", profile])
    equal(checked.returncode, 2 if told else 0, what, "check", checked.stderr)
    if allocations is not None:
        equal(kept(profile), allocations, what, "blocks and bytes")
    return profile


def in_library():
    """A library's own malloc, which only the library calls; bound at start or by dlopen, with and without symbols."""
    script = os.path.join(scratch(), "keep.map")
    with open(script, "w", encoding="utf-8") as file:
        file.write("{ global: keep; local: *; };\n")
    all_blocks = (1000, 599500)
    opened = build("keeper.c", "gcc", "-O1", flags=["-DOPENED"])
    own = ["libkeep.so has a malloc of its own, which it calls itself"]
    both = ("linked", "opened")
    for variant, flags, told, ways in (("visible", [], [], both), ("bound to itself", ["-Wl,-Bsymbolic"], own, ["linked"]),
                                       ("hidden", ["-Wl,--version-script=" + script], own, both),
                                       ("wrapper", ["-DNEXT"], [], ["linked"]),
                                       ("hidden wrapper", ["-DNEXT", "-Wl,--version-script=" + script], own, ["opened"])):
        folder = scratch()
        library = os.path.join(folder, "libkeep.so")
        shutil.copy(build("own_malloc.c", "gcc", "-O1", flags=flags, shared=True), library)
        linked = os.path.join(folder, "linked")
        shutil.copy(build("keeper.c", "gcc", "-O1", libraries=[library, "-Wl,-rpath," + folder]), linked)
        for how in ways:
            command = [linked] if how == "linked" else [opened, library]
            what = "%s, %s:" % (variant, how)
            keeper(what, command, told, allocations=(0, 0) if told else all_blocks)
            if variant == "hidden":
                keeper(what + " --alloc auto:", command, [], ("--alloc", "auto"), all_blocks)
        if variant == "bound to itself": # without symbols it still says so
            execute(["strip", library])
            keeper("stripped:", [linked], told)
    # The program's own, in front of ours: it ends there, whether the loader sees it or not.
    for flags in ([], ["-Wl,--version-script=" + script]):
        program = build(["keeper.c", "own_malloc.c"], "gcc", "-O1", flags=["-DNEXT", *flags])
        keeper("wrapper in the program %s:" % flags, [program], [], allocations=all_blocks)
    # An allocator that is known, with no symbols at all; and its file gone when the report is made.
    path = archive("jemalloc_pic")
    if path is None:
        return
    library = os.path.join(scratch(), "libkeep.so")
    shutil.copy(build("keep.c", "gcc", "-O1", libraries=[path, "-Wl,--exclude-libs,ALL", "-lstdc++", "-lpthread"],
                      shared=True), library)
    execute(["strip", library])
    room = {"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=20000"}
    jemalloc = ["libkeep.so has jemalloc linked into it"]
    profile = keeper("jemalloc, stripped:", [opened, library], jemalloc, settings=room)
    recording, nobody = (os.path.join(scratch(), name) for name in ("r.mtr", "nobody.mtr"))
    execute([MEMTRACE, "record", "-o", recording, "--", opened, library], clean_environment(**room))
    execute([MEMTRACE, "anonymize", "-o", nobody, recording])
    for name, whose in ((recording, "libkeep.so"), (nobody, "a library")):
        equal([line.split(":")[0] for line in report(name)["warnings"]][:1],
              [whose + " has jemalloc linked into it"], "recording")
    screen = execute([MEMTRACE, "top", "--once", profile]).stdout.decode()
    equal("lost not known" in screen, True, "top", screen[:300])
    os.remove(library)
    equal([line.split(":")[0] for line in report(profile)["warnings"]][:1], jemalloc, "file gone")


def main():
    name = sys.argv[1]
    if name in ("jemalloc", "tcmalloc_minimal"):
        static(name)
    else:
        {"hidden": hidden, "named": named, "own": own, "address_taken": address_taken,
         "library_first": library_first, "in_library": in_library, "sanitizers": sanitizers}[name]()


main()
finish()
