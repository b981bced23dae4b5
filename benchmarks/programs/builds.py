# SPDX-License-Identifier: MIT
"""What the benchmark of real programs runs, and how it is built: Debian's source packages by
project.cmake.txt, once a variant (a compiler and a mode). Used by measure.py and figures.py."""

import collections
import filecmp
import os
import re
import shutil
import subprocess
import sys

import harness
from harness import say

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(SOURCE, "tests", "real"))

import debian  # noqa: E402

# base: the variant that this one is compared with.
Variant = collections.namedtuple("Variant", "name title family mode base")
VARIANTS = (
    Variant("gcc-bare", "bare", "gcc", "bare", None),
    Variant("gcc-frame-pointer", "frame pointers", "gcc", "frame-pointer", "gcc-bare"),
    Variant("gcc-hooks", "hooks", "gcc", "hooks", "gcc-bare"),
    Variant("gcc-pass", "pass", "gcc", "pass", "gcc-bare"),
    Variant("clang-bare", "Clang: bare", "clang", "bare", None),
    Variant("clang-frame-pointer", "Clang: frame pointers", "clang", "frame-pointer", "clang-bare"),
    Variant("clang-pass", "Clang: pass", "clang", "pass", "clang-bare"),
)
PACKAGES = {"LUA": "lua5.4", "SQLITE": "sqlite3", "REDIS": "redis", "CPPCHECK": "cppcheck"}
# What is built first in every variant: most of the time goes into the other one.
QUICK = ("lua", "speedtest1", "redis-server", "redis-benchmark", "pair", "recursion")
CXX = {"gcc": "g++", "clang": "clang++"}


def version(compiler):
    """The compiler (or another tool) in its own words, or None if it is not installed."""
    return harness.first_line(compiler, "--version")


def plugin(build_dir, family):
    """The plugin for the installed compiler of this family, which need not be there."""
    major = re.search(r"(\d+)\.\d+\.\d+", version(family) or "")
    folder = f"{family}-{major.group(1) if major else 'none'}"
    return os.path.join(build_dir, "lib", "memtrace", folder, "memtrace.so")


def sources(work):
    """{variable of project.cmake.txt: folder}; raises debian.Unavailable."""
    folders = {}
    for variable, package in PACKAGES.items():
        say(f"sources: {package}")
        folders[variable] = debian.source(package, os.path.join(work, "sources"))
    debian.amalgamation(folders["SQLITE"])
    return folders


def build(build_dir, work, as_it_is, names=None, targets=()):
    """Builds what is out of date, unless asked to take all as it is; only these variants and
    programs, if they are given. Returns the names of the variants that are there, and why others
    are not."""
    if as_it_is:
        return [variant.name for variant in VARIANTS
                if os.path.exists(os.path.join(work, variant.name, "redis-server"))], []
    project = os.path.join(work, "project")
    os.makedirs(project, exist_ok=True)
    copy_if_changed(os.path.join(HERE, "project.cmake.txt"),
                    os.path.join(project, "CMakeLists.txt"))
    settings = dict(sources(work), OVERHEAD=os.path.join(os.path.dirname(HERE), "overhead"))
    problems = {}
    wanted = [variant for variant in VARIANTS if not names or variant.name in names]
    for some in [targets] if targets else [QUICK, ()]:
        for variant in wanted:
            problem = build_variant(variant, build_dir, work, settings, some)
            if problem:
                problems[variant.name] = problem
                say(f"{variant.name}: {problem}")
    return ([variant.name for variant in wanted if variant.name not in problems],
            [f"{name}: {problem}" for name, problem in problems.items()])


def build_variant(variant, build_dir, work, settings, targets):
    """Why it could not be built, or None."""
    settings = dict(settings, MODE=variant.mode)
    if not version(variant.family):
        return f"no {variant.family} here"
    if variant.mode == "pass":
        made = plugin(build_dir, variant.family)
        if not os.path.exists(made):
            return f"no plugin for {version(variant.family)}"
        settings["PLUGIN"] = os.path.join(work, "plugins", variant.family, os.path.basename(made))
        copy_if_changed(made, settings["PLUGIN"])
    say(f"build: {variant.name}, {' '.join(targets) or 'all'}")
    folder = os.path.join(work, variant.name)
    configure = ["cmake", "-S", os.path.join(work, "project"), "-B", folder]
    if not os.path.exists(os.path.join(folder, "CMakeCache.txt")):
        configure += ["-G", "Ninja"] if version("ninja") else []
        settings.update(CMAKE_C_COMPILER=variant.family, CMAKE_CXX_COMPILER=CXX[variant.family])
    configure += [f"-D{name}={value}" for name, value in settings.items()]
    make = ["cmake", "--build", folder, "-j", str(os.cpu_count() or 1)]
    for command in (configure, make + (["--target", *targets] if targets else [])):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, check=False)
        if result.returncode != 0:
            log = folder + ".log"
            with open(log, "w", encoding="utf-8") as file:
                file.write(result.stdout)
            return f"the build failed, see {log}"
    return None


def copy_if_changed(path, target):
    """What was built with it is built again only where its contents are others."""
    if os.path.exists(target) and filecmp.cmp(path, target, shallow=False):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(path, target)
