#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Projects that were not made for MemTrace: any_project_test.py WAY [options], each WAY one test.

WAY: signatures (of target_link_libraries), exports (packages of instrumented libraries), places (of
find_package), whole (one line of the command instruments all), flags (the same by CMAKE_C_FLAGS),
makefile (the same by CC), compilers (of memtrace flags).
"""
import os
import re
import shutil
import subprocess
import sys

from consumer_test import (C_PATH, CXX_PATH, HERE, check_program, configure_and_build, environment,
                           has_fresh_word, parse_options, run)


def memtrace_of(options):
    return os.path.join(options.prefix, "bin", "memtrace")


def source(name):
    return os.path.join(HERE, name)


def oldest_version():
    """The oldest version that a project may ask for: CMake 4 knows none before 3.5."""
    version = run(["cmake", "--version"]).split()[2]
    return "2.8.12" if int(version.split(".")[0]) < 4 else "3.5"


def way_signatures(options):
    configure_and_build(source("signatures"), options.build, options,
                        ["-DCMAKE_PREFIX_PATH=" + options.prefix, "-DOLDEST=" + oldest_version()])
    programs = [name for name in sorted(os.listdir(options.build))
                if re.match(r"(program|with)_[a-z_]+$", name)]
    if len(programs) != 20:
        sys.exit("programs: %s" % programs)
    work = os.path.join(options.build, "work")
    os.makedirs(work)
    for name in programs:
        check_program(memtrace_of(options), os.path.join(options.build, name), [C_PATH], work)


def expect_silent(program, work):
    """It runs, and is not profiled."""
    output = run([program], env=environment(), cwd=work)
    if output or os.listdir(work):
        sys.exit("%s has MemTrace in it: %s %s" % (program, output, os.listdir(work)))


def configure(name, build, options, *arguments):
    shutil.rmtree(build, ignore_errors=True)
    return run(["cmake", "-S", source(name), "-B", build, "-G", options.generator, *arguments],
               env=environment(CC=options.cc, CXX=options.cxx))


def way_exports(options):
    """Whoever uses the package without MemTrace is not disturbed, whoever has both is profiled."""
    producer, installed, user = (os.path.join(options.build, name)
                                 for name in ("producer", "installed", "user"))
    configure("exports/producer", producer, options, "-DMEMTRACE_SOURCE=" + options.source)
    configure_and_build(source("exports/producer"), producer, options,
                        ["-DCMAKE_PREFIX_PATH=" + options.prefix])
    run(["cmake", "--install", producer, "--prefix", installed], env=environment())
    for folder in (producer, installed):
        for with_memtrace in ("OFF", "ON"):
            configure_and_build(source("exports/user"), user, options,
                                ["-DCMAKE_PREFIX_PATH=%s;%s" % (folder, options.prefix),
                                 "-DWITH_MEMTRACE=" + with_memtrace])
            work = os.path.join(user, "work")
            os.makedirs(work)
            for kind in ("static", "shared", "object"):
                program = os.path.join(user, "with_" + kind)
                if with_memtrace == "ON":
                    check_program(memtrace_of(options), program, [C_PATH], work)
                else:
                    expect_silent(program, work)


def way_places(options):
    for where in ("subfolder", "sibling", "late", "twice"):
        build = os.path.join(options.build, where)
        configure_and_build(source("places"), build, options,
                            ["-DWHERE=" + where, "-DCMAKE_PREFIX_PATH=" + options.prefix])
        work = os.path.join(build, "work")
        os.makedirs(work)
        check_program(memtrace_of(options), os.path.join(build, "app"), [C_PATH], work)
    log = configure("places", os.path.join(options.build, "beside"), options,
                    "-DWHERE=beside-sources", "-DCMAKE_PREFIX_PATH=" + options.prefix,
                    "-DMEMTRACE_SOURCE=" + options.source)
    if "MemTrace: no target to instrument" not in log:
        sys.exit("memtrace_instrument_all() takes MemTrace's own targets:\n" + log)


def check_whole(options, build, is_pass):
    work = os.path.join(build, "work")
    os.makedirs(work)
    for name, path in (("c/with_store", C_PATH), ("cxx/cxx_program", CXX_PATH),
                       ("later/with_objects", C_PATH), ("c/static_program", C_PATH)):
        check_program(memtrace_of(options), os.path.join(build, name), [path], work)
    for name in ("c/libstore.so", "cxx/cxx_program", "later/with_objects"):
        if has_fresh_word(os.path.join(build, name)) != is_pass:
            sys.exit("%s: frame words are wrong" % name)


def way_whole(options):
    """The project's own files are not touched; or it calls memtrace_instrument_all()."""
    file, of_build = (run([command, "flags", "--cmake"], env=environment()).strip() for command in
                      (memtrace_of(options), os.path.join(options.memtrace_build, "bin/memtrace")))
    line = "-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES="
    prefix = "-DCMAKE_PREFIX_PATH=" + options.prefix
    cases = [("includes", [line + file], "pass"),
             ("aware", [prefix, "-DAWARE=memtrace_instrument_all(MODE pass)"], "pass"),
             ("both", [line + file, prefix, "-DAWARE=memtrace_instrument_all(MODE pass)"], "pass"),
             ("found", [line + file, prefix, "-DAWARE=set(nothing)"], "pass"),
             ("build-folder", [line + of_build], "pass"),
             ("before-3.24", ["-DCMAKE_PROJECT_INCLUDE=" + file,
                              "-DMEMTRACE_PROJECT_OPTIONS=MODE;frame-pointer;TOP;3"],
              "frame-pointer")]
    for name, arguments, mode in cases if options.cc == "gcc" else cases[:2]:
        build = os.path.join(options.build, name)
        log = configure_and_build(source("whole"), build, options, arguments)
        if not re.search(r"MemTrace: mode %s \(.*\): 6 targets: store, with_store, static_program, cxx_program, "
                         r"objects, with_objects\n" % mode, log):
            sys.exit("%s: status lines:\n%s" % (name, log))
        check_whole(options, build, mode == "pass")


