# SPDX-License-Identifier: MIT
"""sourcetext.py: /files/{n}/text gives the text of source files that the debug information names, says when
they are newer or gone, finds them elsewhere by --source-map, and gives nothing else."""

import os
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "asking"))

from serving import Server, equal, execute, fail, finish, scratch  # noqa: E402
from recorded import only_recording, record  # noqa: E402
from harness import MEMTRACE, clean_environment  # noqa: E402

TEXT = """#include <stdlib.h>
int main(void) {
    void *block = malloc(1000); /* \\u00fc <script> */
    return block == NULL;
}
"""


def number_of(server, name):
    return next(row["number"] for row in server.rows("/r/1/files", limit=1000)
                if os.path.basename(row["file"]) == name)


def text_of(path, *options):
    server = Server(path, options=options)
    number = number_of(server, "subject.c")
    data = server.data("/r/1/files/%d/text" % number)
    server.close()
    return data["state"], data["text"], data["language"]


def main():
    folder = scratch()
    source = os.path.join(folder, "subject.c")
    program = os.path.join(folder, "subject")
    with open(source, "w", encoding="utf-8") as file:
        file.write(TEXT)
    equal(execute(["gcc", "-g", "-O0", source, "-o", program]).returncode, 0, "gcc")
    equal(record([program], folder).returncode, 0, "the program")
    path = only_recording(folder, "subject")
    equal(text_of(path), ("current", TEXT, "c"), "as it was compiled")
    os.utime(source, (time.time() + 100, time.time() + 100))
    equal(text_of(path)[0], "newer", "changed after the program was built")
    with open(source, "wb") as file:
        file.write(b"a" * (8 << 20))
    equal(text_of(path)[0], "newer", "8 MiB")
    with open(source, "ab") as file:
        file.write(b"a")
    equal(text_of(path)[:2], ("forbidden", None), "more than 8 MiB")
    with open(source, "wb") as file:
        file.write(b"int\x00main")
    equal(text_of(path)[:2], ("forbidden", None), "no text")
    with open(source, "wb") as file:
        file.write(b"\xff\xfe int")
    equal(text_of(path)[1], "\ufffd\ufffd int", "bytes that are not UTF-8")
    os.remove(source)
    equal(text_of(path)[:2], ("missing", None), "gone")
    os.mkfifo(source)
    equal(text_of(path)[:2], ("forbidden", None), "a pipe")
    os.remove(source)
    os.mkdir(source)
    equal(text_of(path)[:2], ("forbidden", None), "a folder")
    moved = os.path.join(folder, "moved")
    os.mkdir(moved)
    with open(os.path.join(moved, "subject.c"), "w", encoding="utf-8") as file:
        file.write(TEXT)
    equal(text_of(path, "--source-map", folder + "=" + moved)[1], TEXT, "--source-map")
    equal(text_of(path, "--source-map", "/elsewhere=" + moved)[0], "forbidden", "--source-map of another folder")
    equal(text_of(path, "--source-map", source + "=/proc/self/environ")[:2], ("forbidden", None), "/proc")
    anonymous(path, folder)
    foreign()
    if shutil.which("clang"):
        hashed(os.path.join(folder, "hashed"))


