#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An outside project uses MemTrace: builds it, runs the result, checks the profiles.

Each run is one ctest test (see CMakeLists.txt): consumer_test.py WAY [options].
WAY: package, subdirectory, fetch, one-language, make, pkgconfig, moved, wrong-calls, deb,
tgz.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# What must be in a profile: (functions innermost first, live bytes, blocks).
C_PATH = (["keep_bytes", "store_fill", "main"], 10000, 10)
CXX_PATH = (["shelf", "make_shelves", "main"], 2500, 5)
MODES = ("auto", "pass", "hooks", "frame-pointer")


def run(command, **kw):
    """Runs a command, shows its output if it fails, returns it."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=600, **kw)
    if done.returncode != 0:
        print(done.stdout)
        sys.exit("failed (%d): %s" % (done.returncode, command))
    return done.stdout


def environment(**settings):
    kept = {k: v for k, v in os.environ.items()
            if not k.startswith("MEMTRACE") and k != "LD_PRELOAD"}
    kept.update(settings)
    return kept


def has_fresh_word(path):
    """Whether the file holds an instruction of MODE pass: FRAME_WORD_FRESH, as a program has it."""
    with open(path, "rb") as file:
        return bytes.fromhex("dec0175a") in file.read()


def plain(function):
    """ns::shelf::shelf(unsigned long) -> shelf; keep_bytes.constprop.0 -> keep_bytes"""
    name = re.sub(r"\(.*", "", function.replace("(anonymous namespace)", "anonymous"))
    return name.split("::")[-1].split(".")[0].strip()


def has_path(names, wanted):
    """wanted is a subsequence of names"""
    rest = iter(names)
    return all(any(name == one for name in rest) for one in wanted)


def check_profile(memtrace, profile, paths, module=None, may_cut=False):
    """Each path holds what it should, and frames have lines. may_cut: some paths in the C library may end early."""
    report = json.loads(subprocess.run([memtrace, "report", "--json", profile], stdout=subprocess.PIPE, check=True,
                                       timeout=600).stdout)
    for wanted, size, blocks in paths:
        found_bytes = found_blocks = 0
        for context in report["contexts"]:
            names = [plain(frame["function"] or "") for frame in context["frames"]]
            if not has_path(names, wanted):
                continue
            found_bytes += context["live_bytes"]
            found_blocks += context["live_blocks"]
            if module and not any(module in (f["module"] or "") for f in context["frames"]):
                sys.exit("%s: no frame in %s" % (profile, module))
            lines = [f["line"] for f in context["frames"] if plain(f["function"] or "") in wanted]
            if not all(lines):
                sys.exit("%s: frames without lines: %s" % (profile, context["frames"]))
        if (found_bytes, found_blocks) != (size, blocks):
            print(json.dumps(report["contexts"], indent=1)[:6000])
            sys.exit("%s: %s holds %d bytes in %d blocks, expected %d in %d" %
                     (profile, " < ".join(wanted), found_bytes, found_blocks, size, blocks))
    lost = report["lost"] - (report["lost_by_kind"]["frames"] if may_cut else 0)
    if lost != 0:
        sys.exit("%s: lost %d" % (profile, lost))
    if sum(c["live_bytes"] for c in report["contexts"]) != report["live_bytes"]:
        sys.exit("%s: live bytes do not add up" % profile)


def check_program(memtrace, program, paths, work, module=None):
    """Runs it as it is: nothing in the environment but where the profile goes."""
    profile = os.path.join(work, os.path.basename(program) + ".mtp")
    output = run([program], env=environment(MEMTRACE_OUTPUT=profile), cwd=work)
    if "memtrace: peak " not in output:
        sys.exit("%s: no summary:\n%s" % (program, output))
    profiles = glob.glob(profile + "*")
    if len(profiles) != 1:
        sys.exit("%s: profiles %s" % (program, profiles))
    check_profile(memtrace, profiles[0], paths, module)
    os.remove(profiles[0])

    # Off: silent, and no file.
    before = set(os.listdir(work))
    output = run([program], env=environment(MEMTRACE="off"), cwd=work)
    if output or set(os.listdir(work)) != before:
        sys.exit("%s: MEMTRACE=off is not silent: %r %s" %
                 (program, output, set(os.listdir(work)) - before))


def configure_and_build(source, build, options, arguments, target="all", **settings):
    shutil.rmtree(build, ignore_errors=True)
    # How old a CMake some projects here would take displeases newer ones.
    log = run(["cmake", "-S", source, "-B", build, "-G", options.generator, "-DCMAKE_WARN_DEPRECATED=OFF"] + arguments,
              env=environment(CC=options.cc, CXX=options.cxx))
    log += run(["cmake", "--build", build, "--parallel", "2", "--target", target],
               env=environment(**settings))
    if re.search(r"\bwarning\b", log, re.IGNORECASE):
        sys.exit("warnings:\n" + log)
    return log


def check_excluded(build, log, options):
    """The objects of left out files must not call the hooks, the others must."""
    for name, hooked in (("main.c.o", True), ("quiet.c.o", False)):
        path = os.path.join(build, "CMakeFiles", "excluded.dir", name)
        if ("__cyg_profile_func_enter" in run(["nm", path])) != hooked:
            sys.exit("%s: hooks %s" % (path, "missing" if hooked else "not left out"))
    if "clang" in options.cc and "no_instrument_function" not in log:
        sys.exit("no word about EXCLUDE_FUNCTIONS with Clang:\n" + log)


def check_defaults(program, settings):
    """What was built into a static library is in the program, where the runtime finds it."""
    with open(program, "rb") as file:
        if settings not in file.read():
            sys.exit("%s: %r is not built in" % (program, settings))
    if "memtrace_defaults" not in run(["nm", "-D", program]):
        sys.exit("%s: memtrace_defaults is not visible to the runtime" % program)


def check_project(memtrace, build, options, log):
    work = os.path.join(build, "work")
    os.makedirs(work, exist_ok=True)
    for mode in MODES:
        if not re.search(r"MemTrace: c_%s: mode " % mode, log):
            sys.exit("no status line for c_%s:\n%s" % (mode, log))
        for name, paths, module in (("c", [C_PATH], None), ("cxx", [CXX_PATH], None),
                                    ("mixed", [C_PATH, CXX_PATH], None),
                                    ("static", [C_PATH], None),
                                    ("shared", [C_PATH], "libstore_shared_" + mode),
                                    ("host", [C_PATH], "libplugin_" + mode)):
            check_program(memtrace, os.path.join(build, "%s_%s" % (name, mode)), paths, work, module)
        for name in ("c_%s", "cxx_%s", "static_%s", "libstore_shared_%s.so", "libplugin_%s.so"):
            if has_fresh_word(os.path.join(build, name % mode)) != (mode in ("auto", "pass")):
                sys.exit("mode %s: frame words in %s are wrong" % (mode, name % mode))
    check_program(memtrace, os.path.join(build, "excluded"), [(["store_fill", "main"], 10000, 10)],
                  work)
    check_defaults(os.path.join(build, "static_auto"), b"MEMTRACE_TOP=7\0")
    check_excluded(build, log, options)


def check_periodic(build):
    """Settings built in by REPORT_EVERY and TOP; the environment wins over them."""
    work = os.path.join(build, "work")
    program = os.path.join(build, "periodic")
    output = run([program], env=environment(), cwd=work)
    if output.count("store_fill") < 2:
        sys.exit("REPORT_EVERY: too few reports:\n" + output)
    output = run([program], env=environment(MEMTRACE_EVERY="1h"), cwd=work)
    if "store_fill" in output:
        sys.exit("MEMTRACE_EVERY does not win over REPORT_EVERY:\n" + output)
    for profile in glob.glob(os.path.join(work, "memtrace.periodic.*.mtp")):
        os.remove(profile)


def check_installed(prefix, build, memtrace):
    """The user's own `cmake --install` gives programs that run, too."""
    run(["cmake", "--install", build, "--prefix", prefix], env=environment())
    work = os.path.join(build, "work")
    check_program(memtrace, os.path.join(prefix, "bin", "c_auto"), [C_PATH], work)


