# SPDX-License-Identifier: MIT
"""A profile of another user is foreign data to root: files that it names are read only if they are root's or
of who asks, or lie in the debug folders. Needs root, to be two users."""

import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))

from harness import (MEMTRACE, SUBJECTS, build, clean_environment, equal, execute, files, finish,  # noqa: E402
                     scratch, skip)

NOBODY = 65534


def functions(*words, **settings):
    """The program's own functions in the report, and its warnings."""
    done = execute([MEMTRACE, "report", "--json", *words], clean_environment(**settings))
    equal(done.returncode, 0, words, done.stderr)
    data = json.loads(done.stdout)
    return {frame["function"] for context in data["contexts"] for frame in context["frames"]
            if os.path.basename(frame["module"]) == "subject"}, data["warnings"]


def expect(named, why, *words, **settings):
    found, warnings = functions(*words, **settings)
    if named:
        equal("main" in found, True, why, found, warnings)
    else:
        equal(found, {None}, why, warnings)
        equal(sum("another user's" in line for line in warnings), 1, why, warnings)


def debug_folder(program):
    """Its debug file by build-id, in a folder that nobody owns."""
    folder = scratch()
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    build_id = notes.split("Build ID:")[1].split()[0]
    place = os.path.join(folder, ".build-id", build_id[:2], build_id[2:] + ".debug")
    os.makedirs(os.path.dirname(place))
    shutil.copy(program, place)
    os.chown(place, NOBODY, NOBODY)
    return folder


def main():
    if os.geteuid() != 0:
        skip("not root")
    os.environ["XDG_CACHE_HOME"] = scratch()  # names that were found are kept; each look has its own
    folder = scratch()
    program = os.path.join(folder, "subject")
    shutil.copy(build(os.path.join(SUBJECTS, "allocations.c"), optimize="-O0"), program)
    execute([MEMTRACE, "record", "--profile", "--embed", "none", "--", program, "realloc"],
                   clean_environment(MEMTRACE_OUTPUT=folder + "/%e.mtp", MEMTRACE_KEEP_SMALL="1",
                              MEMTRACE_RECORD_OUTPUT=folder + "/%e.mtr"))
    made = files(folder, ".mtp") + files(folder, ".mtr")
    equal(len(made), 2, "a profile and a recording", made)
    for path in made:
        where = ("--no-cache", path)
        for owner, of_file, named in ((0, 0, True), (0, NOBODY, True), (NOBODY, 0, True),
                                      (NOBODY, NOBODY, False), (NOBODY, 1, False)):
            os.environ["XDG_CACHE_HOME"] = scratch()
            os.chown(path, owner, owner)
            os.chown(program, of_file, of_file)
            expect(named, "%s of %d, program of %d" % (path, owner, of_file), *where)
        os.chown(program, NOBODY, NOBODY)
        expect(True, "who became root is no other user", *where, SUDO_UID=str(NOBODY))
        expect(False, "another one became root", *where, SUDO_UID="1")
        expect(False, "no number", *where, SUDO_UID=str(NOBODY) + "x")
        expect(True, "a debug folder of the user's choice", "--debug-folders",
               folder + "/nowhere:" + debug_folder(program), *where)
        expect(True, "the program lies in one", "--debug-folders", folder + "/", *where)
        expect(False, "only the beginning of its name", "--debug-folders", folder[:-1], *where)
    finish()


if __name__ == "__main__":
    main()