def flags_of(options, *which):
    """What is printed; where the path has a blank a line beside it says that shells need eval."""
    return subprocess.run([memtrace_of(options), "flags", "--compiler", options.cc, *which],
                          env=environment(), check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.strip()


def way_flags(options):
    """Flags in CMake's own variables: no function of ours at all."""
    flags = {}
    for what in ("cflags", "libs"):
        flags[what] = flags_of(options, "--" + what)
    build = os.path.join(options.build, "build")
    configure_and_build(source("whole"), build, options,
                        ["-DCMAKE_C_FLAGS=-g " + flags["cflags"],
                         "-DCMAKE_CXX_FLAGS=-g " + flags["cflags"],
                         "-DCMAKE_SHARED_LINKER_FLAGS=" + flags["libs"],
                         "-DCMAKE_EXE_LINKER_FLAGS=" + flags["libs"]], target="with_store",
                        MEMTRACE="off")
    work = os.path.join(build, "work")
    os.makedirs(work)
    check_program(memtrace_of(options), os.path.join(build, "c/with_store"), [C_PATH], work)


def way_makefile(options):
    """A Makefile that sets its own flags, and is strict: only its compiler is ours to name."""
    shutil.copytree(source("project"), options.build)
    flags = flags_of(options, "--cflags", "--libs")
    run(["make", "-f", source("make/strict.mk"), "CC=%s %s" % (options.cc, flags)],
        env=environment(), cwd=options.build)
    program = os.path.join(options.build, "strict")
    check_program(memtrace_of(options), program, [C_PATH], options.build)
    if not has_fresh_word(program):
        sys.exit("no frame words in " + program)


def way_compilers(options):
    """A name that is no command is wrong usage, in one line."""
    for arguments, settings, status, words in (
            (["--compiler", "nosuch"], {}, 2, '"nosuch" is not a command'),
            (["--compiler", "nosuch -m64", "--mode", "pass"], {}, 2, "is not a command"),
            (["--compiler", "nosuch", "--mode", "hooks"], {}, 2, "is not a command"),
            ([], {"CC": "nosuch"}, 2, '"nosuch" is not a command'),
            (["--compiler", "gcc"], {"CC": "nosuch"}, 0, ""),
            (["--compiler", "true"], {}, 0, ""),
            (["--cmake"], {}, 2, "--cmake goes alone")):
        done = subprocess.run([memtrace_of(options), "flags", "--cflags", *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment(**settings))
        lines = [line for line in done.stderr.splitlines() if "quoted path" not in line]
        if done.returncode != status or words not in done.stderr or len(lines) != (status != 0) or \
           bool(done.stdout) != (status == 0):
            sys.exit("flags %s %s: status %d, %r %r" % (arguments, settings, done.returncode,
                                                        done.stdout, done.stderr))


def main():
    options = parse_options()
    shutil.rmtree(options.build, ignore_errors=True)
    ways = {"signatures": way_signatures, "exports": way_exports, "places": way_places,
            "whole": way_whole, "flags": way_flags, "makefile": way_makefile,
            "compilers": way_compilers}
    ways[options.way](options)
    shutil.rmtree(options.build, ignore_errors=True)


if __name__ == "__main__":
    main()