def way_cmake(options):
    way = {"package": "package", "subdirectory": "subdirectory", "fetch": "fetch"}[options.way]
    arguments = ["-DCONSUME=" + way]
    if way == "package":
        arguments.append("-DCMAKE_PREFIX_PATH=" + options.prefix)
    else:
        arguments += ["-DMEMTRACE_SOURCE=" + options.source]
        if way == "fetch":
            arguments += ["-DMEMTRACE_TOOLS=OFF"]
    log = configure_and_build(os.path.join(HERE, "project"), options.build, options, arguments)
    memtrace = os.path.join(options.prefix, "bin", "memtrace")
    check_project(memtrace, options.build, options, log)
    if way != "fetch":  # without tools there is no companion
        check_periodic(options.build)
    if way == "package":
        check_installed(os.path.join(options.build, "installed"), options.build, memtrace)


def way_one_language(options):
    memtrace = os.path.join(options.prefix, "bin", "memtrace")
    for language, path in (("C", C_PATH), ("CXX", CXX_PATH)):
        build = os.path.join(options.build, language)
        configure_and_build(os.path.join(HERE, "one_language"), build, options,
                            ["-DLANGUAGE=" + language, "-DCMAKE_PREFIX_PATH=" + options.prefix])
        check_program(memtrace, os.path.join(build, "one"), [path], build)
        if language == "C":
            run([os.path.join(build, "static_pie")], env=environment(MEMTRACE="off"))
        if "memtrace_defaults" not in run(["nm", "-D", os.path.join(build, "one")]):
            sys.exit("memtrace_defaults is not visible to the runtime")


