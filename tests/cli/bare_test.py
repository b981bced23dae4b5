# SPDX-License-Identifier: MIT
"""bare_test.py CASE: `memtrace run` and `record` of programs that cannot be recorded, or not here: they
run as without us, and one line says why."""

import os
import resource
import shutil
import subprocess
import sys

from outside import (LIBRARY, MEMTRACE, allocations, case, check, environment, equal, execute,
                     folder, profiles)

environment["ASAN_OPTIONS"] = "detect_leaks=0"
PROGRAM = """#include <stdlib.h>
#include <unistd.h>
#ifdef OPTIONS
const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif
int main(int argc, char **argv) {
    char *volatile block = malloc(100);
    free(block);
    if (argc > 1) abort();
    return block != 0 && write(1, "done\\n", 5) == 5 ? 3 : 1;
}
"""
FAULTY = """#include <stdlib.h>
static char *make(int n) { return malloc(n); }
int main(int argc, char **argv) {
    char *volatile p;
    for (int i = 0; i < 50; i++) p = make(i);
    if (argc > 1) return p[49 + 3];
    free(p);
    return p[3];
}
"""


def compiled(compiler, *flags, text=PROGRAM):
    """The program, or the test ends as skipped: no such compiler."""
    program, source = folder + "/program", folder + "/program.c"
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    if shutil.which(compiler) is None or subprocess.run(
            [compiler, "-g", *flags, source, "-o", program], check=False).returncode != 0:
        print("skipped: no", compiler, *flags)
        sys.exit(77)
    return program


def is_bare(program, reason, **settings):
    """One line with the reason; output and status of the program; nothing is left."""
    line = b"memtrace: %s %s: nothing will be recorded\n" % (program.encode(), reason)
    for ours in (["run"], ["record"], ["run", "--children", "none", "--no-summary"]):
        done = execute(MEMTRACE, *ours, "--", program, **settings)
        equal((done.returncode, done.out, done.err), (3, b"done\n", line), *ours)
    done = execute(MEMTRACE, "run", "--", program, "abort", **settings)
    equal((done.returncode, done.out), (-6, b""), "a signal ends it", done.err)
    equal([name for name in os.listdir(folder) if name.startswith("memtrace")], [], "left")


def is_counted(program):
    done = execute(MEMTRACE, "run", "-o", "/dev/null", "--", program)
    equal((done.returncode, done.out), (3, b"done\n"), done.err)
    check(allocations(done.err) >= 1, done.err)


def test_musl():
    """Of a MemTrace that was built without musl-gcc: there is no library for it."""
    global MEMTRACE
    program = compiled("musl-gcc")
    reason = b"is linked with musl, and libmemtrace-musl.so is not there (build MemTrace where musl-gcc is)"
    os.makedirs(folder + "/here/bin")
    os.makedirs(folder + "/here/lib")
    shutil.copy(MEMTRACE, folder + "/here/bin/memtrace")
    shutil.copy(LIBRARY, folder + "/here/lib/libmemtrace.so")
    MEMTRACE = folder + "/here/bin/memtrace"
    is_bare(program, reason)
    runs_started()
    with open(folder + "/script", "w", encoding="utf-8") as file:
        file.write("#!%s\n" % program)
    os.chmod(folder + "/script", 0o755)
    # the script's own path is the argument that makes it abort
    done = execute(MEMTRACE, "run", "--", folder + "/script")
    equal((done.returncode, done.out), (-6, b""))
    equal(done.err, b"memtrace: %s/script %s: nothing will be recorded\n" % (folder.encode(), reason))


def test_musl_static():
    is_bare(compiled("musl-gcc", "-static"), b"is statically linked")


def test_clang_sanitizers():
    for sanitizer, name in (("address", b"AddressSanitizer"), ("thread", b"ThreadSanitizer"),
                            ("memory", b"MemorySanitizer")):
        is_bare(compiled("clang", "-fsanitize=" + sanitizer),
                b"is built with %s, whose malloc is linked into it" % name)


def test_gcc_sanitizers():
    """These are libraries, and are counted; but for a program that says itself what they do."""
    for sanitizer in ("address", "thread", "undefined"):
        is_counted(compiled("gcc", "-fsanitize=" + sanitizer))
        runs_started()
    is_bare(compiled("gcc", "-fsanitize=address", "-DOPTIONS"),
            b"has its own __asan_default_options(), so AddressSanitizer's library must come first")
    runs_started()


def runs_started():
    """Started by a program that is recorded it runs, too."""
    done = execute(MEMTRACE, "run", "-o", folder + "/out.mtp", "--", "sh", "-c",
                   folder + "/program; exit $?")
    equal((done.returncode, done.out, b"ERROR" in done.err or b"ASan" in done.err),
          (3, b"done\n", False), done.err)
    shutil.rmtree(folder + "/out.mtp", ignore_errors=True)


def test_sanitizer_reports():
    """What the sanitizer finds is what it finds without us, the frames of our malloc apart."""
    program = compiled("gcc", "-fno-inline", "-fsanitize=address", text=FAULTY)
    for arguments in ([], ["over"]):
        alone = execute(program, *arguments)
        under = execute(MEMTRACE, "run", "--no-summary", "--", program, *arguments)
        equal(under.returncode, alone.returncode, under.err)
        check(b"program.c" in alone.err, alone.err)
        functions = [[line.split()[3] for line in text.decode().splitlines()
                      if line.lstrip().startswith("#") and "runtime/entry" not in line]
                     for text in (under.err, alone.err)]
        equal(functions[0], functions[1], under.err.decode())


def test_few_descriptors():
    program = compiled("gcc")
    for limit in (4, 7, 10):
        is_bare(program, b"runs under a limit of %d open files (ulimit -n), too few" % limit,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
    done = execute(MEMTRACE, "record", "--", program,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)))
    equal((done.returncode, done.out, b"Too many" in done.err), (3, b"done\n", False), done.err)


def test_no_proc():
    wrap = ["unshare", "-m", "sh", "-c", "umount -l /proc && exec \"$@\"", "sh"]
    if subprocess.run([*wrap, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: /proc cannot be taken away")
        sys.exit(77)
    program = compiled("gcc")
    for library in ({}, {"MEMTRACE_LIBRARY": LIBRARY}):
        done = execute(*wrap, MEMTRACE, "run", "--", program, env=library)
        equal((done.returncode, done.out, done.err), (3, b"done\n", b"memtrace: %s runs where /proc is "
              b"not mounted: nothing will be recorded\n" % program.encode()))
    equal(profiles(), [])


def test_bare_and_broken():
    """What would be run bare and cannot be run at all has the status of a shell."""
    program = compiled("musl-gcc")
    with open(program, "rb") as file:
        code = file.read()
    with open(program, "wb") as file:
        file.write(code.replace(b"/lib/ld-musl-x86_64.so.1", b"/lib/ld-uClibc-none.so.1"))
    done = execute(MEMTRACE, "run", "--", program)
    equal((done.returncode, done.out, done.err.count(b"\n")), (127, b"", 2), done.err)
    check(b"cannot run %s: No such file" % program.encode() in done.err, done.err)


case(globals())
