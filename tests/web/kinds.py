# SPDX-License-Identifier: MIT
"""kinds.py: whose code a frame is: of the sum of a run each process's program is own code, wherever it lies; functions
named as malloc is are not. A sum has no moment of its maximum, and what nobody looked at is not told as 0."""

import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "asking"))

from serving import Server, equal, execute, fail, finish, scratch  # noqa: E402
from harness import MEMTRACE, clean_environment, report, skip  # noqa: E402


def kinds(server, **of):
    """{(program or library, function): kind} of all frames."""
    frames = server.data("/r/1/tree", metric="cumulative", **of)["frames"]
    return {(os.path.basename(frame["module"]), frame["function"]): frame["kind"] for frame in frames}


def main():
    compiler = shutil.which("gcc")
    if compiler is None:
        skip("no gcc, whose programs lie in a folder of libraries")
    folder = scratch()
    source = os.path.join(folder, "nothing.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write("int nothing(void) { return 0; }\n")
    run = os.path.join(folder, "run.mtp")
    done = execute([MEMTRACE, "run", "--no-summary", "--output", run, "--", compiler, "-O1", "-S", "-o", "/dev/null", source],
                   clean_environment(), cwd=folder)
    equal(done.returncode, 0, "gcc", done.stderr)
    server = Server(run)
    every = kinds(server, all_processes="1")
    compiling = {name: kind for (module, name), kind in every.items() if module == "cc1"}
    if not compiling:
        fail("no frame of cc1:", every)
    wrappers = {name: kind for name, kind in compiling.items() if name in ("xmalloc", "xcalloc", "xrealloc", "xstrdup")}
    equal(set(wrappers.values()) - {"library"}, set(), "wrappers of malloc", wrappers)
    equal("own" in compiling.values(), True, "the compiler's own code", compiling)
    equal({kind for (module, _), kind in every.items() if module.startswith("libc.so")} - {"system", "library"}, set(), "the C library")
    # Of one process alone there is a moment of its maximum.
    equal("maximum" in server.data("/r/1/timeline", all_processes="1"), False, "the sum's maximum")
    alone = server.data("/r/1/timeline", series="live,resident")
    equal(alone["maximum"]["bytes"], server.data("/r/1")["totals"]["peak_bytes"], "its maximum")
    resident = alone["series"].get("resident")
    equal(resident is None, "resident" in alone["missing"], "what is missing is said", alone)
    if resident is not None and max((one or 0) for one in resident) == 0:
        fail("resident: 0 is told as if it was seen")
    server.close()
    first_view(folder)


def first_view(folder):
    """Its numbers are the report's, and views of single blocks are offered where there are any."""
    for command, has in (("run", False), ("record", True)):
        path = os.path.join(folder, "of_" + command)
        execute([MEMTRACE, command, "--no-summary", "--output", path, "--", "ls", folder], clean_environment())
        wanted = report(path)["process"]
        server = Server(path)
        told = server.data("/r/1")
        equal((told["resident"]["peak_bytes"], told["resident"]["own_bytes"]),
              (wanted["peak_resident_bytes"], wanted["own_resident_bytes"]), "resident, of", command)
        if not told["resident"]["peak_bytes"] > told["resident"]["own_bytes"] > 0:
            fail("resident, of", command, told["resident"])
        equal((told["kind"], told["has"]["events"], told["has"]["mappings"], told["has"]["timeline"]),
              ("recording" if has else "profile", has, has, True), "what there is to show of", command)
        server.close()


main()
finish()