def way_make(options):
    memtrace = os.path.join(options.prefix, "bin", "memtrace")
    modes = ["auto"] if options.way == "pkgconfig" else MODES
    for mode in modes:
        build = os.path.join(options.build, mode)
        shutil.rmtree(build, ignore_errors=True)
        shutil.copytree(os.path.join(HERE, "project"), build)  # a Makefile takes no blank in a path
        run(["make", "-f", os.path.join(HERE, "make", "Makefile"), "CC=" + options.cc,
             "CXX=" + options.cxx, "MEMTRACE=" + memtrace, "MODE=" + mode,
             "FLAGS_FROM=" + ("pkgconfig" if options.way == "pkgconfig" else "flags")],
            cwd=build,
            env=environment(PKG_CONFIG_PATH=glob.glob(options.prefix + "/lib*/**/pkgconfig",
                                                      recursive=True)[0]))
        check_program(memtrace, os.path.join(build, "c_make"), [C_PATH], build)
        check_program(memtrace, os.path.join(build, "mixed_make"), [C_PATH, CXX_PATH], build)
        with_pass = options.way != "pkgconfig" and mode in ("auto", "pass")
        if has_fresh_word(os.path.join(build, "mixed_make")) != with_pass:
            sys.exit("mode %s: frame words are wrong" % mode)


def check_companion(memtrace, program, work):
    """The library finds the command beside itself: without `memtrace record` it records all events."""
    recording = os.path.join(work, "companion.mtr")
    run([program], cwd=work, env=environment(MEMTRACE_RECORD="1", MEMTRACE_RECORD_OUTPUT=recording,
                                             MEMTRACE_OUTPUT="/dev/null"))
    for _ in range(300):  # the companion finishes the file after the program's end
        told = json.loads(run([memtrace, "report", "--json", recording]))
        if told["recording"]["closed"]:
            break
        time.sleep(0.1)
    else:
        sys.exit("%s: the companion has not finished its recording" % program)
    if told["allocations"] == 0:
        sys.exit("%s: the companion recorded nothing" % program)
    os.remove(recording)


def build_moved(options, prefix, flags, quoted):
    """In a shell, with what a command prints as flags, quoted or not. Returns what was said."""
    command = "%s -O2 -g main.c store.c -o moved $(%s)" % (options.cc, flags)
    if quoted:
        command = 'eval "%s"' % command
    return run(["sh", "-c", command, os.path.join(prefix, "bin", "memtrace")],
               cwd=prefix, env=environment(CC=options.cc, PKG_CONFIG_PATH=glob.glob(
                   glob.escape(prefix) + "/lib*/**/pkgconfig", recursive=True)[0]))