def foreign():
    """What debug information names outside of the project is shown only where the user named it."""
    folder = scratch()
    project, other = os.path.join(folder, "project"), os.path.join(folder, "other")
    for one in (project, project + "/src", project + "/build", other):
        os.mkdir(one)
    named = {other + "/secret.c": "forbidden", project + "/src/inner.c": "current", project + "/notes": "forbidden",
             project + "/link.c": "forbidden", "/etc/hostname": "forbidden"}
    for name in (other + "/secret.c", project + "/src/inner.c", project + "/notes", project + "/CMakeLists.txt"):
        with open(name, "w", encoding="utf-8") as file:
            file.write("int a_line;\n")
        os.utime(name, (1, 1))
    os.symlink(other + "/secret.c", project + "/link.c")
    code = ["#include <stdlib.h>"]
    for i, name in enumerate(named):
        code += ['#line 1 "%s"' % name, "__attribute__((noinline)) void *f%d(int n) { void *b = malloc(n); __asm__(\"\"); return b; }" % i]
    code += ["int main(void) { return %s; }" % " + ".join("(f%d(%d) == 0)" % (i, 100 + i) for i in range(len(named)))]
    with open(project + "/build/main.c", "w", encoding="utf-8") as file:
        file.write("\n".join(code) + "\n")
    program = project + "/build/main"
    equal(execute(["gcc", "-g", "-O0", "main.c", "-o", "main"], cwd=project + "/build").returncode, 0, "gcc")
    elsewhere = scratch()
    equal(record([program], elsewhere).returncode, 0, "the program")
    path = only_recording(elsewhere, "main")

    def states(*options):
        server = Server(path, options=options)
        files = {row["file"]: row["number"] for row in server.rows("/r/1/files", limit=1000)}
        found = {name: server.data("/r/1/files/%d/text" % files[name]) for name in named}
        server.close()
        for name, data in found.items():
            equal(data["text"] is None, data["state"] == "forbidden", name)
        return {name: data["state"] for name, data in found.items()}

    equal(states(), named, "as it is")
    equal(states("--sources", other), named | {other + "/secret.c": "current", project + "/link.c": "current"}, "--sources")
    remote = ("--allow-remote",)
    equal(set(states(*remote).values()), {"forbidden"}, "--allow-remote")
    equal(states(*remote, "--sources", project),
          dict.fromkeys(named, "forbidden") | {project + "/src/inner.c": "current", project + "/notes": "current"}, "both")


def hashed(folder):
    """clang puts the MD5 of each source file into DWARF 5: contents count, not times."""
    os.makedirs(os.path.join(folder, "inside"))
    source = os.path.join(folder, "inside", "subject.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(TEXT)
    for number, how in enumerate((["-gdwarf-5"], ["-gdwarf-5", "-gz=zlib"], ["-gdwarf-5", "-gdwarf64"], ["-gdwarf-4"])):
        there = os.path.join(folder, "run%d" % number)
        program = os.path.join(there, "subject")
        os.mkdir(there)
        # A relative path with a detour: frames name it without.
        equal(execute(["clang", "-g", *how, "-O0", "../inside/./subject.c", "-o", program], cwd=there).returncode, 0, "clang", how)
        equal(record([program], there).returncode, 0, "the program")
        if b"subject.c" not in execute(["eu-addr2line", "-e", program, "main"]).stdout:
            print("not tested with", *how, "which libdw does not read of this clang")
            continue
        path = only_recording(there, "subject")
        has_hash = "-gdwarf-4" not in how
        equal(text_of(path)[:2], ("current", TEXT), how, "as it was compiled")
        os.utime(source, (time.time() + 100, time.time() + 100))
        equal(text_of(path)[0], "current" if has_hash else "newer", how, "touched")
        with open(source, "a", encoding="utf-8") as file:
            file.write("/* more */\n")
        os.utime(source, (1, 1))
        equal(text_of(path)[0], "differs" if has_hash else "current", how, "another text, though an old one")
        with open(source, "w", encoding="utf-8") as file:
            file.write(TEXT)
        os.utime(source, (1, 1))


def anonymous(path, folder):
    hidden = os.path.join(folder, "hidden.mtr")
    result = execute([MEMTRACE, "anonymize", path, "--output", hidden], clean_environment(MEMTRACE_CACHE=""))
    equal(result.returncode, 0, "anonymize", result.stderr)
    server = Server(hidden)
    files = server.rows("/r/1/files", limit=1000)
    if not files:
        fail("no files of an anonymised recording")
    for row in files:
        data = server.data("/r/1/files/%d/text" % row["number"])
        equal((data["state"], data["text"]), ("forbidden", None), row["file"])
    server.close()


main()
finish()
