#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/setup on other systems, with stand-ins for their package managers that write down what they are asked: each
package is asked for by the name that it has there, once, and what is there already is not. And what it says where there is
no manager that it knows, where a package cannot be had, and where it is not root. What cmake then configures is what a
user builds: no tests, nothing that only tests need; and cpack makes no .deb without what tells its dependencies."""

import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
# What the scripts themselves call; nothing else of this system is seen, least of all its package manager.
TOOLS = ["bash", "env", "awk", "grep", "tail", "head", "mktemp", "rm", "dirname", "id", "cat"]
COMPILERS = {"gcc": "14", "clang": "19"}

# The tool that tells what is installed; with what words before the package.
ASKS = {"dnf": ("rpm", ["-q", "--whatprovides"]), "pacman": ("pacman", ["-T"]), "apk": ("apk", ["info", "-e"]),
        "apt-get": ("dpkg-query", ["-W", "-f"])}
INSTALLS = {"dnf": ["install", "-y", "--setopt=install_weak_deps=False"], "pacman": ["-S", "--needed", "--noconfirm"],
            "apk": ["add", "--update-cache"]}
# Some of each system's names, written down here on their own, by what they are for.
NAMES = {
    "dnf": ["gcc-c++", "glibc-devel", "elfutils-devel", "ncurses-devel", "protobuf-c-compiler", "xz-devel"],
    "pacman": ["gcc", "glibc", "libelf", "ncurses", "protobuf-c", "xz"],
    "apk": ["g++", "musl-dev", "elfutils-dev", "ncurses-dev", "protobuf-c-compiler", "xz-dev"],
}
PLUGINS = {"dnf": ["gcc-plugin-devel", "llvm-devel"], "pacman": ["gmp", "llvm"],
           "apk": ["gmp-dev", "mpfr-dev", "mpc1-dev", "llvm19-dev"]}


def system(folder, manager, installed=(), lacks=None):
    """A PATH with stand-ins; what they are asked is written to folder/asked."""
    path = os.path.join(folder, "bin")
    os.mkdir(path)
    for tool in TOOLS:
        for where in os.environ["PATH"].split(os.pathsep):
            if os.access(os.path.join(where, tool), os.X_OK):
                os.symlink(os.path.realpath(os.path.join(where, tool)), os.path.join(path, tool))
                break
    for compiler, version in COMPILERS.items():
        stand_in(path, compiler, 'echo %s.2.1' % version)
    if manager:
        asks, words = ASKS[manager]
        there = "|".join(installed) or "nothing"
        # The package is the last word; the words before tell a question from an order.
        body = 'echo "%%s $*" >>%s/asked\n' % folder
        install = body % manager + ("echo 'Error: Unable to find a match: %s' >&2; exit 1" % lacks if lacks else "exit 0")
        question = 'for last; do :; done; case $last in %s) exit 0 ;; esac; exit 1' % there
        if asks == manager:
            stand_in(path, manager, 'case "$1" in %s) %s ;; esac\n%s' % (words[0], question, install))
        else:
            stand_in(path, manager, install)
            stand_in(path, asks, question)
    return path


def stand_in(path, name, body):
    with open(os.path.join(path, name), "w", encoding="utf-8") as file:
        file.write("#!/bin/bash\n%s\n" % body)
    os.chmod(os.path.join(path, name), 0o755)


def setup(manager, user=0, **settings):
    """Its status, what it said, and the packages of each order of the manager."""
    with tempfile.TemporaryDirectory(prefix="memtrace-setup-") as folder:
        os.chmod(folder, 0o777)
        path = system(folder, manager, **settings)
        # Another user may not see this tree.
        shutil.copytree(os.path.join(SOURCE, "scripts"), os.path.join(folder, "scripts"))
        subprocess.run(["chmod", "-R", "a+rX", os.path.join(folder, "scripts")], check=True)
        done = subprocess.run(["/bin/bash", os.path.join(folder, "scripts", "setup")], env={"PATH": path}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/",
                              preexec_fn=(lambda: os.setuid(user)) if user else None)
        orders = []
        if os.path.exists(os.path.join(folder, "asked")):
            with open(os.path.join(folder, "asked"), encoding="utf-8") as file:
                orders = [line.split() for line in file]
    return done.returncode, done.stdout, orders


def equal(found, expected, what):
    if found != expected:
        sys.exit("%s:\n  found    %s\n  expected %s" % (what, found, expected))


def all_names():
    """{Debian's name: {manager: [names]}} of the table."""
    with open(os.path.join(SOURCE, "scripts", "packages.txt"), encoding="utf-8") as file:
        rows = [line.split() for line in file if not line.startswith("#")]
    equal({len(row) for row in rows}, {4}, "columns of packages.txt")
    return {row[0]: dict(zip(("dnf", "pacman", "apk"), (field.split(",") for field in row[1:]))) for row in rows}


def check(manager):
    table = all_names()
    status, said, orders = setup(manager)
    equal(status, 0, manager + ": status, " + said)
    equal([order[:len(INSTALLS[manager]) + 1] for order in orders], [[manager] + INSTALLS[manager]] * 2, "orders, " + said)
    building, plugins = (order[len(INSTALLS[manager]) + 1:] for order in orders)
    equal(len(building), len(set(building)), "%s: a package twice: %s" % (manager, building))
    equal([name for name in NAMES[manager] if name not in building], [], "%s: lacking in %s" % (manager, building))
    known = {name for row in table.values() for name in row[manager]}
    equal([name for name in building if name not in known], [], manager + ": not of the table")
    equal(plugins, PLUGINS[manager], manager + ": for plugins")

    # Again, with all but one there.
    there = [name for name in building + plugins if name != NAMES[manager][2]]
    status, said, orders = setup(manager, installed=there)
    equal((status, [order[-1] for order in orders]), (0, [NAMES[manager][2]]), manager + ": the missing one, " + said)
    status, said, orders = setup(manager, installed=building + plugins)
    equal((status, orders), (0, []), manager + ": all there, " + said)
    equal(said.splitlines(), ["setup: packages for building: all there", "setup: packages for compiler plugins: all there"],
          manager + ": all there")

    status, said, orders = setup(manager, lacks="elfutils-devel")
    line = said.splitlines()[-1]
    equal((status, line.startswith("setup: cannot install "), line.endswith(": Error: Unable to find a match: elfutils-devel")),
          (1, True, True), manager + ": one that cannot be had, " + said)
    if os.getuid() == 0:
        status, said, orders = setup(manager, user=65534)
        line = said.splitlines()[-1]
        equal((status, orders, line.startswith("setup: cannot install "),
               line.endswith(": needs root: run sudo scripts/setup")), (1, [], True, True), manager + ": not root, " + said)


def check_configuration():
    """As README.md says it: no option."""
    with tempfile.TemporaryDirectory(prefix="memtrace-configured-") as folder:
        subprocess.run(["cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja"], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(folder, "build.ninja"), encoding="utf-8") as file:
            rules = file.read()
        with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as file:
            cache = file.read()
    equal([word for word in ("tests/", "benchmarks/", "cmocka") if word in rules], [], "built for a user")
    equal([word for word in ("python3", "cmocka") if word in cache], [], "looked for when a user builds")


def check_package():
    """Nothing but cmake itself is in PATH."""
    cmake = shutil.which("cmake")
    with tempfile.TemporaryDirectory(prefix="memtrace-package-") as folder:
        for generator, path, expected in (("DEB", folder, (1, True)), ("TGZ", folder, (0, False)),
                                          ("DEB", os.environ["PATH"], (0, False))):
            done = subprocess.run([cmake, "-DCPACK_GENERATOR=" + generator, "-P",
                                   os.path.join(SOURCE, "cmake", "MemTracePackageNeeds.cmake")], env={"PATH": path},
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            words = " ".join(done.stdout.split())
            equal((done.returncode, "The .deb needs: apt-get install dpkg-dev file " in words), expected, generator + words)


def main():
    check_configuration()
    check_package()
    for manager in INSTALLS:
        check(manager)
    status, said, orders = setup(None)
    (line,) = said.splitlines()
    wanted = "setup: cannot install what is missing: there is no apt-get, dnf, pacman or apk; install by hand " \
             "(Debian's names): gcc g++ "
    equal((status, line[:len(wanted)], "libdw-dev" in line), (1, wanted, True), "no manager, " + said)


main()