def way_moved(options):
    """The installation moved to a folder with an awkward name: flags find it and are quoted."""
    shutil.rmtree(options.build, ignore_errors=True)
    for folder in ("it's here, moved", "mem tracé", "plainé"):
        prefix = os.path.join(options.build, folder)
        shutil.copytree(options.prefix, prefix, symlinks=True)
        for name in ("main.c", "store.c", "store.h"):
            shutil.copy(os.path.join(HERE, "project", name), prefix)
        memtrace = os.path.join(prefix, "bin", "memtrace")
        program = os.path.join(prefix, "moved")
        quoted = re.fullmatch(r"[\w/.,+-]+", prefix) is None
        for mode in ("auto", "pass"):
            said = build_moved(options, prefix, '"$0" flags --mode %s --cflags --libs' % mode, quoted)
            if ("needs eval" in said, said.count("\n")) != (quoted, int(quoted)):
                sys.exit("flags in %s say: %r" % (folder, said))
            check_program(memtrace, program, [C_PATH], options.build)
            check_companion(memtrace, program, options.build)
        if "," not in folder:
            build_moved(options, prefix, "pkg-config --cflags --libs memtrace", True)
            check_program(memtrace, program, [C_PATH], options.build)
    for arguments, status in ((["--explain"], 0), (["--help"], 0), ([], 2), (["--mode", "x"], 2),
                              (["--cflags", "more"], 2), (["--nothing"], 2)):
        done = subprocess.run([memtrace, "flags"] + arguments, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != status or (status and len(done.stderr.splitlines()) != 1):
            sys.exit("flags %s: status %d, %r" % (arguments, done.returncode, done.stderr))
    os.remove(os.path.join(prefix, "lib", "libmemtrace.so"))
    done = subprocess.run([memtrace, "flags", "--libs"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 1 or "libmemtrace.so" not in done.stderr or done.stdout:
        sys.exit("flags without a library: %r" % done)


def way_wrong_calls(options):
    for call, words in (("memtrace_instrument(nobody)", "no such target"),
                        ("memtrace_instrument(headers_only)", "only executables"),
                        ("memtrace_instrument(aliased::app)", "is an ALIAS of app: name app instead"),
                        ("memtrace_instrument(MemTrace::runtime)", "MemTrace::runtime is IMPORTED"),
                        ("memtrace_instrument(app MODE fast)", "MODE is auto, pass, hooks or frame-pointer"),
                        ("memtrace_instrument(app MODE)", "MODE needs a value"),
                        ("memtrace_instrument(app REPORT_EVERY soon)", "REPORT_EVERY is a number"),
                        ("memtrace_instrument(app SAMPLE some)", "SAMPLE is a size"),
                        ("memtrace_instrument(app TOP many)", "TOP is a number"),
                        ("memtrace_instrument(app NOISY)", "NOISY"),
                        ("memtrace_instrument(app)\nmemtrace_instrument(app)", "called twice"),
                        ("memtrace_instrument_all(NOISY)", "memtrace_instrument_all(): what is \"NOISY\"?"),
                        ("memtrace_instrument_all()\nmemtrace_instrument_all()", "called twice")):
        shutil.rmtree(options.build, ignore_errors=True)
        done = subprocess.run(["cmake", "-S", os.path.join(HERE, "wrong_calls"), "-B", options.build,
                               "-G", options.generator, "-DCMAKE_PREFIX_PATH=" + options.prefix,
                               "-DCALL=" + call], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, env=environment())
        if done.returncode == 0 or words not in " ".join(done.stdout.split()):
            sys.exit("%s: expected an error with \"%s\":\n%s" % (call, words, done.stdout))


def way_archive(options):
    """Makes the package, unpacks it elsewhere and uses it from there."""
    shutil.rmtree(options.build, ignore_errors=True)
    packages = os.path.join(options.build, "packages")
    root = os.path.join(options.build, "root")
    os.makedirs(root)
    generator = "DEB" if options.way == "deb" else "TGZ"
    run(["cpack", "--config", os.path.join(options.memtrace_build, "CPackConfig.cmake"), "-G",
         generator, "-B", packages], env=environment())
    if generator == "DEB":
        (package,) = glob.glob(packages + "/*.deb")
        needs = run(["dpkg-deb", "-f", package, "Depends"])
        if "libdw1" not in needs or "libc6" not in needs:
            sys.exit("dependencies: " + needs)
        run(["dpkg", "-x", package, root])
        options.prefix = os.path.join(root, "usr")
    else:
        (package,) = glob.glob(packages + "/*.tar.gz")
        run(["tar", "xzf", package, "-C", root])
        (options.prefix,) = glob.glob(root + "/*")
    for part in ("bin/memtrace", "share/man/man1/memtrace.1", "share/doc/memtrace/LICENSE",
                 "share/doc/memtrace/docs/pictures/summary.png", "share/doc/memtrace/examples/indexer/main.c",
                 "share/bash-completion/completions/memtrace", "include/memtrace/memtrace.h"):
        if not os.path.exists(os.path.join(options.prefix, part)):
            sys.exit("%s lacks %s" % (package, part))
    memtrace = os.path.join(options.prefix, "bin", "memtrace")
    run([memtrace, "flags", "--cmake"], env=environment())
    work = os.path.join(options.build, "work")
    os.makedirs(work)
    run([memtrace, "run", "--output", os.path.join(work, "ls.mtp"), "--", "/bin/ls", "/"], cwd=work,
        env=environment())
    run([memtrace, "report", os.path.join(work, "ls.mtp")], env=environment())
    build = options.build
    options.build = os.path.join(build, "one")
    way_one_language(options)
    options.build = os.path.join(build, "make")
    way_make(options)


def parse_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("way")
    parser.add_argument("--prefix", help="where MemTrace is installed")
    parser.add_argument("--source", help="MemTrace's sources")
    parser.add_argument("--memtrace-build", help="MemTrace's build folder")
    parser.add_argument("--build", required=True, help="scratch folder")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--generator", default="Ninja")
    return parser.parse_args()


def main():
    options = parse_options()
    ways = {"package": way_cmake, "subdirectory": way_cmake, "fetch": way_cmake,
            "one-language": way_one_language, "make": way_make, "pkgconfig": way_make,
            "moved": way_moved, "wrong-calls": way_wrong_calls,
            "deb": way_archive, "tgz": way_archive}
    ways[options.way](options)
    shutil.rmtree(options.build, ignore_errors=True)


if __name__ == "__main__":
    main()
