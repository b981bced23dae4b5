# SPDX-License-Identifier: MIT
"""gone.py CASE: the files of a program that are gone when it ends, that lie in a mount namespace of its
own, or whose paths are long: the names and lines are there all the same, each where its source has it."""

import os
import shutil
import subprocess
import sys

from recorded import HERE, record, recordings
from harness import build, equal, finish, profiles, report, scratch, skip

LIBRARY = [("leak", 7), ("entry", 14)]
MAIN = [("main", 27)]
OWN = [("own_leak", 11), ("main", 29)]


def frames(path):
    """The program's own frames, by the size of the blocks."""
    found = {}
    for context in report(path)["contexts"]:
        if context["total_bytes"] in (100 * 1000, 4000):
            found[context["total_bytes"]] = [
                (frame["function"], frame["line"]) for frame in context["frames"]
                if os.path.basename(frame["file"] or "") in ("gone.c", "gone_library.c")]
    return found


def named(path, what, library=True):
    equal(frames(path), {100 * 1000: LIBRARY * library + MAIN, 4000: OWN}, what)


def of_program(paths, name="gone"):
    return [path for path in paths if os.path.basename(path).startswith(name + ".")][0]


def prepared(build_id=True):
    folder = scratch()
    linked = () if build_id else ("-Wl,--build-id=none",)
    program, library = os.path.join(folder, "gone"), os.path.join(folder, "unpacked.so")
    shutil.copy(build(os.path.join(HERE, "gone.c"), flags=linked), program)
    shutil.copy(build(os.path.join(HERE, "gone_library.c"), flags=linked, shared=True), library)
    return folder, program, library


def removed():
    """Root may open what nobody can name any more."""
    for build_id in (True, False):
        for when, time in [("end", "0"), ("end", "300")] + [("now", "0")] * (os.geteuid() == 0):
            folder, program, library = prepared(build_id)
            what = "removed: %s, after %s ms, build-id: %s" % (when, time, build_id)
            under = record([program, library, when, time, "self"], folder)
            equal((under.returncode, under.stderr), (0, b""), what)
            equal((os.path.exists(program), os.path.exists(library)), (False, False), what, ": still there")
            named(of_program(recordings(folder)), what)


def namespace():
    if subprocess.run(["unshare", "-rm", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        skip("no namespaces can be had here")
    folder, program, library = prepared()
    seen = scratch()
    os.makedirs(os.path.join(seen, "files"))
    inside = [os.path.join(seen, "files", os.path.basename(path)) for path in (program, library)]
    script = 'mount --bind "$0" "$1" && shift && exec "$@"'
    under = record(["unshare", "-rm", "sh", "-c", script, folder, os.path.join(seen, "files"), *inside, "never", "0"],
                   folder)
    equal(under.returncode, 0, "exit status", under.stderr)
    if os.geteuid() != 0 and not any("/gone." in path for path in recordings(folder)):
        skip("the kernel lets no user's program write its region from a user namespace")
    equal(os.listdir(os.path.join(seen, "files")), [], "files of the namespace, seen from outside")
    named(of_program(recordings(folder)), "in a mount namespace")


def long():
    for length in (943, 944, 1200, 2040):
        folder, program, library = prepared()
        deep = folder
        while length - len(deep) - 1 > 200:
            deep = os.path.join(deep, "x" * min(199, length - len(deep) - 6 - 100))
        deep = os.path.join(deep, "y" * (length - len(deep) - len("//gone")))
        os.makedirs(deep)
        shutil.move(program, deep)
        shutil.move(library, deep)
        program, library = os.path.join(deep, "gone"), os.path.join(deep, "unpacked.so")
        equal(len(program), length, "length of the path")
        under = record([program, library, "never", "0"], folder)
        equal(under.returncode, 0, "exit status", under.stderr)
        for path in (of_program(recordings(folder)), of_program(profiles(folder))):
            named(path, "a path of %d bytes, %s" % (length, os.path.basename(path)))
        # A second time in the working folder, by a relative path.
        os.chdir(deep)
        relative = scratch()
        under = record(["./gone", "./unpacked.so", "never", "0"], relative)
        equal(under.returncode, 0, "exit status", under.stderr)
        named(of_program(profiles(relative)), "a relative path in a folder of %d bytes" % len(deep))
        os.chdir(HERE)


{"removed": removed, "namespace": namespace, "long": long}[sys.argv[1]]()
finish()
