# SPDX-License-Identifier: MIT
"""rust.py program|cdylib: Rust code under preload: counted, behaviour kept, names demangled."""

import os
import sys

from harness import (SUBJECTS, bare, build, consistent, equal, execute, fail, finish, have, heap,
                     only_profile, same_behaviour, scratch, traced)


def compile_rust(name, folder, *flags):
    out = os.path.join(folder, "rust_" + name)
    result = execute(["rustc", "-g", "-C", "opt-level=1", *flags, "-o", out,
                      os.path.join(SUBJECTS, "rust", name + ".rs")])
    if result.returncode != 0:
        fail("rustc:", result.stderr.decode())
        finish()
    return out


def names_at(data, size, what):
    found = [context for context in heap(data) if context["total_bytes"] == size]
    equal(len(found), 1, what, "contexts of", size, "bytes")
    return [frame["function"] for frame in found[0]["frames"]] if found else []


def check_names(names, wanted, what):
    for name in names:
        if name.startswith(("_ZN", "_R")) or "17h" in name and name.endswith("E"):
            fail(what, "not demangled:", name)
    for part in wanted:
        if not any(part in name for name in names):
            fail(what, "no", part, "in", names)


def main():
    have("rustc")
    kind, folder = sys.argv[1], scratch()
    for mode in ("preload", "run"):
        what, out = "rust %s %s:" % (kind, mode), scratch()
        if kind == "program":
            command = [compile_rust("program", folder)]
        else:
            command = [build("plugins.c", "gcc", "-O1"),
                       compile_rust("cdylib", folder, "--crate-type=cdylib", "-C", "panic=abort")]
        alone = bare(command)
        equal(alone.returncode, 3, what, "bare exit status", alone.stdout, alone.stderr)
        same_behaviour(alone, traced(command, mode, out), what)
        data = only_profile(out, what)
        consistent(data, what)
        equal(data["lost"], 0, what, "lost")
        if kind == "program":
            check_names(names_at(data, 91001, what), ["leak_some", "main"], what)
            check_names(names_at(data, 91003, what), ["draw", "main"], what)
            check_names(names_at(data, 91005, what), ["main"], what)
            check_names(names_at(data, 91007, what), ["main"], what)
        else:
            check_names(names_at(data, 91101, what), ["give", "load"], what)


if __name__ == "__main__":
    main()
    finish()
