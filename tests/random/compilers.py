# SPDX-License-Identifier: MIT
"""The compilers there are, and what each needs for every mode of instrumentation."""

import os
import shutil

from oracle import BUILD, execute

LEVELS = ["-O0", "-O1", "-O2", "-O3", "-Os"]
NAMES = {"gcc": [("gcc", "g++")], "clang": [("clang", "clang++"), ("clang-14", "clang++-14")]}


def find():
    """{"gcc": (C, C++), "clang": (C, C++)}"""
    found = {}
    for family, pairs in NAMES.items():
        for pair in pairs:
            if all(map(shutil.which, pair)):
                found.setdefault(family, pair)
    return found


def plugin(family, command):
    """The plugin for exactly this compiler, or None."""
    version = execute([command, "-dumpversion"]).stdout.decode().strip().split(".")[0]
    path = os.path.join(BUILD, "lib", "memtrace", "%s-%s" % (family, version), "memtrace.so")
    return path if os.path.exists(path) else None


def modes(family, command):
    """{mode: flags} of those that can be had."""
    found = {
        "hooks": ["-finstrument-functions", "-fno-omit-frame-pointer"],
        "frame-pointer": ["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"],
    }
    path = plugin(family, command)
    if path:
        found["pass"] = [("-fplugin=" if family == "gcc" else "-fpass-plugin=") + path]
    return found
