#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The sections Meson and autotools of docs/flags.md, run as they stand: each in a project that asks about the system by a
program whose stderr it reads, and has a test that compares what its program writes to stderr."""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = """#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    char *text = malloc(100);
    snprintf(text, 100, "one line");
    fprintf(stderr, "%s\\n", text);
    free(text);
}
"""
TEST = """#!/bin/sh
test "$("$1" 2>&1)" = "one line"
"""
MESON = """project('flags', 'c')
asked = meson.get_compiler('c').run(files('app.c'), name: 'asked')
if asked.stderr() != 'one line\\n'
  error('what it asked: ' + asked.stderr())
endif
app = executable('app', 'app.c')
test('stderr', find_program('./test.sh'), args: app)
"""
CONFIGURE = """AC_INIT([flags], [1])
AC_PROG_CC
AC_RUN_IFELSE([AC_LANG_SOURCE([[PROGRAM]])], [./conftest$EXEEXT 2>asked], [AC_MSG_ERROR([does not run])])
test "$(cat asked)" = "one line" || AC_MSG_ERROR([what it asked: $(cat asked)])
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
""".replace("PROGRAM", PROGRAM)
MAKEFILE = """app: app.c
\t@CC@ @CFLAGS@ app.c @LDFLAGS@ -o app
check: app
\t./test.sh ./app
"""
PROJECTS = {"Meson": ("meson", {"meson.build": MESON}, "true"),
            "autotools": ("autoconf", {"configure.ac": CONFIGURE, "Makefile.in": MAKEFILE}, "autoconf")}


def section(title):
    """The commands that stand in it."""
    with open(os.path.join(ROOT, "docs", "flags.md"), encoding="utf-8") as file:
        return re.search(r"(?ms)^## %s\n.*?^```sh\n(.*?)^```$" % title, file.read()).group(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    build = os.path.abspath(parser.parse_args().build)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MEMTRACE", "CMAKE_", "CCACHE"))}
    environment["PATH"] = os.path.join(build, "bin") + ":/usr/bin:/bin:" + os.environ["PATH"]
    skipped = []
    for title, (tool, files, before) in PROJECTS.items():
        if not shutil.which(tool, path=environment["PATH"]):
            skipped.append(tool)
            continue
        with tempfile.TemporaryDirectory(prefix="memtrace-flags-", dir="/tmp") as folder:
            for name, text in {"app.c": PROGRAM, "test.sh": TEST, **files}.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            os.chmod(os.path.join(folder, "test.sh"), 0o755)
            done = subprocess.run(["bash", "-e", "-c", before + "\n" + section(title)], cwd=folder, env=environment, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            if done.returncode != 0:
                sys.exit("%s: status %d\n%s" % (title, done.returncode, done.stdout))
            # Of the test alone.
            found = glob.glob(os.path.join(folder, "**", "*.mtp"), recursive=True)
            if [os.path.basename(path).split(".")[1] for path in found] != ["app"]:
                sys.exit("%s: profiles: %s\n%s" % (title, found, done.stdout))
    if skipped:
        print("not there: " + ", ".join(skipped))
        sys.exit(77)


main()
